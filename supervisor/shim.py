"""The program between launcher and command on each rank: `python -S -I shim.py COMMAND ...`.

Names the rank for the command, frames its output (wire.py), reports its start, its life and its
end, forwards signals, and leaves nothing of it behind. Standard library only; it decides nothing.

The command's standard output and error share one pipe, so that their order is kept. When the
command has ended, what it had written is read to the end, but a grandchild that holds the pipe is
not waited for: the whole tree is ended first. The shim dies with the launcher, the command with the
shim.
"""

import os
import select
import signal
import sys
from time import monotonic, monotonic_ns, sleep
from time import time as wall_time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from supervisor import linux, wire

# Which variables name rank, world size, local rank and local world size, by flavour of launcher.
RANK_VARIABLES = {
    "local": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    "mpich": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
}
NAMES = RANK_VARIABLES["local"]
TO_ALL = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # forwarded to the command's group
TO_COMMAND = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)  # forwarded to the command alone
_BLOCK = 64 * 1024
_PIPE_SIZE = 1024 * 1024
_HOLD_SECONDS = 0.05  # how long the beginning of a line waits for its end
_END_SECONDS = 2.0  # from a launcher's death, or a polite signal after it, to SIGKILL
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ


def main() -> int:
    """Run the command and end as it did."""
    try:
        identity = identify(os.environ)
    except LookupError as error:
        sys.stderr.write(f"supervise: {error.args[0]}\n")
        return 3
    shim = Shim(identity, sys.argv[1:])
    exit_code, number = shim.run()
    if number is not None:
        linux.die_by(number)
        os.kill(os.getpid(), number)
    return exit_code if exit_code is not None else 128 + (number or 0)


def identify(environment: "os._Environ[str] | dict[str, str]") -> dict[str, str]:
    """The variables every launcher's ranks get, from those of this one."""
    flavour = environment.get(wire.LAUNCHER, "")
    if flavour not in RANK_VARIABLES:
        known = ", ".join(RANK_VARIABLES)
        raise LookupError(f"{wire.LAUNCHER} is {flavour!r}, which is none of: {known}")
    sources = RANK_VARIABLES[flavour]
    missing = [name for name in sources if not environment.get(name, "").isdigit()]
    if missing:
        raise LookupError(f"launcher {flavour} has not set {', '.join(missing)}: another one?")
    named = {name: environment[source] for name, source in zip(NAMES, sources, strict=True)}
    host = environment.get(wire.HOST) or wire.canonical_host(os.uname().nodename)
    return {**named, wire.HOST: host}


