"""A folder of log files that grow, followed by a clock of the test's own."""

from collections import defaultdict
from pathlib import Path

from supervisor.adapters.extra_logs import ExtraLogs
from supervisor.adapters.sightings import Piece


class Following:
    """Followers of one folder, with a clock of the test's own."""

    def __init__(self, folder: Path, *, watched: bool) -> None:
        self.folder, self._watched, self.now = folder, watched, 100.0
        self._logs: list[ExtraLogs] = []

    def begin(
        self, pattern: str = "*.log", hosts: tuple[str, ...] = (), apart: str | None = None
    ) -> None:
        """Follow from now on."""
        logs = ExtraLogs(
            str(self.folder / pattern), hosts, apart, lambda path: self._watched, lambda: self.now
        )
        self._logs.append(logs)
        assert [] == logs.read()

    def pieces(self, after: float | None = None) -> list[Piece]:
        """What comes when the kernel tells, or the next time all files are looked at."""
        self.now += after or (0.02 if self._watched else 6.0)
        return [piece for pieces in iter(self._logs[-1].read, []) for piece in pieces]

    def lines(self, after: float | None = None) -> dict[str, bytes]:
        """The same by file."""
        return joined(self.pieces(after))

    def rest(self) -> dict[str, bytes]:
        """What comes at the end."""
        return joined([piece for pieces in self._logs[-1].rest() for piece in pieces])

    def wait(self, other: int, seconds: float) -> None:
        """Wait as the follower of an attempt does."""
        self.now += 0.02
        self._logs[-1].wait(other, seconds)

    def close(self) -> None:
        """Give the descriptors back."""
        for logs in self._logs:
            logs.close()


def joined(pieces: list[Piece]) -> dict[str, bytes]:
    """The lines of each file."""
    found: defaultdict[str, bytes] = defaultdict(bytes)
    for piece in pieces:
        found[piece.file] += piece.lines
    return dict(found)


def add(path: Path, data: bytes) -> None:
    """Append, as a logger does."""
    with path.open("ab") as file:
        file.write(data)
