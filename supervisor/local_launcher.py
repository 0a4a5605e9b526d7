"""The launcher of flavour `local`: starts the ranks itself, on this machine or on virtual hosts.

    local_launcher.py --hostfile FILE --ranks-per-host N [--virtual RUN_DIR] [--kill-after SECONDS]
                      [--] COMMAND...

Each rank has RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE and SUPERVISE_HOST, and writes to this
program's own output. It behaves as an mpiexec does: when a rank fails or its host is lost, says so,
lets the others say their own last words, then ends them, and exits with the first failure's code
(128 + signal for a signal, 255 for a lost host). SIGTERM, SIGINT and SIGHUP go on to the ranks and
decide the exit code; a second one kills. Nothing of it outlives it: ranks die with it, and it gets
SIGTERM when its parent dies.

Owns the policy of a launcher; the ranks are local_ranks.py's. Blames nobody.
"""

import os
import select
import signal
import sys
import time
from contextlib import suppress

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from supervisor import linux
from supervisor.local_ranks import End, Ranks

_LAST_WORDS_SECONDS = 1.0  # between the first failure and SIGTERM: peers tell of it in this time
_KILL_AFTER = 2.0  # between SIGTERM and SIGKILL
_LEAVE_AFTER = 2.0  # between SIGKILL and giving up on hosts that do not answer
_LOST_HOST = 255
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_FORWARDED = (*_ENDING, signal.SIGUSR1, signal.SIGUSR2)
_USAGE = (
    "usage: local_launcher.py --hostfile FILE --ranks-per-host N [--virtual RUN_DIR] "
    "[--kill-after SECONDS] [--] COMMAND..."
)


class Launch:
    """One run of the launcher."""

    def __init__(self, ranks: Ranks, wakeup: int, kill_after: float) -> None:
        self._ranks, self._wakeup, self._kill_after = ranks, wakeup, kill_after
        self._exit_code: int | None = None
        self._asked: int | None = None
        self._next: tuple[float, int] | None = None  # when to signal all ranks, and how
        self._leave_at: float | None = None
        self._told: set[str] = set()

    def run(self) -> int:
        """Wait for all ranks; the exit code."""
        while True:
            for end in self._ranks.ends():
                self._judge(end)
            for number in linux.signals_arrived(self._wakeup):
                self._obey(number)
            self._signal_what_is_due()
            if not self._ranks.left() or self._is_due(self._leave_at):
                return self._exit_code or 0
            self._wait()

    def _wait(self) -> None:
        poll = select.poll()
        for descriptor in (self._wakeup, *self._ranks.descriptors()):
            poll.register(descriptor, select.POLLIN)
        moments = [self._next[0]] if self._next else []
        moments += [self._leave_at] if self._leave_at is not None else []
        poll.poll(max(0.0, min(moments) - time.monotonic()) * 1000 if moments else None)

    def _judge(self, end: End) -> None:
        if end.is_success():
            return
        if not self._is_ending():
            self._tell(end)
        if self._exit_code is None:
            self._exit_code = end.shell_code(_LOST_HOST)
            self._next = (time.monotonic() + _LAST_WORDS_SECONDS, signal.SIGTERM)

    def _is_ending(self) -> bool:
        """Whether ranks end because we end them."""
        if self._asked is not None or self._leave_at is not None:
            return True
        return self._next is not None and self._next[1] == signal.SIGKILL

    def _tell(self, end: End) -> None:
        """Say it once: all ranks of a lost host end alike."""
        words = end.words()
        if words not in self._told:
            self._told.add(words)
            _say(words)

    def _obey(self, number: int) -> None:
        if number not in _FORWARDED:
            return
        if number not in _ENDING:
            self._ranks.signal(number)
        elif self._asked is None:
            self._asked, self._exit_code, self._next = number, 128 + number, None
            self._ranks.signal(number)
        else:
            self._next = (time.monotonic(), signal.SIGKILL)

    def _signal_what_is_due(self) -> None:
        if self._next is None or not self._is_due(self._next[0]):
            return
        number = self._next[1]
        self._ranks.signal(number)
        if number == signal.SIGKILL:
            self._next, self._leave_at = None, time.monotonic() + _LEAVE_AFTER
        else:
            self._next = (time.monotonic() + self._kill_after, signal.SIGKILL)

    def _is_due(self, moment: float | None) -> bool:
        return moment is not None and time.monotonic() >= moment


def _say(text: str) -> None:
    with suppress(OSError):  # nobody reads any more
        os.write(2, f"local: {text}\n".encode(errors="replace"))


def _options(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Our options, and the command: it begins after "--", or at the first word not ours."""
    options: dict[str, str] = {}
    names = ("--hostfile", "--ranks-per-host", "--virtual", "--kill-after")
    while len(arguments) > 1 and arguments[0] in names:
        options[arguments[0]] = arguments[1]
        arguments = arguments[2:]
    return options, arguments[1:] if arguments[:1] == ["--"] else arguments


def _hosts(path: str) -> list[str]:
    with open(path) as file:
        return [line.strip() for line in file if line.strip()]


def main(arguments: list[str]) -> int:
    """Run as a program."""
    options, command = _options(arguments)
    if not (command and "--hostfile" in options and "--ranks-per-host" in options):
        sys.stderr.write(_USAGE + "\n")
        return 2
    linux.die_with_parent(signal.SIGTERM)
    wakeup = linux.wake_on((signal.SIGCHLD, *_FORWARDED))
    ranks = Ranks(
        _hosts(options["--hostfile"]),
        int(options["--ranks-per-host"]),
        command,
        options.get("--virtual"),
    )
    exit_code = Launch(ranks, wakeup, float(options.get("--kill-after", _KILL_AFTER))).run()
    # Python lets go of its handlers while it exits: a late signal must not change the exit code.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
