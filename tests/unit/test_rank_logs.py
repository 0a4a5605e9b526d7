"""Rank logs: the bytes of each rank at their offsets."""

from pathlib import Path

from supervisor.adapters.rank_logs import RankLogs


def test_a_piece_written_twice_changes_nothing(tmp_path: Path) -> None:
    """A supervisor that returns reads the last second of the spool again."""
    logs = RankLogs(tmp_path)
    for offset, data in ((0, b"hello "), (6, b"world"), (0, b"hello "), (6, b"world")):
        logs.write(2, offset, data)

    assert logs.path(2).read_bytes() == b"hello world"


def test_any_bytes_are_kept(tmp_path: Path) -> None:
    """NUL, invalid UTF-8 and carriage returns are the user's."""
    data = bytes(range(256)) * 3
    logs = RankLogs(tmp_path)
    logs.write(0, 0, data)

    assert logs.path(0).read_bytes() == data


def test_more_ranks_than_descriptors(tmp_path: Path) -> None:
    """10,000 ranks share a bounded number of open files."""
    logs = RankLogs(tmp_path)
    for rank in range(600):
        logs.write(rank, 0, b"a")
    for rank in range(600):
        logs.write(rank, 1, b"b")

    assert {logs.path(rank).read_bytes() for rank in range(600)} == {b"ab"}
