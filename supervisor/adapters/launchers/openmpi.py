"""Flavour `openmpi`: Open MPI's mpiexec, 4 (ORTE) and 5 (PRRTE).

Facts this stands on (4.1.4, 5.0.11): over ssh it forwards no variable that it is not told of; it
counts a host's cores as slots unless told, and then refuses more ranks; it binds each rank to a
core or a socket, which starves a training's loader threads, so ours are not bound unless asked for;
as root it wants two variables.
"""

from collections.abc import Sequence

from supervisor.adapters.launchers.values import (
    Launcher,
    LaunchRequest,
    Plan,
    by_ssh,
    environment_of,
    hostfile_path,
    plan_of,
    shimmed,
)
from supervisor.errors import UsageError

FLAVOUR = "openmpi"
MARKS = ("(Open MPI)", "(OpenRTE)", "(PRRTE)")
PROGRAMS = ("mpiexec", "mpirun", "prterun", "mpiexec.openmpi", "mpirun.openmpi", "orterun")


def plan(launcher: Launcher, request: LaunchRequest) -> Plan:
    """One mpiexec, one daemon a host."""
    if request.virtual:
        raise UsageError("--virtual-hosts works with the launchers local, mpich and intelmpi only")
    each = request.ranks_per_host
    own = [launcher.program, "--hostfile", str(hostfile_path(request))]
    own += ["--map-by", f"ppr:{each}:node", "--bind-to", request.cpu_bind or "none"]
    own += ["-n", str(request.ranks)]
    names = dict.fromkeys((*environment_of(request, FLAVOUR), *request.forwarded))
    for name in names:
        own += ["-x", name]
    root = {}
    if request.root:
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    line = f"{{host}} slots={each}"
    command = shimmed(request)
    return plan_of(request, FLAVOUR, [*own, *request.launcher_args], command, line=line, **root)


def plan_on_host(
    launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
) -> tuple[str, ...]:
    """Run a program once on one host."""
    return by_ssh(host, argv, request)
