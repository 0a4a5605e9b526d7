"""Finds the lines of a block that signatures hit. One meaning, two engines.

An engine only nominates a (signature, line): the plain one by searching the required literals,
the fast one by running all patterns at once. The signature's own `re`, on that one line, decides
and captures; so both give the same hits. A line ends at a newline or at a carriage return (a
progress bar rewrites its line), and is read without its terminal escapes. The plain engine begins;
where there is much to read, the fast one takes over once it is ready.

Bounded: `re` sees at most 8 KiB around the literal. A signature whose `re` is slow three times is
switched off, loudly. Not thread-safe; one Matcher per thread.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from supervisor.adapters.hits import Found
from supervisor.adapters.line_text import without_escapes
from supervisor.adapters.matcher_plain import PlainEngine
from supervisor.adapters.pattern_check import WINDOW, all_literals
from supervisor.adapters.signature_files import SignatureSet

if TYPE_CHECKING:
    from supervisor.adapters.matcher_fast import FastEngine

_MOST_WINDOWS = 8  # a line that repeats a literal more often is noise
_SLOW_SECONDS = 0.05
_STRIKES = 3
_MUCH = 4_000_000  # bytes: the plain engine reads them in less time than the fast one takes to load

_Line = tuple[int, int]  # start and end in the text that was searched


class Matcher:
    """Matches blocks of whole lines against a set of signatures."""

    def __init__(
        self,
        signatures: SignatureSet,
        engine: str = "auto",
        on_switched_off: Callable[[str], None] = lambda warning: None,
    ) -> None:
        self._entries = sorted(signatures.entries, key=lambda entry: entry.signature.fallback)
        texts = [entry.signature.pattern.encode("ascii") for entry in self._entries]
        self._texts = texts
        self._patterns: dict[int, re.Pattern[bytes]] = {}  # compiled when first needed
        self._strikes = [0] * len(texts)
        self._on_switched_off = on_switched_off
        self._plain = PlainEngine([entry.literal for entry in self._entries], self._literals)
        self._fast: FastEngine | None = None
        self._unread = _MUCH if engine == "auto" else None  # until the fast engine is worth it
        if engine == "fast":
            self._fast = _start_fast(texts, wait=True)

    @property
    def engine(self) -> str:
        """The engine in use: fast or plain."""
        return "plain" if self._engine() is self._plain else "fast"

    def match(self, block: bytes | memoryview) -> list[Found]:
        """The hits of a block of whole lines, by position; never raises on any bytes."""
        text = bytes(block)
        self._count(len(text))
        if b"\r" in text:
            text = text.replace(b"\r", b"\n")
        clean = without_escapes(text)
        place = _same if clean is text else _Places(clean, text).of
        return list(self._hits(clean, place))

    def _hits(self, text: bytes, place: Callable[[_Line], _Line]) -> Iterator[Found]:
        """A fallback counts only on a line that nothing else hits, the first of several."""
        hit_line = -1
        for start, end, index in _lines(text, self._engine().nominate(text)):
            if start == hit_line and self._entries[index].signature.fallback:
                continue
            hit = self._confirm(index, text[start:end])
            if hit:
                hit_line = start
                yield self._found(index, hit, place((start, end)))

    def _count(self, size: int) -> None:
        if self._unread is None:
            return
        self._unread -= size
        if self._unread < 0:
            self._unread, self._fast = None, _start_fast(self._texts, wait=False)

    def _engine(self) -> "PlainEngine | FastEngine":
        return self._fast if self._fast and self._fast.ready() else self._plain

    def _literals(self, index: int) -> list[bytes]:
        return all_literals(self._entries[index].signature.pattern)

    def _found(self, index: int, hit: re.Match[bytes], line: _Line) -> Found:
        captures = hit.groupdict()
        if None in captures.values():
            captures = {name: text for name, text in captures.items() if text is not None}
        return Found(self._entries[index].signature, line[0], line[1], hit.start(), captures)

    def _confirm(self, index: int, line: bytes) -> re.Match[bytes] | None:
        if self._strikes[index] >= _STRIKES:
            return None
        began = time.perf_counter()
        hit = self._search(index, line)
        if time.perf_counter() - began > _SLOW_SECONDS:
            self._accuse(index, line)
        return hit

    def _search(self, index: int, line: bytes) -> re.Match[bytes] | None:
        pattern = self._patterns.get(index) or self._compile(index)
        if len(line) <= WINDOW:
            return pattern.search(line)
        for start, end in _windows(line, self._entries[index].literal):
            hit = pattern.search(line, start, end)
            if hit and (hit.end() < end or end == len(line)):
                return hit  # one that touches the cut may owe itself to the cut
        return None

    def _compile(self, index: int) -> re.Pattern[bytes]:
        return self._patterns.setdefault(index, re.compile(self._texts[index]))

    def _accuse(self, index: int, line: bytes) -> None:
        """Slow by the clock may be a busy machine's doing: its own CPU time decides."""
        began = time.thread_time()
        self._search(index, line)
        if time.thread_time() - began <= _SLOW_SECONDS:
            return
        self._strikes[index] += 1
        if self._strikes[index] == _STRIKES:
            name = self._entries[index].signature.id
            self._on_switched_off(f"signature {name} is switched off: its pattern is too slow")


def _start_fast(patterns: list[bytes], *, wait: bool) -> "FastEngine | None":
    from supervisor.adapters.matcher_fast import fast_engine  # its imports take 30 ms

    return fast_engine(patterns, wait=wait)


class _Places:
    """Where the lines of a text without escapes lie in the text with them: same lines, shorter."""

    def __init__(self, clean: bytes, text: bytes) -> None:
        self._clean, self._text = clean, text
        self._numbers: dict[int, int] = {}
        self._starts: list[int] = []

    def of(self, line: _Line) -> _Line:
        if not self._starts:
            self._numbers = {start: number for number, start in enumerate(_starts(self._clean))}
            self._starts = [*_starts(self._text), len(self._text) + 1]
        number = self._numbers[line[0]]
        return self._starts[number], self._starts[number + 1] - 1


def _same(line: _Line) -> _Line:
    return line


def _starts(text: bytes) -> Iterator[int]:
    position = 0
    while True:
        yield position
        position = text.find(b"\n", position) + 1
        if not position:
            return


def _lines(text: bytes, nominated: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Each nominated line and signature once, in order: start, end, signature."""
    lines: set[tuple[int, int, int]] = set()
    start, end = 0, -1
    for index, position in nominated:
        if not start <= position <= end:
            start, end = text.rfind(b"\n", 0, position) + 1, text.find(b"\n", position)
            end = end if end >= 0 else len(text)
        lines.add((start, end, index))
    return sorted(lines)


def _windows(line: bytes, literal: bytes) -> Iterator[_Line]:
    position = line.find(literal)
    for _ in range(_MOST_WINDOWS):
        if position < 0:
            return
        start = max(0, position - WINDOW // 2)
        end = min(len(line), start + WINDOW)
        yield start, end
        position = line.find(literal, max(end - len(literal), position + 1))
