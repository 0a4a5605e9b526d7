"""The keeper: holds one attempt's launcher and its output, and outlives the supervisor.

    keeper.py [--when-told] ATTEMPT_DIR [SEGMENT_BYTES SPOOL_BYTES]

With --when-told nothing is touched before a byte arrives on standard input; at its end without
one the keeper leaves. So a supervisor lets Python start, which takes longer than the launcher,
before it has decided on a launch and journaled it; and one that dies undecided starts nothing.

ATTEMPT_DIR/launch.json {"argv", "environment", "cwd"} says what to start; the environment in it is
laid over the keeper's own, which it has from the supervisor, so that secrets never go to disk. The
launcher runs in a session of its own; its output goes to ATTEMPT_DIR/spool (see spool.py);
keeper.json names both processes as soon as they exist; exit.json, written last, says how it ended.

A full spool. While a supervisor lives (somebody holds flock on RUN_DIR/lock) the keeper stops
reading until segments vanish: nothing is lost. When none does, the oldest segment is dropped and
noted in spool/lost, for training must not block on a dead supervisor, nor the disk fill. A disk
that refuses a write is waited for in the same two ways: `lost` then has a line with 0 bytes.

Bytes go through one buffer by read and write. splice would save a copy, but kernels before 6.5
announce no spliced write to inotify, and a reader that relies on it would sleep.

Signals. SIGINT and SIGHUP change nothing. SIGTERM goes on to the launcher, and the keeper keeps
on keeping. When the keeper is killed, the kernel sends the launcher SIGTERM.
"""

import errno
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from fcntl import fcntl

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from supervisor import linux, wire
from supervisor.spool import SEGMENT_BYTES, SPOOL_BYTES, Spool

_PIPE_BYTES = 1 << 20  # what one pipe may hold without privileges
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ
_BLOCK = 256 << 10
_MANY = 4 << 10  # bytes in a pipe that tell of much output: more will follow at once
_GATHER_SECONDS = 0.001  # how long it is left to gather: a turn for each frame costs four times
_DRAIN_SECONDS = 2.0  # a grandchild that holds a pipe may delay the end by this much
_ROOM_SECONDS = 0.05  # how often a full spool is looked at again
_DISK_SECONDS = 0.2  # how often a disk that refused is asked again
_LAST_WORD_SECONDS = 600.0  # how long exit.json is tried for on such a disk


