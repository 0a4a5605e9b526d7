"""How far an attempt's spool has been read, on disk, so that a supervisor that returns goes on
from there.

Saved one round late: what is written is where the round before had come, whose events have been
journaled since.
"""

import json
from pathlib import Path
from typing import Any

from supervisor.adapters.rank_reports import RankReports
from supervisor.adapters.spool import SpoolReader


class ReadingPosition:
    """Loads once, saves often."""

    def __init__(self, spool: Path) -> None:
        self._path = spool / "read.json"
        self._loaded = _load(self._path)
        self._next: dict[str, Any] | None = None

    def of(self, stream: str) -> tuple[int, int]:
        """Segment and offset to go on from."""
        segment, offset = self._loaded.get(stream, (1, 0))
        return int(segment), int(offset)

    def restore(self, reports: RankReports) -> int:
        """Tell them which ranks had ended well; answer how much of launcher.log is accounted
        for.
        """
        reports.mark_succeeded(_expand(self._loaded.get("succeeded", [])))
        return int(self._loaded.get("launcher_log", 0))

    def save(
        self,
        out: SpoolReader,
        err: SpoolReader,
        pending: int,
        launcher_log: int,
        reports: RankReports,
    ) -> None:
        """Save the last round's position and remember this one; `pending` bytes of out are not
        decoded yet.
        """
        if out.offset < pending:  # a frame that began in the segment before: the next round will do
            return
        if self._next is not None:
            fresh = self._path.with_suffix(".new")
            fresh.write_text(json.dumps(self._next))
            fresh.replace(self._path)
            out.discard_before(self._next["out"][0])
            err.discard_before(self._next["err"][0])
        self._next = {
            "out": (out.segment, out.offset - pending),
            "err": (err.segment, err.offset),
            "launcher_log": launcher_log,
            "succeeded": _fold(reports.succeeded()),
        }


def _load(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _fold(numbers: list[int]) -> list[list[int]]:
    """Ranges [first, last] of rising numbers."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def _expand(ranges: list[list[int]]) -> list[int]:
    return [number for first, last in ranges for number in range(first, last + 1)]
