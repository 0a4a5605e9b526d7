"""Whole lines out of pieces."""

from supervisor.adapters.lines import LONGEST, LineGatherer


def test_a_torn_line_is_held_until_its_end() -> None:
    """The matcher must see whole lines, however the pieces are cut."""
    lines = LineGatherer()

    assert [lines.add(0, b"one\ntw"), lines.add(0, b"o"), lines.add(0, b"\n")] == [
        b"one\n",
        b"",
        b"two\n",
    ]


def test_sources_do_not_mix() -> None:
    """Rank 1's bytes never end rank 0's line."""
    lines = LineGatherer()
    lines.add(0, b"zero")

    assert (lines.add(1, b"one\n"), lines.add(0, b"!\n")) == (b"one\n", b"zero!\n")


def test_a_progress_bar_is_handed_on_without_a_newline() -> None:
    """A tqdm bar redraws for hours before its line ends."""
    lines = LineGatherer()
    bar = b"".join(b"\r%d%%|####    |" % n for n in range(100))
    handed = lines.add(0, bar)

    assert handed.endswith(b"\n")
    assert b"98%" in handed


def test_a_line_without_end_is_bounded() -> None:
    """100 MB without a newline must not stay in memory."""
    lines = LineGatherer()
    handed = sum(len(lines.add(0, b"x" * 4096)) for _ in range(100))

    assert handed >= 4096 * 100 - LONGEST
    assert len(lines.rest(0)) <= LONGEST + 1


def test_the_rest_is_a_line_too() -> None:
    """A rank that dies in mid-line had something to say."""
    lines = LineGatherer()
    lines.add(3, b"Killed")

    assert (lines.sources(), lines.rest(3), lines.sources()) == ([3], b"Killed\n", [])


def test_lines_are_numbered_per_source() -> None:
    """A verdict names source and line number."""
    lines = LineGatherer()

    assert [lines.count(0, b"a\nb\n"), lines.count(1, b"a\n"), lines.count(0, b"c\n")] == [1, 1, 3]
