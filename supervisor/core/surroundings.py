"""Broken surroundings of the command: modules, drivers, mounts, disks.

On one host, while the others are fine, they are that host's; on several they are everyone's.
"""

from supervisor.core import evidence as facts
from supervisor.core.application import NOT_FOUND, own_words
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Ledger
from supervisor.core.signature import Cause, Hit, Source
from supervisor.core.testimony import Charge, accused, is_proof, known, on_word_of
from supervisor.core.verdict import (
    Confidence,
    Verdict,
    because,
    charged,
    died,
    is_quota,
    lines_of,
    once,
)

PER_HOST = frozenset({Cause.ENVIRONMENT, Cause.STORAGE})


def one_host(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """Surroundings that are broken on one host alone blame it; on several, nobody."""
    found = _surroundings(evidence, ledger)
    if not found:
        return _nowhere(evidence)
    first = found[0]
    others = {charge.host for charge in found if charge.cause is first.cause}
    again = _same_as_last_time(first, evidence, ledger)
    if len(others) == 1 and len(ledger.active) > 1 and not again:
        return charged((first,), Confidence.PROVEN)
    why = f"on {len(others)} hosts: {first.why}"
    if again:
        why = f"the host that took over has the same trouble: {first.why}"
    return Verdict(
        cause=first.cause,
        why=why,
        confidence=Confidence.LIKELY,
        final=is_quota(first.why),
        lines=lines_of(found),
    )


def _nowhere(evidence: Evidence) -> Verdict | None:
    """Where a log does not say whose words these are, no host can be told from the others."""
    said = (hit for hit in own_words(evidence) if hit.cause is Cause.ENVIRONMENT)
    hit = next((hit for hit in said if hit.host is None), None)
    return None if hit is None else because(hit, Confidence.LIKELY)


def _surroundings(evidence: Evidence, ledger: Ledger) -> tuple[Charge, ...]:
    """Hosts on which something around the command is broken, in order of time, one charge a
    host.
    """
    own = set(own_words(evidence))
    hits = tuple(
        event.hit
        for event in evidence.hits
        if event.hit.cause in PER_HOST and (event.hit in own or is_proof(event.hit))
    )
    said = tuple(on_word_of(hit, host) for hit in hits for host in _place_of(hit, ledger))
    return once(said + _not_found(evidence, ledger))


def _place_of(hit: Hit, ledger: Ledger) -> tuple[str, ...]:
    """A rank that finds its surroundings broken speaks of its own host, whomever the signature
    blames.
    """
    if hit.cause is Cause.ENVIRONMENT and hit.source is Source.RANK:
        return known((hit.host or "",), ledger)
    return accused(hit, ledger)


def _not_found(evidence: Evidence, ledger: Ledger) -> tuple[Charge, ...]:
    return tuple(
        Charge(host=host, cause=Cause.ENVIRONMENT, why=f"{host}: {died(failure)}, not found")
        for failure in facts.own_failures(evidence)
        if failure.exit_code in NOT_FOUND
        for host in known((failure.host,), ledger)
    )


def _same_as_last_time(charge: Charge, evidence: Evidence, ledger: Ledger) -> bool:
    return any(
        entry.cause is charge.cause and entry.attempt == evidence.attempt - 1 > 0
        for entry in ledger.retired
    )
