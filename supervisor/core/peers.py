"""What hosts say of one another: votes, and strikes that add up over attempts."""

from dataclasses import replace

from supervisor.core import evidence as facts
from supervisor.core.events import RankFailed
from supervisor.core.evidence import Evidence, is_reachable
from supervisor.core.hosts import Ledger
from supervisor.core.quotes import quoted, told
from supervisor.core.signature import Cause, Hit, Source
from supervisor.core.testimony import AGREEMENT, Charge, agreed, complaints, known
from supervisor.core.verdict import Confidence, Verdict, because, charged, died
from supervisor.wire import canonical_host

ENOUGH = 3  # hosts: with two, nobody can tell which of them is cut off


def votes(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """The silent host that two or more others complain of, or the launcher of it alone."""
    votes = complaints(evidence, ledger)
    everyone = (*evidence.hits, *evidence.minor)
    talkative = frozenset(canonical_host(e.hit.host) for e in everyone if e.hit.host)
    found = agreed(votes, talkative) or _cut_off(evidence, ledger, votes)
    found = found or _lost_by_launcher(evidence, votes)
    return charged(found, Confidence.LIKELY) if found else None


def _cut_off(
    evidence: Evidence, ledger: Ledger, votes: dict[str, dict[str, Hit]]
) -> tuple[Charge, ...]:
    """All ranks must reach the first host to begin; where one host alone cannot, it is that one."""
    by = votes.get(ledger.active[0], {}) if len(ledger.active) >= ENOUGH else {}
    if evidence.first_step is not None or len(by) != 1 or len(votes) != 1:
        return ()
    hit = next(iter(by.values()))
    reporter = next(iter(known((hit.host or "",), ledger)), None)
    if hit.cause is not Cause.NETWORK or reporter is None or is_reachable(evidence, reporter):
        return ()
    why = f"only {reporter} cannot reach the others: {hit.line}"
    return (Charge(host=reporter, cause=hit.cause, why=why, quotes=(quoted(hit),)),)


def _lost_by_launcher(evidence: Evidence, votes: dict[str, dict[str, Hit]]) -> tuple[Charge, ...]:
    """The launcher, which is on no host's side, first lost just one of them, and no
    rank says why.
    """
    said = [(host, hit) for host, by in votes.items() for hit in by.values()]
    named = {host: hit for host, hit in reversed(said) if hit.source is not Source.RANK}
    if len(named) != 1 or facts.application_hits(evidence):
        return ()
    host, hit = next(iter(named.items()))
    if is_reachable(evidence, host) or hit.host or hit != facts.first_word(evidence, outside=True):
        return ()
    return (Charge(host=host, cause=hit.cause, why=told(hit), quotes=(quoted(hit),)),)


def absence(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """Before the first step, all hosts but one say that they waited for others in vain."""
    everyone = (*evidence.hits, *evidence.minor)
    heard = {canonical_host(event.hit.host) for event in everyone if event.hit.host}
    heard |= {canonical_host(failure.host) for failure in evidence.failures}
    waited = [e.hit for e in everyone if e.hit.cause is Cause.HANG and e.hit.host]
    missing = tuple(host for host in ledger.active if canonical_host(host) not in heard)
    reporters = {canonical_host(hit.host or "") for hit in waited}
    if evidence.first_step is not None or len(missing) != 1 or len(reporters) < AGREEMENT:
        return None
    if len(reporters) < len(ledger.active) - 1 or is_reachable(evidence, missing[0]):
        return None
    why = f"all hosts but {missing[0]} waited for the others, it said nothing"
    quotes = tuple(map(quoted, waited))
    charge = Charge(host=missing[0], cause=Cause.NODE_LOST, why=why, quotes=quotes)
    return charged((charge,), Confidence.LIKELY)


def vanished(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """All ranks of one host are gone without a word, and the host is well: what had started them
    there has died. The second time it is the host's doing.
    """
    ended = evidence.ended
    by_itself = ended is not None and evidence.end_ordered_at is None
    told = evidence.gone or (ended.vanished if ended is not None and by_itself else ())
    hosts = known(told, ledger)
    if len(hosts) != 1 or facts.first_failure(evidence) is not None:
        return None
    why = f"every rank on {hosts[0]} is gone without a word: the launcher's daemon there has died"
    if struck_before(hosts[0], evidence, ledger):
        charge = Charge(host=hosts[0], cause=Cause.NODE_LOST, why=f"in two attempts {why}")
        return charged((charge,), Confidence.LIKELY)
    return Verdict(cause=Cause.LAUNCHER, why=why, confidence=Confidence.LIKELY, suspects=hosts)


def suspicion(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """One complaint is a strike; a second one in another attempt blames. A launcher that names
    several hosts only tells whom it tore down, and one that saw a rank end explains the complaint.
    """
    word = facts.first_word(evidence, outside=True)
    if word is not None and word.cause is Cause.UNKNOWN:
        return None
    votes = complaints(evidence, ledger)
    said = tuple((host, hit) for host, by in votes.items() for hit in by.values())
    torn = {host for host, hit in said if hit.source is not Source.RANK and not hit.host}
    first = next((pair for pair in said if len(torn) < AGREEMENT or pair[0] not in torn), None)
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
    """The host got a strike in an earlier attempt."""
    return any(s.host == host and s.attempt < evidence.attempt for s in ledger.strikes)


def explained(failure: RankFailed, evidence: Evidence) -> bool:
    """The rank raised an exception of its own: software, so no suspicion falls on the host."""
    return any(hit.host == failure.host for hit in facts.application_hits(evidence))
