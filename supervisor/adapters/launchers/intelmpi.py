"""Flavour `intelmpi`: Intel MPI's mpiexec, a Hydra of its own.

It takes Hydra's words for hosts and ranks, but binds by variables, and inside an allocation it
heeds the scheduler's ranks per host before ours unless told not to.
"""

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

FLAVOUR = "intelmpi"
FIRST_LINE = "Intel(R) MPI Library"
PROGRAMS = ("mpiexec", "mpiexec.hydra", "mpirun")


def plan(launcher: Launcher, request: LaunchRequest) -> Plan:
    """One mpiexec, one proxy a host."""
    own = [*hydra(launcher, request), *request.launcher_args]
    ours = {"I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off", **_binding(request.cpu_bind)}
    return plan_of(request, FLAVOUR, own, guarded(shimmed(request)), **ours)


def plan_on_host(
    launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
) -> tuple[str, ...]:
    """Run a program once on one host."""
    return by_ssh(host, argv, request)


def _binding(spec: str | None) -> dict[str, str]:
    """A list of processors, `none`, or the name of a domain."""
    if spec is None:
        return {}
    if spec in ("none", "off"):
        return {"I_MPI_PIN": "off"}
    return {"I_MPI_PIN_PROCESSOR_LIST" if spec[0].isdigit() else "I_MPI_PIN_DOMAIN": spec}
