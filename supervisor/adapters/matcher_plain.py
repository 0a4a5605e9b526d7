"""Nominates lines by searching each required literal, with the standard library only."""

from collections.abc import Iterator, Sequence


class PlainEngine:
    """Literals to look for, each with the signatures that need it."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._wanted: dict[bytes, list[int]] = {}
        for index, literal in enumerate(literals):
            self._wanted.setdefault(literal, []).append(index)

    def nominate(self, block: bytes) -> Iterator[tuple[int, int]]:
        """(signature, position) for each line that holds a signature's literal."""
        for literal, indices in self._wanted.items():
            position = block.find(literal)
            while position >= 0:
                for index in indices:
                    yield index, position
                end = block.find(b"\n", position)
                position = block.find(literal, end) if end >= 0 else -1
