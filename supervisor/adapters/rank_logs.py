"""One log file per rank, byte for byte what the rank wrote, each piece at the offset its frame
names.
"""

import os
from collections import OrderedDict
from pathlib import Path

_MOST_OPEN = 256  # of 10,000 ranks: reopening costs 3.5 us, running out of descriptors the run


class RankLogs:
    """Writes pieces of output to the logs of their ranks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[int, int] = OrderedDict()
        self._sizes: dict[int, int] = {}

    def write(self, rank: int, offset: int, data: bytes) -> bytes:
        """Write a piece; the part of it that was not in the log before is returned."""
        size = self._size(rank)
        known = max(0, min(len(data), size - offset))
        fresh = data[known:] if known else data
        if fresh:
            _pwrite_all(self._descriptor(rank), fresh, offset + known)
            self._sizes[rank] = max(size, offset + len(data))
        return fresh

    def path(self, rank: int) -> Path:
        return self._folder / f"{rank:05d}.log"

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def _size(self, rank: int) -> int:
        if rank not in self._sizes:
            self._sizes[rank] = os.fstat(self._descriptor(rank)).st_size
        return self._sizes[rank]

    def _descriptor(self, rank: int) -> int:
        descriptor = self._open.get(rank)
        if descriptor is not None:
            self._open.move_to_end(rank)
            return descriptor
        if len(self._open) >= _MOST_OPEN:
            os.close(self._open.popitem(last=False)[1])
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        descriptor = self._open[rank] = os.open(self.path(rank), flags, 0o600)
        return descriptor


def _pwrite_all(descriptor: int, data: bytes, offset: int) -> None:
    while data:
        count = os.pwrite(descriptor, data, offset)
        data, offset = data[count:], offset + count
