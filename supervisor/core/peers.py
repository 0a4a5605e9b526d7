"""What hosts say of one another: votes, and strikes that add up over attempts."""

from dataclasses import replace

from supervisor.core import evidence as facts
from supervisor.core.events import RankFailed
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Ledger
from supervisor.core.quotes import quoted, told
from supervisor.core.signature import Cause, Hit
from supervisor.core.testimony import Charge, agreed, complaints, known
from supervisor.core.verdict import Confidence, Verdict, because, charged, died
from supervisor.wire import canonical_host


def votes(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    votes = complaints(evidence, ledger)
    everyone = (*evidence.hits, *evidence.minor)
    talkative = frozenset(canonical_host(e.hit.host) for e in everyone if e.hit.host)
    found = agreed(votes, talkative)
    if found:
        return charged(found, Confidence.LIKELY)
    return _suspicion(evidence, ledger, votes)


def _suspicion(
    evidence: Evidence, ledger: Ledger, votes: dict[str, dict[str, Hit]]
) -> Verdict | None:
    """One complaint is a strike; a second one in another attempt blames."""
    first = next(((host, hit) for host, by in votes.items() for hit in by.values()), None)
    if first is None or facts.first_failure(evidence) is not None:
        return None
    host, hit = first
    if struck_before(host, evidence, ledger):
        why = f"complained of in two attempts: {told(hit)}"
        charge = Charge(host=host, cause=hit.cause, why=why, quotes=(quoted(hit),))
        return charged((charge,), Confidence.LIKELY)
    return replace(because(hit, Confidence.WEAK), suspects=tuple(votes)[:2])


def strikes(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """A second unexplained failure on a host blames it, unless the fault has gone with its rank
    before.
    """
    failure = facts.first_failure(evidence)
    if failure is None or explained(failure, evidence):
        return None
    host = next(iter(known((failure.host,), ledger)), None)
    if host is None or not struck_before(host, evidence, ledger):
        return None
    if any(old.rank == failure.rank and old.host != host for old in ledger.strikes):
        return None
    why = f"second unexplained failure on {host}: {died(failure)}"
    return charged((Charge(host=host, cause=Cause.UNKNOWN, why=why),), Confidence.LIKELY)


def struck_before(host: str, evidence: Evidence, ledger: Ledger) -> bool:
    return any(s.host == host and s.attempt < evidence.attempt for s in ledger.strikes)


def explained(failure: RankFailed, evidence: Evidence) -> bool:
    """The rank raised an exception of its own: software, so no suspicion falls on the host."""
    return any(hit.host == failure.host for hit in facts.application_hits(evidence))
