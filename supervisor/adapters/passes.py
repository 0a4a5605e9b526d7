"""Passes over many files, in slices, that take at most a tenth of the time."""

import time
from collections.abc import Callable, Iterator

_SLICE_SECONDS = 0.01
_PAUSE = 9  # times as long as a pass took, none is begun


class Pass:
    """When to go over all of something, and how much of it at once."""

    def __init__(self, every_seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.every_seconds, self._now = every_seconds, now
        self.next_at = now() + every_seconds  # when there is something to do
        self._items: Iterator[str] | None = None
        self._spent = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it is time to begin."""
        return self._items is None and now >= self.next_at

    def begin(self, items: Iterator[str]) -> None:
        """Begin, or begin again, whatever the time."""
        self._items, self._spent, self.next_at = items, 0.0, 0.0

    def slice(self) -> Iterator[str]:
        """The next items; the time the caller spends on each of them counts."""
        if self._items is None:
            return
        start = self._now()
        try:
            for item in self._items:
                yield item
                if self._now() - start > _SLICE_SECONDS:
                    return
            self._items = None
        finally:  # the caller may have enough before the slice is over
            self._spent += self._now() - start
        pause = max(self.every_seconds, _PAUSE * self._spent)
        self.next_at = self._now() + pause
