"""Steps that ranks state in log files of their own."""

from supervisor.adapters.printed_steps import PrintedSteps
from supervisor.adapters.sightings import Piece
from supervisor.core.signature import Source


class Told:
    """Notes what it is told; rank 7 states its steps itself."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, float]] = []

    def wants_step_lines(self, rank: int) -> bool:
        return rank != 7

    def step_line(self, rank: int, step: int, at: float) -> None:
        self.steps.append((rank, step, at))


def piece(rank: int | None, lines: bytes) -> Piece:
    return Piece(source=Source.RANK, rank=rank, host=None, first_line=1, lines=lines)


def test_a_ranks_last_step_is_told_once_a_digest() -> None:
    """The digest tells only the last one; lines without a step use up nothing."""
    told = Told()
    steps = PrintedSteps(told, 5.0)
    steps.look([piece(1, b"loading\n")], 1.0)
    steps.look([piece(1, b"step 3\nstep 4\n"), piece(2, b"step 3\n")], 2.0)
    steps.look([piece(1, b"step 5\n")], 6.9)
    steps.look([piece(1, b"step 6\n")], 7.0)

    assert [(1, 4, 2.0), (2, 3, 2.0), (1, 6, 7.0)] == told.steps


def test_files_of_nobody_and_of_ranks_that_state_steps_themselves_tell_none() -> None:
    """A file whose rank is not known may be anything's."""
    told = Told()
    PrintedSteps(told, 5.0).look([piece(None, b"step 3\n"), piece(7, b"step 3\n")], 1.0)

    assert [] == told.steps
