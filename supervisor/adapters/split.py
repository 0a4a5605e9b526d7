"""Which hosts of an allocation hold ranks, and which wait as spares. Arithmetic only."""

from supervisor.core.value import value
from supervisor.errors import UsageError

# Clusters lose a host every few hours per thousand; 2 % covers a day of that, one the least.
AUTO_FRACTION = 0.02
AUTO_LEAST_HOSTS = 3  # with fewer, a spare would halve the training


@value
class Split:
    """The allocation divided, in its own order."""

    active: tuple[str, ...]
    spares: tuple[str, ...]
    unused: tuple[str, ...]
    ranks_per_host: int


def split(
    *,
    hosts: tuple[str, ...],
    nodes: int | None,
    spare_nodes: int | str | None,
    ppn: int,
    source: str,
) -> Split:
    """The first hosts are active, those after them spares; UsageError when they do not suffice.

    Without `nodes` all but the spares are active. `auto` with `nodes` makes all the rest spares;
    `nodes` alone leaves the rest unused, since nobody asked for spares.
    """
    _at_least("--nodes", nodes, 1)
    _at_least("--ppn", ppn, 1)
    spares = _spares(hosts, nodes, spare_nodes)
    active = len(hosts) - spares if nodes is None else nodes
    if active + spares > len(hosts) or active < 1:
        raise UsageError(_too_few(nodes, spares, len(hosts), source))
    return Split(
        active=hosts[:active],
        spares=hosts[active : active + spares],
        unused=hosts[active + spares :],
        ranks_per_host=ppn,
    )


def _spares(hosts: tuple[str, ...], nodes: int | None, wanted: int | str | None) -> int:
    if wanted is None:
        return 0
    if isinstance(wanted, int):
        _at_least("--spare-nodes", wanted, 0)
        return wanted
    if nodes is not None:
        return max(0, len(hosts) - nodes)
    if len(hosts) < AUTO_LEAST_HOSTS:
        return 0
    return max(1, round(AUTO_FRACTION * len(hosts)))


def _at_least(option: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise UsageError(f"{option} {value}: must be at least {least}")


def _too_few(nodes: int | None, spares: int, have: int, source: str) -> str:
    hosts = f"the allocation ({source}) has {have}"
    if nodes is None:
        return f"{spares} spare hosts asked for, but {hosts}: at least one must stay active"
    need = (
        f"{nodes} active + {spares} spare hosts asked for"
        if spares
        else f"{nodes} active hosts asked for"
    )
    return f"{need}, but {hosts}: lower --nodes or --spare-nodes, or ask for more hosts"
