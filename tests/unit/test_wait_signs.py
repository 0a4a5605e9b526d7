"""Signs of life of a run that waits."""

from dataclasses import replace

from supervisor.adapters.wait_signs import WaitSigns
from supervisor.core.events import ProgressSeen
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import make_ledger
from supervisor.core.progress import with_digest
from supervisor.core.settings import Settings
from supervisor.core.state import Phase, State
from supervisor.core.waits import waited_for

HOSTS = ("a", "b", "c", "d", "e", "f")
STATE = State(
    attempt=2,
    settings=Settings(ranks_per_host=2),
    ledger=make_ledger(HOSTS, ()),
    evidence=Evidence(attempt=2),
)


DIGEST = ProgressSeen(
    at=1.0,
    attempt=2,
    ranks_started=7,
    step=None,
    top_step=None,
    phase="launch",
    step_at=None,
    output_at=0.0,
)


def signs(*moments: tuple[str, str | None, float]) -> list[str]:
    said: list[str] = []
    waiting = WaitSigns(said.append)
    for wait, text, at in moments:
        waiting.look(wait, text, at)
    return said


def test_a_short_wait_says_nothing() -> None:
    assert signs(("a", "x", 0.0), ("a", "x", 1.9), ("a", None, 2.5)) == []


def test_a_long_wait_says_so_more_and_more_seldom() -> None:
    said = signs(*(("a", "x", float(second)) for second in range(20)))

    assert said == ["x (2 s so far)", "x (4 s so far)", "x (8 s so far)", "x (16 s so far)"]


def test_each_wait_begins_anew() -> None:
    assert signs(("a", "x", 0.0), ("b", "y", 1.5), ("b", "y", 2.5)) == []


def test_what_is_waited_for_stands_in_words() -> None:
    probing = replace(STATE, phase=Phase.PROBING, asked=HOSTS, unanswered=frozenset(HOSTS))
    up = replace(STATE, phase=Phase.RUNNING, watch=with_digest(STATE.watch, DIGEST))
    told = {phase: waited_for(replace(STATE, phase=phase)) for phase in Phase}

    assert waited_for(probing) == "waiting for 6 hosts to answer: a, b, c, d and 2 more"
    assert told[Phase.RUNNING] == "attempt 2: launched, waiting for the first step"
    assert waited_for(up) == "attempt 2: 7 of 12 ranks up, waiting for the first step"
    assert told[Phase.ENDING] == "waiting for attempt 2 to end"
    assert told[Phase.SWEEPING] == "seeing that nothing of the run is left on any host"
    assert told[Phase.PREPARING] == "choosing the checkpoint to resume from"


def test_a_run_that_trains_waits_for_nothing() -> None:
    stepped = replace(STATE.evidence, first_step=1)

    assert waited_for(replace(STATE, phase=Phase.RUNNING, evidence=stepped)) is None
