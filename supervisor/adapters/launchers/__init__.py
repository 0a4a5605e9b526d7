"""Launchers: what starts the ranks. Each plans first, as a value; the engine runs the plan."""

from collections.abc import Callable, Mapping, Sequence

from supervisor.adapters.launchers import local, mpich
from supervisor.adapters.launchers.check import check_plan
from supervisor.adapters.launchers.finding import find_launcher
from supervisor.adapters.launchers.values import Launcher, LaunchRequest, Plan

_PLANS: Mapping[str, Callable[[Launcher, LaunchRequest], Plan]] = {
    local.FLAVOUR: local.plan,
    mpich.FLAVOUR: mpich.plan,
}
_ON_HOST: Mapping[str, Callable[[Launcher, str, Sequence[str], LaunchRequest], tuple[str, ...]]] = {
    local.FLAVOUR: local.plan_on_host,
    mpich.FLAVOUR: mpich.plan_on_host,
}


def plan(launcher: Launcher, request: LaunchRequest) -> Plan:
    """What will be started for this request; writes nothing."""
    return _PLANS[launcher.flavour](launcher, request)


def plan_on_host(
    launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
) -> tuple[str, ...]:
    """The argv that runs a program once on one host, through the same launcher as the ranks."""
    return _ON_HOST[launcher.flavour](launcher, host, argv, request)


__all__ = [
    "LaunchRequest",
    "Launcher",
    "Plan",
    "check_plan",
    "find_launcher",
    "plan",
    "plan_on_host",
]
