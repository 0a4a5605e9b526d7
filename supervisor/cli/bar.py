"""A bar on the terminal for what takes long to read."""

import sys
import time
from collections.abc import Callable


class Bar:
    """How much is read, on a terminal, when it takes long."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._clock, self._next = total, clock, 1.0
        self._begun, self._shown = clock(), False

    def show(self, size: int) -> None:
        """Draw it again, ten times a second."""
        after = self._clock() - self._begun
        if after < self._next or not sys.stderr.isatty():
            return
        self._next, self._shown = after + 0.1, True
        total = f"{size / self._total:4.0%} of {self._total / 1e6:.0f}" if self._total else ""
        sys.stderr.write(f"\rsupervise: reading, {total or round(size / 1e6)} MB")
        sys.stderr.flush()

    def clear(self) -> None:
        """Leave no trace."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")

    def warn(self, text: str) -> None:
        """Say something beside it."""
        self.clear()
        print(f"supervise: {text}", file=sys.stderr)
