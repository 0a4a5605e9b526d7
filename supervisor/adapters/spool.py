"""Reads what a keeper spools: two streams of numbered segment files, in order, from where the last
reader stopped.

Segments that lie behind the saved position (reading_position.py) are deleted: that bounds the
disk. What lies between it and a crash is read twice, and a frame read twice lands on the same
bytes of the same log.
"""

import os
from collections import deque
from pathlib import Path

from supervisor.adapters import clock

BLOCK = 512 * 1024


class SpoolReader:
    """Follows the segments of one stream, `out` or `err`."""

    def __init__(self, folder: Path, stream: str, segment: int = 1, offset: int = 0) -> None:
        self._folder, self._stream = folder, stream
        self.segment, self.offset = segment, offset
        self._descriptor: int | None = None
        self._buffer = bytearray(BLOCK)
        self._growth: deque[tuple[int, float]] = deque()  # sizes, and when the file had them
        self.written_at: float | None = None  # when what the last read gave was there

    def read(self) -> bytes:
        """The next bytes, at most a block; empty when there is nothing new."""
        self.written_at = None
        while True:
            if self._descriptor is None and not self._open():
                return b""
            assert self._descriptor is not None
            count = os.preadv(self._descriptor, [self._buffer], self.offset)
            if count:
                self.offset += count
                self._date()
                return bytes(memoryview(self._buffer)[:count])
            if not self._advance():
                return b""

    def discard_before(self, segment: int) -> None:
        """Delete the segments older than this one."""
        for number, path in self._segments():
            if number < segment:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._growth.clear()

    def _date(self) -> None:
        """A reader that lags behind must not take the newest write for that of what it reads."""
        assert self._descriptor is not None
        found = os.fstat(self._descriptor)
        if not self._growth or found.st_size > self._growth[-1][0]:
            written_at = min(clock.now(), found.st_mtime + clock.wall_offset())
            self._growth.append((found.st_size, written_at))
        while self._growth[0][0] < self.offset:
            self._growth.popleft()
        self.written_at = self._growth[0][1]

    def _open(self) -> bool:
        path = self._path(self.segment)
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return self._skip_lost()
        return True

    def _advance(self) -> bool:
        """Move on to the next segment, once there is one: the writer never returns to an older
        one.
        """
        assert self._descriptor is not None
        later: int | None = self.segment + 1
        if not self._path(self.segment + 1).exists():
            if self._path(self.segment).exists():  # the oldest go first: none after it has gone
                return False
            later = self._later_segment()
        # The writer may have added to this segment between our read and the start of the next one.
        if later is None or os.fstat(self._descriptor).st_size > self.offset:
            return later is not None
        self.close()
        self.segment, self.offset = later, 0
        return True

    def _skip_lost(self) -> bool:
        """While no supervisor lived the keeper may have dropped the oldest segments."""
        later = self._later_segment()
        if later is None:
            return False
        self.segment, self.offset = later, 0
        return self._open()

    def _later_segment(self) -> int | None:
        return min(
            (number for number, _ in self._segments() if number > self.segment), default=None
        )

    def _segments(self) -> list[tuple[int, Path]]:
        pattern = f"{self._stream}.*"
        return [
            (int(path.suffix[1:]), path)
            for path in self._folder.glob(pattern)
            if path.suffix[1:].isdigit()
        ]

    def _path(self, segment: int) -> Path:
        return self._folder / f"{self._stream}.{segment:06d}"


def clear_spool(folder: Path) -> None:
    """Delete all segments of an attempt whose end has been journaled."""
    for path in folder.glob("*.[0-9]*"):
        path.unlink(missing_ok=True)
