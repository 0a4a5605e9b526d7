"""Who accuses whom, and whether the accuser may.

Owns the reading of hits as accusations: names are resolved to hosts of the allocation, a rank's
line that proves something of another host counts for nothing (training scripts print anything,
also the log of the attempt before), and votes are counted per reporting host. It does not weigh
them against other evidence: verdict does.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from supervisor.core.evidence import Evidence, application_hits, first_sign, own_failures
from supervisor.core.hosts import Ledger, spelling
from supervisor.core.quotes import Quote, quoted, told
from supervisor.core.signature import Blames, Cause, Hit, Role, Source
from supervisor.wire import canonical_host

AGREEMENT = 2  # reporting hosts that must agree before peers' word blames


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One host, what it is accused of, and on what ground."""

    host: str
    cause: Cause
    why: str
    quotes: tuple[Quote, ...] = ()


def accused(hit: Hit, ledger: Ledger) -> tuple[str, ...]:
    """Hosts of the allocation this hit holds responsible, whatever its weight."""
    if hit.blames is Blames.NOBODY:
        return ()
    names = hit.named if hit.blames is Blames.NAMED else (hit.host or "",)
    return known(names, ledger)


def known(names: Iterable[str], ledger: Ledger) -> tuple[str, ...]:
    """Those of these names that are in the allocation and not retired, as the ledger spells
    them.
    """
    places = spelling(ledger)
    keys = (canonical_host(name) for name in names)
    return tuple(dict.fromkeys(places[key] for key in keys if key in places))


def is_proof(hit: Hit) -> bool:
    """This hit may convict by itself."""
    hearsay = hit.source is Source.RANK and hit.blames is Blames.NAMED
    return hit.role is Role.PROOF and not hearsay


def charges(hits: Iterable[Hit], ledger: Ledger) -> tuple[Charge, ...]:
    """One charge a host, in the order of the hits that prove them."""
    found: dict[str, Charge] = {}
    for hit in filter(is_proof, hits):
        for host in accused(hit, ledger):
            found.setdefault(host, on_word_of(hit, host))
    return tuple(found.values())


def complaints(evidence: Evidence, ledger: Ledger) -> dict[str, dict[str, Hit]]:
    """Accused host -> reporting host -> the first hit by which it complains of it."""
    votes: dict[str, dict[str, Hit]] = {}
    for event in evidence.hits:
        if event.hit.role is not Role.VOTE or event.hit.blames is not Blames.NAMED:
            continue
        reporter = canonical_host(event.hit.host or event.hit.source)
        for host in accused(event.hit, ledger):
            if canonical_host(host) != reporter:
                votes.setdefault(host, {}).setdefault(reporter, event.hit)
    voided = {canonical_host(hit.host) for hit in _confessions(evidence) if hit.host}
    voided |= _there_to_tell(evidence)
    return {host: by for host, by in votes.items() if canonical_host(host) not in voided}


def _there_to_tell(evidence: Evidence) -> set[str]:
    """Hosts whose ranks told how they ended, when one rank failed that complained of nobody: the
    others went down with it, one after the other, and each was missed by its peers.
    """
    ended = evidence.ended
    if ended is None or not ended.reports or not own_failures(evidence):
        return set()
    return {canonical_host(failure.host) for failure in evidence.failures}


def _confessions(evidence: Evidence) -> tuple[Hit, ...]:
    """What ranks say of trouble of their own software: their peers only lost them by it."""
    ports = (event.hit for event in evidence.hits if event.hit.cause is Cause.LAUNCHER)
    taken = (hit for hit in ports if hit.role is Role.PROOF and hit.source is Source.RANK)
    first = first_sign(evidence)
    crashed = first is not None and first.role is Role.NOTICE and first.source is Source.RANK
    return (*application_hits(evidence), *taken, *((first,) if first and crashed else ()))


def agreed(votes: dict[str, dict[str, Hit]], talkative: frozenset[str]) -> tuple[Charge, ...]:
    """The one host that most reporters agree on; between equals the silent one; else nobody."""
    most = max((len(by) for by in votes.values()), default=0)
    if most < AGREEMENT:
        return ()
    leading = tuple(host for host, by in votes.items() if len(by) == most)
    silent = tuple(host for host in leading if canonical_host(host) not in talkative)
    chosen = leading if len(leading) == 1 else silent
    if len(chosen) != 1:
        return ()
    hit = next(iter(votes[chosen[0]].values()))
    why = f"{most} hosts agree: {told(hit)}"
    quotes = tuple(quoted(hit) for hit in votes[chosen[0]].values())
    return (Charge(host=chosen[0], cause=hit.cause, why=why, quotes=quotes),)


def on_word_of(hit: Hit, host: str) -> Charge:
    """The charge that a hit makes against a host."""
    return Charge(host=host, cause=hit.cause, why=told(hit), quotes=(quoted(hit),))
