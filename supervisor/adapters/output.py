"""Follows one attempt's output from the keeper's spool to all that want it, in a thread of its own.

    spool -> frames -> rank logs, console
                    -> whole lines -> matcher -> HitSeen; step lines -> digest
                    -> reports of shims -> digest -> ProgressSeen; RankFailed
          -> the rest -> launcher.log, matcher

The thread ends when the keeper has and the spool has been read to its end, and then posts
AttemptEnded. It never waits for the decision loop, nor that loop for it.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from supervisor import wire
from supervisor.adapters import clock, keeping
from supervisor.adapters.console import Console
from supervisor.adapters.extra_logs import ExtraLogs
from supervisor.adapters.launchers.codes import meaning
from supervisor.adapters.printed_steps import PrintedSteps
from supervisor.adapters.rank_reports import RankReports
from supervisor.adapters.reading_position import ReadingPosition
from supervisor.adapters.routing import Router
from supervisor.adapters.run_folder import AttemptFolder
from supervisor.adapters.sightings import Piece, Sightings
from supervisor.adapters.spool import BLOCK, SpoolReader
from supervisor.core.events import AttemptEnded, Event
from supervisor.errors import PlatformError
from supervisor.frame_decoder import Decoder

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.01, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """Which attempt to follow."""

    attempt: int
    folder: AttemptFolder
    rank_hosts: Sequence[str]
    beat_seconds: float
    launcher: str
    digest_seconds: float
    shims: bool  # whether the ranks report
    rank_logs: str | None  # pattern of log files that the command writes by itself
    keeper: int | None  # descriptor of keeping.watch_keeper; None when the keeper is gone already


class OutputFollower:
    """The thread and its state."""

    def __init__(
        self,
        followed: Followed,
        console: Console,
        sightings: Sightings,
        post: Callable[[Event], object],
    ) -> None:
        self._followed, self._console = followed, console
        self._sightings, self._post = sightings, post
        self._decoder = Decoder()
        self._reports = RankReports(
            followed.attempt,
            followed.rank_hosts,
            followed.beat_seconds,
            clock.now(),
            shims=followed.shims,
        )
        self._position = ReadingPosition(followed.folder.spool)
        self._out, self._err = (
            SpoolReader(followed.folder.spool, stream, *self._position.of(stream))
            for stream in ("out", "err")
        )
        size = self._position.restore(self._reports)
        self._router = Router(followed.folder, followed.rank_hosts, console, self._reports, size)
        self._next_digest, self._first_step_told = clock.now() + followed.digest_seconds, False
        self._extra_logs = _extra_logs(followed)
        self._printed_steps = PrintedSteps(self._reports, followed.digest_seconds)
        self._more_is_there = False
        self._abandoned = threading.Event()

    def abandon(self) -> None:
        """Stop following; the keeper goes on."""
        self._abandoned.set()

    def run(self) -> None:
        """Follow to the end, in whatever thread this is called in."""
        try:
            self._follow()
        except OSError as error:
            raise PlatformError(
                f"cannot keep the output of attempt {self._followed.attempt}: {error}; the attempt "
                "goes on under its keeper: make room, then start the same command again"
            ) from error
        finally:
            if self._extra_logs:
                self._extra_logs.close()

    def _follow(self) -> None:
        pause = _SHORTEST_PAUSE
        while not self._abandoned.is_set():
            over = self._keeper_ended(0.0)
            moved = self._drain()
            if over and not moved:
                self._finish()
                return
            self._tell(clock.now())
            pause = _SHORTEST_PAUSE if moved else min(pause * 1.5, _LONGEST_PAUSE)
            if not (over or self._more_is_there):
                self._wait(pause)

    def _wait(self, seconds: float) -> None:
        """Until the keeper ends, or log files that the command writes by itself change."""
        keeper = self._followed.keeper
        if self._extra_logs and keeper is not None:
            self._extra_logs.wait(keeper, seconds)
        else:
            self._keeper_ended(seconds)

    def _keeper_ended(self, wait_seconds: float) -> bool:
        keeper = self._followed.keeper
        return keeper is None or keeping.has_ended(keeper, wait_seconds)

    def _drain(self) -> bool:
        """Read a block of each stream; False when neither had anything new."""
        out, err = self._out.read(), self._err.read()
        extra = self._extra_logs.read() if self._extra_logs else []
        # Else it is left to gather: a hundred small blocks cost ten times what one large one does.
        self._more_is_there = bool(extra) or BLOCK in (len(out), len(err))
        if not (out or err or extra):
            return False
        at = clock.now()
        pieces = self._take(self._decoder.feed(out), at) + self._router.launcher_err(err)
        self._match(pieces + self._extra(extra, at), at, self._written_at())
        return True

    def _extra(self, pieces: list[Piece], at: float) -> list[Piece]:
        """Lines of log files that the command writes by itself."""
        if pieces:
            self._reports.output_at = at
            self._printed_steps.look(pieces, at)
        return pieces

    def _written_at(self) -> float | None:
        written = (stream.written_at for stream in (self._out, self._err))
        return min((at for at in written if at is not None), default=None)

    def _take(self, items: Sequence[wire.Frame | bytes], at: float) -> list[Piece]:
        output: list[wire.Frame] = []
        own_words: list[bytes] = []
        for item in items:
            if isinstance(item, bytes):
                own_words.append(item)
            elif item.kind == wire.Kind.OUTPUT:
                output.append(item)
            else:
                self._post_all(self._reports.report(item.kind, item.rank, item.payload, at))
        return self._router.frames(output, at) + self._router.launcher_out(b"".join(own_words))

    def _match(self, pieces: Sequence[Piece], at: float, written_at: float | None = None) -> None:
        if pieces:
            self._post_all(self._sightings.look(pieces, at, written_at))
        self._console.flush()

    def _tell(self, at: float) -> None:
        """Post a digest when one is due, and at once at the first step; save the position."""
        first_step = self._reports.has_step and not self._first_step_told
        if at < self._next_digest and not first_step:
            return
        self._first_step_told |= first_step
        self._next_digest = at + self._followed.digest_seconds
        self._post(self._reports.digest(at, behind=self._more_is_there))
        if not self._decoder.outstanding:
            log_size = self._router.launcher_log_size
            self._position.save(
                self._out, self._err, self._decoder.pending, log_size, self._reports
            )

    def _finish(self) -> None:
        """Nothing more will come: hand on what is left, then say how it ended."""
        at = clock.now()
        self._match(self._take(self._decoder.close(), at) + self._router.rests(at), at)
        for extra in self._extra_logs.rest() if self._extra_logs else ():
            self._match(self._extra(extra, at), at)
        self._post(self._reports.digest(at))
        ended = self._ended()
        self._out.close()
        self._err.close()
        self._router.close()
        self._post(ended)

    def _ended(self) -> AttemptEnded:
        ending = keeping.read_ending(self._followed.folder)
        return AttemptEnded(
            at=clock.now(),
            attempt=self._followed.attempt,
            exit_code=ending.exit_code if ending else None,
            signal=ending.signal if ending else None,
            ranks_total=len(self._followed.rank_hosts),
            ranks_succeeded=self._succeeded(),
            reports=self._reports.have_come,
            last_words=self._router.last_words(self._reports.first_failed),
            vanished=self._reports.vanished(),
            meaning=meaning(self._followed.launcher, ending.exit_code if ending else None),
        )

    def _succeeded(self) -> int:
        """On the shims' word, or without shims on the agents'."""
        if self._reports.have_come:
            return len(self._reports.succeeded())
        return sum(1 for _ in self._followed.folder.done.glob("*"))

    def _post_all(self, events: Sequence[Event]) -> None:
        for event in events:
            self._post(event)


def _extra_logs(followed: Followed) -> ExtraLogs | None:
    """What we write ourselves is not among them, whatever the pattern covers."""
    if followed.rank_logs is None:
        return None
    ours = str(followed.folder.path.parent)
    return ExtraLogs(followed.rank_logs, followed.rank_hosts, apart=ours)
