"""Flavour `mpich`: Hydra's mpiexec, of MPICH and of what is built from it."""

from collections.abc import Sequence

from supervisor.adapters.launchers.hydra import guarded, hydra
from supervisor.adapters.launchers.values import (
    Launcher,
    LaunchRequest,
    Plan,
    by_ssh,
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


def plan_on_host(
    launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
) -> tuple[str, ...]:
    """Run a program once on one host: a mpiexec for it would be dear, and hangs where ssh ends."""
    return by_ssh(host, argv, request)
