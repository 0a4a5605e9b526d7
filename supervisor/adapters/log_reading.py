"""Reads the logs of an attempt that is over: hits in the order of time, and the steps it made.

File order is not time order where the files of many ranks were put one after the other; so where
lines carry time stamps, those decide, and a line without one takes the time of the line before it.
A time of the day before any date is seen is one of the first day's. Colors go before anything is
read: a banner, a time stamp or a box may be painted like any word.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from supervisor.adapters.hits import Place, Resolve
from supervisor.adapters.line_text import without_escapes
from supervisor.adapters.line_times import stamp_near
from supervisor.adapters.log_files import LogFile, Seen, read_blocks, refuse
from supervisor.adapters.log_sections import Owner, owner_of, sections
from supervisor.adapters.matcher import Matcher
from supervisor.adapters.sightings import Piece, Sight, Sightings
from supervisor.adapters.step_lines import latest_step
from supervisor.adapters.survival import Survival
from supervisor.core.events import HitSeen
from supervisor.core.signature import Source

_DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRead:
    """What the logs of one attempt say."""

    hits: tuple[HitSeen, ...]
    first_step: int | None
    top_step: int | None
    lines: int


class LogReader:
    """Reads one log after the other."""

    def __init__(
        self,
        matcher: Matcher,
        resolve: Resolve,
        place: Place,
        warn: Callable[[str], None] = refuse,
    ) -> None:
        self._warn = warn
        self._sightings = Sightings(1, lambda: matcher, resolve, place)
        self._resolve = resolve
        self._hits: list[HitSeen] = []
        self._latest, self._first_day, self._day = 0.0, 0.0, 0.0
        self._first_step: int | None = None
        self._top_step: int | None = None
        self._lines = 0
        self._survival = Survival()

    def read(self, log: LogFile, seen: Seen = lambda size: None) -> None:
        """Read one log to its end."""
        owner, first_line = owner_of(log.name, log.name, self._resolve), 1
        for block in read_blocks(log, seen, self._warn):
            for part, lines in sections(without_escapes(block), owner, self._resolve):
                self._part(part, first_line, lines)
                first_line += lines.count(b"\n")
                owner = part
        self._lines += first_line - 1

    def result(self) -> LogRead:
        """All that was read, without what the ranks lived through."""
        survived = self._survival.survived()
        hits = (self._dated(event) for event in self._hits if event.hit not in survived)
        return LogRead(
            hits=tuple(sorted(hits, key=lambda event: event.at)),
            first_step=self._first_step,
            top_step=self._top_step,
            lines=self._lines,
        )

    def _part(self, owner: Owner, first_line: int, lines: bytes) -> None:
        piece = Piece(
            source=owner.source,
            rank=owner.rank,
            host=owner.host,
            first_line=first_line,
            lines=lines,
            file=owner.file,
        )
        for sight in self._sightings.sights([piece]):
            self._hits.append(HitSeen(at=self._time(sight), attempt=1, hit=sight.hit))
            self._survival.saw(owner.name, sight)
        if owner.source in (None, Source.RANK):
            self._steps(owner.name, lines)

    def _time(self, sight: Sight) -> float:
        stamp = stamp_near(sight.piece.lines, sight.start, sight.end)
        if stamp is None:
            return self._latest
        if stamp.dated:
            self._day = stamp.seconds - stamp.seconds % _DAY
            self._first_day = self._first_day or self._day
        at = stamp.seconds if stamp.dated else self._day + stamp.seconds
        self._latest = max(self._latest, at)
        return at

    def _dated(self, event: HitSeen) -> HitSeen:
        return event if event.at >= _DAY else replace(event, at=self._first_day + event.at)

    def _steps(self, part: str, lines: bytes) -> None:
        step = latest_step(lines)
        if step is not None:
            self._survival.stepped(part, step)
            self._first_step = step if self._first_step is None else self._first_step
            self._top_step = max(step, self._top_step or 0)
