"""Nominates lines by searching each required literal, with the standard library only.

What a job prints repeats itself but for its numbers. So a line is reduced to its shape, the line
without digits; the literals, without theirs, are searched once in all new shapes together, and
what a shape may be is remembered. Lines that are all new cost little more than a plain search.
"""

from collections.abc import Callable, Iterator, Sequence

_DIGITS = b"0123456789"
_MOST_REMEMBERED = 4_000_000  # bytes of shapes


class PlainEngine:
    """Literals to look for, each with the signatures that need it.

    `more` tells all the literals that a signature needs; asked once, when a shape holds the first.
    """

    def __init__(
        self, literals: Sequence[bytes], more: Callable[[int], Sequence[bytes]] = lambda index: ()
    ) -> None:
        self._wanted: dict[bytes, list[int]] = {}
        for index, literal in enumerate(literals):
            self._wanted.setdefault(literal.translate(None, _DIGITS), []).append(index)
        self._more = more
        self._all: dict[int, list[bytes]] = {}
        self._known: dict[bytes, list[int]] = {}  # shapes, and the signatures each may hit
        self._remembered = 0

    def nominate(self, block: bytes) -> Iterator[tuple[int, int]]:
        """(signature, position) for each line that may hold a signature's literal."""
        shapes = block.translate(None, _DIGITS).split(b"\n")
        new = set(shapes).difference(self._known)
        if new:
            self._remembered += sum(map(len, new))
            if self._remembered > _MOST_REMEMBERED:
                self._known, self._remembered, new = {}, 0, set(shapes)
            self._learn(new)
        answers = [self._known[shape] for shape in shapes]
        if any(answers):
            yield from _placed(block, answers)

    def _learn(self, shapes: set[bytes]) -> None:
        self._known.update((shape, []) for shape in shapes)
        text = b"\n".join(shapes)
        for literal, indices in self._wanted.items():
            position = text.find(literal)
            while position >= 0:
                start, end = text.rfind(b"\n", 0, position) + 1, text.find(b"\n", position)
                shape = text[start : end if end >= 0 else len(text)]
                self._known[shape] += [index for index in indices if self._has_all(shape, index)]
                position = text.find(literal, end + 1) if end >= 0 else -1

    def _has_all(self, shape: bytes, index: int) -> bool:
        if index not in self._all:
            self._all[index] = [text.translate(None, _DIGITS) for text in self._more(index)]
        return all(literal in shape for literal in self._all[index])


def _placed(block: bytes, answers: Sequence[list[int]]) -> Iterator[tuple[int, int]]:
    position = 0
    for line, indices in zip(block.split(b"\n"), answers, strict=True):
        for index in indices:
            yield index, position
        position += len(line) + 1
