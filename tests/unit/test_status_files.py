"""The files that others script against."""

import os
from pathlib import Path

from supervisor.adapters.status_files import append_retired, replace_json
from supervisor.core import actions as act
from supervisor.core import events as ev
from supervisor.core.machine import State, initial, step
from supervisor.core.settings import Settings
from supervisor.report import status_of, summary_of

STORY: list[ev.Event] = [
    ev.RunStarted(
        at=0.0,
        run_id="r",
        active=("x1", "x2"),
        spares=("x3",),
        deadline=900.0,
        settings=Settings(ranks_per_host=1),
    ),
    ev.CheckpointChosen(at=0.0, attempt=1, step=None, path=""),
    ev.AttemptLaunched(at=1.0, attempt=1),
    ev.RankFailed(at=5.0, attempt=1, rank=1, host="x2", exit_code=None, signal=9, step=None),
    ev.AttemptEnded(
        at=6.0,
        attempt=1,
        exit_code=255,
        signal=None,
        ranks_total=2,
        ranks_succeeded=0,
        reports=True,
    ),
    ev.HostProbed(at=7.0, attempt=1, host="x1", answer="pass"),
    ev.HostProbed(at=7.0, attempt=1, host="x3", answer="pass"),
    ev.HostProbed(at=8.0, attempt=1, host="x2", answer="unreachable", why="no answer"),
    ev.CheckpointChosen(at=8.0, attempt=2, step=None, path=""),
]


def told() -> State:
    state = initial()
    for event in STORY:
        state, _ = step(state, event)
    return state


def test_status_has_the_agreed_fields() -> None:
    """A renamed field breaks other people's scripts."""
    status = status_of(told(), 9.0)

    assert set(status) == {
        "version",
        "run_id",
        "phase",
        "attempt",
        "step",
        "hosts",
        "deadline",
        "last_verdict",
        "updated_at",
    }
    assert status["hosts"] == {
        "active": ["x1", "x3"],
        "spare": [],
        "suspect": [],
        "retired": ["x2"],
    }
    assert (status["phase"], status["attempt"], status["deadline"]) == ("launching", 2, 900.0)
    assert (status["last_verdict"]["cause"], status["last_verdict"]["blame"]) == (
        "node_lost",
        ["x2"],
    )


def test_summary_tells_each_attempt_with_its_verdict() -> None:
    """What a run cost, and why."""
    finish = act.Finish(
        attempt=2, outcome=act.Outcome.GAVE_UP, exit_code=75, message="no spare is left"
    )
    summary = summary_of(STORY, finish)

    assert set(summary) == {
        "version",
        "outcome",
        "exit_code",
        "message",
        "attempts",
        "accounting",
    }
    assert (summary["outcome"], summary["exit_code"]) == ("gave_up", 75)
    assert [
        attempt["verdict"] and attempt["verdict"]["blame"] for attempt in summary["attempts"]
    ] == [
        ["x2"],
        None,
    ]
    assert summary["accounting"]["failures"] == 1


def test_retired_hosts_are_lines_of_four_fields_each_once(tmp_path: Path) -> None:
    """A tab or a newline in the reason must not make a field or a host."""
    path = tmp_path / "retired.txt"
    for why in ("lost\tits\nlink", "again"):
        append_retired(path, act.RetireHost(attempt=1, host="x2", cause="node_lost", why=why))

    assert path.read_text() == "x2\t1\tnode_lost\tlost its link\n"


async def test_a_replaced_file_leaves_nothing_beside_it(tmp_path: Path) -> None:
    """A reader sees the old file or the new one."""
    for number in (1, 2):
        await replace_json(tmp_path / "status.json", {"number": number})

    assert os.listdir(tmp_path) == ["status.json"]
