"""Open MPI names the host that speaks in a box of its own."""

from supervisor.adapters.help_boxes import speaker

EDGE = b"-" * 74 + b"\n"
BOX = EDGE + b"A process could not connect to its peer.\n\n  Local host: om-003\n  PID: 71\n" + EDGE


def _speaker(log: bytes, line: bytes) -> str | None:
    return speaker(log, log.index(line))


def test_a_line_in_a_box_is_its_local_hosts() -> None:
    assert "om-003" == _speaker(BOX, b"  PID:")


def test_each_spelling_of_the_key_is_understood() -> None:
    for key in (b"Local host", b"Host", b"Node", b"Hostname"):
        assert "om-003" == _speaker(BOX.replace(b"Local host", key), b"  PID:")


def test_the_box_before_says_nothing_of_this_one() -> None:
    second = EDGE + b"Another warning\n\n  Remote host: om-9\n" + EDGE

    assert _speaker(BOX + second, b"  Remote") is None


def test_a_line_that_is_not_indented_stands_in_no_box() -> None:
    assert _speaker(BOX + b"rank 3 died\n", b"rank 3") is None


def test_a_box_without_a_host_has_no_speaker() -> None:
    assert _speaker(BOX.replace(b"Local host", b"Remote"), b"  PID:") is None


def test_a_box_far_above_says_nothing() -> None:
    assert _speaker(BOX[: -len(EDGE)] + b"  x\n" * 500 + b"  end\n", b"  end") is None


def test_bars_redrawn_in_front_of_its_lines_hide_no_speaker() -> None:
    drawn = b"".join(b" 12%|#  | 12/100\r" + line for line in BOX.splitlines(keepends=True))

    assert "om-003" == _speaker(drawn, b"  PID:")
