"""What the ranks of one attempt are doing, gathered from their shims' frames and condensed into
events.

10,000 ranks beat every few seconds; the core gets one digest every few seconds, and each failure
as it comes.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from supervisor import wire
from supervisor.core.events import Event, ProgressSeen, RankFailed

_MOST_FAILURES = 64  # events an attempt: the first ones tell the story, a cascade repeats it
_MOST_LAGGING = 16
_MOST_MISSING = 64


@dataclass(slots=True)
class _Rank:
    """The last that is known of one rank."""

    host: str
    started: bool = False
    ended: bool = False
    succeeded: bool = False
    beat_at: float = 0.0
    state: str = "?"
    phase: str = wire.RankPhase.LAUNCH
    step: int | None = None
    states_phase: bool = False
    from_slot: bool = False
    output_size: int | None = None
    done: bool = False

    @property
    def is_well(self) -> bool:
        """It ended well, or was done and hangs in its exit."""
        return self.succeeded or (self.done and not self.ended)


class RankReports:
    """Takes the reports of all ranks of an attempt."""

    def __init__(
        self,
        attempt: int,
        rank_hosts: Sequence[str],
        beat_seconds: float,
        at: float,
        *,
        shims: bool = True,
    ) -> None:
        self._attempt, self._beat_seconds, self._shims = attempt, beat_seconds, shims
        self._ranks = [_Rank(host=host) for host in rank_hosts]
        self._failures = 0
        self._lowest: int | None = None
        self._lowest_at: float | None = None
        self.output_at = at
        self.has_step = False
        self.first_failed: int | None = None
        self._handlers: dict[str, Callable[[int, dict[str, object], float], list[Event]]] = {
            wire.Kind.STARTED: self._started,
            wire.Kind.BEAT: self._beaten,
            wire.Kind.EXITED: self._exited,
        }

    def report(self, kind: str, rank: int, payload: bytes, at: float) -> list[Event]:
        """Take a shim's report; what it says is data, and wrong data is no news."""
        if rank >= len(self._ranks):
            return []
        try:
            words = json.loads(payload)
        except ValueError:
            return []
        return self._handlers[kind](rank, words, at) if isinstance(words, dict) else []

    def step_line(self, rank: int, step: int, at: float) -> None:
        """A rank printed a step; believed as long as the rank's slot says nothing."""
        state = self._ranks[rank]
        if not state.from_slot and (state.step is None or step != state.step):
            state.step, state.phase, state.states_phase = step, wire.RankPhase.STEP, True
            self.has_step = True

    def wants_step_lines(self, rank: int) -> bool:
        """Whether a printed step of this rank would be news: its slot says nothing."""
        return not self._ranks[rank].from_slot

    def succeeded(self) -> list[int]:
        """The ranks whose training ended well, in order."""
        return [index for index, rank in enumerate(self._ranks) if rank.is_well]

    def mark_succeeded(self, ranks: Iterable[int]) -> None:
        """Ranks that a supervisor before this one saw end well."""
        for rank in ranks:
            self._ranks[rank].started = self._ranks[rank].ended = True
            self._ranks[rank].succeeded = True

    @property
    def have_come(self) -> bool:
        """Whether any rank has been heard of."""
        return any(rank.started or rank.ended for rank in self._ranks)

    def digest(self, at: float, *, behind: bool = False) -> ProgressSeen:
        """Everything the core wants to know, in one event. `behind`: more has been written than
        was read, and may hold the beats of those who seem silent.
        """
        self._follow_lowest(at)
        running = [rank for rank in self._ranks if rank.started and not rank.ended]
        steps = [rank.step for rank in running if rank.step is not None]
        silent = {} if behind else self._silent_hosts(at)
        phases = [rank.phase for rank in running if rank.states_phase] or [
            rank.phase for rank in running
        ]
        hosts = {rank.host for rank in running}
        return ProgressSeen(
            at=at,
            attempt=self._attempt,
            ranks_started=sum(rank.started for rank in self._ranks),
            step=self._lowest,
            top_step=max(steps, default=self._lowest),
            phase=_commonest(phases),
            phases=tuple(sorted(set(phases))),
            step_at=self._lowest_at,
            output_at=self.output_at,
            silent=tuple(sorted(silent.items())),
            beating=len(hosts) - len(silent),
            stopped_ranks=self._ranks_where(lambda rank: rank.state in "TtD"),
            lagging_ranks=self._lagging(max(steps, default=0)),
            missing=self._missing_hosts(),
        )

    def _started(self, rank: int, words: dict[str, object], at: float) -> list[Event]:
        state = self._ranks[rank]
        state.started, state.beat_at = True, at
        return []

    def _beaten(self, rank: int, words: dict[str, object], at: float) -> list[Event]:
        state = self._ranks[rank]
        state.started, state.beat_at = True, at
        state.state = str(words.get("state") or "?")[:1]
        step, phase = words.get("step"), words.get("phase")
        if isinstance(phase, str) and phase in wire.PHASES:
            state.phase, state.states_phase = phase, True
        if isinstance(step, int):
            state.step, state.from_slot = step, True
            self.has_step = True
        state.done = words.get("done") is True
        return []

    def _exited(self, rank: int, words: dict[str, object], at: float) -> list[Event]:
        state = self._ranks[rank]
        code, number, step = (_whole(words.get(key)) for key in ("exit_code", "signal", "step"))
        again, state.ended, state.beat_at = state.ended, True, at
        state.started, state.output_size = True, _whole(words.get("size"))
        if step is not None:
            state.step = step
        if code == 0 or (number is not None and words.get("done") is True):
            state.succeeded = True  # frameworks crash in their exit; a code is the command's word
            return []
        if again or self._failures >= _MOST_FAILURES:
            return []
        self._failures += 1
        self.first_failed = rank if self.first_failed is None else self.first_failed
        failed = RankFailed(
            at=at,
            attempt=self._attempt,
            rank=rank,
            host=state.host,
            exit_code=code,
            signal=number,
            step=state.step,
        )
        return [failed]

    def _follow_lowest(self, at: float) -> None:
        """The lowest of the slots, of ranks that have not ended well.

        A printed step counts only where there are no slots, and then the highest does: many a rank
        prints "resuming from step 30" once and never a step again.
        """
        slots = [rank.step for rank in self._ranks if rank.from_slot and not rank.succeeded]
        printed = [rank.step for rank in self._ranks if rank.step is not None]
        lowest = min((step for step in slots if step is not None), default=None)
        if lowest is None:
            lowest = max(printed, default=self._lowest)
        if lowest is not None and (self._lowest is None or lowest != self._lowest):
            self._lowest, self._lowest_at = lowest, at

    def _silent_hosts(self, at: float) -> dict[str, float]:
        newest: dict[str, float] = {}
        for rank in self._ranks:
            if rank.started and not rank.ended:
                newest[rank.host] = max(newest.get(rank.host, 0.0), rank.beat_at)
        limit = at - 2 * self._beat_seconds
        return {host: beat_at for host, beat_at in newest.items() if beat_at < limit}

    def _missing_hosts(self) -> tuple[str, ...]:
        """Hosts of which no rank has started; without shims nobody says so."""
        if not self._shims:
            return ()
        came = {rank.host for rank in self._ranks if rank.started}
        missing = (rank.host for rank in self._ranks if rank.host not in came)
        return tuple(islice(dict.fromkeys(missing), _MOST_MISSING))

    def vanished(self) -> tuple[str, ...]:
        """Hosts whose ranks all started and left without a word, while ranks of others told."""
        hosts = {rank.host for rank in self._ranks if rank.started}
        told = {rank.host for rank in self._ranks if rank.ended}
        return tuple(sorted(hosts - told)) if told else ()

    def _lagging(self, top: int) -> tuple[int, ...]:
        if self._lowest is None or self._lowest >= top:
            return ()
        return self._ranks_where(lambda rank: rank.from_slot and rank.step == self._lowest)

    def _ranks_where(self, test: Callable[[_Rank], bool]) -> tuple[int, ...]:
        live = (
            index
            for index, rank in enumerate(self._ranks)
            if rank.started and not rank.ended and test(rank)
        )
        return tuple(live)[:_MOST_LAGGING]


def _commonest(phases: Iterable[str]) -> str:
    counted = Counter(phases)
    return counted.most_common(1)[0][0] if counted else wire.RankPhase.LAUNCH


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
