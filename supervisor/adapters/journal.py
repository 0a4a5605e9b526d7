"""The journal on disk: one JSON object a line, events with the actions they caused.

An event is on disk before any of its actions is performed, so a supervisor that dies at any moment
finds again what it had decided. A last line torn by a crash is cut off; a damaged line elsewhere
is an error, for the file is the truth.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from supervisor.core import record
from supervisor.core.actions import Action
from supervisor.core.events import Event
from supervisor.errors import PlatformError, UsageError


class Journal:
    """Appends to one run's journal."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        sync_folder(path.parent)

    def append(self, event: Event, actions: Iterable[Action]) -> None:
        """Write an event and what it caused; durable on return when anything will be done about
        it.
        """
        entry = record.event_to_json(event)
        caused = [record.action_to_json(action) for action in actions]
        if caused:
            entry["actions"] = caused
        line = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        _write_all(self._descriptor, line)
        if caused:
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.fsync(self._descriptor)
        os.close(self._descriptor)


def read_journal(path: Path) -> list[Event]:
    """All events of a journal; none when there is no file. Cuts off a torn last line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    whole, newline, torn = data.rpartition(b"\n")
    if torn:
        os.truncate(path, len(whole) + len(newline))
    return [_parse(path, number, line) for number, line in enumerate(whole.splitlines(), start=1)]


def _parse(path: Path, number: int, line: bytes) -> Event:
    try:
        return record.event_from_json(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        raise PlatformError(f"{path}:{number}: damaged journal line ({error})") from error


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def sync_folder(path: Path) -> None:
    """Make the folder's entries durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
