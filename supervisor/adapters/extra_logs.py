"""Log files that the command writes by itself (--rank-logs GLOB), followed as they grow.

    a folder on this machine's disk:  the kernel names the files that changed; what changed within
                                      20 ms is read together and matched as one block
    a network file system:            polled, files that grew lately four times a second
    both:                             a sweep over all files every few seconds, at once when the
                                      kernel's queue overflowed, and at the end

No pass over files takes more than a tenth of the time, nor holds up what the ranks print meanwhile.
A file that was there when following began is read from where it ended then, one that came later
from its start. A link into another folder is seen by the sweep alone.
"""

import math
import select
import time
from collections.abc import Callable, Iterator, Sequence

from supervisor.adapters import clock
from supervisor.adapters.file_systems import reports_changes
from supervisor.adapters.log_folders import LogFolders
from supervisor.adapters.log_owners import owners
from supervisor.adapters.log_pattern import LogPattern
from supervisor.adapters.log_tails import LogTails
from supervisor.adapters.passes import Pass
from supervisor.adapters.sightings import Piece

_TOGETHER_SECONDS, _LATE_SECONDS = 0.02, 0.05
_MANY = 64  # files that changed together
_MOST_BYTES = 1024 * 1024  # handed on at once, or a little more
_SWEEP_SECONDS, _SWEEP_POLLED_SECONDS, _POLL_SECONDS = 10.0, 5.0, 0.25
_HOT_SECONDS = 30.0  # since a polled file grew


class ExtraLogs:
    """Follows all files that match a pattern."""

    def __init__(
        self,
        pattern: str,
        rank_hosts: Sequence[str] = (),
        apart: str | None = None,  # a folder that is not looked into: our own files
        watchable: Callable[[str], bool] = reports_changes,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        cut = LogPattern(pattern)
        self._folders = LogFolders(cut, apart, watchable)
        self._tails = LogTails(owners(rank_hosts, cut.base), self._folders.covers)
        self._due: dict[str, float] = {}  # and when it was first seen to have changed
        self._new: set[str] = set()  # of these, may be another file than before
        self._hot: dict[str, float] = {}  # polled files, and until when
        self._now = now
        self._sweep, self._poll = Pass(_SWEEP_SECONDS, now), Pass(_POLL_SECONDS, now)
        self._pieces: list[Piece] = []
        self._size = 0
        self._begun, self._looked, self._next = False, 0.0, 0.0

    def read(self) -> list[Piece]:
        """What was added since the last look; the first look only notes what is there."""
        now = self._now()
        if now < self._next:
            return []
        late = now - self._looked > _LATE_SECONDS
        self._looked, self._next = now, now + _TOGETHER_SECONDS
        if not self._begun:
            self._begin()
        self._note_changes()
        self._read_due(late=late)
        self._pass(self._poll, self._hot_files, now)
        self._pass(self._sweep, self._all_files, now)
        if self._due:
            self._next = 0.0
        return self._taken()

    def rest(self) -> Iterator[list[Piece]]:
        """Everything that is left, unfinished lines too, when nothing more will come."""
        if not self._begun:
            return
        self._note_changes()
        for path in self._all_files():
            more = True
            while more:
                more = self._read(path, self._due.get(path, clock.now()), rest=True)
                if self._size >= _MOST_BYTES:
                    yield self._taken()
        yield self._taken()

    def wait(self, other: int, seconds: float) -> None:
        """Sleep until there is something to read, here or on another descriptor."""
        poll = select.poll()
        poll.register(other, select.POLLIN)
        now = self._now()
        until = self._next  # nothing is read before: changes this close are read together
        if now >= until and not self._due:
            until = min(self._sweep.next_at, self._poll.next_at if self._hot else math.inf)
            if self._folders.descriptor is not None:
                poll.register(self._folders.descriptor, select.POLLIN)
        poll.poll(math.ceil(1000 * max(0.0, min(seconds, until - now))))

    def close(self) -> None:
        """Give watches and descriptors back."""
        self._folders.close()
        self._tails.close()

    def _begin(self) -> None:
        self._begun = True
        for path in self._folders.scan(self._tails.knows):
            self._tails.skip(path)
        self._pace()
        self._sweep.next_at = self._now() + self._sweep.every_seconds

    def _pace(self) -> None:
        polled = bool(self._folders.polled)
        self._sweep.every_seconds = _SWEEP_POLLED_SECONDS if polled else _SWEEP_SECONDS

    def _note_changes(self) -> None:
        paths, overflowed = self._folders.changed(self._tails.knows)
        now = clock.now()
        self._tails.wall_offset = clock.wall_offset()
        for path, is_new in paths.items():
            self._due.setdefault(path, now)
            if is_new:
                self._new.add(path)
        if overflowed:
            self._sweep.begin(self._all_files())

    def _read_due(self, *, late: bool) -> None:
        """Many files by a glance each, which tells no date of writing; where we come late, the
        dates of those that changed first stand for all.
        """
        due, self._due = self._due, {}
        asked = _MANY if late or len(due) < _MANY else 0
        oldest = math.inf
        for number, (path, changed_at) in enumerate(due.items()):
            if self._size >= _MOST_BYTES:
                self._due[path] = changed_at
                continue
            asks = number < asked or path in self._new
            look = self._tails.read if asks else self._tails.grown
            piece = look(path, min(changed_at, oldest))
            if asks and piece is not None and piece.written_at is not None:
                oldest = piece.written_at
            self._keep(path, piece)
            if self._tails.more:
                self._due[path] = changed_at
        self._new &= self._due.keys()

    def _pass(self, one: Pass, files: Callable[[], Iterator[str]], now: float) -> None:
        if one.is_due(now):
            one.begin(files())
        for path in one.slice():
            if self._read(path, clock.now()):
                self._due.setdefault(path, clock.now())
            if self._size >= _MOST_BYTES:
                return

    def _read(self, path: str, changed_at: float, *, rest: bool = False) -> bool:
        """Read a file; whether there is more in it."""
        self._keep(path, self._tails.read(path, changed_at, rest=rest))
        return self._tails.more

    def _keep(self, path: str, piece: Piece | None) -> None:
        if piece is not None:
            self._pieces.append(piece)
            self._size += len(piece.lines)
            if self._folders.is_polled(path):
                self._hot[path] = self._now() + _HOT_SECONDS

    def _taken(self) -> list[Piece]:
        pieces, self._pieces, self._size = self._pieces, [], 0
        return pieces

    def _all_files(self) -> Iterator[str]:
        self._tails.begin_round()
        yield from self._folders.scan(self._tails.knows)
        self._tails.end_round()
        self._pace()

    def _hot_files(self) -> Iterator[str]:
        now = self._now()
        self._hot = {path: until for path, until in self._hot.items() if until > now}
        yield from tuple(self._hot)
