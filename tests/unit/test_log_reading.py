"""Hits of a log in the order of time, each with its place; and the steps that were made."""

from collections.abc import Callable
from pathlib import Path

import pytest
from job_logs import matcher

from supervisor.adapters.log_files import find_logs
from supervisor.adapters.log_reading import LogRead, LogReader
from supervisor.core.signature import Hit, Source

HOSTS = ("gn11", "gn12")
XID = "{host} kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=71, GPU has fallen off the bus.\n"
GN11, GN12 = XID.format(host="gn11"), XID.format(host="gn12")
RAISED = "KeyError: 'lr'\n"

Reads = Callable[..., LogRead]


def _resolve(name: str) -> str | None:
    return name if name in HOSTS else None


def _place(rank: int) -> str | None:
    return HOSTS[rank // 2] if rank < 4 else None


@pytest.fixture
def read(tmp_path: Path) -> Reads:
    """Read these logs: a name and a text in turn."""

    def reads(*words: str) -> LogRead:
        reader = LogReader(matcher(), _resolve, _place)
        for name, text in zip(words[::2], words[1::2], strict=True):
            path = tmp_path / name
            path.write_bytes(text.encode())
            (log,) = find_logs([str(path)])
            reader.read(log)
        return reader.result()

    return reads


def _places(found: LogRead) -> list[tuple[str | None, int]]:
    return [(event.hit.host, event.hit.line_number) for event in found.hits]


def _only(found: LogRead) -> Hit:
    (event,) = found.hits
    return event.hit


def test_a_hit_has_its_file_and_line(read: Reads, tmp_path: Path) -> None:
    hit = _only(read("job.log", "one\ntwo\n" + GN11))

    assert (str(tmp_path / "job.log"), 3, "gn11") == (hit.file, hit.line_number, hit.host)


def test_lines_are_numbered_over_blocks_and_banners(read: Reads) -> None:
    filler = "nothing to see here\n" * 40_000
    found = read("job.log", filler + "==> rank_1.err <==\n" + filler + RAISED)

    assert [("gn11", 80_002)] == _places(found)
    assert 80_002 == found.lines


def test_hits_come_in_the_order_of_their_stamps(read: Reads) -> None:
    log = f"2026-03-21 10:00:05 {GN11}2026-03-21 10:00:01 {GN12}"

    assert [("gn12", 2), ("gn11", 1)] == _places(read("job.log", log))


def test_hits_without_stamps_come_in_the_order_of_the_log(read: Reads) -> None:
    assert [("gn12", 1), ("gn11", 2)] == _places(read("job.log", GN12 + GN11))


def test_a_line_without_a_stamp_takes_the_time_of_the_line_before(read: Reads) -> None:
    log = f"10:00:09 saving\n{GN11}### gn12 ###\n10:00:01 saving\n{GN12}"

    assert [("gn12", 5), ("gn11", 2)] == _places(read("job.log", log))


def test_clocks_before_the_first_date_belong_to_its_day(read: Reads) -> None:
    """One logger writes dates and another only the time of the day."""
    log = f"10:00:05 {GN11}2026-03-21 10:00:01 {GN12}"

    assert [("gn12", 2), ("gn11", 1)] == _places(read("job.log", log))


def test_clocks_after_a_date_belong_to_its_day(read: Reads) -> None:
    log = f"2026-03-21 10:00:05 {GN11}10:00:01 {GN12}"

    assert [("gn12", 2), ("gn11", 1)] == _places(read("job.log", log))


def test_times_of_several_files_are_compared(read: Reads) -> None:
    found = read("a.log", f"10:00:05 {GN11}", "b.log", f"10:00:01 {GN12}")

    assert [("gn12", 1), ("gn11", 1)] == _places(found)
    assert 2 == found.lines


def test_a_rank_stands_on_its_host(read: Reads) -> None:
    hit = _only(read("job.log", f"[rank3]: {RAISED}"))

    assert (Source.RANK, 3, "gn12") == (hit.source, hit.rank, hit.host)


def test_a_file_of_a_rank_is_its_word(read: Reads) -> None:
    hit = _only(read("rank_3.err", RAISED))

    assert (Source.RANK, 3, "gn12") == (hit.source, hit.rank, hit.host)


def test_a_rank_that_prints_a_kernels_line_is_not_the_kernel(read: Reads) -> None:
    """Training scripts print anything, also the log of another job."""
    found = read("rank_3.err", GN11)

    assert [] == [event for event in found.hits if event.hit.source is Source.KERNEL]


def test_paint_hides_no_banner_and_no_stamp(read: Reads) -> None:
    dim, plain = "\x1b[2m", "\x1b[0m"
    log = f"{dim}==> rank_3.err <=={plain}\n{dim}10:00:05{plain} {RAISED}{dim}10:00:01 {RAISED}"

    assert [("gn12", 3), ("gn12", 2)] == _places(read("job.log", log))


def test_the_steps_of_ranks_and_of_a_merged_log_count(read: Reads) -> None:
    found = read("job.log", "step 3 loss 2.1\n", "rank_0.err", "step 7 loss 2.0\n")

    assert (3, 7) == (found.first_step, found.top_step)


def test_a_kernel_makes_no_steps(read: Reads) -> None:
    found = read("dmesg.txt", "step 3\n")

    assert (None, None) == (found.first_step, found.top_step)


def test_nothing_is_in_an_empty_log(read: Reads) -> None:
    assert LogRead(hits=(), first_step=None, top_step=None, lines=0) == read("job.log", "")
