"""What supervisor, shim and agent share: environment variables, host names, frames, the slot.

Standard library only, and few modules of it: the shim imports this on every rank at every start
(hence no dataclasses, typing or json here, and `re` only where frames are decoded).

Frames. A shim writes its rank's output, and its own reports, to its standard output as lines

    MARK RANK . OFFSET . KIND . LENGTH . CRC : PAYLOAD \\n          (no blanks)

RANK and OFFSET are decimal, LENGTH and CRC hexadecimal. OFFSET is the position of the payload's
first byte in the rank's own output, so that reading a spool twice writes the same bytes to the same
place. LENGTH counts the payload as written: a newline is written as 0x1f, and 0x10, 0x1e, 0x1f as
0x10 and the byte xor 0x40, so a mark (0x1e) always begins a frame, a frame is always one line, and
plain text does not grow. CRC is the CRC-32 of everything between mark and CRC, and the payload:
without the header in it, two headers cut at once can make a third that fits. A frame is at most
MAX_FRAME bytes: writes up to PIPE_BUF are atomic, so ranks may share one pipe.

Launchers tear lines where their read buffers end (MPICH 6 of 8,000) and put other bytes between
the halves: another rank's frames or halves, or words of their own. The Decoder keeps the first
half and looks, at each line that belongs to no frame, whether it ends one that is waiting: LENGTH
says where the rest must begin, the CRC whether it is the rest. Any number of frames may wait, each
cut once anywhere, in its header too; of frames cut twice those are mended whose pieces lie whole
between marks and newlines. Where text was put right into a cut and the bytes on both sides of it
are alike, a byte may be given to the wrong frame. A frame that never gets its rest comes back as
an OUTPUT frame with what there is of it (a rank's words must never pass for the launcher's), or as
text when it is no output.

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
    BEAT = "b"  # JSON: host, state, step, phase, at
    EXITED = "x"  # JSON: host, exit_code, signal, step, at, size (bytes of output in all)


TYPE_CHECKING = False  # importing typing for it would cost every rank 3 ms
if TYPE_CHECKING:
    import re
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

_LONGEST_HEADER = (
    44  # mark, 7 digits, 19 digits, kind, 3 and 8 hexadecimal digits, their separators
)
_HEADER = rb"\x1e((\d{1,7})\.(\d{1,19})\.([osbx])\.([0-9a-f]{1,3})\.)([0-9a-f]{8}):"
_KINDS = {kind.encode(): kind for kind in Kind}
MAX_PAYLOAD = (MAX_FRAME - _LONGEST_HEADER - 1) // 2  # fits a frame whatever bytes it has


def encode(kind: Kind, rank: int, offset: int, payload: bytes) -> bytes:
    """One frame; up to MAX_PAYLOAD bytes fit in MAX_FRAME whatever they are."""
    return _seal(kind.encode(), rank, offset, _escape(payload))


def frames(rank: int, offset: int, data: bytes, limit: int = MAX_FRAME) -> Iterator[bytes]:
    """Output as frames of at most `limit` bytes, cut after a newline where there is one."""
    written, room, position = _escape(data), limit - _LONGEST_HEADER - 1, 0
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


def _unescape(written: bytes) -> bytes:
    payload = written.replace(b"\x1f", b"\n")
    if b"\x10" in payload:
        payload = payload.replace(b"\x10_", b"\x1f").replace(b"\x10^", b"\x1e")
        payload = payload.replace(b"\x10P", b"\x10")
    return payload


_MAX_CUTS = 1024  # frames that may wait for their rest: 4 MiB
_PATIENCE = 1000  # lines that belong to no frame, after which one no longer waits
_MAX_OVERTAKEN = 16  # frames of its own rank that a cut one lets pass
_MAX_SCANS = 8  # thorough searches spent on one cut frame, 10 ms each at most, and on one line
_MAX_LINE = 2 * MAX_FRAME  # a longer one is no frame's rest


class _Cut:
    """The first half of a frame, mark included; or, without mark, perhaps a middle piece."""

    __slots__ = ("born", "header", "newline", "overtaken", "raw", "scans", "total")

    def __init__(self, raw: bytes, header: "re.Match[bytes] | None", born: int) -> None:
        self.raw, self.header, self.born = raw, header, born
        self.total = header.end() + int(header[5], 16) if header else 0
        self.newline = False  # whether a newline came after it: then its end is not its own
        self.scans = self.overtaken = 0


class _Run:
    """Output frames of one rank, each where the last one ended: sixty are given out as one."""

    __slots__ = ("end", "offset", "rank", "writtens")

    def __init__(self, rank: bytes, offset: int) -> None:
        self.rank, self.offset, self.end = rank, offset, offset
        self.writtens: list[bytes] = []

    def add(self, written: bytes) -> None:
        self.writtens.append(written)
        self.end += len(written) - (written.count(b"\x10") if b"\x10" in written else 0)

    def frame(self) -> Frame:
        payload = _unescape(b"".join(self.writtens))
        return Frame(Kind.OUTPUT, int(self.rank), self.offset, payload)


_Items = list["Frame | bytes | _Run"]


class Decoder:
    """Takes a launcher's output in any chunks, gives frames, and text that belongs to no frame.

    Output frames that follow on one another in what is fed come as one. Text comes in order, except
    what was held because a waiting frame could have claimed it. Any bytes will do: it never raises,
    and never holds more than about 4 MiB.
    """

    def __init__(self) -> None:
        import re

        self._match = re.compile(_HEADER).match
        self._tail = b""
        self._cuts: list[_Cut] = []  # oldest first
        self._ranks: dict[int, _Cut] = {}  # those of known rank
        self._lines = 0  # unclaimed so far: the clock that cut frames age by
        self._newlines_owed = 0  # frames given out whose newline had not come yet

    @property
    def outstanding(self) -> int:
        """Frames that wait for their rest."""
        return len(self._cuts)

    @property
    def pending(self) -> int:
        """Bytes at the end of what was fed that are not decided yet."""
        return len(self._tail)

    def feed(self, data: bytes) -> list[Frame | bytes]:
        """Decode what can be decided."""
        out: _Items = []
        data = self._tail + data if self._tail else data
        self._tail = data[self._scan(data, out) :]
        return _given_out(out)

    def close(self) -> list[Frame | bytes]:
        """Nothing more will come: give out what is left."""
        out: _Items = []
        if self._tail:
            self._take(self._tail, False, out)
        self._tail = b""
        while self._cuts:
            self._give_up(self._cuts[0], out)
        return _given_out(out)

    def _scan(self, data: bytes, out: _Items) -> int:
        """Whole frames in a tight loop, all else by _mend; returns where the undecided begins."""
        match, crc32, ranks = self._match, zlib.crc32, self._ranks
        position, size = 0, len(data)
        while position < size:
            header = match(data, position)
            if header:
                head, rank, offset, kind, length, crc = header.groups()
                start = header.end()
                end = start + int(length, 16)
                written = data[start:end]
                if data[end : end + 1] == b"\n" and crc32(written, crc32(head)) == int(crc, 16):
                    if ranks and int(rank) in ranks:
                        self._overtake(ranks[int(rank)], out)
                    _append(out, kind, rank, int(offset), written)
                    position = end + 1
                    continue
            before, position = position, self._mend(data, position, out)
            if position == before:
                break
        return position

    def _mend(self, data: bytes, position: int, out: _Items) -> int:
        """One line that is no whole frame; does not move when its end has not come yet."""
        marked = data[position] == MARK
        if not (marked or self._cuts or self._newlines_owed):
            mark = data.find(b"\x1e", position)
            end = len(data) if mark < 0 else mark
            out.append(data[position:end])
            return end
        start, limit = position + marked, position + _MAX_LINE
        newline = data.find(b"\n", start, limit)
        mark = data.find(b"\x1e", start, limit if newline < 0 else newline)
        end = max(mark, newline) if min(mark, newline) < 0 else mark
        if end < 0:
            if len(data) < limit:
                return position
            end = limit
        ended = end == newline
        self._take(data[position:end], ended, out)
        return end + ended

    def _take(self, line: bytes, newline: bool, out: _Items) -> None:
        """A stretch up to a newline, the next mark, or too long for any frame."""
        if line[:1] == b"\x1e":
            self._take_marked(line, newline, out)
        elif not newline:
            self._hold_or_pass(line, out)
        elif not line and self._newlines_owed:
            self._newlines_owed -= 1
        else:
            before = self._claim(line, out)
            if before is None:
                out.append(line + b"\n")
                self._age(out)
            else:
                self._hold_or_pass(before, out)

    def _take_marked(self, line: bytes, newline: bool, out: _Items) -> None:
        before = self._claim(line, out) if newline else None
        cut = self._cut(line if before is None else before)
        cut.newline = newline and before is None
        whole = self._verified(cut.raw[: cut.total]) if cut.header else None
        if whole:  # only its newline is missing
            self._newlines_owed += 1
            out.append(whole)
            self._take(cut.raw[cut.total :], cut.newline, out)
        elif not (cut.newline and self._claim_around(cut, out)):
            self._wait(cut, out)

    def _claim(self, line: bytes, out: _Items) -> bytes | None:
        """Complete the frame whose rest ends this line; returns what stands before the rest."""
        for thorough in (False, True):
            scans = 0
            for cut in self._cuts:
                if thorough and (cut.scans >= _MAX_SCANS or scans >= _MAX_SCANS):
                    continue
                scans += thorough
                cut.scans += thorough
                found = self._join(cut, line, thorough)
                if found:
                    frame, kept, used = found
                    self._settle(cut, kept, out)
                    out.append(frame)
                    return line[: len(line) - used]
        return self._claim_with_middle(line, out)

    def _join(self, cut: _Cut, line: bytes, thorough: bool) -> tuple[Frame, int, int] | None:
        """A frame of the first `kept` bytes of a cut and the last `used` of a line."""
        size, longest = len(line), len(line) - (line[:1] == b"\x1e")
        for kept, used in _splits(cut, longest, thorough):
            frame = self._verified(cut.raw[:kept] + line[size - used :])
            if frame:
                return frame, kept, used
        return None

    def _claim_with_middle(self, line: bytes, out: _Items) -> bytes | None:
        """The same for a frame cut twice, whose middle piece ends another stretch."""
        if line[:1] == b"\x1e":
            return None
        for cut in self._cuts[:_MAX_SCANS]:
            need = cut.total - len(cut.raw) - len(line) if cut.header else MAX_FRAME
            for other in self._cuts if need > 0 else ():
                middle = other.raw[-need:]
                frame = self._verified(cut.raw + middle + line) if other is not cut else None
                if frame:
                    self._shorten(other, len(other.raw) - len(middle))
                    self._settle(cut, len(cut.raw), out)
                    out.append(frame)
                    return b""
        return None

    def _claim_around(self, cut: _Cut, out: _Items) -> bool:
        """A frame whose line has a foreign piece inside it."""
        line, foreign = cut.raw, len(cut.raw) - cut.total
        if not cut.header or foreign <= 0:
            return False
        for start in range(cut.header.end(), cut.total):
            frame = self._verified(line[:start] + line[start + foreign :])
            if frame:
                out.append(frame)
                self._hold_or_pass(line[start : start + foreign], out)
                return True
        return False

    def _verified(self, text: bytes) -> Frame | None:
        header = self._match(text)
        if not header:
            return None
        head, rank, offset, kind, length, crc = header.groups()
        written = text[header.end() :]
        if len(written) != int(length, 16):
            return None
        if zlib.crc32(written, zlib.crc32(head)) != int(crc, 16):
            return None
        return Frame(_KINDS[kind], int(rank), int(offset), _unescape(written))

    def _cut(self, raw: bytes) -> _Cut:
        return _Cut(raw, self._match(raw), self._lines)

    def _wait(self, cut: _Cut, out: _Items) -> None:
        if cut.header:
            self._ranks[int(cut.header[2])] = cut
        self._cuts.append(cut)
        self._age(out)

    def _hold_or_pass(self, piece: bytes, out: _Items) -> None:
        """A piece that ends in no newline: text, unless it may be the middle of a waiting frame."""
        if piece and self._cuts and len(piece) <= MAX_FRAME:
            self._cuts.append(_Cut(piece, None, self._lines))
            self._age(out)
        elif piece:
            out.append(piece)

    def _age(self, out: _Items) -> None:
        self._lines += 1
        while self._cuts:
            oldest = self._cuts[0]
            if len(self._cuts) <= _MAX_CUTS and self._lines - oldest.born <= _PATIENCE:
                return
            self._give_up(oldest, out)

    def _settle(self, cut: _Cut, kept: int, out: _Items) -> None:
        """A cut became a frame with its first `kept` bytes; those after them are not its own."""
        self._remove(cut)
        foreign = cut.raw[kept:]
        if not cut.newline:
            self._hold_or_pass(foreign, out)
        elif foreign or not self._newlines_owed:
            out.append(foreign + b"\n")
        else:
            self._newlines_owed -= 1
        while self._cuts and self._cuts[0].raw[:1] != b"\x1e":  # no frame's middle any more
            self._give_up(self._cuts[0], out)

    def _shorten(self, cut: _Cut, size: int) -> None:
        """The end of a stretch turned out to be another frame's."""
        index, left = self._cuts.index(cut), self._cut(cut.raw[:size])
        left.born, left.scans = cut.born, cut.scans
        self._remove(cut)
        if left.raw:
            self._cuts.insert(index, left)
        if left.header:
            self._ranks[int(left.header[2])] = left

    def _overtake(self, cut: _Cut, out: _Items) -> None:
        """A whole frame came from the rank of a cut one: its rest is lost, or fitted another's."""
        cut.overtaken += 1
        if cut.overtaken > _MAX_OVERTAKEN:
            self._give_up(cut, out)

    def _give_up(self, cut: _Cut, out: _Items) -> None:
        self._remove(cut)
        rest = cut.raw
        if cut.header and cut.header[4] == b"o":
            written, rest = rest[cut.header.end() : cut.total], rest[cut.total :]
            rank, offset = int(cut.header[2]), int(cut.header[3])
            out.append(Frame(Kind.OUTPUT, rank, offset, _unescape(written)))
        if rest:
            out.append(rest + b"\n" if cut.newline else rest)

    def _remove(self, cut: _Cut) -> None:
        self._cuts.remove(cut)
        if cut.header and self._ranks.get(int(cut.header[2])) is cut:
            del self._ranks[int(cut.header[2])]


