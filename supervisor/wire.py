"""What supervisor, shim and agent share: environment variables, host names, frames, the slot.

Standard library only, and few modules of it: the shim imports this on every rank at every start
(hence no dataclasses, typing, re or json here).

Frames. A shim writes its rank's output, and its own reports, to its standard output as lines

    MARK RANK . OFFSET . KIND . LENGTH . CRC : PAYLOAD \\n          (no blanks)

RANK and OFFSET are decimal, LENGTH and CRC hexadecimal. OFFSET is the position of the payload's
first byte in the rank's own output, so that reading a spool twice writes the same bytes to the same
place. LENGTH counts the payload as written: a newline is written as 0x1f, and 0x10, 0x1e, 0x1f as
0x10 and the byte xor 0x40, so a mark (0x1e) always begins a frame, a frame is always one line, and
plain text does not grow. CRC is the CRC-32 of everything between mark and CRC, and the payload:
without the header in it, two headers cut at once can make a third that fits. A frame is at most
MAX_FRAME bytes: writes up to PIPE_BUF are atomic, so ranks may share one pipe.

How they are read, whole or torn, is frame_decoder.py's.

The slot. 64 bytes of node-local shared memory per rank: the agent stores step and phase there and
reads requests. The store is one copy of packed bytes and not struct's pack_into, which zeroes the
place first and so shows a reader step 0 for a moment.
"""

import mmap
import os
import struct
import time
import zlib
from collections import namedtuple
from collections.abc import Iterator
from enum import IntEnum, StrEnum

RUN_ID = "SUPERVISE_RUN_ID"
RUN_DIR = "SUPERVISE_RUN_DIR"
ATTEMPT = "SUPERVISE_ATTEMPT"
HOST = "SUPERVISE_HOST"
WORLD_SIZE = "SUPERVISE_WORLD_SIZE"  # ranks that have a shim; a command may start more of its own
RESUME_FROM = "SUPERVISE_RESUME_FROM"
SLOT = "SUPERVISE_SLOT"  # path of the rank's slot file, set by the shim
LAUNCHER = (
    "SUPERVISE_LAUNCHER"  # the launcher's flavour: tells the shim which variables name the rank
)
ROLE = "SUPERVISE_ROLE"  # "keeper", "virtual-host" or "probe": a sweep leaves these alone
BEAT_SECONDS = "SUPERVISE_BEAT_SECONDS"  # mean time between two heartbeats of a shim

MAX_FRAME = 4096
MARK = 0x1E


class Kind(StrEnum):
    """What a frame carries."""

    OUTPUT = "o"  # bytes of the rank's output
    STARTED = "s"  # JSON: rank, local_rank, world_size, host, pid, at
    BEAT = "b"  # JSON: host, state, step, phase, done, at
    EXITED = "x"  # JSON: host, exit_code, signal, step, done, at, size (bytes of output in all)


TYPE_CHECKING = False  # importing typing for it would cost every rank 3 ms
if TYPE_CHECKING:
    from typing import NamedTuple

    class Frame(NamedTuple):
        """One decoded frame."""

        kind: Kind
        rank: int
        offset: int
        payload: bytes

    class SlotState(NamedTuple):
        """What a rank says of itself; step is None before the first, stored_ns is monotonic."""

        step: int | None
        phase: "RankPhase"
        stored_ns: int
        flags: int
        pid: int
else:
    Frame = namedtuple("Frame", "kind rank offset payload")
    SlotState = namedtuple("SlotState", "step phase stored_ns flags pid")

LONGEST_HEADER = 44  # mark, 7 digits, 19 digits, kind, 3 and 8 hexadecimal digits, their separators
HEADER = rb"\x1e((\d{1,7})\.(\d{1,19})\.([osbx])\.([0-9a-f]{1,3})\.)([0-9a-f]{8}):"
KINDS = {kind.encode(): kind for kind in Kind}
MAX_PAYLOAD = (MAX_FRAME - LONGEST_HEADER - 1) // 2  # fits a frame whatever bytes it has


def encode(kind: Kind, rank: int, offset: int, payload: bytes) -> bytes:
    """One frame; up to MAX_PAYLOAD bytes fit in MAX_FRAME whatever they are."""
    return _seal(kind.encode(), rank, offset, _escape(payload))


def frames(rank: int, offset: int, data: bytes, limit: int = MAX_FRAME) -> Iterator[bytes]:
    """Output as frames of at most `limit` bytes, cut after a newline where there is one."""
    written, room, position = _escape(data), limit - LONGEST_HEADER - 1, 0
    has_escapes = len(written) > len(data)
    while position < len(written):
        end = _end_of_piece(written, position, position + room)
        piece = written[position:end]
        yield _seal(b"o", rank, offset, piece)
        offset += len(piece) - (piece.count(b"\x10") if has_escapes else 0)
        position = end


def _end_of_piece(written: bytes, position: int, end: int) -> int:
    """Behind the last newline that fits, else as far as will fit without parting an escape."""
    if end >= len(written):
        return len(written)
    newline = written.rfind(b"\x1f", position, end)
    return newline + 1 if newline >= 0 else end - (written[end - 1] == 0x10)


def _seal(kind: bytes, rank: int, offset: int, written: bytes) -> bytes:
    head = b"%d.%d.%s.%x." % (rank, offset, kind, len(written))
    return b"\x1e%s%08x:%s\n" % (head, zlib.crc32(written, zlib.crc32(head)), written)


