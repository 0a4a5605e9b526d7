"""A branch of the tree of probes: starts leaves on further hosts and passes their lines up.

Leaves are started a few at a time and end with the branch. Standard library only.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from supervisor import linux, wire

_AT_ONCE = 32
_LONGEST = 65536  # bytes of what one leaf says


class Leaves:
    """The probes on the hosts of one branch."""

    def __init__(self, hosts: Sequence[str], argv: Sequence[str], placeholder: str) -> None:
        self._ahead = list(reversed(hosts))
        self._argv, self._placeholder = argv, placeholder
        self._selector = selectors.DefaultSelector()
        self._running: dict[subprocess.Popen[bytes], bytes] = {}
        self._start_some()

    def pass_up(self, seconds: float) -> None:
        """Write each leaf's line as it comes, until all have ended or each has had its time."""
        mute_at = time.monotonic() + seconds
        while self._running and time.monotonic() < mute_at:
            for key, _ in self._selector.select(timeout=0.5):
                host, process = key.data
                self._read(host, process)
            self._start_some()
        for process in self._running:
            linux.send_group(process.pid, signal.SIGKILL)

    def _start_some(self) -> None:
        while self._ahead and len(self._running) < _AT_ONCE:
            self._start(self._ahead.pop())

    def _start(self, host: str) -> None:
        argv = [word.replace(self._placeholder, host) for word in self._argv]
        environment = {name: text for name, text in os.environ.items() if name != wire.HOST}
        try:
            process = subprocess.Popen(
                argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:  # the supervisor will ask that host itself, and say why it cannot
            return
        assert process.stdout is not None
        self._running[process] = b""
        self._selector.register(process.stdout, selectors.EVENT_READ, (host, process))

    def _read(self, host: str, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        piece = os.read(process.stdout.fileno(), _LONGEST)
        said = self._running[process] + piece
        *lines, rest = said.split(b"\n")
        answered = sum(_pass_up(host, line) for line in lines)
        self._running[process] = rest[-_LONGEST:]
        if answered or not piece:
            self._end(process)

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        self._selector.unregister(process.stdout)
        process.stdout.close()
        linux.send_group(process.pid, signal.SIGKILL)
        process.wait()
        del self._running[process]


def _pass_up(host: str, line: bytes) -> bool:
    try:
        said = json.loads(line)
    except ValueError:
        return False
    if not isinstance(said, dict) or "answer" not in said:
        return False
    sys.stdout.write(json.dumps({**said, "asked": host}) + "\n")
    sys.stdout.flush()
    return True
