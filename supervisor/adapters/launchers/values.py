"""What a launcher is asked for and what it plans: values, and the parts that all plans share."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import supervisor
from supervisor import wire
from supervisor.core.value import value

_PACKAGE = Path(supervisor.__file__).parent
_CONNECT_SECONDS = 8  # within a probe's own limit, so that ssh's words are heard
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@value
class Launcher:
    """A launcher that was found."""

    flavour: str
    program: str
    version: str

    @property
    def major(self) -> int:
        """The first number of its version; 0 when it has none."""
        head = self.version.partition(".")[0]
        return int(head) if head.isascii() and head.isdigit() else 0


@value
class LaunchRequest:
    """One attempt: which command, how often, where, and what the ranks are told."""

    hosts: tuple[str, ...]
    ranks_per_host: int
    command: tuple[str, ...]
    run_id: str
    run_dir: Path
    attempt_dir: Path
    attempt: int
    resume_from: str | None  # None: the command finds its checkpoints itself
    virtual: bool
    shim: bool
    beat_seconds: float
    master_port: int
    launcher_args: tuple[str, ...] = ()  # the user's own words for the launcher
    cpu_bind: str | None = None  # in the launcher's own spelling
    forwarded: tuple[str, ...] = ()  # what a launcher that forwards nothing by itself must be told
    root: bool = False

    @property
    def ranks(self) -> int:
        """How many ranks the attempt has."""
        return len(self.hosts) * self.ranks_per_host


@value
class Plan:
    """What will be started; `own_words` words of argv are the launcher's, then the command."""

    argv: tuple[str, ...]
    own_words: int
    environment: Mapping[str, str]
    hostfile: str
    hostfile_path: Path


@value
class EndPlan:
    """How ranks are asked to end where a signal to their launcher kills them at once; the number
    of the step, which `find` lists beside its name, is the last word of both.
    """

    find: tuple[str, ...]
    name: str
    ask: tuple[str, ...]
    force: tuple[str, ...]


def plan_of(
    request: LaunchRequest,
    flavour: str,
    own_argv: Sequence[str],
    command: Sequence[str],
    *,
    line: str = "{host}",
    **more_environment: str,
) -> Plan:
    """A plan from a launcher's own words and the command behind them; `line` is the hostfile's for
    each host.
    """
    return Plan(
        argv=(*own_argv, *command),
        own_words=len(own_argv),
        environment={**environment_of(request, flavour), **more_environment},
        hostfile="".join(line.format(host=host) + "\n" for host in request.hosts),
        hostfile_path=hostfile_path(request),
    )


def hostfile_path(request: LaunchRequest) -> Path:
    """Where the engine writes the hostfile of this attempt."""
    return request.attempt_dir / "hostfile"


def program_path(name: str) -> str:
    """One of the small programs of this package."""
    return str(_PACKAGE / name)


def shimmed(request: LaunchRequest) -> tuple[str, ...]:
    """The command, behind the shim unless that is not wanted."""
    if not request.shim:
        return request.command
    return (sys.executable, "-S", "-I", program_path("shim.py"), *request.command)


def on_virtual_host(request: LaunchRequest, host: str, argv: Sequence[str]) -> tuple[str, ...]:
    """Run a program once on a virtual host."""
    from supervisor import virtual_host

    return tuple(virtual_host.program("exec", str(request.run_dir), host, *argv))


def by_ssh(host: str, argv: Sequence[str], request: LaunchRequest) -> tuple[str, ...]:
    """Run a program once on one host, as launchers that use ssh reach it, but without one."""
    if request.virtual:
        return on_virtual_host(request, host, argv)
    if is_this_machine([host]):
        return tuple(argv)
    told = {wire.RUN_ID: request.run_id, wire.ROLE: "probe"}
    command = ["env", *(f"{name}={value}" for name, value in told.items()), *argv]
    script = f"cd {shlex.quote(os.getcwd())} 2>/dev/null; exec {shlex.join(command)}"
    options = ["-x", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT_SECONDS}"]
    # The login shell over there may be a csh, to which 2> is nothing.
    return ("ssh", *options, host, f"exec sh -c {shlex.quote(script)}")


def is_this_machine(hosts: Sequence[str]) -> bool:
    """Whether all of these are the machine we run on."""
    here = {wire.canonical_host(os.uname().nodename), *_LOOPBACK}
    return all(wire.canonical_host(host) in here for host in hosts)


def environment_of(request: LaunchRequest, flavour: str) -> dict[str, str]:
    """What the ranks are told, whatever launches them."""
    here = request.virtual or is_this_machine(request.hosts)
    resume = {} if request.resume_from is None else {wire.RESUME_FROM: request.resume_from}
    return {
        wire.RUN_ID: request.run_id,
        wire.RUN_DIR: str(request.run_dir),
        wire.ATTEMPT: str(request.attempt),
        **resume,
        wire.LAUNCHER: flavour,
        wire.BEAT_SECONDS: f"{request.beat_seconds:g}",
        "MASTER_ADDR": "127.0.0.1" if here else request.hosts[0],
        "MASTER_PORT": str(request.master_port),
    }
