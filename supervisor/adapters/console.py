"""The ranks' output on the user's terminal, each line tagged with rank and host.

Thinned out, it shows one rank and, of all others, the lines that tell of an error. Nothing here
may slow the run down: what a closed or full terminal does not take is dropped here, for the rank
logs have it all.
"""

import os
from collections.abc import Sequence

# One of these in a line makes it worth showing, whoever wrote it.
_ALARMS = (
    b"rror",
    b"RROR",
    b"xception",
    b"Traceback",
    b"atal",
    b"FATAL",
    b"Killed",
    b"egmentation",
)
_THIN_ABOVE = 16  # ranks: more than that is no longer read by a person


class Console:
    """Writes whole lines to a descriptor."""

    def __init__(self, mode: str, tags: Sequence[str], descriptor: int = 1) -> None:
        self._tags = [f"[{tag}] ".encode() for tag in tags]
        self._mode = _settle(mode, len(tags))
        self._descriptor = descriptor
        self._pending: list[bytes | memoryview] = []
        self._open = self._mode != "none"

    def show(self, rank: int, lines: bytes) -> None:
        """Show whole lines of one rank; `lines` ends with a newline."""
        if not self._open:
            return
        if self._mode == "first" and rank != 0:
            lines = _alarming(lines)
        if lines:
            self._pending += _tagged(self._tags[rank], lines)

    def flush(self) -> None:
        """Write what has gathered."""
        data, self._pending = b"".join(self._pending), []
        while data and self._open:
            try:
                data = data[os.write(self._descriptor, data) :]
            except OSError:
                self._open = False


def _settle(mode: str, ranks: int) -> str:
    if mode == "auto":
        return "all" if ranks <= _THIN_ABOVE else "first"
    return mode


def _tagged(tag: bytes, lines: bytes) -> tuple[bytes, memoryview]:
    """In two pieces, for each joining copies megabytes."""
    if b"\r" in lines:
        lines = b"\n".join(map(_last_of_bar, lines.split(b"\n")))
    return tag, memoryview(lines.replace(b"\n", b"\n" + tag))[: -len(tag)]


def _last_of_bar(line: bytes) -> bytes:
    """What a terminal would show of a progress bar: its last state."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _alarming(lines: bytes) -> bytes:
    if not any(alarm in lines for alarm in _ALARMS):
        return b""
    kept = (line for line in lines.splitlines(True) if any(alarm in line for alarm in _ALARMS))
    return b"".join(kept)
