"""Runs one rank's command for the shim: output, heartbeats, signals, and the end of its processes.

The command is a child in a session of its own. The shim adopts orphans, so every process the
command ever started stays below it and can be found at the end, whatever sessions it made.

Signals are passed on by the handler itself: the shim may be blocked in a write to a slow reader,
and the command must hear them all the same. When the shim's parent dies the kernel tells it by a
signal of its own, which counts only when the parent has really changed: the kernel also sends it
when just the thread ended that had started the shim.
"""

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fcntl import fcntl
from types import FrameType

from supervisor import linux
from supervisor.rank_output import LauncherGone, RankOutput
from supervisor.rank_slot import RankSlot

_TO_ALL = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCONT)
_TO_COMMAND = (signal.SIGUSR1, signal.SIGUSR2)
_PARENT_DIED = signal.SIGRTMIN + 7
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ
_PIPE_BYTES = 256 << 10  # a user may have 64 MiB of such pipes on a host
_KEPT_BYTES = 4 << 20
_DRAIN_SECONDS = 0.5  # how long a grandchild that holds the pipe may delay the end
_GRACE_SECONDS = 2.0  # between SIGTERM and SIGKILL when the launcher is gone
_END_SECONDS = 5.0  # a killed process dead asleep in the kernel is not waited for longer
_LOOK_SECONDS = 0.25  # how often the slot is looked at before the first step
NOT_EXECUTABLE, NOT_FOUND = 126, 127  # what shells answer


class Command:
    """The rank's process and what became of it."""

    def __init__(self, *, forwards: bool) -> None:
        self._forwards = forwards
        self._parent = os.getppid()
        self.pid = 0
        self.status: int | None = None
        self._early: list[int] = []
        self._terms = 0

    def guard(self) -> int:
        """Take charge of signals and orphans; returns a descriptor that tells of ended children."""
        wakeup = linux.wake_on((signal.SIGCHLD,))
        for number in (*_TO_ALL, *_TO_COMMAND):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._pass_on)
        signal.signal(_PARENT_DIED, self._look_at_parent)
        linux.die_with_parent(_PARENT_DIED)
        linux.adopt_orphans()
        return wakeup

    def start(
        self, argv: Sequence[str], environment: Mapping[str, str], stdin: int, output: int
    ) -> None:
        """Start the command. Raises OSError when that cannot be."""
        self.pid = linux.start(
            argv,
            environment=environment,
            cwd=".",
            stdio=(stdin, output, output),
            death_signal=signal.SIGKILL,
        )
        for number in self._early:
            self._pass_on(number, None)

    def reap(self) -> bool:
        """Collect ended children; whether any are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.status = status

    def state(self) -> str:
        try:
            return linux.state_and_parent(self.pid)[0]
        except OSError:
            return "X"

    def orphans(self) -> dict[int, int]:
        """What the shim has adopted, and when each started."""
        return {pid: began for pid, began in linux.children().items() if pid != self.pid}

    def end(self) -> None:
        """SIGKILL everything below the shim, and wait for it."""
        deadline = time.monotonic() + _END_SECONDS
        while self.reap() and time.monotonic() < deadline:
            _kill_all()
            time.sleep(0.005)

    def end_politely(self) -> None:
        """SIGTERM, SIGKILL after the grace."""
        deadline = time.monotonic() + _GRACE_SECONDS
        if self.pid and self.status is None:
            linux.send_group(self.pid, signal.SIGTERM)
            linux.send_group(self.pid, signal.SIGCONT)
        while self.reap() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.end()

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if not self.pid:
            self._early.append(number)
            return
        self._terms += number == signal.SIGTERM
        if self._terms > 1 and number == signal.SIGTERM:
            _kill_all()
        elif self.status is None and self._forwards:
            (linux.send_group if number in _TO_ALL else linux.send)(self.pid, number)

    def _look_at_parent(self, number: int, frame: FrameType | None) -> None:
        if os.getppid() != self._parent:
            raise LauncherGone


def _kill_all() -> None:
    for pid in linux.descendants(os.getpid()):
        linux.send(pid, signal.SIGKILL)


class Watch:
    """The loop of one shim: what the command writes, how it is, until it ends."""

    def __init__(
        self, command: Command, wakeup: int, output: RankOutput, slot: RankSlot, beat_seconds: float
    ) -> None:
        self._command, self._wakeup, self._output = command, wakeup, output
        self._slot, self._beat_seconds = slot, beat_seconds
        self._next_beat = self._beat_after(0.5)  # ranks start together: spread them at once
        self._step_told = False
        self._is_open = True  # the pipe has a writer left, or bytes
        self._poll = select.poll()
        self._poll.register(wakeup, select.POLLIN)

    def until_end(self, pipe: int) -> None:
        """Returns when the command has ended and its output has been sent."""
        self._poll.register(pipe, select.POLLIN)
        while self._command.status is None:
            self._look(pipe, self._next_wait())
            self._tell()
        self._drain(pipe)
        self._command.end()
        self._drain(pipe)
        self._output.flush()

    def _drain(self, pipe: int) -> None:
        """Read to the end of the output; whoever holds the pipe open delays that a little only."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while self._is_open and time.monotonic() < deadline:
            self._look(pipe, deadline - time.monotonic())

    def _look(self, pipe: int, wait_seconds: float) -> None:
        """Wait for output or an ended child, and take it."""
        ready = dict(self._poll.poll(max(0.0, wait_seconds) * 1000))
        if self._wakeup in ready:
            linux.signals_arrived(self._wakeup)
            self._command.reap()
        if pipe in ready and not self._output.read(pipe):
            self._poll.unregister(pipe)
            self._is_open = False

    def _next_wait(self) -> float:
        wait = self._next_beat - time.monotonic()
        hold = self._output.hold_left()
        if hold is not None:
            wait = min(wait, hold)
        return wait if self._step_told else min(wait, _LOOK_SECONDS)

    def _tell(self) -> None:
        hold = self._output.hold_left()
        if hold is not None and hold <= 0.0:
            self._output.flush()
        self._slot.look()
        first_step = self._slot.step is not None and not self._step_told
        if first_step or time.monotonic() >= self._next_beat:
            self._step_told |= first_step
            self._next_beat = self._beat_after(1.0)
            slot = self._slot
            slot.note(self._command.orphans())
            self._output.beat(self._command.state(), slot.step, slot.phase, done=slot.is_done)

    def _beat_after(self, part: float) -> float:
        jitter = 0.8 + 0.4 * os.urandom(1)[0] / 255
        return time.monotonic() + part * jitter * self._beat_seconds


