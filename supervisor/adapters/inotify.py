"""Changes in folders, as Linux reports them: one watch a folder, names of what changed in it.

Owns the system calls, not what a change means. The standard library has no inotify, and watchdog's
threads take 1.5 to 2 times the CPU of all our following at 10,000 files, and on a busy machine
fell so far behind that lines were lost (tests/benchmarks/bench_rank_logs.py measures both); so the
three calls are made here through ctypes.

The kernel keeps at most max_queued_events (16,384) for a reader that does not come; then it drops
the rest and says so (`overflowed`): whoever follows files must then look at all of them.
"""

import os
import struct
from ctypes import CDLL, c_char_p, c_int, c_uint32, get_errno
from dataclasses import dataclass, field

_MODIFY, _MOVED_TO, _CREATE = 0x2, 0x80, 0x100
_Q_OVERFLOW, _IGNORED, _ONLY_DIR, _IS_DIR = 0x4000, 0x8000, 0x1000000, 0x40000000
NAMES = _CREATE | _MOVED_TO  # what appears in a folder
CONTENTS = NAMES | _MODIFY  # and what its files gain
_EVENT = struct.Struct("iIII")
_BUFFER_BYTES = 256 * 1024  # some 8,000 events at once


@dataclass(slots=True)
class Changes:
    """What happened since the last look."""

    names: dict[tuple[int, bytes], bool] = field(default_factory=dict)  # True: it is new there
    folders: list[tuple[int, bytes]] = field(default_factory=list)  # new ones
    gone: list[int] = field(default_factory=list)  # watches whose folders were removed
    overflowed: bool = False


class Inotify:
    """One queue of the kernel's, with its watches."""

    def __init__(self) -> None:
        self._libc = CDLL(None, use_errno=True)
        self._libc.inotify_add_watch.argtypes = (c_int, c_char_p, c_uint32)
        self.descriptor: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise _error()

    def watch(self, folder: str, mask: int) -> int:
        """Watch a folder; the same folder by another name has the same number."""
        name = os.fsencode(folder)
        number: int = self._libc.inotify_add_watch(self.descriptor, name, mask | _ONLY_DIR)
        if number < 0:
            raise _error()
        return number

    def changes(self) -> Changes:
        """Everything that is queued, repeats left out."""
        seen = Changes()
        while data := self._read():
            _parse(data, seen)
        return seen

    def close(self) -> None:
        """Give the queue and all its watches back."""
        os.close(self.descriptor)

    def _read(self) -> bytes:
        try:
            return os.read(self.descriptor, _BUFFER_BYTES)
        except BlockingIOError:
            return b""


def _parse(data: bytes, seen: Changes) -> None:
    position, size, unpack = 0, len(data), _EVENT.unpack_from
    while position < size:
        watch, mask, _, length = unpack(data, position)
        start, position = position + _EVENT.size, position + _EVENT.size + length
        if mask & (_Q_OVERFLOW | _IGNORED):
            _note_loss(watch, mask, seen)
            continue
        name = data[start:position].rstrip(b"\0")
        if mask & _IS_DIR:
            seen.folders.append((watch, name))
        else:
            key = watch, name
            seen.names[key] = bool(mask & NAMES) or seen.names.get(key, False)


def _note_loss(watch: int, mask: int, seen: Changes) -> None:
    if mask & _Q_OVERFLOW:
        seen.overflowed = True
    else:
        seen.gone.append(watch)


def _error() -> OSError:
    number = get_errno()
    return OSError(number, os.strerror(number))
