"""Launchers: what starts the ranks. Each plans first, as a value; the engine runs the plan."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from supervisor.adapters.launchers import intelmpi, local, mpich, openmpi, pals, srun
from supervisor.adapters.launchers.check import check_plan
from supervisor.adapters.launchers.finding import find_launcher
from supervisor.adapters.launchers.values import EndPlan, Launcher, LaunchRequest, Plan


class _Flavour(Protocol):
    def plan(self, launcher: Launcher, request: LaunchRequest) -> Plan: ...

    def plan_on_host(
        self, launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
    ) -> tuple[str, ...]: ...


_FLAVOURS: Mapping[str, _Flavour] = {
    local.FLAVOUR: local,
    mpich.FLAVOUR: mpich,
    intelmpi.FLAVOUR: intelmpi,
    openmpi.FLAVOUR: openmpi,
    pals.FLAVOUR: pals,
    srun.FLAVOUR: srun,
}


def plan(launcher: Launcher, request: LaunchRequest) -> Plan:
    """What will be started for this request; writes nothing."""
    return _FLAVOURS[launcher.flavour].plan(launcher, request)


def plan_on_host(
    launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
) -> tuple[str, ...]:
    """The argv that runs a program once on one host, the way the ranks get there."""
    return _FLAVOURS[launcher.flavour].plan_on_host(launcher, host, argv, request)


def plan_end(launcher: Launcher, run_id: str, attempt: int) -> EndPlan | None:
    """How the ranks of an attempt are asked to end; None: by a signal to their launcher."""
    return srun.plan_end(launcher, run_id, attempt) if launcher.flavour == srun.FLAVOUR else None


__all__ = [
    "EndPlan",
    "LaunchRequest",
    "Launcher",
    "Plan",
    "check_plan",
    "find_launcher",
    "plan",
    "plan_end",
    "plan_on_host",
]