def _append(out: _Items, kind: bytes, rank: bytes, offset: int, written: bytes) -> None:
    if kind != b"o":
        out.append(Frame(_KINDS[kind], int(rank), offset, _unescape(written)))
        return
    last = out[-1] if out else None
    if not (isinstance(last, _Run) and last.end == offset and last.rank == rank):
        last = _Run(rank, offset)
        out.append(last)
    last.add(written)


def _given_out(items: _Items) -> list[Frame | bytes]:
    return [item.frame() if isinstance(item, _Run) else item for item in items]


def _splits(cut: _Cut, longest: int, thorough: bool) -> Iterator[tuple[int, int]]:
    """How many bytes of a cut and of a line's end may make a frame; likely ones unless thorough.

    Of several that fit, the one that takes least of the line is right: "440" and "0000." make the
    same as "44" and "00000.", and what stands before may be another frame's first half.
    """
    size = len(cut.raw)
    if cut.header:
        low, high = max(cut.header.end(), cut.total - longest), min(size, cut.total - 1)
        if low <= high:
            keeps = range(high - 1, low, -1) if thorough else (high, low)
            yield from ((kept, cut.total - kept) for kept in keeps)
    elif cut.raw[:1] == b"\x1e":
        if not thorough:
            yield min(size, _LONGEST_HEADER), longest
            return
        if size < _LONGEST_HEADER:
            yield from ((size, used) for used in range(1, longest))
        yield from ((kept, longest) for kept in range(1, min(size, _LONGEST_HEADER)))


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
SLOT_FLAG_STACKS = 1  # the process writes its stacks to a file when it gets SIGUSR1
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
