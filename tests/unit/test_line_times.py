"""When a line was written: every spelling of a stamp, and lines that have none."""

import pytest

from supervisor.adapters.line_times import Stamp, stamp_near, stamp_of

CLOCK = 2 * 3600 + 7 * 60 + 8.0
MARCH_21 = (3 * 31 + 21) * 86400.0


@pytest.mark.parametrize(
    "line",
    [
        b"2026-03-21T02:07:08 lost host",
        b"2026-03-21 02:07:08,000 - root - INFO - step 3",
        b"2026/03/21 02:07:08 lost host",
        b"[2026-03-21 02:07:08] lost host",
        b"[rank3]:[titan] 2026-03-21 02:07:08,000 - root - INFO - step: 120",
        b"E0321 02:07:08.000000 2210 torch/distributed/run.py:1] closing",
        b"[rank3]:E0321 02:07:08.000000 140 torch/_dynamo/utils.py:632] caught",
        b"[rank3]:[E321 02:07:08.000000000 ProcessGroupNCCL.cpp:616] caught",
        b"Mar 21 02:07:08 gn11 kernel: NVRM: Xid",
        b"Mar 21 2026 02:07:08 gn11",
    ],
)
def test_a_stamp_with_a_date_is_a_time_of_the_year(line: bytes) -> None:
    assert Stamp(seconds=MARCH_21 + CLOCK, dated=True) == stamp_of(line)


@pytest.mark.parametrize(
    "line", [b"02:07:08 lost", b"[02:07:08] lost", b"x1: 02:07:08.000 lost", b"(02:07:08)"]
)
def test_a_stamp_without_a_date_is_a_time_of_the_day(line: bytes) -> None:
    assert Stamp(seconds=CLOCK, dated=False) == stamp_of(line)


def test_parts_of_a_second_count() -> None:
    assert Stamp(seconds=CLOCK + 0.25, dated=False) == stamp_of(b"02:07:08,250 lost")


def test_a_mac_address_a_ratio_and_a_late_clock_are_no_stamps() -> None:
    far = b"x" * 200 + b" 02:07:08"

    assert [None] * 3 == [stamp_of(b"ab:02:07:08:09:10"), stamp_of(b"3:4"), stamp_of(far)]


def test_a_word_that_is_no_month_gives_no_date() -> None:
    assert Stamp(seconds=CLOCK, dated=False) == stamp_of(b"Foo 21 02:07:08 x")


def test_a_line_without_a_stamp_takes_that_of_the_line_before() -> None:
    block = b"02:07:08 one\ntwo\nthree\n02:09:00 four\n"
    start = block.index(b"three")

    assert Stamp(seconds=CLOCK, dated=False) == stamp_near(block, start, start + 5)


def test_before_any_stamp_no_time_is_known() -> None:
    block = b"one\ntwo\n02:09:00 three\n"

    assert stamp_near(block, 4, 7) is None


def test_a_stamp_far_above_is_not_taken() -> None:
    block = b"02:07:08 one\n" + b"-\n" * 10_000

    assert stamp_near(block, len(block) - 2, len(block) - 1) is None


def test_a_bar_redrawn_in_front_of_the_line_before_hides_no_stamp() -> None:
    bar = b" 12%|" + b"#" * 200 + b"| 12/100\r"
    block = bar + b"02:07:08 one\n" + bar + b"two\n"
    start = block.index(b"two")

    assert Stamp(seconds=CLOCK, dated=False) == stamp_near(block, start, start + 3)
