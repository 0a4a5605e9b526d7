"""The daemon that is a virtual host: it plays sshd, everything on the host is its child.

Serves calls (see virtual_call.py): starts each command in its own session with the caller's
environment plus SUPERVISE_HOST, signals it when asked, answers how it ended, and ends it, politely
first, when its caller hangs up. What a command leaves behind in its process group ends with it.
Everything dies with the daemon: the kernel kills its children when it is killed.

It ends by itself when nothing runs here and no supervisor has held RUN_DIR/lock for a while, and
takes its socket with it; a socket that stays tells of a host that was killed.
"""

import json
import os
import select
import signal
import socket
import time
from contextlib import suppress

from supervisor import linux, wire
from supervisor.virtual_call import encode, socket_path

_POLITE_SECONDS = 2.0  # between SIGTERM and SIGKILL for commands whose caller hung up
_ALONE_SECONDS = 10.0  # a supervisor that returns takes over within this, or starts hosts anew
_LOOK_SECONDS = 1.0
_HIDDEN_ROLES = ("virtual-host", "keeper")  # roles of processes on the caller's side or our own


class _Peer:
    """One call as the host sees it."""

    __slots__ = ("buffer", "connection", "descriptors", "pid")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = b""
        self.descriptors: list[int] = []
        self.pid: int | None = None


class Daemon:
    """One virtual host."""

    def __init__(self, run_dir: str, host: str, listener: socket.socket) -> None:
        self._run_dir, self._host, self._listener = run_dir, host, listener
        self._lock = os.path.join(run_dir, "lock")
        self._wakeup = linux.wake_on((signal.SIGCHLD, signal.SIGTERM, signal.SIGINT))
        self._peers: dict[int, _Peer] = {}
        self._endings: list[tuple[float, list[int]]] = []  # when to kill what got SIGTERM
        self._alone_since = time.monotonic()
        self._over = False
        listener.setblocking(False)
        linux.adopt_orphans()

    def serve(self) -> None:
        """Serve calls until told to end, or until nobody needs this host any more."""
        while not self._over:
            for descriptor in self._ready():
                self._attend(descriptor)
            self._kill_what_is_due()
            self._leave_if_alone()
        self._end_everything()

    def _ready(self) -> list[int]:
        poll = select.poll()
        for descriptor in (self._listener.fileno(), self._wakeup, *self._peers):
            poll.register(descriptor, select.POLLIN)
        limit = _LOOK_SECONDS if self._endings or not self._peers else None
        return [descriptor for descriptor, _ in poll.poll(limit and limit * 1000)]

    def _attend(self, descriptor: int) -> None:
        if descriptor == self._wakeup:
            self._take_signals()
        elif descriptor == self._listener.fileno():
            self._accept()
        elif descriptor in self._peers:
            self._hear(self._peers[descriptor])

    def _take_signals(self) -> None:
        arrived = linux.signals_arrived(self._wakeup)
        self._over = signal.SIGTERM in arrived or signal.SIGINT in arrived
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                self._reap(*ended)

    def _reap(self, pid: int, status: int) -> None:
        linux.send_group(pid, signal.SIGKILL)
        for peer in list(self._peers.values()):
            if peer.pid == pid:
                exit_code, number = linux.how_it_ended(status)
                self._answer(peer, exit_code, number, "")

    def _answer(self, peer: _Peer, exit_code: int | None, number: int | None, error: str) -> None:
        words = {"exit_code": exit_code, "signal": number, "error": error}
        with suppress(OSError):
            peer.connection.sendall(encode(words))
        self._forget(peer)

    def _forget(self, peer: _Peer) -> None:
        del self._peers[peer.connection.fileno()]
        peer.connection.close()
        for descriptor in peer.descriptors:
            os.close(descriptor)

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            self._peers[connection.fileno()] = _Peer(connection)

    def _hear(self, peer: _Peer) -> None:
        try:
            piece, descriptors, _, _ = socket.recv_fds(
                peer.connection, 65536, 3, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except ConnectionError:
            piece, descriptors = b"", []
        peer.descriptors += descriptors
        if not piece:
            self._caller_hung_up(peer)
            return
        *lines, peer.buffer = (peer.buffer + piece).split(b"\n")
        for line in lines:
            self._obey(peer, json.loads(line))

    def _obey(self, peer: _Peer, message: dict[str, object]) -> None:
        match message:
            case {"signal": int(number)} if peer.pid is not None:
                self._signal(peer.pid, number)
            case {"argv": list(argv), "environment": dict(environment), "cwd": str(cwd)}:
                self._start(peer, argv, environment, cwd)
            case _:  # a signal for what has not started, or has ended
                pass

    def _signal(self, pid: int, number: int) -> None:
        if number == signal.SIGKILL:
            linux.kill_tree(pid)
        else:
            linux.send(pid, number)

    def _start(self, peer: _Peer, argv: list[str], environment: dict[str, str], cwd: str) -> None:
        if environment.get(wire.ROLE) in _HIDDEN_ROLES:
            del environment[wire.ROLE]
        environment[wire.HOST] = self._host
        try:
            peer.pid = linux.start(
                argv,
                environment=environment,
                cwd=cwd,
                stdio=peer.descriptors,
                death_signal=signal.SIGKILL,
            )
        except OSError as error:
            self._answer(peer, 127, None, linux.start_failure(error, argv))
            return
        for descriptor in peer.descriptors:
            os.close(descriptor)
        peer.descriptors = []

    def _caller_hung_up(self, peer: _Peer) -> None:
        if peer.pid is not None:
            victims = [peer.pid, *linux.descendants(peer.pid)]
            for pid in victims:
                linux.send(pid, signal.SIGTERM)
            self._endings.append((time.monotonic() + _POLITE_SECONDS, victims))
        self._forget(peer)

    def _kill_what_is_due(self) -> None:
        due = [victims for kill_at, victims in self._endings if time.monotonic() >= kill_at]
        self._endings = [ending for ending in self._endings if ending[1] not in due]
        ours = set(linux.descendants(os.getpid())) if due else set()
        for victims in due:
            for pid in ours.intersection(victims):
                linux.kill_tree(pid)

    def _leave_if_alone(self) -> None:
        now = time.monotonic()
        if self._peers or self._endings or linux.is_locked(self._lock):
            self._alone_since = now
        self._over = self._over or now - self._alone_since >= _ALONE_SECONDS

    def _end_everything(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(socket_path(self._run_dir, self._host))
        for pid in linux.descendants(os.getpid()):
            linux.send(pid, signal.SIGTERM)
        deadline = time.monotonic() + _POLITE_SECONDS
        while left := linux.descendants(os.getpid()):
            for pid in left if time.monotonic() > deadline else ():
                linux.send(pid, signal.SIGKILL)
            time.sleep(0.02)
