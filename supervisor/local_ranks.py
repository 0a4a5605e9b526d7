"""The ranks of a local launcher: children of this process, or calls on virtual hosts.

Starts them in order and tells how each ended, whichever of the two it is. Decides nothing.
"""

import os
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress

from supervisor import linux, wire
from supervisor.virtual_call import Call, HostDown, HostLost, call


class End:
    """How one rank ended."""

    __slots__ = ("error", "exit_code", "host", "lost", "rank", "signal")

    def __init__(
        self,
        rank: int,
        host: str,
        *,
        exit_code: int | None = None,
        signal: int | None = None,
        error: str = "",
        lost: bool = False,
    ) -> None:
        self.rank, self.host = rank, host
        self.exit_code, self.signal, self.error, self.lost = exit_code, signal, error, lost

    def is_success(self) -> bool:
        return self.exit_code == 0

    def shell_code(self, lost_host: int) -> int:
        """One number for it, as a shell would make it."""
        if self.lost:
            return lost_host
        return 128 + self.signal if self.signal is not None else self.exit_code or 0

    def words(self) -> str:
        """What a launcher says of it."""
        if self.lost:
            return f"lost host {self.host}"
        if self.error:
            return self.error
        if self.signal is not None:
            return f"rank {self.rank} on {self.host} was killed by signal {self.signal}"
        return f"rank {self.rank} on {self.host} exited with code {self.exit_code}"


class Ranks:
    """All ranks of one launch, those that run among them."""

    def __init__(
        self, hosts: Sequence[str], ranks_per_host: int, command: Sequence[str], run_dir: str | None
    ) -> None:
        self._hosts = [host for host in hosts for _ in range(ranks_per_host)]
        self._per_host, self._command, self._run_dir = ranks_per_host, command, run_dir
        self._children: dict[int, int] = {}  # pid -> rank
        self._calls: dict[int, Call] = {}  # rank -> call
        self._ended: list[End] = []
        self._nothing = os.open(os.devnull, os.O_RDONLY)
        for rank in range(len(self._hosts)):
            self._start(rank)

    def left(self) -> bool:
        """Whether a rank runs, or its end has not been told yet."""
        return bool(self._children or self._calls or self._ended)

    def descriptors(self) -> list[int]:
        """What becomes readable when a rank on a virtual host ends; children send SIGCHLD."""
        return [each.fileno() for each in self._calls.values()]

    def ends(self) -> Iterator[End]:
        """How ranks ended that have ended since the last call."""
        self._reap()
        for rank in self._readable():
            self._hear(rank)
        while self._ended:
            yield self._ended.pop(0)

    def signal(self, number: int) -> None:
        """Send a signal to every rank that runs; SIGKILL ends all that descends from it."""
        for pid in list(self._children):
            if number == signal.SIGKILL:
                linux.kill_tree(pid)
            else:
                linux.send(pid, number)
        for each in self._calls.values():
            each.signal(number)

    def _start(self, rank: int) -> None:
        host = self._hosts[rank]
        try:
            if self._run_dir is None:
                self._start_here(rank, host)
            else:
                self._start_there(rank, host, self._run_dir)
        except OSError as error:
            why = linux.start_failure(error, self._command)
            self._ended.append(End(rank, host, exit_code=127, error=why))
        except (HostDown, HostLost):
            self._ended.append(End(rank, host, lost=True))

    def _start_here(self, rank: int, host: str) -> None:
        pid = linux.start(
            self._command,
            environment=self._environment(rank, host),
            cwd=os.getcwd(),
            stdio=(self._nothing, 1, 2),
            death_signal=signal.SIGKILL,
        )
        self._children[pid] = rank

    def _start_there(self, rank: int, host: str, run_dir: str) -> None:
        self._calls[rank] = call(
            run_dir,
            host,
            self._command,
            environment=self._environment(rank, host),
            cwd=os.getcwd(),
            stdio=(self._nothing, 1, 2),
        )

    def _environment(self, rank: int, host: str) -> dict[str, str]:
        return {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % self._per_host),
            "WORLD_SIZE": str(len(self._hosts)),
            "LOCAL_WORLD_SIZE": str(self._per_host),
            wire.HOST: host,
        }

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                self._tell_of_child(*ended)

    def _tell_of_child(self, pid: int, status: int) -> None:
        linux.send_group(pid, signal.SIGKILL)  # what it left behind goes with it
        rank = self._children.pop(pid, None)
        if rank is not None:
            exit_code, number = linux.how_it_ended(status)
            self._ended.append(End(rank, self._hosts[rank], exit_code=exit_code, signal=number))

    def _readable(self) -> list[int]:
        poll = select.poll()
        ranks = {each.fileno(): rank for rank, each in self._calls.items()}
        for descriptor in ranks:
            poll.register(descriptor, select.POLLIN)
        return [ranks[descriptor] for descriptor, _ in poll.poll(0)]

    def _hear(self, rank: int) -> None:
        host = self._hosts[rank]
        try:
            answer = self._calls[rank].answer()
        except HostLost:
            end = End(rank, host, lost=True)
        else:
            if answer is None:
                return
            end = End(
                rank, host, exit_code=answer.exit_code, signal=answer.signal, error=answer.error
            )
        self._calls.pop(rank).close()
        self._ended.append(end)
