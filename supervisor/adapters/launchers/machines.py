"""How ranks are bound on the machines whose hosts are known, where the user says nothing.

PALS leaves every rank on the host's first processors unless told otherwise. A machine is known by
how its hosts are called in the allocation; elsewhere the launcher's own default holds.
"""

from collections.abc import Callable, Sequence
from typing import Final

# Aurora and Sunspot: two sockets of 52 cores, and the first core of each is the system's own
# (ALCF user guide, "Running jobs on Aurora").
_AURORA_SOCKETS: Final = (range(1, 52), range(53, 104))

# Polaris: 32 cores; GPU 0 hangs off the last eight of them and GPU 3 off the first (nvidia-smi
# topo -m on a node), so that local rank 0 belongs on 24-31.
_POLARIS_CORES: Final = range(32)


def usual_binding(hosts: Sequence[str], ranks_per_host: int) -> str | None:
    """The `--cpu-bind` of PALS for these hosts; None where their machine is not known."""
    for suffix, binding in _MACHINES.items():
        if hosts and all(host.endswith(suffix) for host in hosts):
            return binding(ranks_per_host)
    return None


def _aurora(ranks_per_host: int) -> str | None:
    each = ranks_per_host // len(_AURORA_SOCKETS)
    if not each or ranks_per_host % len(_AURORA_SOCKETS):
        return None  # no split over two sockets gives every rank the same
    shares = [share for socket in _AURORA_SOCKETS for share in _shares(socket, each)]
    return _listed(shares)


def _polaris(ranks_per_host: int) -> str | None:
    return _listed(_shares(_POLARIS_CORES, ranks_per_host)[::-1])


def _shares(cores: range, ranks: int) -> list[range]:
    """Neighbouring cores for each rank, as many for one as for another."""
    width = len(cores) // ranks
    return [cores[width * rank : width * (rank + 1)] for rank in range(ranks)] if width else []


def _listed(shares: Sequence[range]) -> str | None:
    return f"list:{':'.join(map(_span, shares))}" if shares else None


def _span(cores: range) -> str:
    return f"{cores[0]}-{cores[-1]}" if len(cores) > 1 else f"{cores[0]}"


_MACHINES: Final[dict[str, Callable[[int], str | None]]] = {
    ".aurora.alcf.anl.gov": _aurora,
    ".sunspot.alcf.anl.gov": _aurora,
    ".polaris.alcf.anl.gov": _polaris,
}
