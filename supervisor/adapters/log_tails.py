"""How far each of many growing files has been read, and what it gained since.

A file is told by device and inode, never by its name: one that was renamed (rotation) is read on
under its new name, one that was put in its place is begun. The bytes before the position are
compared at each read, so that a file that was emptied and written again (copytruncate), or a new
file with the inode of a removed one, is begun anew even when it is longer by now. No descriptor is
kept: opening costs 3 us, and 20,000 files would need as many.

The position moves past whole lines only; so no unfinished line is kept here. What is lost: bytes
that were written and removed again (truncated, deleted) between two reads.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.adapters import clock
from supervisor.adapters.lines import ended, whole
from supervisor.adapters.log_sections import Owner
from supervisor.adapters.sightings import Piece
from supervisor.adapters.spool import BLOCK

_MARK_BYTES = 16
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(slots=True)
class _Tail:
    path: str
    owner: Owner
    device: int
    inode: int
    offset: int = 0
    mark: bytes = b""  # the bytes before the offset
    line: int = 1  # the number of the next one, since we follow
    round: int = 0  # the sweep in which the file was last seen


@dataclass(frozen=True, slots=True)
class Read:
    """What a file gained: whole lines, or nothing; `more` when there was too much for one read."""

    piece: Piece | None
    more: bool


_NOTHING = Read(None, more=False)


class LogTails:
    """The positions in all files followed."""

    def __init__(self, owner_of: Callable[[str], Owner], covers: Callable[[str], bool]) -> None:
        self._owner_of, self._covers = owner_of, covers
        self._by_path: dict[str, _Tail] = {}
        self._by_identity: dict[tuple[int, int], _Tail] = {}
        self._inodes: set[int] = set()
        self._round = 0

    def knows(self, inode: int) -> bool:
        """Whether a file with this inode is followed, by whatever name."""
        return inode in self._inodes

    def skip(self, path: str) -> None:
        """What this file holds now is not ours."""
        try:
            found = os.stat(path)
        except OSError:
            return
        if (tail := self._tail(path, found)) is not None:
            tail.offset = found.st_size

    def read(self, path: str, changed_at: float, *, rest: bool = False) -> Read:
        """What the file gained, at most a block; with `rest` its unfinished line too."""
        try:
            descriptor = os.open(path, _FLAGS)
        except OSError:  # removed since, or not ours to read
            self._by_path.pop(path, None)
            return _NOTHING
        try:
            found = os.fstat(descriptor)
            tail = self._by_path.get(path)
            if tail is None or tail.inode != found.st_ino or tail.device != found.st_dev:
                tail = self._tail(path, found)
            if tail is None:
                return _NOTHING
            tail.round = self._round
            return self._gained(tail, descriptor, found, changed_at, rest)
        except OSError:  # a network file system lost it (ESTALE, EIO)
            return _NOTHING
        finally:
            os.close(descriptor)

    def begin_round(self) -> None:
        """A sweep over all files begins."""
        self._round += 1

    def end_round(self) -> None:
        """Forget the files that the sweep did not find."""
        found = {key: tail for key, tail in self._by_identity.items() if tail.round == self._round}
        self._by_identity = found
        self._inodes = {inode for _, inode in found}
        kept = self._by_path.items()
        self._by_path = {path: tail for path, tail in kept if tail.round == self._round}

    def _tail(self, path: str, found: os.stat_result) -> _Tail | None:
        """The file behind a path that is new, or has another file behind it than before."""
        key = found.st_dev, found.st_ino
        tail = self._by_identity.get(key)
        if tail is not None:
            tail.path = path
        elif stat.S_ISREG(found.st_mode) and self._covers(path):
            tail = _Tail(path, self._owner_of(path), *key, round=self._round)
            self._by_identity[key] = tail
            self._inodes.add(found.st_ino)
        else:
            return None
        self._by_path[path] = tail
        return tail

    def _gained(
        self, tail: _Tail, descriptor: int, found: os.stat_result, changed_at: float, rest: bool
    ) -> Read:
        size = found.st_size
        if size == tail.offset:
            return _NOTHING
        data = _after(tail, descriptor, size) if size > tail.offset else None
        if data is None:
            self._begin_anew(tail)
            data = os.pread(descriptor, min(size, BLOCK), 0)
        more = tail.offset + len(data) < size
        cut = len(data) if rest and not more else whole(data)
        if not cut:
            return _NOTHING
        written_at = min(changed_at, clock.of_wall(found.st_mtime))
        return Read(_take(tail, data[:cut], written_at), more)

    def _begin_anew(self, tail: _Tail) -> None:
        if self._covers(tail.path):
            tail.owner = self._owner_of(tail.path)
        tail.offset, tail.line, tail.mark = 0, 1, b""


def _after(tail: _Tail, descriptor: int, size: int) -> bytes | None:
    """What follows the position; None when what stands before it is not what it was."""
    mark = tail.mark
    wanted = min(size - tail.offset, BLOCK) + len(mark)
    data = os.pread(descriptor, wanted, tail.offset - len(mark))
    return data[len(mark) :] if data.startswith(mark) else None


def _take(tail: _Tail, lines: bytes, written_at: float) -> Piece:
    owner, first = tail.owner, tail.line
    tail.offset += len(lines)
    tail.mark = (tail.mark + lines[-_MARK_BYTES:])[-_MARK_BYTES:]
    lines = ended(lines)
    tail.line += lines.count(b"\n")
    return Piece(
        source=owner.source,
        rank=owner.rank,
        host=owner.host,
        first_line=first,
        lines=lines,
        file=owner.file,
        written_at=written_at,
    )
