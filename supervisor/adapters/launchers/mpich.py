"""Flavour `mpich`: Hydra's mpiexec, of MPICH and of what is built from it.

Facts this stands on (MPICH 5.0.2): options end where the command begins, but a lone ":" among the
command's words would begin another program; proxies are told the launcher's address by name unless
an interface is given, and a laptop's own name need not resolve; ranks get our environment by
themselves.
"""

import shlex
from collections.abc import Sequence

from supervisor.adapters.launchers.values import (
    Launcher,
    LaunchRequest,
    Plan,
    by_ssh,
    hostfile_path,
    is_this_machine,
    plan_of,
    shimmed,
)

FLAVOUR = "mpich"
FIRST_LINE = "HYDRA build details:"
PROGRAMS = ("mpiexec", "mpiexec.hydra", "mpiexec.mpich")


def plan(launcher: Launcher, request: LaunchRequest) -> Plan:
    """One mpiexec, one proxy a host."""
    own = [*hydra(launcher, request), *(["-bind-to", request.cpu_bind] if request.cpu_bind else [])]
    return plan_of(request, FLAVOUR, [*own, *request.launcher_args], guarded(shimmed(request)))


def hydra(launcher: Launcher, request: LaunchRequest) -> list[str]:
    """The words that Hydra's descendants have in common."""
    own = [launcher.program, *_reach(request), "-f", str(hostfile_path(request))]
    return [*own, "-ppn", str(request.ranks_per_host), "-n", str(request.ranks)]


def plan_on_host(
    launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
) -> tuple[str, ...]:
    """Run a program once on one host: a mpiexec for it would be dear, and hangs where ssh ends."""
    return by_ssh(host, argv, request)


def _reach(request: LaunchRequest) -> list[str]:
    """How proxies are started; on other hosts Hydra finds out, or HYDRA_LAUNCHER says."""
    if request.virtual:
        ssh = str(request.run_dir / "virtual" / "ssh")
        return ["-iface", "lo", "-launcher", "ssh", "-launcher-exec", ssh]
    if is_this_machine(request.hosts):
        return ["-iface", "lo", "-launcher", "fork"]
    return []


def guarded(command: Sequence[str]) -> tuple[str, ...]:
    """The command as Hydra leaves it alone: behind one quoted word when it has a lone colon."""
    if ":" not in command:
        return tuple(command)
    return ("/bin/sh", "-c", f"exec {shlex.join(command)}")
