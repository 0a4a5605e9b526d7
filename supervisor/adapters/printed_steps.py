"""The steps that ranks state in log files of their own, for whoever follows progress."""

from collections.abc import Sequence
from typing import Protocol

from supervisor.adapters.sightings import Piece
from supervisor.adapters.step_lines import latest_step


class Progress(Protocol):
    """What takes the steps."""

    def wants_step_lines(self, rank: int) -> bool: ...
    def step_line(self, rank: int, step: int, at: float) -> None: ...


class PrintedSteps:
    """Looks for a rank's step until there is one, then no more until the next digest is due.

    A digest tells only the last; reading every line of 10,000 ranks for it would cost as much as
    all else together.
    """

    def __init__(self, progress: Progress, every_seconds: float) -> None:
        self._progress, self._every_seconds = progress, every_seconds
        self._next: dict[int, float] = {}

    def look(self, pieces: Sequence[Piece], at: float) -> None:
        """Tell the steps in these lines."""
        for piece in pieces:
            rank = piece.rank
            if rank is None or at < self._next.get(rank, 0.0):
                continue
            if not self._progress.wants_step_lines(rank):
                self._next[rank] = at + self._every_seconds
            elif (step := latest_step(piece.lines)) is not None:
                self._progress.step_line(rank, step, at)
                self._next[rank] = at + self._every_seconds
