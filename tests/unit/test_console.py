"""What the user sees of the ranks."""

import os

from supervisor.adapters.console import Console


def shown(mode: str, ranks: int, said: dict[int, bytes]) -> bytes:
    reader, writer = os.pipe()
    console = Console(mode, [f"{rank} x{rank}" for rank in range(ranks)], writer)
    for rank, lines in said.items():
        console.show(rank, lines)
    console.flush()
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        return file.read()


def test_every_line_is_tagged_with_rank_and_host() -> None:
    """Interleaved output of many ranks must be readable."""
    assert shown("all", 2, {1: b"a\nb\n"}) == b"[1 x1] a\n[1 x1] b\n"


def test_many_ranks_are_thinned_out_but_errors_are_not() -> None:
    """Above 16 ranks only the first is shown, but whoever fails is heard."""
    said = {0: b"step=1\n", 9: b"step=1\nKeyError: 'x'\n"}

    assert shown("auto", 17, said) == b"[0 x0] step=1\n[9 x9] KeyError: 'x'\n"


def test_sixteen_ranks_are_all_shown() -> None:
    """The default thins out above 16, not at it."""
    assert shown("auto", 16, {9: b"step=1\n"}) == b"[9 x9] step=1\n"


def test_none_shows_nothing() -> None:
    """--console none is obeyed even by errors; the logs have them."""
    assert shown("none", 1, {0: b"Error\n"}) == b""


def test_a_progress_bar_shows_its_last_state() -> None:
    """What a terminal would have shown at the end of the line."""
    assert shown("all", 1, {0: b"\r 1%\r 2%\r 3%\n"}) == b"[0 x0]  3%\n"


def test_a_closed_terminal_does_no_harm() -> None:
    """The pager was quit; the training goes on."""
    reader, writer = os.pipe()
    os.close(reader)
    console = Console("all", ["0 x"], writer)
    for _ in range(2):
        console.show(0, b"line\n")
        console.flush()
    os.close(writer)
