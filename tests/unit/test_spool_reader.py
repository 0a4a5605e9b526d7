"""The reader's half of the spool."""

import os
from pathlib import Path

import pytest

from supervisor.adapters.spool import BLOCK, SpoolReader, clear_spool


def read_all(reader: SpoolReader) -> bytes:
    return b"".join(iter(reader.read, b""))


def test_segments_are_read_in_order(tmp_path: Path) -> None:
    """out.000010 comes after out.000009, whatever the file system lists first."""
    for number in range(1, 12):
        (tmp_path / f"out.{number:06d}").write_bytes(b"%d," % number)

    assert read_all(SpoolReader(tmp_path, "out")) == b"1,2,3,4,5,6,7,8,9,10,11,"


def test_a_block_is_dated_by_when_its_bytes_were_there_and_not_by_the_newest_write(
    tmp_path: Path,
) -> None:
    """A supervisor that lags behind must not pass its own delay over in silence."""
    path = tmp_path / "out.000001"
    path.write_bytes(b"x" * (2 * BLOCK))
    os.utime(path, (1000.0, 1000.0))
    reader = SpoolReader(tmp_path, "out")
    dates: list[float | None] = []
    reader.read()
    with path.open("ab") as file:
        file.write(b"y" * BLOCK)
    os.utime(path, (2000.0, 2000.0))
    while reader.read():
        dates.append(reader.written_at)

    assert [pytest.approx(1000.0, abs=1.0), pytest.approx(2000.0, abs=1.0)] == dates
    assert reader.written_at is None


def test_growth_of_the_newest_segment_is_seen(tmp_path: Path) -> None:
    """The writer appends while we read."""
    path = tmp_path / "out.000001"
    path.write_bytes(b"one")
    reader = SpoolReader(tmp_path, "out")
    first = read_all(reader)
    with path.open("ab") as file:
        file.write(b"two")

    assert (first, read_all(reader)) == (b"one", b"two")


def test_bytes_added_just_before_the_next_segment_began_are_not_lost(tmp_path: Path) -> None:
    """The end of a segment may be written between our last read and the start of the next one."""
    path = tmp_path / "out.000001"
    path.write_bytes(b"one")
    reader = SpoolReader(tmp_path, "out")
    read_all(reader)
    with path.open("ab") as file:
        file.write(b"two")
    (tmp_path / "out.000002").write_bytes(b"three")

    assert read_all(reader) == b"twothree"


def test_reading_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A supervisor that returns starts in the middle of a segment."""
    (tmp_path / "out.000001").write_bytes(b"0123456789")

    assert read_all(SpoolReader(tmp_path, "out", 1, 4)) == b"456789"


def test_dropped_segments_are_skipped(tmp_path: Path) -> None:
    """The keeper drops the oldest when no supervisor lives and the disk bound is reached."""
    (tmp_path / "out.000003").write_bytes(b"later")

    assert read_all(SpoolReader(tmp_path, "out")) == b"later"


def test_segments_dropped_while_one_is_read_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "out.000001").write_bytes(b"first,")
    reader = SpoolReader(tmp_path, "out")
    first = read_all(reader)
    (tmp_path / "out.000001").unlink()
    none_yet = read_all(reader)
    (tmp_path / "out.000004").write_bytes(b"later")

    assert (first, none_yet, read_all(reader)) == (b"first,", b"", b"later")


def test_only_older_segments_are_deleted(tmp_path: Path) -> None:
    """What lies behind the saved position goes, the rest stays."""
    for number in (1, 2, 3):
        (tmp_path / f"out.{number:06d}").write_bytes(b"x")
    (tmp_path / "err.000001").write_bytes(b"x")
    SpoolReader(tmp_path, "out").discard_before(3)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["err.000001", "out.000003"]


def test_clearing_leaves_the_position(tmp_path: Path) -> None:
    """read.json tells a supervisor that returns what the attempt had come to."""
    (tmp_path / "out.000001").write_bytes(b"x")
    (tmp_path / "read.json").write_text("{}")
    clear_spool(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["read.json"]
