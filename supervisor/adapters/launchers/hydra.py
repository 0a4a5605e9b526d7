"""What the flavours built on Hydra's mpiexec have in common: MPICH's and Intel's.

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
    hostfile_path,
    is_this_machine,
)


def hydra(launcher: Launcher, request: LaunchRequest) -> list[str]:
    """The words for hosts and ranks."""
    own = [launcher.program, *_reach(request), "-f", str(hostfile_path(request))]
    return [*own, "-ppn", str(request.ranks_per_host), "-n", str(request.ranks)]


def guarded(command: Sequence[str]) -> tuple[str, ...]:
    """The command as Hydra leaves it alone: behind one quoted word when it has a lone colon."""
    if ":" not in command:
        return tuple(command)
    return ("/bin/sh", "-c", f"exec {shlex.join(command)}")


def _reach(request: LaunchRequest) -> list[str]:
    """How proxies are started; on other hosts Hydra finds out, or HYDRA_LAUNCHER says."""
    if request.virtual:
        ssh = str(request.run_dir / "virtual" / "ssh")
        return ["-iface", "lo", "-launcher", "ssh", "-launcher-exec", ssh]
    if is_this_machine(request.hosts):
        return ["-iface", "lo", "-launcher", "fork"]
    return []
