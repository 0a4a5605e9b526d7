"""Launchers: what starts the ranks. Each plans first, as a value; the engine runs the plan."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from supervisor.adapters.launchers import intelmpi, local, mpich, openmpi, pals, srun
from supervisor.adapters.launchers.check import check_plan
from supervisor.adapters.launchers.finding import find_launcher
from supervisor.adapters.launchers.values import Launcher, LaunchRequest, Plan


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


__all__ = [
    "LaunchRequest",
    "Launcher",
    "Plan",
    "check_plan",
    "find_launcher",
    "plan",
    "plan_on_host",
]
