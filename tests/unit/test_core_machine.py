"""The table of moves, and what stands outside the stories: wake-ups, taking over, odd moments."""

from dataclasses import replace

import pytest

from supervisor.core import moves
from supervisor.core.actions import (
    Action,
    ChooseCheckpoint,
    DumpStacks,
    EndAttempt,
    Finish,
    Launch,
    Outcome,
    ProbeHosts,
    Sweep,
)
from supervisor.core.events import (
    AttemptEnded,
    AttemptLaunched,
    CheckpointChosen,
    Event,
    HitSeen,
    HostProbed,
    LaunchFailed,
    ProgressSeen,
    RankFailed,
    RunStarted,
    StopRequested,
    SupervisorReturned,
    SweepFinished,
    Ticked,
)
from supervisor.core.machine import (
    TRANSITIONS,
    Phase,
    State,
    decide,
    initial,
    next_wake,
    outstanding,
    step,
)
from supervisor.core.settings import Settings
from supervisor.core.signature import Blames, Cause, Hit, Role, Source
from supervisor.errors import InvalidTransition

STARTED = RunStarted(
    at=1.0,
    run_id="r",
    active=("a", "b"),
    spares=("s",),
    deadline=None,
    settings=Settings(ranks_per_host=1, checkpoints=True),
)
CHOSEN = CheckpointChosen(at=2.0, attempt=1, step=7, path="/c/7")
LAUNCHED = AttemptLaunched(at=3.0, attempt=1)
SWEPT = SweepFinished(at=20.0, attempt=1, leftovers=0)
ENDED = AttemptEnded(
    at=10.0, attempt=1, exit_code=1, signal=None, ranks_total=2, ranks_succeeded=0, reports=True
)
FAILED = RankFailed(at=9.0, attempt=1, rank=1, host="b", exit_code=None, signal=9, step=None)
SILENT = ProgressSeen(
    at=60.0,
    attempt=1,
    ranks_started=2,
    step=8,
    top_step=8,
    phase="step",
    step_at=59.0,
    output_at=60.0,
    silent=(("b", 9.0),),
    beating=1,
)


def after(*events: Event) -> State:
    return told(*events)[0]


def told(*events: Event) -> tuple[State, tuple[Action, ...]]:
    state, actions = initial(), ()
    for event in events:
        state, actions = step(state, event)  # type: ignore[assignment]
    return state, actions


def probed(host: str, answer: str = "pass", live: bool = False) -> HostProbed:
    return HostProbed(at=61.0, attempt=1, host=host, answer=answer, live=live)


RUNNING = after(STARTED, CHOSEN, LAUNCHED)
PROBING = after(STARTED, CHOSEN, LAUNCHED, ENDED)


def test_every_phase_has_its_row_and_its_function() -> None:
    assert set(Phase) == set(TRANSITIONS) == set(moves.BY_PHASE)


def test_every_phase_is_reached_and_every_one_but_the_last_is_left() -> None:
    reached = {target for row in TRANSITIONS.values() for target in row.values()}

    assert set(Phase) - {Phase.NEW} == reached
    assert [Phase.FINISHED] == [phase for phase, row in TRANSITIONS.items() if not row]


