"""Flavour `local`: our own launcher program, for this machine and for virtual hosts."""

import sys
from collections.abc import Sequence

from supervisor.adapters.launchers.values import (
    Launcher,
    LaunchRequest,
    Plan,
    hostfile_path,
    on_virtual_host,
    plan_of,
    program_path,
    shimmed,
)

FLAVOUR = "local"
PROGRAM = program_path("local_launcher.py")


def plan(launcher: Launcher, request: LaunchRequest) -> Plan:
    """All ranks as children of one process, or of virtual hosts."""
    own = [sys.executable, "-S", "-I", launcher.program]
    own += ["--hostfile", str(hostfile_path(request))]
    own += ["--ranks-per-host", str(request.ranks_per_host)]
    if request.virtual:
        own += ["--virtual", str(request.run_dir)]
    return plan_of(request, FLAVOUR, [*own, *request.launcher_args, "--"], shimmed(request))


def plan_on_host(
    launcher: Launcher, host: str, argv: Sequence[str], request: LaunchRequest
) -> tuple[str, ...]:
    """Run a program once on one host."""
    return on_virtual_host(request, host, argv) if request.virtual else tuple(argv)
