"""The journal on disk."""

from pathlib import Path

import pytest

from supervisor.adapters.journal import Journal, read_journal
from supervisor.core.actions import ChooseCheckpoint
from supervisor.core.events import AttemptLaunched, StopRequested, Ticked
from supervisor.errors import PlatformError

EVENTS = [Ticked(at=1.0), AttemptLaunched(at=2.0, attempt=1), StopRequested(at=3.0, signal=15)]


def write(path: Path) -> None:
    journal = Journal(path)
    for event in EVENTS:
        journal.append(event, [ChooseCheckpoint(attempt=1)])
    journal.close()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Replay starts from equal events."""
    path = tmp_path / "journal.jsonl"
    write(path)

    assert read_journal(path) == EVENTS


def test_no_file_is_no_past(tmp_path: Path) -> None:
    """A new run has an empty folder."""
    assert read_journal(tmp_path / "journal.jsonl") == []


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, cut: int) -> None:
    """kill -9 in the middle of a write: nothing had been done about that event yet."""
    path = tmp_path / "journal.jsonl"
    write(path)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    before = read_journal(path)
    write(path)

    assert (before, read_journal(path)) == (EVENTS[:2], EVENTS[:2] + EVENTS)


def test_damage_elsewhere_is_told(tmp_path: Path) -> None:
    """The journal is the truth; half of it is not."""
    path = tmp_path / "journal.jsonl"
    write(path)
    path.write_bytes(b"{}\n" + path.read_bytes())

    with pytest.raises(PlatformError, match=r"journal\.jsonl:1: damaged"):
        read_journal(path)


def test_a_full_disk_is_not_hidden() -> None:
    """An event that is not on disk must not be acted on."""
    journal = Journal(Path("/dev/full"))

    with pytest.raises(OSError, match="No space left"):
        journal.append(EVENTS[0], [])
