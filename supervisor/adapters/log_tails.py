"""How far each of many growing files has been read, and what it gained since.

A file is told by device and inode, never by its name: one that was renamed (rotation) is read on
under its new name, one that was put in its place is begun. The bytes before the position are
compared at each read, so that a file that was emptied and written again (copytruncate), or a new
file with the inode of a removed one, is begun anew even when it is longer by now. Descriptors are
kept only of files that grow among many, and no more than half of what this process may have.

The position moves past whole lines only; so no unfinished line is kept here. What is lost: bytes
that were written and removed again (truncated, deleted) between two reads.
"""

import os
import resource
import stat
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.adapters.lines import ended, whole
from supervisor.adapters.log_sections import Owner
from supervisor.adapters.sightings import Piece
from supervisor.adapters.spool import BLOCK

_MARK_BYTES = 16
_SPARED = 256
_GLANCE_BYTES = 4096  # a second's lines of one rank, as a rule
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
    grew: int = 0  # the one in which it last had a glance
    descriptor: int = -1


class LogTails:
    """The positions in all files followed."""

    def __init__(self, owner_of: Callable[[str], Owner], covers: Callable[[str], bool]) -> None:
        self._owner_of, self._covers = owner_of, covers
        self._by_path: dict[str, _Tail] = {}
        self._by_identity: dict[tuple[int, int], _Tail] = {}
        self._inodes: set[int] = set()
        self._round = 0
        self._kept, self._room = 0, _room()
        self.more = False  # whether there was more in the last file than fits into one read
        self.wall_offset = 0.0

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

    def grown(self, path: str, changed_at: float) -> Piece | None:
        """The same as `read` where nothing but a write was told of, moments ago: at half the cost.

        Without a look at the file's state: what stands before the position shows that it is still
        the file it was. Its descriptor is kept while there is room, until it grows no more.
        """
        tail = self._by_path.get(path)
        if tail is None or not tail.mark:
            return self.read(path, changed_at)
        mark, start = tail.mark, tail.offset - len(tail.mark)
        try:
            data = os.pread(self._opened(tail, path), _GLANCE_BYTES, start)
        except OSError:  # removed since
            self._by_path.pop(path, None)
            return None
        finally:
            if self._kept > self._room:
                self._close(tail)
        cut = data.rfind(b"\n") + 1
        if cut <= len(mark) or len(data) == _GLANCE_BYTES or not data.startswith(mark):
            if tail.descriptor >= 0:
                self._close(tail)  # perhaps of another file by now
            return self.read(path, changed_at)
        tail.round = tail.grew = self._round
        self.more = False
        return _taken(tail, data, len(mark), cut, changed_at)

    def read(self, path: str, changed_at: float, *, rest: bool = False) -> Piece | None:
        """What the file gained, at most a block; with `rest` its unfinished line too."""
        self.more = False
        try:
            descriptor = os.open(path, _FLAGS)
        except OSError:  # removed since, or not ours to read
            self._by_path.pop(path, None)
            return None
        try:
            found = os.fstat(descriptor)
            tail = self._by_path.get(path)
            if tail is None or tail.inode != found.st_ino or tail.device != found.st_dev:
                tail = self._tail(path, found)
            if tail is None:
                return None
            tail.round = self._round
            if tail.offset == found.st_size:
                return None
            return self._gained(tail, descriptor, found, changed_at, rest)
        except OSError:  # a network file system lost it (ESTALE, EIO)
            return None
        finally:
            os.close(descriptor)

    def begin_round(self) -> None:
        """A sweep over all files begins."""
        self._round += 1

    def end_round(self) -> None:
        """Forget the files that the sweep did not find."""
        for tail in self._by_identity.values():
            if tail.descriptor >= 0 and (tail.round < self._round or tail.grew < self._round - 1):
                self._close(tail)
        found = {key: tail for key, tail in self._by_identity.items() if tail.round == self._round}
        self._by_identity = found
        self._inodes = {inode for _, inode in found}
        kept = self._by_path.items()
        self._by_path = {path: tail for path, tail in kept if tail.round == self._round}

    def close(self) -> None:
        """Give the descriptors back."""
        for tail in self._by_identity.values():
            if tail.descriptor >= 0:
                self._close(tail)

    def _opened(self, tail: _Tail, path: str) -> int:
        if tail.descriptor < 0:
            tail.descriptor = os.open(path, _FLAGS)
            self._kept += 1
        return tail.descriptor

    def _close(self, tail: _Tail) -> None:
        os.close(tail.descriptor)
        tail.descriptor = -1
        self._kept -= 1

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
    ) -> Piece | None:
        size = found.st_size
        data = _with_mark(tail, descriptor, size) if size > tail.offset else b""
        if not data.startswith(tail.mark) or not data:
            self._begin_anew(tail)
            data = _with_mark(tail, descriptor, size)
        start = len(tail.mark)
        more = tail.offset + len(data) - start < size
        cut = len(data) if rest and not more else data.rfind(b"\n", start) + 1
        cut = cut or start + whole(data[start:])
        if cut == start:
            return None
        self.more = more
        return _taken(tail, data, start, cut, min(changed_at, found.st_mtime + self.wall_offset))

    def _begin_anew(self, tail: _Tail) -> None:
        if self._covers(tail.path):
            tail.owner = self._owner_of(tail.path)
        tail.offset, tail.line, tail.mark = 0, 1, b""


def _room() -> int:
    """How many descriptors may be kept: the rest of the supervisor needs some too."""
    return max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 - _SPARED)


def _with_mark(tail: _Tail, descriptor: int, size: int) -> bytes:
    """The bytes before the position, and what follows."""
    start = tail.offset - len(tail.mark)
    return os.pread(descriptor, min(size - start, BLOCK), start)


def _taken(tail: _Tail, data: bytes, start: int, cut: int, written_at: float) -> Piece:
    """data[start:cut] as a piece of the file; the position moves on."""
    tail.offset += cut - start
    tail.mark = data[max(0, cut - _MARK_BYTES) : cut]
    owner, first, lines = tail.owner, tail.line, ended(data[start:cut])
    tail.line = first + lines.count(b"\n")
    return Piece(
        source=owner.source,
        rank=owner.rank,
        host=owner.host,
        first_line=first,
        lines=lines,
        file=owner.file,
        written_at=written_at,
    )