def test_an_illegal_move_tells_its_story(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hole in the table is our bug: the message must be enough to find it."""
    monkeypatch.setitem(TRANSITIONS, Phase.LAUNCHING, {})  # type: ignore[arg-type]

    with pytest.raises(InvalidTransition) as caught:
        step(after(STARTED, CHOSEN), LAUNCHED)

    assert "no move 'launched'" in str(caught.value)
    assert "new -begin-> preparing; preparing -launch-> launching" in str(caught.value)


def test_nothing_happens_before_the_run_starts() -> None:
    assert (initial(), ()) == told(Ticked(at=1.0))


def test_a_stop_that_came_before_the_start_is_kept() -> None:
    state, actions = told(StopRequested(at=0.5, signal=15), STARTED)

    assert Phase.FINISHED is state.phase
    assert [(Outcome.STOPPED, 143, "stopped by SIGTERM before any attempt")] == [
        (action.outcome, action.exit_code, action.message)
        for action in actions
        if isinstance(action, Finish)
    ]


def test_a_second_run_on_the_same_state_is_not_started() -> None:
    assert RUNNING == step(RUNNING, replace(STARTED, at=5.0, active=("z",)))[0]


@pytest.mark.parametrize("signal", [None, 4])
def test_a_stop_says_who_asked(signal: int | None) -> None:
    by = "on request" if signal is None else "by signal 4"
    stop = StopRequested(at=3.0, signal=signal)
    _, actions = told(STARTED, CHOSEN, stop, LAUNCHED, ENDED)

    assert (Sweep(attempt=1, hosts=("a", "b")),) == actions
    state = after(STARTED, CHOSEN, stop, LAUNCHED, ENDED, SWEPT)
    assert state.finish is not None
    assert f"stopped {by} in attempt 1" == state.finish.message


@pytest.mark.parametrize("before", [(STARTED,), (STARTED, CHOSEN, LAUNCHED, ENDED)])
def test_a_stop_between_attempts_goes_straight_to_the_sweep(before: tuple[Event, ...]) -> None:
    state, actions = told(*before, StopRequested(at=20.0, signal=2))

    assert Phase.SWEEPING is state.phase
    assert [Sweep] == [type(action) for action in actions]


def test_a_stop_and_a_failed_launch_is_a_stop() -> None:
    failed = LaunchFailed(at=4.0, attempt=1, why="no launcher")
    state = after(STARTED, CHOSEN, StopRequested(at=3.0, signal=2), failed, SWEPT)

    assert state.finish is not None
    assert 130 == state.finish.exit_code


def test_an_attempt_that_ends_before_it_was_known_to_run_is_judged() -> None:
    """A supervisor killed between launch and note sees only the end."""
    assert Phase.PROBING is after(STARTED, CHOSEN, ENDED).phase


def test_a_stop_while_dumping_does_not_wait_for_stacks() -> None:
    hung = replace(SILENT, at=5000.0, step_at=4.0, silent=(), output_at=5000.0)
    dumping = after(STARTED, CHOSEN, LAUNCHED, replace(hung, at=4.0), hung)

    assert Phase.DUMPING is dumping.phase
    state, actions = step(dumping, StopRequested(at=5001.0, signal=15))
    assert Phase.ENDING is state.phase
    assert [EndAttempt(attempt=1, grace=30.0, why="stop requested")] == list(actions)
    assert Phase.PROBING is step(dumping, replace(ENDED, at=5001.0))[0].phase


def test_two_requests_before_there_is_anything_to_end_make_haste() -> None:
    stops = (StopRequested(at=3.0, signal=2), StopRequested(at=3.1, signal=2))
    _, actions = told(STARTED, CHOSEN, *stops, LAUNCHED)

    assert (EndAttempt(attempt=1, grace=0.5, why="stop requested"),) == actions


def test_a_fault_whose_ranks_are_all_victims_still_ends_the_attempt() -> None:
    torn = replace(FAILED, signal=15)
    _, actions = told(STARTED, CHOSEN, LAUNCHED, torn, Ticked(at=12.0))

    assert "rank 1 on b failed" == getattr(actions[-1], "why", None)


def test_a_spare_named_by_proof_does_not_end_the_attempt() -> None:
    def lost(host: str) -> HitSeen:
        hit = Hit(
            signature="lost",
            title="lost",
            cause=Cause.NODE_LOST,
            role=Role.PROOF,
            blames=Blames.NAMED,
            source=Source.LAUNCHER,
            host=None,
            rank=None,
            named=(host,),
            line=f"{host} is gone",
            line_number=1,
        )
        return HitSeen(at=5.0, attempt=1, hit=hit)

    assert next_wake(step(RUNNING, lost("s"))[0]) is None
    assert 8.0 == next_wake(step(RUNNING, lost("b"))[0])


def test_late_proof_during_the_probes_still_counts() -> None:
    """Kernel logs of other hosts arrive after the launcher is gone."""
    hit = Hit(
        signature="xid-79",
        title="device fell off the bus",
        cause=Cause.NODE_HARDWARE,
        role=Role.PROOF,
        blames=Blames.REPORTER,
        source=Source.KERNEL,
        host="b",
        rank=None,
        named=(),
        line="NVRM: Xid 79",
        line_number=1,
    )
    state = after(STARTED, CHOSEN, LAUNCHED, ENDED, HitSeen(at=11.0, attempt=1, hit=hit))
    for host in ("a", "b", "s"):
        state, _ = step(state, probed(host))

    assert state.verdict is not None
    assert ("b",) == state.verdict.blame


def test_the_answer_to_a_look_is_not_the_answer_to_a_probe() -> None:
    """A look answered late would count a host as reaped that was not."""
    late = step(PROBING, probed("a", live=True))[0]

    assert PROBING == late
    assert {"a", "b", "s"} == late.unanswered


def test_answers_of_hosts_that_were_not_asked_change_nothing() -> None:
    assert PROBING == step(PROBING, probed("z"))[0]
    assert RUNNING == step(RUNNING, probed("b", "unreachable", live=True))[0]


def test_a_silent_host_that_fails_its_probe_is_retired_but_reaped() -> None:
    looked = (STARTED, CHOSEN, LAUNCHED, SILENT, probed("b", "fail", live=True))
    state, actions = told(*looked, replace(ENDED, at=70.0))

    assert (ProbeHosts(attempt=1, hosts=("a", "b", "s"), reap=True),) == actions
    assert 1 == len(state.evidence.convicted)


def test_preflight_on_a_place_where_nothing_answers_is_the_platforms_fault() -> None:
    careful = replace(STARTED, settings=replace(STARTED.settings, preflight=True))
    state = after(careful)
    for host in ("a", "b", "s"):
        state, _ = step(state, replace(probed(host, "unreachable"), attempt=0))

    assert state.finish is not None
    assert (3, 0) == (state.finish.exit_code, state.finish.attempt)


def test_preflight_without_enough_spares_asks_for_another_allocation() -> None:
    careful = replace(STARTED, spares=(), settings=replace(STARTED.settings, preflight=True))
    state = after(careful)
    for host, answer in (("a", "pass"), ("b", "fail")):
        state, _ = step(state, replace(probed(host, answer), attempt=0))

    assert state.finish is not None
    assert 75 == state.finish.exit_code


def test_preflight_on_a_sound_place_just_begins() -> None:
    careful = replace(STARTED, settings=replace(STARTED.settings, preflight=True))
    state, actions = told(careful)
    for host in ("a", "b", "s"):
        state, actions = step(state, replace(probed(host), attempt=0))

    assert (ChooseCheckpoint(attempt=1),) == actions
    assert Phase.PREPARING is state.phase


def test_bad_checkpoints_are_told() -> None:
    state, actions = told(STARTED, CHOSEN, LAUNCHED, FAILED, ENDED)
    for host in ("a", "b", "s"):
        state, actions = step(state, probed(host))
    again = CheckpointChosen(at=70.0, attempt=2, step=6, path="/c/6", set_aside=("step-7",))
    _, actions = step(state, again)

    assert str(getattr(actions[0], "text", "")).endswith(
        "relaunching now from step 6 (set aside: step-7)"
    )


def test_last_words_are_told_when_nothing_else_explains() -> None:
    spoken = replace(ENDED, last_words=("  ", "Segmentation fault in libfoo", "bye"))
    no_budget = replace(STARTED, settings=replace(STARTED.settings, max_relaunches=0))
    state = after(no_budget, CHOSEN, LAUNCHED, FAILED, spoken)
    for host in ("a", "b", "s"):
        state, _ = step(state, probed(host))
    state, _ = step(state, replace(CHOSEN, at=70.0, attempt=2))

    assert state.finish is not None
    assert "last words: Segmentation fault in libfoo | bye" in state.finish.message


def test_many_blamed_hosts_are_counted() -> None:
    wide = replace(STARTED, active=tuple("abcdefghi"), spares=())
    state = after(wide, CHOSEN, LAUNCHED, ENDED)
    for host in "abcdefghi":
        state, _ = step(state, probed(host, "pass" if host > "e" else "unreachable"))
    state, _ = step(state, replace(CHOSEN, at=70.0, attempt=2))

    assert state.finish is not None
    assert "node_lost on a, b, c, d and 1 more" in state.finish.message
    assert "s is the last" not in state.finish.message


OUTSTANDING: list[tuple[State, tuple[Action, ...]]] = [
    (initial(), ()),
    (after(STARTED), (ChooseCheckpoint(attempt=1),)),
    (
        after(STARTED, CHOSEN),
        (Launch(attempt=1, hosts=("a", "b"), retired=(), resume_from="/c/7"),),
    ),
    (RUNNING, ()),
    (step(RUNNING, SILENT)[0], (ProbeHosts(attempt=1, hosts=("b",), reap=False),)),
    (
        step(RUNNING, replace(SILENT, at=5000.0, silent=(), step_at=4.0))[0],
        (),
    ),
    (
        step(PROBING, probed("a"))[0],
        (ProbeHosts(attempt=1, hosts=("b", "s"), reap=True),),
    ),
    (
        step(RUNNING, StopRequested(at=5.0, signal=15))[0],
        (EndAttempt(attempt=1, grace=30.0, why="stop requested"),),
    ),
    (
        step(PROBING, StopRequested(at=20.0, signal=15))[0],
        (Sweep(attempt=1, hosts=("a", "b")),),
    ),
]


@pytest.mark.parametrize(("state", "actions"), OUTSTANDING)
def test_who_takes_over_performs_what_was_not_answered(
    state: State, actions: tuple[Action, ...]
) -> None:
    assert actions == outstanding(state)


def test_who_takes_over_a_dump_or_a_finished_run_does_it_again() -> None:
    hung = replace(SILENT, at=5000.0, step_at=4.0, silent=())
    dumping = after(STARTED, CHOSEN, LAUNCHED, replace(hung, at=4.0), hung)
    swept = SweepFinished(at=30.0, attempt=1, leftovers=0)
    well = replace(ENDED, ranks_succeeded=2)
    done, actions = told(STARTED, CHOSEN, LAUNCHED, well, swept)

    assert (DumpStacks(attempt=1),) == outstanding(dumping)
    assert actions == outstanding(done)


def test_supervisors_that_return_are_counted_once_each() -> None:
    state = step(RUNNING, SupervisorReturned(at=5.0))[0]

    assert 1 == state.returned == step(state, SupervisorReturned(at=5.0))[0].returned
    assert 2 == step(state, SupervisorReturned(at=6.0))[0].returned


def test_deciding_again_changes_nothing() -> None:
    assert (RUNNING, ()) == decide(RUNNING, 3.0)