class Keeper:
    """One launcher, its two pipes, its spool."""

    def __init__(self, folder: str, segment_bytes: int, spool_bytes: int) -> None:
        self._folder = folder
        self._lock = os.path.join(folder, "..", "..", "lock")
        self._wakeup = linux.wake_on(
            (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
        )
        self._spool = Spool(
            os.path.join(folder, "spool"),
            ("out", "err"),
            segment_bytes=segment_bytes,
            spool_bytes=spool_bytes,
        )
        self._buffer = memoryview(bytearray(_BLOCK))
        self._pipes: dict[int, str] = {}
        self._started_at = _now()
        self._launcher = 0
        self._status: int | None = None
        self._give_up_at = 0.0

    def keep(self) -> None:
        """Start the launcher, spool its output, say how it ended."""
        with open(os.path.join(self._folder, "launch.json"), "rb") as file:
            launch = json.load(file)
        try:
            self._start(launch)
        except OSError as error:
            self._status = 127 << 8
            self._say_how_it_ended(linux.start_failure(error, launch["argv"]))
            return
        self._say_who_runs()
        while not self._over():
            self._turn()
        self._take_what_is_left()
        self._say_how_it_ended(None)

    def _start(self, launch: dict[str, object]) -> None:
        argv, cwd, overlay = launch["argv"], launch["cwd"], launch["environment"]
        assert isinstance(argv, list)
        assert isinstance(cwd, str)
        assert isinstance(overlay, dict)
        environment = {**os.environ, **overlay}
        environment.pop(wire.ROLE, None)
        nothing = os.open(os.devnull, os.O_RDONLY)
        (out, out_end), (err, err_end) = _pipe(), _pipe()
        self._pipes = {out: "out", err: "err"}
        try:
            self._launcher = linux.start(
                argv,
                environment=environment,
                cwd=cwd,
                stdio=(nothing, out_end, err_end),
                death_signal=signal.SIGTERM,
            )
        finally:
            for descriptor in (nothing, out_end, err_end):
                os.close(descriptor)

    def _over(self) -> bool:
        if self._status is None:
            return False
        return not self._pipes or time.monotonic() >= self._give_up_at

    def _turn(self) -> None:
        if self._must_wait():
            self._give_up_at = time.monotonic() + _DRAIN_SECONDS
            self._attend(_ROOM_SECONDS)
            return
        for descriptor in self._ready():
            if descriptor == self._wakeup:
                self._attend(0)
            elif _MANY <= self._take(descriptor) < _BLOCK:
                self._attend(_GATHER_SECONDS)

    def _must_wait(self) -> bool:
        """Whether there is no room and somebody lives who will make some; else room is made."""
        while self._spool.full():
            if linux.is_locked(self._lock):
                return True
            if not self._spool.drop_oldest():
                return False
        return False

    def _ready(self) -> list[int]:
        poll = select.poll()
        for descriptor in (self._wakeup, *self._pipes):
            poll.register(descriptor, select.POLLIN)
        limit = None if self._status is None else max(0.0, self._give_up_at - time.monotonic())
        return [descriptor for descriptor, _ in poll.poll(limit and limit * 1000)]

    def _attend(self, wait_seconds: float) -> None:
        """Wait for signals at most this long, and do what they ask for."""
        select.select([self._wakeup], [], [], wait_seconds)
        arrived = linux.signals_arrived(self._wakeup)
        if signal.SIGTERM in arrived and self._status is None:
            linux.send(self._launcher, signal.SIGTERM)
        if signal.SIGCHLD in arrived and self._status is None:
            pid, status = os.waitpid(self._launcher, os.WNOHANG)
            if pid:
                self._status, self._give_up_at = status, time.monotonic() + _DRAIN_SECONDS

    def _take(self, pipe: int) -> int:
        """Move one block from a pipe to its stream; return how much that was."""
        try:
            size = os.readv(pipe, [self._buffer])
        except BlockingIOError:
            return 0
        if size:
            self._store(self._pipes[pipe], self._buffer[:size])
        else:
            del self._pipes[pipe]
            os.close(pipe)
        return size

    def _store(self, stream: str, piece: memoryview) -> None:
        refused = False
        while piece:
            try:
                piece = piece[self._spool.append(stream, piece) :]
            except OSError:  # full, over quota, or a file system that is away: all may pass
                if not refused:
                    self._spool.note_refusal(stream)
                refused = True
                self._wait_for_disk()

    def _wait_for_disk(self) -> None:
        if linux.is_locked(self._lock) or not self._spool.drop_oldest():
            self._attend(_DISK_SECONDS)

    def _take_what_is_left(self) -> None:
        """A pipe somebody still holds: what is in it now is the launcher's; the rest is not."""
        for pipe in list(self._pipes):
            left = _PIPE_BYTES
            while left > 0 and (size := self._take(pipe)):
                left -= size

    def _say_who_runs(self) -> None:
        words = {
            "pid": os.getpid(),
            "start_time": linux.start_time(os.getpid()),
            "launcher_pid": self._launcher,
            "launcher_start_time": linux.start_time(self._launcher),
        }
        self._publish("keeper.json", words)

    def _say_how_it_ended(self, error: str | None) -> None:
        exit_code, number = linux.how_it_ended(self._status or 0)
        words = {
            "exit_code": exit_code,
            "signal": number,
            "started_at": self._started_at,
            "ended_at": _now(),
            "error": error,
        }
        self._publish("exit.json", words)

    def _publish(self, name: str, words: Mapping[str, object]) -> None:
        deadline = time.monotonic() + _LAST_WORD_SECONDS
        while True:
            try:
                return _replace(os.path.join(self._folder, name), json.dumps(words) + "\n")
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT) or time.monotonic() > deadline:
                    raise
            self._attend(_DISK_SECONDS)


def _pipe() -> tuple[int, int]:
    """A pipe as large as may be, its reading end first, which never blocks."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with suppress(OSError):  # a user has a limit on the sum of such pipes
        fcntl(reading, _SET_PIPE_SIZE, _PIPE_BYTES)
    return reading, writing


def _replace(path: str, text: str) -> None:
    with open(f"{path}.new", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_REALTIME)


def main(arguments: list[str]) -> int:
    """Run as a program."""
    waits = arguments[:1] == ["--when-told"]
    arguments = arguments[waits:]
    if len(arguments) not in (1, 3):
        sys.stderr.write("usage: keeper.py [--when-told] ATTEMPT_DIR [SEGMENT_BYTES SPOOL_BYTES]\n")
        return 2
    if waits and not os.read(0, 1):
        return 0
    folder, *sizes = arguments
    segment_bytes, spool_bytes = map(int, sizes) if sizes else (SEGMENT_BYTES, SPOOL_BYTES)
    Keeper(folder, segment_bytes, spool_bytes).keep()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
