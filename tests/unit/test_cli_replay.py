"""`supervise replay` shows from the journal alone why each decision fell, and only reads."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from supervisor.core import events as ev
from supervisor.core import machine, record
from supervisor.core.settings import Settings

if TYPE_CHECKING:
    from tests.conftest import Supervise

STARTED = ev.RunStarted(
    at=100.0,
    run_id="r",
    active=("h1", "h2"),
    spares=("h3",),
    deadline=None,
    settings=Settings(ranks_per_host=1),
)
STOPPED = ev.StopRequested(at=101.5, signal=15)


def _journal(folder: Path, *events: ev.Event) -> Path:
    """What a supervisor that met these events would have written."""
    folder.mkdir()
    path, state, lines = folder / "journal.jsonl", machine.initial(), []
    for event in events:
        state, actions = machine.step(state, event)
        entry = record.event_to_json(event)
        lines.append(entry | {"actions": [record.action_to_json(action) for action in actions]})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_replay_tells_events_and_what_they_led_to(supervise: "Supervise") -> None:
    _journal(supervise.folder / "mine", STARTED, STOPPED)

    ended = supervise("replay", "mine")

    assert (ended.exit_code, ended.stderr) == (0, "")
    assert "0.000  RunStarted run_id=r active=h1,h2 spares=h3" in ended.stdout
    assert "=> ChooseCheckpoint attempt=1" in ended.stdout
    assert "1.500  StopRequested signal=15" in ended.stdout


def test_half_written_line_of_a_living_run_is_left_alone(supervise: "Supervise") -> None:
    path = _journal(supervise.folder / "mine", STARTED)
    with path.open("a") as file:
        file.write('{"v": 1, "event": "Tic')
    before = path.read_bytes()

    ended = supervise("replay", "mine")

    assert ended.exit_code == 0
    assert path.read_bytes() == before


def test_decision_that_would_now_fall_otherwise_is_shown(supervise: "Supervise") -> None:
    path = _journal(supervise.folder / "mine", STARTED)
    entry = json.loads(path.read_text()) | {"actions": []}
    path.write_text(json.dumps(entry) + "\n")

    ended = supervise("replay", "mine")

    assert ended.exit_code == 1
    assert "the journal has otherwise: nothing" in ended.stdout


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no event yet"),
        ("{}\n", "journal.jsonl, line 1: damaged"),
        ("[]\n", "journal.jsonl, line 1: damaged"),
        ("garbage\n", "journal.jsonl, line 1: damaged"),
    ],
)
def test_damaged_journal_is_one_line(supervise: "Supervise", content: str, words: str) -> None:
    _journal(supervise.folder / "mine", STARTED).write_text(content)

    ended = supervise("replay", "mine")

    assert ended.exit_code == 2
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
