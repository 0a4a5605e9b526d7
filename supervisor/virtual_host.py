"""Virtual hosts: simulated hosts on one machine, to try spares, retirement and host loss there.

    python -m supervisor.virtual_host list RUN_DIR           the hosts, up or down
    python -m supervisor.virtual_host kill RUN_DIR HOST      as a power failure would
    python -m supervisor.virtual_host suspend RUN_DIR HOST   as a frozen kernel would
    virtual_host.py exec RUN_DIR HOST COMMAND...            run COMMAND there, end as it does
    virtual_host.py ssh RUN_DIR [-x ...] HOST COMMAND...    the same as ssh is called, and ends
    virtual_host.py serve RUN_DIR HOST                      become that host

Everything on a virtual host descends from one daemon (virtual_daemon.py) and carries its name in
SUPERVISE_HOST. A host that was killed stays down: its socket is still there, and nobody answers.

Owns these commands, and what the supervisor calls to start, stop, kill and suspend hosts.
"""

import os
import select
import shlex
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from supervisor import linux, virtual_call, wire
from supervisor.errors import PlatformError
from supervisor.virtual_call import Answer, HostDown, HostLost

if TYPE_CHECKING:
    from pathlib import Path

_ROLE = "virtual-host"
_STOP_SECONDS = 5.0  # a daemon gives its children 2 s
_CALLER_FAILED = 255  # what ssh answers for failures of its own
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_SSH_OPTIONS_WITH_VALUE = tuple(f"-{letter}" for letter in "BbcDEeFIiJLlmOopRSWw")