def run_rank(
    argv: Sequence[str],
    environment: Mapping[str, str],
    output: RankOutput,
    slot: RankSlot,
    beat_seconds: float,
    place: Mapping[str, int],
    *,
    forwards: bool = True,
) -> tuple[int | None, int | None]:
    """Run the command to its end, and say so; returns its exit code and signal. `forwards`: signals
    that come to us are passed on, since they do not reach the command by themselves.
    """
    command = Command(forwards=forwards)
    exit_code: int | None
    try:
        linux.keep_freed_memory(_KEPT_BYTES)
        wakeup = command.guard()
        pipe = _start(command, argv, environment, is_first=place["RANK"] == 0)
        if isinstance(pipe, OSError):
            output.say(linux.start_failure(pipe, argv))
            missing = isinstance(pipe, FileNotFoundError | NotADirectoryError)
            exit_code, number = (NOT_FOUND if missing else NOT_EXECUTABLE), None
        else:
            output.started(place["LOCAL_RANK"], place["WORLD_SIZE"], command.pid)
            Watch(command, wakeup, output, slot, beat_seconds).until_end(pipe)
            exit_code, number = linux.how_it_ended(command.status or 0)
        slot.look()
        output.exited(exit_code, number, slot.step, done=slot.is_done)
    except LauncherGone:
        signal.signal(_PARENT_DIED, signal.SIG_IGN)
        command.end_politely()
        return 128 + signal.SIGTERM, None
    return exit_code, number


def _start(
    command: Command,
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    is_first: bool,
) -> int | OSError:
    """Start the command; the pipe that its output comes through, or why it cannot be started."""
    pipe, its_end = os.pipe()
    with suppress(OSError):
        fcntl(pipe, _SET_PIPE_SIZE, _PIPE_BYTES)
    try:
        stdin = 0 if is_first else os.open(os.devnull, os.O_RDONLY)
        command.start(argv, environment, stdin, its_end)
    except OSError as error:
        return error
    finally:
        os.close(its_end)
    return pipe
