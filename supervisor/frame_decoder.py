"""Reads frames out of what a launcher makes of them: whole, torn, and with other words between.

How a frame is written stands in wire.py. Launchers tear lines where their read buffers end (MPICH
6 of 8,000) and put other bytes between the halves: another rank's frames or halves, or words of
their own. The Decoder keeps the first half and looks, at each line that belongs to no frame,
whether it ends one that is waiting: LENGTH says where the rest must begin, the CRC whether it is
the rest. Any number of frames may wait, each cut once anywhere, in its header too; of frames cut
twice those are mended whose pieces lie whole between marks and newlines. Where text was put right
into a cut and the bytes on both sides of it are alike, a byte may be given to the wrong frame. A
frame that never gets its rest comes back as an OUTPUT frame with what there is of it (a rank's
words must never pass for the launcher's), or as text when it is no output.
"""

import re
import zlib
from collections.abc import Iterator

from supervisor.wire import (
    HEADER,
    KINDS,
    LONGEST_HEADER,
    MARK,
    MAX_FRAME,
    Frame,
    Kind,
    unescape,
)

_MAX_CUTS = 1024  # frames that may wait for their rest: 4 MiB
_PATIENCE = 1000  # lines that belong to no frame, after which one no longer waits
_MAX_OVERTAKEN = 16  # frames of its own rank that a cut one lets pass
_MAX_SCANS = 8  # thorough searches spent on one cut frame, 10 ms each at most, and on one line
_MAX_LINE = 2 * MAX_FRAME  # a longer one is no frame's rest


class _Cut:
    """The first half of a frame, mark included; or, without mark, perhaps a middle piece."""

    __slots__ = ("born", "header", "newline", "overtaken", "raw", "scans", "total")

    def __init__(self, raw: bytes, header: re.Match[bytes] | None, born: int) -> None:
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
        payload = unescape(b"".join(self.writtens))
        return Frame(Kind.OUTPUT, int(self.rank), self.offset, payload)


_Items = list["Frame | bytes | _Run"]


class Decoder:
    """Takes a launcher's output in any chunks, gives frames, and text that belongs to no frame.

    Output frames that follow on one another in what is fed come as one. Text comes in order, except
    what was held because a waiting frame could have claimed it. Any bytes will do: it never raises,
    and never holds more than about 4 MiB.
    """

    def __init__(self) -> None:
        self._match = re.compile(HEADER).match
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
        return Frame(KINDS[kind], int(rank), int(offset), unescape(written))

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
            out.append(Frame(Kind.OUTPUT, rank, offset, unescape(written)))
        if rest:
            out.append(rest + b"\n" if cut.newline else rest)

    def _remove(self, cut: _Cut) -> None:
        self._cuts.remove(cut)
        if cut.header and self._ranks.get(int(cut.header[2])) is cut:
            del self._ranks[int(cut.header[2])]


def _append(out: _Items, kind: bytes, rank: bytes, offset: int, written: bytes) -> None:
    if kind != b"o":
        out.append(Frame(KINDS[kind], int(rank), offset, unescape(written)))
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
            yield min(size, LONGEST_HEADER), longest
            return
        if size < LONGEST_HEADER:
            yield from ((size, used) for used in range(1, longest))
        yield from ((kept, longest) for kept in range(1, min(size, LONGEST_HEADER)))