class Shim:
    """One rank."""

    def __init__(self, identity: dict[str, str], command: list[str]) -> None:
        self._identity, self._command = identity, command
        self._rank, self._host = int(identity["RANK"]), identity[wire.HOST]
        self._pid = 0
        self._sent = 0  # bytes of output
        self._held = b""  # the beginning of a line
        self._held_at = 0.0
        self._status: int | None = None
        self._kill_at: float | None = None
        self._slot_path = slot_path(self._rank)
        self._told_step = False

    def run(self) -> "tuple[int | None, int | None]":
        """Start the command, pump until it has ended, report."""
        linux.adopt_orphans()
        self._launcher = os.getppid()
        self._wakeup = linux.wake_on((signal.SIGCHLD, *TO_ALL, *TO_COMMAND))
        linux.die_with_parent(signal.SIGTERM)
        wire.create_slot(self._slot_path)
        self._slot = wire.open_slot(self._slot_path, writable=False)
        try:
            return self._run_command()
        finally:
            os.unlink(self._slot_path)

    def _run_command(self) -> "tuple[int | None, int | None]":
        out, into = os.pipe()
        widen(out)
        try:
            self._start(into)
        except OSError as error:
            return self._refused(error)
        os.close(into)
        self._report(wire.Kind.STARTED, self._start_words())
        self._pump(out)
        linux.kill_tree(self._pid)
        self._reap_orphans()
        self._drain(out)
        exit_code, number = linux.how_it_ended(self._status or 0)
        self._report_end(exit_code, number)
        return exit_code, number

    def _start(self, into: int) -> None:
        environment = {**os.environ, **self._identity, wire.SLOT: self._slot_path}
        stdin = 0 if self._rank == 0 else os.open(os.devnull, os.O_RDONLY)
        self._pid = linux.start(
            self._command,
            environment=environment,
            cwd=os.getcwd(),
            stdio=(stdin, into, into),
            death_signal=signal.SIGKILL,
        )

    def _refused(self, error: OSError) -> "tuple[int | None, int | None]":
        words = f"supervise: {linux.start_failure(error, self._command)}\n".encode()
        self._send(words)
        exit_code = 127 if isinstance(error, FileNotFoundError) else 126
        self._report_end(exit_code, None)
        return exit_code, None

    def _pump(self, out: int) -> None:
        """Read output, beat, forward signals, until the command has ended."""
        poll = select.poll()
        poll.register(out, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        beat_at = monotonic() + 0.1
        while self._status is None:
            now = monotonic()
            if now >= beat_at:
                beat_at = now + self._beat()
            for descriptor, _ in poll.poll(self._patience(beat_at - now)):
                if descriptor == self._wakeup:
                    self._signals()
                elif not self._read(out):
                    poll.unregister(out)
            self._flush_held()
            self._kill_if_due()

    def _patience(self, seconds: float) -> int:
        if self._held:
            seconds = min(seconds, _HOLD_SECONDS)
        if self._kill_at is not None:
            seconds = min(seconds, 0.1)
        return max(1, int(seconds * 1000))

    def _read(self, out: int) -> bool:
        data = os.read(out, _BLOCK)
        if not data:
            return False
        data = self._held + data
        cut = data.rfind(b"\n") + 1
        if len(data) - cut > wire.MAX_FRAME:
            cut = len(data)
        self._send(data[:cut])
        if not self._held or cut:
            self._held_at = monotonic()
        self._held = data[cut:]
        return True

    def _flush_held(self) -> None:
        if self._held and monotonic() - self._held_at >= _HOLD_SECONDS:
            held, self._held = self._held, b""
            self._send(held)

    def _drain(self, out: int) -> None:
        """What was written before the end; nobody is left who could write more."""
        os.set_blocking(out, False)
        try:
            while self._read(out):
                pass
        except BlockingIOError:
            pass
        self._send(self._held)

    def _send(self, data: bytes) -> None:
        for frame in wire.frames(self._rank, self._sent, data):
            self._write(frame)
        self._sent += len(data)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(1, data) :]
        except BrokenPipeError:  # nobody reads any more: the launcher is gone
            self._end_tree()

    def _signals(self) -> None:
        for number in linux.signals_arrived(self._wakeup):
            if number == signal.SIGCHLD:
                self._reap()
            elif number in TO_ALL:
                self._end_on(number)
            else:
                linux.send(self._pid, number)

    def _end_on(self, number: int) -> None:
        """Forward; a second SIGTERM, or a launcher that is gone, makes an end of it."""
        if number == signal.SIGTERM and self._kill_at is not None:
            self._kill_at = 0.0
            return
        linux.send_group(self._pid, number)
        if os.getppid() != self._launcher:
            self._end_tree()
        elif number == signal.SIGTERM:
            self._kill_at = float("inf")

    def _end_tree(self) -> None:
        if self._kill_at is None or self._kill_at > monotonic() + _END_SECONDS:
            linux.send_group(self._pid, signal.SIGTERM)
            self._kill_at = monotonic() + _END_SECONDS

    def _kill_if_due(self) -> None:
        if self._kill_at is not None and monotonic() >= self._kill_at:
            linux.kill_tree(self._pid)

    def _reap(self) -> None:
        """Orphans come to us too; only the command's end is an event."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status = status

    def _reap_orphans(self) -> None:
        """Whatever left the command's session is our child now: end it, until none is left."""
        deadline = monotonic() + _END_SECONDS
        while monotonic() < deadline:
            left = linux.descendants(os.getpid())
            for pid in left:
                linux.send(pid, signal.SIGKILL)
            self._reap()
            if not left:
                return
            sleep(0.005)

    def _beat(self) -> float:
        """Report that the command lives; answers when to beat again."""
        try:
            state = linux.state_and_parent(self._pid)[0]
        except OSError:
            state = "?"
        words = {"host": self._host, "state": state, "at": wall_time(), **self._progress()}
        self._report(wire.Kind.BEAT, words)
        mean = float(os.environ.get(wire.BEAT_SECONDS) or 3.0)
        jitter = 0.8 + (monotonic_ns() ^ os.getpid() * 2654435761) % 401 / 1000
        if not self._told_step and words["step"] is None:
            return min(0.25, mean)  # the first step of an attempt is news
        self._told_step = True
        return mean * jitter

    def _progress(self) -> "dict[str, object]":
        seen = wire.read(self._slot)
        if seen is None or (not seen.pid and seen.step is None):
            return {"step": None, "phase": None}
        return {"step": seen.step, "phase": seen.phase.value}

    def _start_words(self) -> "dict[str, object]":
        return {
            "rank": self._rank,
            "local_rank": int(self._identity["LOCAL_RANK"]),
            "world_size": int(self._identity["WORLD_SIZE"]),
            "host": self._host,
            "pid": self._pid,
            "at": wall_time(),
        }

    def _report_end(self, exit_code: "int | None", number: "int | None") -> None:
        words = {"host": self._host, "exit_code": exit_code, "signal": number}
        self._report(
            wire.Kind.EXITED,
            {**words, "at": wall_time(), "size": self._sent, "step": self._progress()["step"]},
        )

    def _report(self, kind: wire.Kind, words: "dict[str, object]") -> None:
        import json

        self._write(wire.encode(kind, self._rank, 0, json.dumps(words).encode()))


def slot_path(rank: int) -> str:
    """Where the slot of a rank of this attempt lies on its host."""
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"
    run, attempt = os.environ.get(wire.RUN_ID, "run"), os.environ.get(wire.ATTEMPT, "0")
    return f"{folder}/supervise-{os.getuid()}-{run}-{attempt}-{rank}"


def widen(pipe: int) -> None:
    """A megabyte lets the command run on while nobody reads; without the right to it, 64 KiB."""
    import fcntl

    try:
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, _PIPE_SIZE)
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(main())