def start_virtual_hosts(
    run_dir: "Path", hosts: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Start the hosts that have never run; one that was killed stays down.

    The environment is laid over our own and must hold SUPERVISE_RUN_ID.
    """
    import subprocess

    folder = run_dir / "virtual"
    _prepare(run_dir, folder, environment[wire.RUN_ID])
    starting = {
        host: subprocess.Popen(
            program("serve", str(run_dir), host),
            env={**os.environ, **environment, wire.HOST: host, wire.ROLE: _ROLE},
            stdin=subprocess.DEVNULL,
        )
        for host in hosts
        if not os.path.lexists(virtual_call.socket_path(str(run_dir), host))
    }
    failed = [host for host, process in starting.items() if process.wait() != 0]
    if failed:
        raise PlatformError(f"cannot start {', '.join(failed)} as virtual hosts in {folder}")


def _prepare(run_dir: "Path", folder: "Path", run_id: str) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "run-id").write_text(f"{run_id}\n")
        write_ssh_program(run_dir)
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        raise PlatformError(f"cannot prepare virtual hosts: {why}") from error


def stop_virtual_hosts(run_dir: "Path") -> None:
    """End all hosts of a run that are up, and what runs on them."""
    run_id = _run_id(str(run_dir))
    hosts = [host for host in _hosts(str(run_dir)) if virtual_call.is_up(str(run_dir), host)]
    for host in hosts:
        for pid in _daemons(run_id, host):
            linux.send(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    for host in hosts:
        while _members(run_id, host) and time.monotonic() < deadline:
            time.sleep(0.02)
        kill_virtual_host(run_id, host)


def kill_virtual_host(run_id: str, host: str) -> None:
    """SIGKILL everything on a host, its daemon first: so no word of it gets out, as in reality."""
    for pid in _daemons(run_id, host):
        linux.send(pid, signal.SIGKILL)
    _signal_until_none_is_left(run_id, host, signal.SIGKILL, _lives)


def suspend_virtual_host(run_id: str, host: str) -> None:
    """SIGSTOP everything on a host: it keeps its connections and says nothing any more."""
    _signal_until_none_is_left(run_id, host, signal.SIGSTOP, _runs)


def _signal_until_none_is_left(
    run_id: str, host: str, number: int, still: Callable[[int], bool]
) -> None:
    """Members may fork while we look, so look again; a caller that lives on the host goes last."""
    own = os.getpid()
    while left := [pid for pid in _members(run_id, host) if pid != own and still(pid)]:
        for pid in left:
            linux.send(pid, number)
        time.sleep(0.002)
    if own in _members(run_id, host):
        os.kill(own, number)


def write_ssh_program(run_dir: "Path") -> "Path":
    """Write the executable that a launcher calls in place of ssh; return its path."""
    path = run_dir / "virtual" / "ssh"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(f'#!/bin/sh\nexec {shlex.join(program("ssh", str(run_dir)))} "$@"\n')
    fresh.chmod(0o700)
    fresh.replace(path)
    return path


def program(*arguments: str) -> list[str]:
    """The argv that runs this module as a program, in about 20 ms."""
    return [sys.executable, "-S", "-I", os.path.abspath(__file__), *arguments]


def _daemons(run_id: str, host: str) -> list[int]:
    return linux.processes_with({wire.RUN_ID: run_id, wire.HOST: host, wire.ROLE: _ROLE})


def _members(run_id: str, host: str) -> list[int]:
    return linux.processes_with({wire.RUN_ID: run_id, wire.HOST: host})


def _lives(pid: int) -> bool:
    return _state(pid) not in "ZX"


def _runs(pid: int) -> bool:
    return _state(pid) not in "ZXTt"


def _state(pid: int) -> str:
    try:
        return linux.state_and_parent(pid)[0]
    except OSError:
        return "X"


def _run_id(run_dir: str) -> str:
    try:
        with open(os.path.join(run_dir, "virtual", "run-id")) as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


def _hosts(run_dir: str) -> list[str]:
    try:
        names = os.listdir(os.path.join(run_dir, "virtual"))
    except FileNotFoundError:
        return []
    return sorted(name.removesuffix(".socket") for name in names if name.endswith(".socket"))


def _serve(run_dir: str, host: str) -> int:
    """Become a host: return in the calling process once it can be called."""
    from supervisor.virtual_daemon import Daemon

    if os.path.lexists(virtual_call.socket_path(run_dir, host)):
        return _complain(f"virtual host {host} runs already, or was killed and stays down", 1)
    listener = virtual_call.listen(run_dir, host)
    if os.fork():
        return 0
    os.setsid()
    _leave_stdio(os.path.join(run_dir, "virtual", f"{host}.log"))
    Daemon(run_dir, host, listener).serve()
    return 0


def _leave_stdio(log: str) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    words = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor, source in enumerate((nothing, nothing, words)):
        os.dup2(source, descriptor)


def _exec(run_dir: str, host: str, argv: list[str]) -> int:
    wakeup = linux.wake_on(_FORWARDED)
    linux.die_with_parent(signal.SIGTERM)
    return _call(run_dir, host, argv, wakeup)


def _ssh(run_dir: str, arguments: list[str]) -> int:
    """As ssh: signals are not forwarded, we die of them, and the host ends what we leave behind."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    linux.die_with_parent(signal.SIGTERM)
    while arguments and arguments[0].startswith("-"):
        with_value = arguments[0] in _SSH_OPTIONS_WITH_VALUE
        arguments = arguments[2 if with_value else 1 :]
    if len(arguments) < 2:
        return _complain("ssh: HOST and COMMAND are missing", _CALLER_FAILED)
    host = arguments[0].rpartition("@")[2]
    # Hydra names this very program to its proxies, and does not quote it.
    words = (shlex.quote(word) if word == _ssh_path(run_dir) else word for word in arguments[1:])
    return _call(run_dir, host, ["/bin/sh", "-c", " ".join(words)], None)


def _ssh_path(run_dir: str) -> str:
    return os.path.join(run_dir, "virtual", "ssh")


def _call(run_dir: str, host: str, argv: list[str], wakeup: int | None) -> int:
    try:
        running = virtual_call.call(
            run_dir, host, argv, environment=os.environ, cwd=os.getcwd(), stdio=(0, 1, 2)
        )
        return _end_as(_wait(running, wakeup), is_ssh=wakeup is None)
    except HostDown:
        return _complain(f"virtual host {host} is down", _CALLER_FAILED)
    except HostLost:
        return _complain(f"Connection to {host} closed by remote host.", _CALLER_FAILED)


def _wait(running: virtual_call.Call, wakeup: int | None) -> Answer:
    watched = [running.fileno()] if wakeup is None else [running.fileno(), wakeup]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if wakeup in ready and wakeup is not None:
            for number in linux.signals_arrived(wakeup):
                running.signal(number)
        if running.fileno() in ready and (answer := running.answer()):
            return answer


def _end_as(answer: Answer, *, is_ssh: bool) -> int:
    if answer.error:
        return _complain(answer.error, answer.exit_code or 1)
    if answer.signal is None:
        return answer.exit_code or 0
    if not is_ssh:
        linux.die_by(answer.signal)
    return _CALLER_FAILED


def _complain(text: str, exit_code: int) -> int:
    sys.stderr.write(text + "\n")
    return exit_code


def _kill(run_dir: str, host: str) -> int:
    kill_virtual_host(_known(run_dir, host), host)
    return 0


def _suspend(run_dir: str, host: str) -> int:
    suspend_virtual_host(_known(run_dir, host), host)
    return 0


def _known(run_dir: str, host: str) -> str:
    """The run id, once it is certain that the run has this host."""
    hosts = _hosts(run_dir)
    if host not in hosts:
        known = ", ".join(hosts) or "none"
        raise PlatformError(f"{run_dir} has no virtual host {host}; it has: {known}")
    return _run_id(run_dir)


def _list(run_dir: str) -> int:
    for host in _hosts(run_dir):
        sys.stdout.write(f"{host} {'up' if virtual_call.is_up(run_dir, host) else 'down'}\n")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Run as a program."""
    try:
        match list(arguments):
            case ["serve", run_dir, host]:
                return _serve(run_dir, host)
            case ["exec", run_dir, host, first, *rest]:
                return _exec(run_dir, host, [first, *rest])
            case ["ssh", run_dir, *rest]:
                return _ssh(run_dir, rest)
            case ["kill", run_dir, host]:
                return _kill(run_dir, host)
            case ["suspend", run_dir, host]:
                return _suspend(run_dir, host)
            case ["list", run_dir]:
                return _list(run_dir)
            case _:
                return _complain(_usage(), 2)
    except PlatformError as error:
        return _complain(f"virtual_host: {error}", error.exit_code)


def _usage() -> str:
    commands = (__doc__ or "").partition("\n\n")[2].partition("\n\n")[0]
    return f"usage:\n{commands}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
