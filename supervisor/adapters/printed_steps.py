"""The steps that ranks state in log files of their own, for whoever follows progress."""

from collections.abc import Sequence
from typing import Protocol

from supervisor.adapters.sightings import Piece
from supervisor.adapters.step_lines import latest_step


class Progress(Protocol):
    """What takes the steps."""

    def wants_step_lines(self, rank: int) -> bool:
        """Whether this rank does not state its steps otherwise."""
        ...

    def step_line(self, rank: int, step: int, at: float) -> None:
        """Take a step that a rank printed."""
        ...


_MOST_TOLD = 20  # steps read a look, 50 looks a second


class PrintedSteps:
    """Looks for a rank's step until there is one, then no more until the next digest is due.

    A digest tells only the last; reading every line of 10,000 ranks for it would cost as much as
    all else together. For the same reason only so many ranks have their turn in one look; a rank
    that states no step takes nobody's.
    """

    def __init__(self, progress: Progress, every_seconds: float) -> None:
        self._progress, self._every_seconds = progress, every_seconds
        self._next: dict[int, float] = {}

    def look(self, pieces: Sequence[Piece], at: float) -> None:
        """Tell the steps in these lines."""
        told = 0
        for piece in pieces:
            rank = piece.rank
            if rank is None or at < self._next.get(rank, 0.0):
                continue
            if self._progress.wants_step_lines(rank):
                if (step := latest_step(piece.lines)) is None:
                    continue
                self._progress.step_line(rank, step, at)
                told += 1
            self._next[rank] = at + self._every_seconds
            if told == _MOST_TOLD:
                return
