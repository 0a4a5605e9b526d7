"""The ledger: which hosts hold ranks, which wait as spares, which are suspect, which are
retired and why.

Owns host bookkeeping and its one promise: no host is in two lists, and a retired one never
comes back. Deciding who is retired belongs to verdict and policy. Order matters: ranks are
placed by it, so a spare takes the place of the host it replaces and every other host keeps its
own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from supervisor.core.signature import Cause
from supervisor.core.value import value
from supervisor.wire import canonical_host


@value
class Retired:
    """A host that holds no rank again in this run, with the verdict that says why."""

    host: str
    attempt: int
    cause: Cause
    why: str


@value
class Strike:
    """A host was nearest to a failure nobody could be blamed for."""

    host: str
    attempt: int
    rank: int | None


@value
class Ledger:
    """Every host of the allocation, in one list each."""

    active: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()  # active hosts that have fallen silent
    retired: tuple[Retired, ...] = ()
    strikes: tuple[Strike, ...] = ()


def make_ledger(active: Iterable[str], spares: Iterable[str]) -> Ledger:
    """The ledger a run begins with; names that mean the same host are kept once, where first
    seen.
    """
    unique = {canonical_host(name): name for name in reversed((*active, *spares))}
    places = dict.fromkeys(canonical_host(name) for name in active)
    rest = dict.fromkeys(
        canonical_host(name) for name in spares if canonical_host(name) not in places
    )
    return Ledger(
        active=tuple(unique[key] for key in places), spares=tuple(unique[k] for k in rest)
    )


def renew(old: Ledger, active: Iterable[str], spares: Iterable[str]) -> Ledger:
    """The ledger of another allocation: a host that was retired holds a rank only where no other
    is left for its place.
    """
    ledger = make_ledger(active, spares)
    names = spelling(ledger)
    here = [(names.get(canonical_host(entry.host)), entry) for entry in old.retired]
    bad = tuple(replace(entry, host=name) for name, entry in here if name is not None)
    for entry in bad:
        if entry.host in ledger.spares:
            ledger = retire(ledger, entry)
    for entry in bad:
        if entry.host in ledger.active and ledger.spares:
            ledger = promote(ledger, entry)
    return ledger


def spelling(ledger: Ledger) -> Mapping[str, str]:
    """Canonical name -> the ledger's own name, for every host that can still be blamed."""
    return _spelling(ledger.active, ledger.spares)


@lru_cache(maxsize=2)
def _spelling(active: tuple[str, ...], spares: tuple[str, ...]) -> Mapping[str, str]:
    return {canonical_host(host): host for host in (*active, *spares)}


def retired_hosts(ledger: Ledger) -> tuple[str, ...]:
    """Names of the retired, in the order they went."""
    return tuple(entry.host for entry in ledger.retired)


def retire(ledger: Ledger, entry: Retired) -> Ledger:
    """Take a host out for good; its place among the active closes. One that is not here changes
    nothing.
    """
    if entry.host not in (*ledger.active, *ledger.spares):
        return ledger
    return replace(
        ledger,
        active=_without(ledger.active, entry.host),
        spares=_without(ledger.spares, entry.host),
        suspects=_without(ledger.suspects, entry.host),
        retired=(*ledger.retired, entry),
    )


def promote(ledger: Ledger, entry: Retired) -> Ledger:
    """Retire an active host and give its place to the first spare."""
    place, spare = ledger.active.index(entry.host), ledger.spares[0]
    left = retire(replace(ledger, spares=ledger.spares[1:]), entry)
    return replace(left, active=(*left.active[:place], spare, *left.active[place:]))


def strike(ledger: Ledger, mark: Strike) -> Ledger:
    """Remember that a host was nearest to an unexplained failure, once an attempt."""
    same = any((old.host, old.attempt) == (mark.host, mark.attempt) for old in ledger.strikes)
    return ledger if same else replace(ledger, strikes=(*ledger.strikes, mark))


def suspect(ledger: Ledger, hosts: Iterable[str]) -> Ledger:
    """Name the hosts under suspicion now; those not named are cleared."""
    named = set(hosts)
    return replace(ledger, suspects=tuple(host for host in ledger.active if host in named))


def _without(hosts: tuple[str, ...], host: str) -> tuple[str, ...]:
    return tuple(name for name in hosts if name != host)
