"""Whose a log file is that the command writes by itself, among the ranks of an attempt."""

from collections.abc import Callable, Sequence

from supervisor.adapters.log_sections import Owner, owner_of
from supervisor.core.signature import Source
from supervisor.wire import canonical_host


def owners(rank_hosts: Sequence[str], base: str) -> Callable[[str], Owner]:
    """A function that tells the owner of a path by what its name says below `base`.

    Folders above it say nothing: the user's own may be called task_7. A number no rank has is
    something else (a job, a date), and one in the name of another host's file is a local rank.
    """
    hosts = frozenset(rank_hosts)
    begin = len(base.rstrip("/")) + 1

    def resolve(name: str) -> str | None:
        canonical = canonical_host(name)
        return canonical if canonical in hosts else None

    def owner(path: str) -> Owner:
        name = path[begin:]
        told = owner_of(name, name, resolve)
        rank, host = told.rank, told.host
        if rank is not None and (rank >= len(rank_hosts) or host not in (None, rank_hosts[rank])):
            rank = None
        host = rank_hosts[rank] if rank is not None else host
        source = told.source or Source.RANK
        return Owner(file=name, name=name, source=source, rank=rank, host=host)

    return owner
