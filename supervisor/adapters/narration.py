"""Tells the user what happens: the few lines that matter, and with -v every event as key-value
pairs.

All goes to standard error; standard output belongs to the ranks.
"""

import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

from supervisor.core.actions import Action
from supervisor.core.events import Event


class Narration:
    """Speaks at the verbosity asked for: -1 final line only, 0 decisions, 1 events too."""

    def __init__(self, verbosity: int) -> None:
        self._verbosity = verbosity
        self._log: Any = _event_log() if verbosity > 0 else None

    def say(self, text: str, grounds: Sequence[str] = ()) -> None:
        """A line about a decision, then what it rests on."""
        if self._verbosity >= 0:
            self.conclude(text)
        self.detail(grounds)

    def detail(self, grounds: Sequence[str]) -> None:
        """Lines that belong to another."""
        if self._verbosity >= 0:
            for line in grounds:
                self.conclude(f"  {line}")

    def conclude(self, text: str) -> None:
        """A line that is said even when quiet."""
        try:
            sys.stderr.write(f"supervise: {text}\n")
            sys.stderr.flush()
        except OSError:  # the terminal is gone; the journal has it
            return

    def event(self, event: Event, actions: tuple[Action, ...]) -> None:
        """One key-value line an event, when asked for."""
        if self._log is None:
            return
        names = [type(action).__name__ for action in actions]
        fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
        self._log.info(type(event).__name__, **fields, **({"actions": names} if names else {}))


def _event_log() -> Any:
    import structlog

    structlog.configure(
        processors=[structlog.processors.KeyValueRenderer(key_order=["event", "at"])],
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    return structlog.get_logger("supervisor.events")