def _escape(payload: bytes) -> bytes:
    payload = payload.replace(b"\x10", b"\x10P").replace(b"\x1e", b"\x10^")
    return payload.replace(b"\x1f", b"\x10_").replace(b"\n", b"\x1f")


def unescape(written: bytes) -> bytes:
    """The payload of a frame, or of several that follow on, from how it is written there."""
    payload = written.replace(b"\x1f", b"\n")
    if b"\x10" in payload:
        payload = payload.replace(b"\x10_", b"\x1f").replace(b"\x10^", b"\x1e")
        payload = payload.replace(b"\x10P", b"\x10")
    return payload


class RankPhase(StrEnum):
    """What a rank says it is doing; each has its own limit."""

    LAUNCH = "launch"
    INIT = "init"
    LOAD = "load"
    COMPILE = "compile"
    STEP = "step"
    CHECKPOINT = "checkpoint"
    EVAL = "eval"
    EXIT = "exit"


class Request(IntEnum):
    """What may be asked of a rank through its slot; each has one number as argument."""

    NONE = 0
    CHECKPOINT = 1  # at the next step boundary
    PROFILE = 2  # the next `argument` steps
    STACKS = 3


PHASES = tuple(RankPhase)
NO_STEP = -1

# magic, version, flags, phase (index into PHASES), step, monotonic ns of the last store,
# request, request argument, pid of the process that stores
SLOT_LAYOUT = struct.Struct("<IHBBqqIII")
ADOPTED = ".adopted"  # ends the name of the file beside a slot: a pid and when it began, a line
SLOT_FLAG_STACKS = 1  # the process writes its stacks to a file when it gets SIGUSR1
SLOT_FLAG_DONE = 2  # the training is over, and well: how the process ends changes nothing
SLOT_SIZE = 64
SLOT_MAGIC = 0x53555056
SLOT_VERSION = 1

_FLAGS, _STORED, _REQUEST, _PID = 6, slice(7, 24), 24, 32  # places in SLOT_LAYOUT
_pack_stored = struct.Struct("<Bqq").pack
_REQUEST_LAYOUT = struct.Struct("<II")


def create_slot(path: str) -> None:
    """A new slot file that only this user can open."""
    if os.path.lexists(path):
        os.unlink(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    start = (SLOT_MAGIC, SLOT_VERSION, 0, 0, NO_STEP, time.monotonic_ns(), Request.NONE, 0, 0)
    try:
        os.write(descriptor, SLOT_LAYOUT.pack(*start).ljust(SLOT_SIZE, b"\0"))
    finally:
        os.close(descriptor)


def open_slot(path: str, *, writable: bool) -> mmap.mmap:
    """Map a slot; it stays valid when the file is removed."""
    mode, access = (os.O_RDWR, mmap.ACCESS_WRITE) if writable else (os.O_RDONLY, mmap.ACCESS_READ)
    descriptor = os.open(path, mode | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return mmap.mmap(descriptor, SLOT_SIZE, access=access)
    finally:
        os.close(descriptor)


def introduce(slot: mmap.mmap, flags: int) -> None:
    """The agent says, once, who stores here and what it can do."""
    slot[_FLAGS] = flags
    struct.pack_into("<I", slot, _PID, os.getpid())


def mark_done(slot: mmap.mmap) -> None:
    """The agent says that its training has ended well."""
    slot[_FLAGS] |= SLOT_FLAG_DONE


def store(slot: mmap.mmap, step: int, phase: int) -> None:
    """State step and phase (an index into PHASES). 0.2 us: no system call, cannot block."""
    slot[_STORED] = _pack_stored(phase, step, time.monotonic_ns())


def read(slot: mmap.mmap) -> SlotState | None:
    """What the rank states; None when this is no slot, or changes faster than it can be read."""
    for _ in range(8):
        seen = slot[:SLOT_SIZE]
        if seen == slot[:SLOT_SIZE]:
            return _state(seen)
    return None


def _state(seen: bytes) -> SlotState | None:
    magic, version, flags, phase, step, stored_ns, _, _, pid = SLOT_LAYOUT.unpack_from(seen)
    if (magic, version) != (SLOT_MAGIC, SLOT_VERSION) or phase >= len(PHASES) or step < NO_STEP:
        return None
    return SlotState(None if step == NO_STEP else step, PHASES[phase], stored_ns, flags, pid)


def ask(slot: mmap.mmap, request: Request, argument: int = 0) -> None:
    """Leave a request for the agent's next step boundary; a later one replaces it."""
    slot[_REQUEST : _REQUEST + 8] = _REQUEST_LAYOUT.pack(request, argument)


def asked(slot: mmap.mmap) -> tuple[int, int]:
    """The request and its argument, as the agent finds them; (0, 0) is none."""
    request, argument = _REQUEST_LAYOUT.unpack_from(slot, _REQUEST)
    return request, argument


_INTERFACE_SUFFIXES = ("-hsn", "-ib", "-eth", "-opa")


def canonical_host(name: str) -> str:
    """One spelling per host: lower case, no domain, no suffix of a network interface.

    An address is left as it is. An unknown suffix is not guessed at.
    """
    name = name.strip().lower()
    if _is_address(name):
        return name
    short = name.split(".", 1)[0]
    for suffix in _INTERFACE_SUFFIXES:
        stem, found, index = short.rpartition(suffix)
        if found and stem and (index.isdigit() or not index):
            return stem
    return short


def _is_address(name: str) -> bool:
    return ":" in name or name.replace(".", "").isdigit()
