"""Where each piece of an attempt's output goes: rank logs, console, launcher.log, and lines for
the matcher.
"""

from collections.abc import Sequence

from supervisor import wire
from supervisor.adapters.console import Console
from supervisor.adapters.lines import LineGatherer
from supervisor.adapters.rank_logs import RankLogs
from supervisor.adapters.rank_reports import RankReports
from supervisor.adapters.run_folder import AttemptFolder
from supervisor.adapters.sightings import Piece
from supervisor.adapters.step_lines import latest_step
from supervisor.core.signature import Source

_LAUNCHER_OUT, _LAUNCHER_ERR = -1, -2  # sources beside the ranks
_LAST_WORDS = 5
_LAST_WORDS_BYTES = 4096


class Router:
    """Hands on the pieces of one attempt and answers with the whole lines among them."""

    def __init__(
        self,
        folder: AttemptFolder,
        rank_hosts: Sequence[str],
        console: Console,
        reports: RankReports,
        launcher_log_size: int,
    ) -> None:
        self._rank_hosts, self._console, self._reports = rank_hosts, console, reports
        self._logs, self._lines = RankLogs(folder.ranks), LineGatherer()
        self._launcher_path = folder.launcher_log
        self._place = f"attempts/{folder.path.name}"  # as seen from the run folder
        self._launcher_log = open(folder.launcher_log, "ab", buffering=0)  # noqa: SIM115
        self._launcher_log.truncate(launcher_log_size)

    @property
    def launcher_log_size(self) -> int:
        return self._launcher_log.tell()

    def frames(self, frames: Sequence[wire.Frame], at: float) -> list[Piece]:
        """Output frames, in the order they came."""
        by_rank: dict[int, list[wire.Frame]] = {}
        for frame in frames:
            by_rank.setdefault(frame.rank, []).append(frame)
        pieces: list[Piece] = []
        for rank, own in by_rank.items():
            if rank < len(self._rank_hosts):
                pieces += self._rank_output(rank, own, at)
        return pieces

    def launcher_out(self, words: bytes) -> list[Piece]:
        return self._launcher(_LAUNCHER_OUT, words)

    def launcher_err(self, words: bytes) -> list[Piece]:
        return self._launcher(_LAUNCHER_ERR, words)

    def rests(self, at: float) -> list[Piece]:
        """The unfinished lines of all sources, when nothing more will come."""
        pieces: list[Piece] = []
        for source in self._lines.sources():
            rest = self._lines.rest(source)
            pieces += (
                self._rank_lines(source, rest, at) if source >= 0 else self._launcher_lines(rest)
            )
        return pieces

    def last_words(self, rank: int | None) -> tuple[str, ...]:
        """The last lines of a rank, or of the launcher."""
        path = self._launcher_path if rank is None else self._logs.path(rank)
        if not path.exists():  # a rank that never said a word
            return ()
        with open(path, "rb") as log:
            log.seek(max(0, log.seek(0, 2) - _LAST_WORDS_BYTES))
            text = log.read().decode(errors="replace")
        lines = (line.strip() for line in text.splitlines())
        return tuple(line for line in lines if line)[-_LAST_WORDS:]

    def close(self) -> None:
        self._logs.close()
        self._launcher_log.close()

    def _rank_output(self, rank: int, frames: Sequence[wire.Frame], at: float) -> list[Piece]:
        self._reports.output_at = at
        pieces: list[Piece] = []
        for offset, data in _joined(frames):
            is_new = bool(self._logs.write(rank, offset, data))
            pieces += self._rank_lines(rank, self._lines.add(rank, data), at, show=is_new)
        return pieces

    def _rank_lines(self, rank: int, lines: bytes, at: float, *, show: bool = True) -> list[Piece]:
        """Lines that a supervisor before us has shown are matched again, and not shown again."""
        if not lines:
            return []
        if show:
            self._console.show(rank, lines)
        if self._reports.wants_step_lines(rank) and (step := latest_step(lines)) is not None:
            self._reports.step_line(rank, step, at)
        return [
            Piece(
                source=Source.RANK,
                rank=rank,
                host=self._rank_hosts[rank],
                first_line=self._lines.count(rank, lines),
                lines=lines,
                file=f"{self._place}/ranks/{rank:05d}.log",
            )
        ]

    def _launcher(self, source: int, words: bytes) -> list[Piece]:
        if words:
            self._launcher_log.write(words)
        return self._launcher_lines(self._lines.add(source, words))

    def _launcher_lines(self, lines: bytes) -> list[Piece]:
        if not lines:
            return []
        return [
            Piece(
                source=Source.LAUNCHER,
                rank=None,
                host=None,
                first_line=self._lines.count(_LAUNCHER_OUT, lines),  # one file holds both streams
                lines=lines,
                file=f"{self._place}/launcher.log",
            )
        ]


def _joined(frames: Sequence[wire.Frame]) -> list[tuple[int, bytes]]:
    """Frames that follow on one another as one piece: one write instead of sixty."""
    joined: list[tuple[int, list[bytes]]] = []
    end = -1
    for frame in frames:
        if frame.offset != end:
            joined.append((frame.offset, []))
        joined[-1][1].append(frame.payload)
        end = frame.offset + len(frame.payload)
    return [(offset, b"".join(parts)) for offset, parts in joined]
