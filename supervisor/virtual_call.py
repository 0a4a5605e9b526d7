"""How a command gets to a virtual host: the Unix socket, and one call on it.

A call is one connection. The caller sends a line of JSON {"argv", "environment", "cwd"} together
with three descriptors, then lines {"signal": N}; the host answers one line {"exit_code", "signal",
"error"} when the command has ended. Whichever side's end of the connection closes early is gone:
a caller's command is then ended, and a host's loss is the caller's to report.

Owns the calling side and what both sides share. The host's side is virtual_daemon.py.
"""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

_BACKLOG = 4096


class HostDown(Exception):
    """Nobody listens on the host's socket."""


class HostLost(Exception):
    """The host closed the connection before the command had ended."""


class Answer:
    """How a command on a virtual host ended."""

    __slots__ = ("error", "exit_code", "signal")

    def __init__(self, exit_code: int | None, signal: int | None, error: str) -> None:
        self.exit_code, self.signal, self.error = exit_code, signal, error


class Call:
    """A command that runs on a virtual host for as long as this is open."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""

    def fileno(self) -> int:
        """Readable when the command has ended or the host is lost."""
        return self._connection.fileno()

    def signal(self, number: int) -> None:
        """Have the command signalled; a host that is gone says so through answer()."""
        try:
            self._connection.sendall(encode({"signal": number}))
        except OSError:
            return

    def answer(self) -> Answer | None:
        """The answer, or None when it is not whole yet; HostLost when it will never come."""
        try:
            piece = self._connection.recv(65536)
        except OSError as error:
            raise HostLost from error
        if not piece:
            raise HostLost
        self._buffer += piece
        return Answer(**json.loads(self._buffer)) if self._buffer.endswith(b"\n") else None

    def close(self) -> None:
        """Hang up: what still runs is ended by the host."""
        self._connection.close()


def call(
    run_dir: str,
    host: str,
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: str,
    stdio: Sequence[int],
) -> Call:
    """Run a command on a virtual host with these three descriptors; HostDown when there is none."""
    connection = _connect(run_dir, host)
    request = encode({"argv": list(argv), "environment": dict(environment), "cwd": cwd})
    try:
        sent = socket.send_fds(connection, [request], list(stdio))
        if sent < len(request):  # an empty send fails when a quick command has ended already
            connection.sendall(request[sent:])
    except OSError as error:
        raise HostLost from error
    return Call(connection)


def encode(message: Mapping[str, Any]) -> bytes:
    """One message as one line."""
    return json.dumps(message).encode() + b"\n"


def is_up(run_dir: str, host: str) -> bool:
    """Whether somebody listens on the host's socket; a suspended host still does."""
    try:
        _connect(run_dir, host).close()
    except HostDown:
        return False
    return True


def socket_path(run_dir: str, host: str) -> str:
    """Where a host's socket is; it stays when the host is killed, and keeps it down."""
    return os.path.join(run_dir, "virtual", f"{host}.socket")


def _connect(run_dir: str, host: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _Folder(run_dir) as folder:
            connection.connect(f"{folder}/{host}.socket")
    except (FileNotFoundError, ConnectionRefusedError) as error:
        connection.close()
        raise HostDown(host) from error
    return connection


def listen(run_dir: str, host: str) -> socket.socket:
    """The listening socket of a host; it appears under its name only when it can be called."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with _Folder(run_dir) as folder:
        listener.bind(f"{folder}/{host}.{os.getpid()}")
        listener.listen(_BACKLOG)
        os.rename(f"{folder}/{host}.{os.getpid()}", f"{folder}/{host}.socket")
    return listener


class _Folder:
    """A short path to RUN_DIR/virtual: a socket's address holds 108 bytes, a run folder may not."""

    def __init__(self, run_dir: str) -> None:
        self._path = os.path.join(run_dir, "virtual")

    def __enter__(self) -> str:
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._descriptor}"

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
