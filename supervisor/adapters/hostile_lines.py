"""Lines made from a pattern to make it slow, and how slow they make it.

A pattern turns slow where it can read the same text in many ways, and which text that is follows
from its parse tree: what stands before a repeat, the repeated part over and over, then something
that does not fit. The lengths grow in small steps, so that a pattern that would need hours is
found out while it still needs milliseconds: nothing can interrupt `re`.
"""

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as sre_parse  # type: ignore[import-not-found]
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from supervisor.adapters.pattern_check import REPEATS, WINDOW, branches

_SHORTEST = 8
_FILLERS = b"a1 :["
_MISFIT = b"\x01"
_TRIES = 3
_CATEGORIES = {
    op.CATEGORY_DIGIT: rb"\d",
    op.CATEGORY_NOT_DIGIT: rb"\D",
    op.CATEGORY_SPACE: rb"\s",
    op.CATEGORY_NOT_SPACE: rb"\S",
    op.CATEGORY_WORD: rb"\w",
    op.CATEGORY_NOT_WORD: rb"\W",
}

Shape = Callable[[int], bytes]  # a line of about this length


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """A line on which a pattern needs more CPU time than it may."""

    line: bytes
    seconds: float


def slow_line(pattern: str, literal: bytes, limit_seconds: float) -> Slow | None:
    """The first hostile line found on which one search takes longer than the limit."""
    search = re.compile(pattern.encode("ascii")).search
    shapes = hostile_shapes(pattern, literal)
    length = _SHORTEST
    while True:
        worst = 0.0
        for line in dict.fromkeys(shape(length) for shape in shapes):
            seconds = _cost(search, line, limit_seconds)
            if seconds > limit_seconds:
                return Slow(line=line, seconds=seconds)
            worst = max(worst, seconds)
        if length == WINDOW:
            return None
        length = min(WINDOW, length + length // (4 if worst > limit_seconds / 100 else 2))


def hostile_shapes(pattern: str, literal: bytes) -> list[Shape]:
    """All shapes of hostile lines for a pattern; each line holds the literal."""
    nodes = list(sre_parse.parse(pattern.encode("ascii")))
    parts: dict[tuple[bytes, bytes], None] = {}
    for filler in _FILLERS:
        one = bytes([filler])
        parts |= dict.fromkeys([(b"", one), (literal, one), (b"", literal), (b"", literal[:-1])])
        parts |= dict.fromkeys(_pumps(nodes, filler))
        for whole in _examples(nodes, filler):
            parts |= dict.fromkeys([(b"", whole[:-1]), (b"", whole[:-1] + _MISFIT)])
    return [shape for before, pumped in parts for shape in _shapes(before, pumped, literal)]


def _shapes(before: bytes, pumped: bytes, literal: bytes) -> Iterator[Shape]:
    if pumped:
        yield partial(_line, before, pumped, literal)
        yield partial(_line, before, pumped, _MISFIT + literal)
    if pumped and before:
        yield partial(_line, b"", before + pumped, literal)


def _line(before: bytes, pumped: bytes, after: bytes, length: int) -> bytes:
    most = min(length, WINDOW - len(before) - len(after))
    return before + pumped * max(1, most // len(pumped)) + after


def _cost(search: Callable[[bytes], object], line: bytes, limit_seconds: float) -> float:
    """CPU time of one search; the least of some, where the first is over the limit."""
    least = float("inf")
    for _ in range(_TRIES):
        began = time.thread_time()
        search(line)
        least = min(least, time.thread_time() - began)
        if least <= limit_seconds:
            break
    return least


def _pumps(nodes: list[Any], filler: int) -> Iterator[tuple[bytes, bytes]]:
    """For each repeat: what may stand before it, and what it repeats."""
    before = b""
    for code, arg in nodes:
        for branch in branches(code, arg):
            if code in REPEATS:
                yield from ((before, text) for text in _examples(branch, filler))
            for inner, pumped in _pumps(branch, filler):
                yield before + inner, pumped
        before += _one(code, arg, filler)


def _examples(nodes: list[Any], filler: int) -> list[bytes]:
    """Short texts that these nodes match, of the filler where they let it: one for each of the
    alternatives, wherever there are some.
    """
    before, examples = b"", [_example(nodes, filler)]
    for index, (code, arg) in enumerate(nodes):
        after = _example(nodes[index + 1 :], filler)
        for branch in branches(code, arg):
            examples += [before + text + after for text in _examples(branch, filler)]
        before += _one(code, arg, filler)
    return list(dict.fromkeys(examples))


def _example(nodes: list[Any], filler: int) -> bytes:
    return b"".join(_one(code, arg, filler) for code, arg in nodes)


def _one(code: Any, arg: Any, filler: int) -> bytes:
    if code is op.LITERAL:
        return bytes([arg])
    if code is op.ANY:
        return bytes([filler])
    if code is op.NOT_LITERAL:
        return bytes([filler if filler != arg else filler + 1])
    if code is op.IN:
        return bytes([_member(tuple(arg), filler)])
    inside = branches(code, arg)
    times = max(1, arg[0]) if code in REPEATS else 1
    return _example(inside[0], filler) * times if inside else b""


@cache
def _member(items: tuple[Any, ...], filler: int) -> int:
    """The filler if this class has it, else another member."""
    others = (*b"a1. -:x_[(/", *range(256))
    return next((one for one in (filler, *others) if _holds(items, one)), filler)


def _holds(items: tuple[Any, ...], one: int) -> bool:
    if items[0][0] is op.NEGATE:
        return not _holds(items[1:], one)
    return any(_is_in(code, arg, one) for code, arg in items)


def _is_in(code: Any, arg: Any, one: int) -> bool:
    if code is op.LITERAL:
        return bool(arg == one)
    if code is op.RANGE:
        return bool(arg[0] <= one <= arg[1])
    return re.fullmatch(_CATEGORIES[arg], bytes([one])) is not None
