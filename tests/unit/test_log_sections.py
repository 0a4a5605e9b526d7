"""Whose words the parts of a log are."""

import pytest

from supervisor.adapters.log_sections import Owner, owner_of, sections
from supervisor.core.signature import Source

HOSTS = {"gn11", "gn12", "x1001c0s1b0n0"}
MERGED = Owner(file="job.log", name="job.log")


def resolve(name: str) -> str | None:
    return name if name in HOSTS else None


def _owner(name: str) -> tuple[Source | None, int | None, str | None]:
    owner = owner_of(name, name, resolve)
    return owner.source, owner.rank, owner.host


def _parts(log: bytes, owner: Owner = MERGED) -> list[tuple[int | None, str | None, bytes]]:
    return [(part.rank, part.host, text) for part, text in sections(log, owner, resolve)]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank_17.err", 17),
        ("rank-0.log", 0),
        ("rank3", 3),
        ("logs/task.0012.out", 12),
        ("ranks/00003.log", 3),
        ("00003.log", 3),
        ("proc 5", 5),
    ],
)
def test_a_name_tells_its_rank(name: str, rank: int) -> None:
    assert (Source.RANK, rank, None) == _owner(name)


@pytest.mark.parametrize("name", ["job.log", "frank_3.log", "slurm-8812.out", "launcher.log"])
def test_other_names_tell_no_rank(name: str) -> None:
    assert (None, None, None) == _owner(name)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("gn11.log", "gn11"),
        ("x1001c0s1b0n0", "x1001c0s1b0n0"),
        ("logs/gn12/out", "gn12"),
        ("train@gn11", "gn11"),
    ],
)
def test_a_name_tells_its_host(name: str, host: str) -> None:
    assert (None, None, host) == _owner(name)


def test_a_name_may_tell_rank_and_host() -> None:
    assert (Source.RANK, 3, "gn11") == _owner("gn11/rank_3.err")


@pytest.mark.parametrize("name", ["dmesg.txt", "kern.log", "gn11:/var/log/KERNEL"])
def test_a_kernels_log_is_known_by_its_name(name: str) -> None:
    assert Source.KERNEL is owner_of(name, name, resolve).source


def test_a_host_outside_the_allocation_owns_nothing() -> None:
    assert (None, None, None) == _owner("gn99.log")


@pytest.mark.parametrize(
    "banner",
    [
        b"==> rank_3.err <==",
        b"### rank 3 ###",
        b"----- rank 3 -----",
        b"*** rank 3 ***",
        b":: rank_3 ::",
    ],
)
def test_a_banner_begins_the_part_of_its_rank(banner: bytes) -> None:
    log = b"before\n" + banner + b"\nafter\n"

    assert [(None, None, b"before\n"), (3, None, banner + b"\nafter\n")] == _parts(log)


def test_each_banner_ends_the_part_before() -> None:
    log = b"==> rank_0.err <==\none\n==> gn12.log <==\ntwo\n"

    assert [
        (0, None, b"==> rank_0.err <==\none\n"),
        (None, "gn12", b"==> gn12.log <==\ntwo\n"),
    ] == _parts(log)


def test_an_arrow_banner_of_nobody_still_ends_the_part_before() -> None:
    log = b"==> rank_0.err <==\none\n==> job.log <==\ntwo\n"

    assert [0, None] == [rank for rank, _, _ in _parts(log)]


def test_rules_and_headings_of_nobody_are_no_banners() -> None:
    log = b"=====\n=== Training ===\n--- a/file.py ---\n-----------\n"

    assert [(None, None, log)] == _parts(log)


def test_no_byte_is_lost_and_the_owner_lasts_over_blocks() -> None:
    log = b"one\n==> rank_0.err <==\ntwo\n### gn11 ###\nthree"
    parts = _parts(log, Owner(file="x", name="rank_7", source=Source.RANK, rank=7))

    assert log == b"".join(text for _, _, text in parts)
    assert 7 == parts[0][0]


def test_a_banner_that_a_bar_or_a_carriage_return_precedes_is_seen() -> None:
    log = b" 12%|#  |\r==> rank_3.err <==\r\nafter\r\n"

    assert [None, 3] == [rank for rank, _, _ in _parts(log)]


def test_an_empty_block_has_one_empty_part() -> None:
    assert [(None, None, b"")] == _parts(b"")


def test_an_earlier_log_between_banners_is_left_out_line_by_line() -> None:
    """Its last lines are often shown again before the next attempt, and accuse as they did then."""
    quoted = b"==== tail of previous log ====\ngn11: lost\n"
    log = b"step=1\n" + quoted + b"==== end ====\nstep=2\n"

    assert [
        (None, None, b"step=1\n"),
        (None, None, b"\n\n"),
        (None, None, b"==== end ====\nstep=2\n"),
    ] == _parts(log)


def test_an_earlier_log_without_an_end_may_have_none() -> None:
    log = b"---- last run summary ----\nstep=1\n"

    assert [(None, None, log)] == _parts(log)
