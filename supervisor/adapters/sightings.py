"""Turns lines of an attempt into HitSeen events: joins the sources, matches once, finds each hit's
source again.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from supervisor.adapters.help_boxes import speaker
from supervisor.adapters.hits import Found, Place, Resolve, Speech, make_hit, nowhere, speech
from supervisor.adapters.matcher import Matcher
from supervisor.core.events import HitSeen
from supervisor.core.signature import Hit, Role, Signature, Source

_MOST_ALIKE = 3  # hits of one signature about one host: more of the same add nothing
_MOST_IN_ALL = 2000  # kinds of hits an attempt and role: a storm cannot fill the journal


class Piece(NamedTuple):
    """Whole lines of one source. A tuple: of 10,000 ranks' lines as many are made a second."""

    source: Source | None  # None: a merged log
    rank: int | None
    host: str | None
    first_line: int
    lines: bytes
    file: str = ""
    written_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A hit, and where its line stands in its piece."""

    hit: Hit
    piece: Piece
    start: int
    end: int


class Sightings:
    """Matches the lines of one attempt."""

    def __init__(
        self,
        attempt: int,
        matcher: Callable[[], Matcher],
        resolve: Resolve,
        place: Place = nowhere,
    ) -> None:
        self._attempt, self._matcher = attempt, matcher
        self._resolve, self._place = resolve, place
        self._seen: dict[Role, Counter[tuple[object, ...]]] = {role: Counter() for role in Role}

    def look(
        self, pieces: Sequence[Piece], at: float, written_at: float | None = None
    ) -> list[HitSeen]:
        """The hits in these lines, repeats left out; `written_at` is of pieces that do not say."""
        return [
            HitSeen(
                at=at,
                attempt=self._attempt,
                hit=sight.hit,
                written_at=written_at if sight.piece.written_at is None else sight.piece.written_at,
            )
            for sight in self.sights(pieces)
        ]

    def sights(self, pieces: Sequence[Piece]) -> Iterator[Sight]:
        """The same with their places."""
        block = b"".join(piece.lines for piece in pieces) if len(pieces) > 1 else pieces[0].lines
        starts = _starts(pieces)
        for found in self._matcher().match(block):
            index = bisect_right(starts, found.start) - 1
            piece, start = pieces[index], starts[index]
            said = self._speech(piece, block, found)
            if said is None or not self._is_news(found.signature, said):
                continue
            hit = make_hit(
                found,
                block[found.start : found.end],
                said,
                line_number=piece.first_line + block.count(b"\n", start, found.start),
                file=piece.file,
            )
            yield Sight(hit=hit, piece=piece, start=found.start - start, end=found.end - start)

    def _speech(self, piece: Piece, block: bytes, found: Found) -> Speech | None:
        boxed = None if piece.host else speaker(block, found.start)
        host = self._resolve(boxed) if boxed else piece.host
        return speech(
            found,
            block[found.start : found.end],
            source=Source.RANK if boxed and host else piece.source,
            host=host,
            rank=piece.rank,
            resolve=self._resolve,
            place=self._place,
        )

    def _is_news(self, signature: Signature, said: Speech) -> bool:
        """A storm of consequences must never crowd out what decides: each role has its own room."""
        key = (signature.id, said.host, said.named)
        seen = self._seen[signature.role]
        if key not in seen and len(seen) >= _MOST_IN_ALL:
            return False
        seen[key] += 1
        return seen[key] <= _MOST_ALIKE


def _starts(pieces: Sequence[Piece]) -> list[int]:
    starts, position = [], 0
    for piece in pieces:
        starts.append(position)
        position += len(piece.lines)
    return starts
