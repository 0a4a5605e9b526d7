"""When a waiting run says what it waits for: after 2 s, then after twice as long each time."""

from collections.abc import Callable

_FIRST_SECONDS = 2.0


class WaitSigns:
    """One wait after another; each has its own two seconds."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._wait: object = None
        self._since = 0.0
        self.due_at: float | None = None

    def look(self, wait: object, text: str | None, at: float) -> None:
        """Say what is waited for, when it is time; `wait` tells one wait from the next."""
        if text is None:
            self._wait = self.due_at = None
        elif wait != self._wait:
            self._wait, self._since, self.due_at = wait, at, at + _FIRST_SECONDS
        elif self.due_at is not None and at >= self.due_at:
            self._say(f"{text} ({at - self._since:.0f} s so far)")
            self.due_at = at + (at - self._since)
