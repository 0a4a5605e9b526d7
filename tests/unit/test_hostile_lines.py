"""Patterns that backtrack are found out by lines made from them, in a time that is bounded."""

import time

import pytest

from supervisor.adapters.hostile_lines import hostile_shapes, slow_line
from supervisor.adapters.pattern_check import WINDOW, expand, required_literal

SLOW = [
    r"^a*a*a* disaster$",
    r"(?:ab|a|b)*c: disaster",
    r"(?:a|a)*b: disaster",
    r"(?:[a-z]{1,99}-?){0,5}: disaster",
    r"^(?P<host>(?:[A-Za-z0-9]+[.-]?)+): shepherd died",
    r"disaster(?: ?[a-z0-9]{1,20} ?){0,20}!",
    r"disaster (?:a|b|ab){1,40}c",
    r"disaster (?:foo|foofoo)*!",
    r"disaster (?:\w{1,4} ?){1,60}end",
    r"disaster \s{0,500}\s{0,500}\s{0,500}\S$",
    r"disaster \S+\s*\S+\s*\S+ ok",
    r"^(?:(?:a?){24}a{24}) disaster",
]
QUICK = [
    r"disaster on (?P<host>[\w.-]{1,99}):",
    r"^(?P<host>[\w.-]{1,99}): shepherd died",
    r"disaster: .{0,120}(?:lost|died) for good",
    r"<TAG>RuntimeError: disaster .*$",
    r"^(?:\d{1,3}\.){3}\d{1,3} disaster",
]


@pytest.mark.parametrize("pattern", SLOW)
def test_pattern_that_backtracks_is_found_out(pattern: str) -> None:
    """Some of these need hours on 8 KiB, and nothing can interrupt `re`."""
    began = time.thread_time()
    slow = slow_line(pattern, required_literal(pattern), 0.05)

    assert slow is not None
    assert slow.seconds > 0.05
    assert time.thread_time() - began < 15


@pytest.mark.parametrize("pattern", QUICK)
def test_pattern_that_does_not_is_left_alone(pattern: str) -> None:
    written = expand(pattern)

    assert slow_line(written, required_literal(written), 0.05) is None


def test_every_hostile_line_holds_the_literal_and_fits_the_window() -> None:
    literal = b"disaster on "
    lines = [shape(WINDOW) for shape in hostile_shapes(QUICK[0], literal)]

    assert [line for line in lines if literal not in line] == []
    assert WINDOW * 0.9 < max(map(len, lines)) <= WINDOW
