"""Log files that the command writes by itself (--rank-logs GLOB): followed for hits.

Polled, since a network file system reports no remote writes. A file that was there when
following begins is read from where it ends then; whose rank a file is cannot be known.
"""

import glob
import os
import time

from supervisor.adapters.spool import BLOCK

_EVERY_SECONDS = 1.0


class ExtraLogs:
    """Follows all files that match a pattern."""

    def __init__(self, pattern: str | None) -> None:
        self._pattern = pattern
        self._offsets: dict[str, int] = {}
        self._begun = False
        self._next = 0.0

    def read(self) -> list[bytes]:
        """What was added to the files since the last look, at most a block of each.

        The first look only notes how long the files are: a pattern may cover a whole file system.
        """
        if self._pattern is None or time.monotonic() < self._next:
            return []
        if not self._begun:
            self._begun = True
            self._offsets = {path: _size(path) for path in self._paths()}
            return []
        self._next = time.monotonic() + _EVERY_SECONDS
        added = (self._added(path) for path in self._paths())
        return [data for data in added if data]

    def _paths(self) -> list[str]:
        return sorted(glob.glob(self._pattern, recursive=True)) if self._pattern else []

    def _added(self, path: str) -> bytes:
        """Whole lines only; a file that shrank was begun anew."""
        offset, size = self._offsets.get(path, 0), _size(path)
        if size < offset:
            offset = 0
        if size == offset:
            return b""
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                data = file.read(BLOCK)
        except OSError:  # removed since, or not ours to read
            return b""
        whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == BLOCK else b"")
        self._offsets[path] = offset + len(whole)
        return whole


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
