"""What a shim says on its standard output: frames, and nothing else.

Owns the framing of the command's output, the held back end of a line, and the shim's own reports.
When to say what is rank_command.py's affair.
"""

import os
import select
import time

from supervisor import wire

_BLOCK = 256 << 10  # read at once: all that the command's pipe holds
HOLD_SECONDS = 0.05  # how long the end of a line may wait for its newline


class LauncherGone(Exception):
    """Nobody reads our output any more, or our parent has died."""


class RankOutput:
    """One rank's side of the stream of frames."""

    def __init__(self, rank: int, host: str) -> None:
        self._rank, self._host = rank, _quoted(host)
        self.size = 0  # bytes of output sent so far
        self._held = b""
        self._held_since = 0.0

    def read(self, descriptor: int) -> bool:
        """Take what the command has written; False at its end."""
        data = os.read(descriptor, _BLOCK)
        whole = data.rfind(b"\n") + 1
        if whole:
            self._send_output(self._held + data[:whole])
            self._held, data = b"", data[whole:]
        if data and not self._held:
            self._held_since = time.monotonic()
        self._held += data
        if len(self._held) >= wire.MAX_FRAME:
            self.flush()
        return bool(data or whole)

    def hold_left(self) -> float | None:
        """Seconds until a held back end of a line must go; None when there is none."""
        return self._held_since + HOLD_SECONDS - time.monotonic() if self._held else None

    def flush(self) -> None:
        """Send the held back end of a line as it is."""
        self._send_output(self._held)
        self._held = b""

    def say(self, words: str) -> None:
        """A line of the shim's own, shown where the rank's output is."""
        self._send_output(b"supervise: %s\n" % os.fsencode(words))

    def started(self, local_rank: int, world_size: int, pid: int) -> None:
        self._report(
            wire.Kind.STARTED,
            f'"rank":{self._rank},"local_rank":{local_rank},"world_size":{world_size},"pid":{pid},',
        )

    def beat(self, state: str, step: int | None, phase: str | None, *, done: bool) -> None:
        words = f'"state":{_quoted(state)},{_progress(step, done)}'
        self._report(wire.Kind.BEAT, words + f'"phase":{_quoted(phase) if phase else "null"},')

    def exited(
        self, exit_code: int | None, signal: int | None, step: int | None, *, done: bool
    ) -> None:
        words = f'"exit_code":{_number(exit_code)},"signal":{_number(signal)},'
        self._report(wire.Kind.EXITED, f'{words}{_progress(step, done)}"size":{self.size},')

    def _report(self, kind: wire.Kind, words: str) -> None:
        now = time.time()
        payload = f'{{"host":{self._host},{words}"at":{now:.6f}}}'
        _send(wire.encode(kind, self._rank, self.size, payload.encode()))

    def _send_output(self, data: bytes) -> None:
        for frame in wire.frames(self._rank, self.size, data):
            _send(frame)
        self.size += len(data)


def _send(frame: bytes) -> None:
    """Write a frame at once, so that the pipe keeps it whole; a slow reader is waited for."""
    while frame:
        try:
            frame = frame[os.write(1, frame) :]
        except BlockingIOError:  # a launcher's end of the pipe may be set so
            poll = select.poll()
            poll.register(1, select.POLLOUT)
            poll.poll()
        except OSError as error:
            raise LauncherGone from error


def _progress(step: int | None, done: bool) -> str:
    return f'"step":{_number(step)},"done":{"true" if done else "false"},'


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)


def _quoted(text: str) -> str:
    """JSON's spelling of a short word; importing json would cost every rank 5 ms."""
    kept = (
        c if 31 < ord(c) < 127 and c not in '"\\' else f"\\u{ord(c) & 0xFFFF:04x}" for c in text
    )
    return f'"{"".join(kept)}"'
