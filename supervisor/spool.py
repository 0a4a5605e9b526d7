"""The keeper's spool: each stream of a launcher as numbered segment files of bounded size and sum.

A segment is never written again once the next of its stream exists, so a reader tails the newest,
and unlinks those before it as it finishes them: that is what makes room. Owns files and sizes;
what to do when the spool is full or the disk refuses is the keeper's decision.
"""

import os
from collections import deque
from contextlib import suppress

SEGMENT_BYTES = 16 << 20
SPOOL_BYTES = 1 << 30  # both streams together


class Spool:
    """Two or more streams of segments in one folder."""

    def __init__(
        self,
        folder: str,
        streams: tuple[str, ...],
        *,
        segment_bytes: int = SEGMENT_BYTES,
        spool_bytes: int = SPOOL_BYTES,
    ) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._spool_bytes = max(spool_bytes, 2 * len(streams) * segment_bytes)
        self._numbers = dict.fromkeys(streams, 0)
        self._sizes = dict.fromkeys(streams, 0)
        self._files: dict[str, int] = {}
        self._closed: deque[tuple[str, int, int]] = deque()  # stream, number, size; oldest first
        os.makedirs(folder, exist_ok=True)
        for stream in streams:
            self._open_next(stream)

    def append(self, stream: str, piece: memoryview) -> int:
        """Write what fits of this piece into the stream's segment; return how much that was."""
        if self._sizes[stream] >= self._segment_bytes:
            self._open_next(stream)
        room = self._segment_bytes - self._sizes[stream]
        written = os.write(self._files[stream], piece[:room])
        self._sizes[stream] += written
        return written

    def full(self) -> bool:
        """Whether the spool holds all it may, after a look at what the reader has unlinked."""
        if self._held() < self._spool_bytes:
            return False
        there = [each for each in self._closed if os.path.exists(self._path(*each[:2]))]
        self._closed = deque(there)
        return self._held() >= self._spool_bytes

    def drop_oldest(self) -> bool:
        """Give up the oldest finished segment and note what was lost; False when there is none."""
        if not self._closed:
            return False
        stream, number, size = self._closed.popleft()
        try:
            os.unlink(self._path(stream, number))
        except OSError:  # the reader was quicker, or it cannot be had: nothing is lost
            return True
        self._note(stream, number, size)
        return True

    def note_refusal(self, stream: str) -> None:
        """Note that the disk refused this stream for a while: a line that tells of 0 lost bytes."""
        self._note(stream, self._numbers[stream], 0)

    def _note(self, stream: str, number: int, lost: int) -> None:
        path = os.path.join(self._folder, "lost")
        with suppress(OSError), open(path, "ab", buffering=0) as file:
            file.write(b"%s %06d %d\n" % (stream.encode(), number, lost))

    def _held(self) -> int:
        return sum(size for _, _, size in self._closed) + sum(self._sizes.values())

    def _open_next(self, stream: str) -> None:
        number = self._numbers[stream] + 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        descriptor = os.open(self._path(stream, number), flags, 0o600)
        if number > 1:
            os.close(self._files[stream])
            self._closed.append((stream, number - 1, self._sizes[stream]))
        self._files[stream], self._numbers[stream], self._sizes[stream] = descriptor, number, 0

    def _path(self, stream: str, number: int) -> str:
        return os.path.join(self._folder, f"{stream}.{number:06d}")
