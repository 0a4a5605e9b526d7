"""The logs of a job as blocks: files, gzip, folders, pipes, standard input, and what is none."""

import gzip
import os
import threading
from pathlib import Path

import pytest

from supervisor.adapters.log_files import BLOCK, LogFile, find_logs, read_blocks
from supervisor.errors import UsageError

LINES = b"".join(b"line %d of a log\n" % number for number in range(100_000))


def _only(path: Path) -> LogFile:
    (log,) = find_logs([str(path)])
    return log


def _read(path: Path) -> bytes:
    return b"".join(read_blocks(_only(path)))


def _refused(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        list(read_blocks(_only(path)))
    return str(caught.value)


def _names(folder: Path) -> list[str]:
    return [log.name for log in find_logs([str(folder)])]


def _write(path: Path, data: bytes = b"a line\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_file_is_read_in_blocks_that_end_with_a_line(tmp_path: Path) -> None:
    blocks = list(read_blocks(_only(_write(tmp_path / "job.log", LINES))))

    assert LINES == b"".join(blocks)
    assert len(blocks) > 1
    assert {b"\n"} == {block[-1:] for block in blocks}
    assert max(map(len, blocks)) <= BLOCK


def test_a_last_line_without_an_end_is_read(tmp_path: Path) -> None:
    assert b"one\ntwo" == _read(_write(tmp_path / "job.log", b"one\ntwo"))


def test_an_empty_file_is_a_log_that_says_nothing(tmp_path: Path) -> None:
    assert b"" == _read(_write(tmp_path / "job.log", b""))


def test_bars_end_a_block_where_no_line_does(tmp_path: Path) -> None:
    bars = b"".join(b"%d%%|###  |\r" % number for number in range(60_000))
    blocks = list(read_blocks(_only(_write(tmp_path / "job.log", bars))))

    assert bars == b"".join(blocks)
    assert {b"\r"} == {block[-1:] for block in blocks}


def test_a_line_of_100_mb_is_handed_on_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    with path.open("wb") as file:
        file.truncate(100_000_000)  # one line of zeros that takes no room
    sizes = [len(block) for block in read_blocks(_only(path))]

    assert (100_000_000, BLOCK) == (sum(sizes), max(sizes))


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    assert LINES == _read(_write(tmp_path / "job.log", gzip.compress(LINES)))


def test_gzip_cut_short_is_a_mistake_told_in_a_line(tmp_path: Path) -> None:
    said = _refused(_write(tmp_path / "job.log.gz", gzip.compress(LINES)[:-20]))

    assert "cannot be read to its end" in said
    assert "\n" not in said


def test_gzip_with_broken_bytes_is_a_mistake_told_in_a_line(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(LINES))
    data[100:200] = b"\xff" * 100

    assert "cannot be read to its end" in _refused(_write(tmp_path / "job.log.gz", bytes(data)))
    assert "cannot be read to its end" in _refused(_write(tmp_path / "2", b"\x1f\x8b no gzip"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.log: no such file"):
        find_logs([str(tmp_path / "gone.log")])


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "job.log")
    path.chmod(0)

    assert f"{path}: cannot be read: Permission denied" == _refused(path)


def test_a_file_that_went_away_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "job.log")
    log = _only(path)
    path.unlink()

    with pytest.raises(UsageError, match="cannot be read: No such file"):
        list(read_blocks(log))


@pytest.mark.parametrize("data", [LINES, gzip.compress(LINES)], ids=["text", "gzip"])
def test_a_pipe_is_read_as_a_file_is(tmp_path: Path, data: bytes) -> None:
    """`supervise explain <(ssh host cat job.log)`."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()

    assert LINES == _read(path)
    writer.join()


def test_of_a_pipe_as_much_is_told_as_came_out_of_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(LINES,))
    writer.start()
    told: list[int] = []
    for _ in read_blocks(_only(path), told.append):
        pass
    writer.join()

    assert len(LINES) == told[-1]


def test_how_much_is_read_is_told_in_bytes_on_disk(tmp_path: Path) -> None:
    path = _write(tmp_path / "job.log.gz", gzip.compress(LINES))
    told: list[int] = []
    for _ in read_blocks(_only(path), told.append):
        pass

    assert told == sorted(told)
    assert path.stat().st_size == told[-1]


def test_files_of_a_folder_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("rank_10.err", "rank_9.err", "sub/rank_1.err", "job.log"):
        _write(tmp_path / name)

    assert ["job.log", "rank_9.err", "rank_10.err", "sub/rank_1.err"] == _names(tmp_path)


def test_what_is_no_log_is_left_out_of_a_folder(tmp_path: Path) -> None:
    _write(tmp_path / "job.log")
    _write(tmp_path / "job.log.gz", gzip.compress(b"a line\n"))
    _write(tmp_path / "weights.bin", b"\x00\x01" * 100)
    _write(tmp_path / "summary.json")
    _write(tmp_path / ".hidden/old.log")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere.log").symlink_to(tmp_path / "gone")

    assert ["job.log", "job.log.gz"] == _names(tmp_path)


def test_a_folder_without_logs_is_a_mistake(tmp_path: Path) -> None:
    _write(tmp_path / "summary.json")

    with pytest.raises(UsageError, match="holds no log file"):
        find_logs([str(tmp_path)])


def test_a_run_folder_stands_for_its_newest_attempt(tmp_path: Path) -> None:
    """Attempts above 999 have longer names; the spool holds again what the logs hold."""
    _write(tmp_path / "journal.jsonl")
    for name in ("launcher.log", "ranks/00000.log", "spool/000", "launch.json"):
        for attempt in ("001", "999", "1000"):
            _write(tmp_path / "attempts" / attempt / name)
    (log, _) = find_logs([str(tmp_path)])

    assert ["launcher.log", "ranks/00000.log"] == _names(tmp_path)
    assert tmp_path / "attempts" / "1000" / "launcher.log" == log.path


def test_several_names_are_read_in_the_order_given(tmp_path: Path) -> None:
    paths = [str(_write(tmp_path / name)) for name in ("b.log", "a.log")]

    assert [*paths, "standard input"] == [log.name for log in find_logs([*paths, "-"])]


def test_a_log_that_grows_faster_than_it_is_read_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(b"step 1\n")
    (log,) = find_logs([str(path)])

    def grow(size: int) -> None:
        assert size < 10 * BLOCK
        with open(path, "ab") as file:
            file.write(b"step 2\n" * BLOCK)

    grow(0)
    assert b"".join(read_blocks(log, grow)).startswith(b"step 1\nstep 2\n")


def test_standard_input_that_is_closed_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)

    with pytest.raises(UsageError, match="standard input: is closed"):
        find_logs(["-"])
