"""Flavour `pals`: mpiexec of HPE's Parallel Application Launch Service.

It forwards variables and the working folder by itself, and reaches hosts by its own daemons, never
by ssh. No free implementation exists: this stands on its documentation and on recorded output.
"""

from collections.abc import Sequence

from supervisor.adapters.launchers.machines import usual_binding
from supervisor.adapters.launchers.values import (
    Launcher,
    LaunchRequest,
    Plan,
    hostfile_path,
    is_this_machine,
    plan_of,
    shimmed,
)
from supervisor.errors import UsageError

FLAVOUR = "pals"
MARKS = ("mpiexec version",)
PROGRAMS = ("mpiexec",)


def plan(launcher: Launcher, request: LaunchRequest) -> Plan:
    """One mpiexec; PALS' daemons start the ranks."""
    if request.virtual:
        raise UsageError("--virtual-hosts works with the launchers local, mpich and intelmpi only")
    own = [launcher.program, "--hostfile", str(hostfile_path(request))]
    own += ["--ppn", str(request.ranks_per_host), "-n", str(request.ranks)]
    binding = request.cpu_bind or usual_binding(request.hosts, request.ranks_per_host)
    own += ["--cpu-bind", binding] if binding else []
    return plan_of(request, FLAVOUR, [*own, *request.launcher_args], shimmed(request))


def plan_on_host(
    launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
) -> tuple[str, ...]:
    """Run a program once on one host."""
    if is_this_machine([host]):
        return tuple(argv)
    return (launcher.program, "--hosts", host, "--ppn", "1", "-n", "1", *argv)
