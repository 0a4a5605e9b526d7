"""From evidence to a verdict. The only place that blames.

Owns the order in which evidence is weighed: each function below is one rank of that order and
answers with a verdict or passes. The first that answers decides. What a verdict leads to
belongs to policy.

    success       the ranks' own word
    scheduler     walltime and preemption beat all that follows them
    owner         what a host's kernel, driver, NIC or daemon says of it, and failed probes
    application   the same exception on two hosts, or before the first step
    one host      broken surroundings on one host while the others are fine
    votes         two or more hosts complain of the same silent one
    said          causes that name nobody: launcher, storage, host memory, network
    probes        nobody answers, or every host fails the same way
    hang          the attempt was ended for want of progress
    strikes       an unexplained failure that follows the host
    else          only cascade, or unknown: nobody is blamed
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from supervisor.core import evidence as facts
from supervisor.core.events import HostProbed, RankFailed
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Ledger
from supervisor.core.quotes import Quote, quoted, told
from supervisor.core.signature import Cause, Hit, Role, Source
from supervisor.core.testimony import (
    Charge,
    accused,
    agreed,
    charges,
    complaints,
    is_proof,
    known,
    on_word_of,
)
from supervisor.wire import canonical_host

OWNED = frozenset(
    {Cause.NODE_HARDWARE, Cause.GPU_MEMORY_HW, Cause.NODE_LOST, Cause.NETWORK, Cause.HOST_OOM}
)
PER_HOST = frozenset({Cause.ENVIRONMENT, Cause.STORAGE})
NOT_FOUND = frozenset({126, 127})  # what a shell and our shim answer when a command cannot be run
MAX_LINES = 5


class Confidence(StrEnum):
    """How sure: proven by an owner or a probe, likely by agreement, weak by elimination."""

    PROVEN = "proven"
    LIKELY = "likely"
    WEAK = "weak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement on an ended attempt."""

    cause: Cause
    why: str
    attempt: int = 0
    confidence: Confidence = Confidence.WEAK
    charges: tuple[Charge, ...] = ()
    suspects: tuple[str, ...] = ()  # hosts that get a strike
    final: bool = False  # trying again cannot help, though the cause alone would allow it
    lines: tuple[Quote, ...] = ()
    set_aside: tuple[Quote, ...] = ()

    @property
    def blame(self) -> tuple[str, ...]:
        """Hosts held responsible."""
        return tuple(charge.host for charge in self.charges)


Weigh = Callable[[Evidence, Ledger], Verdict | None]


def judge(evidence: Evidence, ledger: Ledger) -> Verdict:
    """Weigh the evidence of one attempt."""
    evidence = facts.recent(evidence)
    answers = (weigh(evidence, ledger) for weigh in ORDER)
    verdict = next(answer for answer in answers if answer is not None)
    set_aside = _set_aside(evidence)[:MAX_LINES]
    return replace(verdict, attempt=evidence.attempt, set_aside=set_aside)


def _success(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    if not facts.succeeded(evidence):
        return None
    return Verdict(cause=Cause.SUCCESS, why="every rank ended well", confidence=Confidence.PROVEN)


def _scheduler(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    proofs = (event.hit for event in evidence.hits if facts.outsider_proof(event.hit))
    word = next((hit for hit in proofs if hit.cause in (Cause.WALLTIME, Cause.PREEMPTED)), None)
    if word is not None:
        return _because(word, Confidence.PROVEN)
    if evidence.end_cause is Cause.WALLTIME:
        why = f"ended in time for the deadline: {evidence.end_why}"
        return Verdict(cause=Cause.WALLTIME, why=why, confidence=Confidence.PROVEN)
    if evidence.past_deadline:
        why = "the attempt ended when the deadline had passed"
        return Verdict(cause=Cause.WALLTIME, why=why, confidence=Confidence.LIKELY)
    return None


def _owner(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    hits = tuple(event.hit for event in evidence.hits if event.hit.cause in OWNED)
    outside = charges((hit for hit in hits if hit.source is not Source.RANK), ledger)
    inside = charges((hit for hit in hits if hit.source is Source.RANK), ledger)
    said = _unless_all(outside, ledger) + _unless_most(inside, ledger)
    found = _once(said + _failed_probes(evidence, ledger))
    if not found:
        return None
    return _charged(found, Confidence.PROVEN)


def _failed_probes(evidence: Evidence, ledger: Ledger) -> tuple[Charge, ...]:
    """A host that fails what other hosts pass; one that is alone can still fail, but not be out
    of reach.
    """
    alone = len(ledger.active) == 1
    bad = tuple(
        answer
        for answer in evidence.answers
        if evidence.passed or (alone and answer.answer == "fail")
    )
    return tuple(
        Charge(host=host, cause=probe_cause(answer), why=probe_words(answer))
        for answer in (*evidence.convicted, *bad)
        if answer.answer in ("fail", "unreachable")
        for host in known((answer.host,), ledger)
        if host in ledger.active
    )


def probe_cause(answer: HostProbed) -> Cause:
    """What a bad answer of a probe stands for."""
    if answer.answer == "unreachable":
        return Cause.NODE_LOST
    return Cause(answer.cause) if answer.cause in list(Cause) else Cause.NODE_HARDWARE


def probe_words(answer: HostProbed) -> str:
    """The answer of a probe as a person says it."""
    said = "does not answer its probe" if answer.answer == "unreachable" else "fails its probe"
    return f"{answer.host} {said}: {answer.why}" if answer.why else f"{answer.host} {said}"


def _application(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    hits = tuple(h for h in _own_words(evidence) if h.cause is not Cause.ENVIRONMENT)
    if not hits:
        return _refused(evidence)
    first = next((h for h in hits if _spread(h, hits) > 1), hits[0])
    everywhere = _spread(first, hits) > 1 or first.cause is Cause.USER_OOM
    if everywhere or _before_first_step(evidence, hits):
        return _because(first, Confidence.LIKELY)
    return None


def _own_words(evidence: Evidence) -> tuple[Hit, ...]:
    """Application hits, unless no rank failed by its own word or something else was proven
    before.
    """
    ended = evidence.ended
    if ended is not None and ended.reports and not evidence.failures:
        return ()
    found = facts.application_hits(evidence)
    decisive = (event.hit for event in evidence.hits if event.hit.role is Role.PROOF)
    first = next((hit for hit in decisive if not _minor_claim(hit)), None)
    return found if first is None or first.cause in facts.APPLICATION else ()


def _minor_claim(hit: Hit) -> bool:
    return hit.source is Source.RANK and hit.cause not in facts.APPLICATION and not is_proof(hit)


def _spread(hit: Hit, hits: tuple[Hit, ...]) -> int:
    """On how many hosts (or, where hosts are not known, ranks) the same exception was raised."""
    same = tuple(other for other in hits if other.signature == hit.signature)
    hosts = {other.host for other in same if other.host}
    return max(len(hosts), len({other.rank for other in same if not hosts}))


def _before_first_step(evidence: Evidence, hits: tuple[Hit, ...]) -> bool:
    """No step was made and every host that failed by itself raised an exception."""
    own = set(facts.failed_hosts(facts.own_failures(evidence)))
    return evidence.first_step is None and own <= {hit.host for hit in hits}


def _refused(evidence: Evidence) -> Verdict | None:
    """All ranks left with the same exit code before any step: the command itself says no."""
    own, ended = facts.own_failures(evidence), evidence.ended
    codes = {failure.exit_code for failure in own}
    total = ended.ranks_total if ended is not None else 0
    everyone = 0 < min(total, facts.MAX_FAILURES) <= len(own)
    if evidence.first_step is not None or not everyone or len(codes) != 1 or codes & NOT_FOUND:
        return None
    code = own[0].exit_code
    if code is None:
        return None
    why = f"every rank left with exit code {code} before the first step"
    return Verdict(cause=Cause.USER_ERROR, why=why, confidence=Confidence.LIKELY)


def _one_host(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    found = _surroundings(evidence, ledger)
    if not found:
        return None
    first = found[0]
    others = {charge.host for charge in found if charge.cause is first.cause}
    again = _same_as_last_time(first, evidence, ledger)
    if len(others) == 1 and len(ledger.active) > 1 and not again:
        return _charged((first,), Confidence.PROVEN)
    why = f"on {len(others)} hosts: {first.why}"
    if again:
        why = f"the host that took over has the same trouble: {first.why}"
    confidence = Confidence.LIKELY
    quota = "quota" in first.why.lower()  # the text of EDQUOT, in every language binding
    return Verdict(
        cause=first.cause, why=why, confidence=confidence, final=quota, lines=_lines(found)
    )


def _surroundings(evidence: Evidence, ledger: Ledger) -> tuple[Charge, ...]:
    """Hosts on which something around the command is broken, in order of time, one charge a
    host.
    """
    own = set(_own_words(evidence))
    hits = tuple(
        event.hit
        for event in evidence.hits
        if event.hit.cause in PER_HOST and (event.hit in own or is_proof(event.hit))
    )
    said = tuple(on_word_of(hit, host) for hit in hits for host in _place_of(hit, ledger))
    return _once(said + _not_found(evidence, ledger))


def _place_of(hit: Hit, ledger: Ledger) -> tuple[str, ...]:
    """A rank that finds its surroundings broken speaks of its own host, whomever the signature
    blames.
    """
    if hit.cause is Cause.ENVIRONMENT and hit.source is Source.RANK:
        return known((hit.host or "",), ledger)
    return accused(hit, ledger)


def _not_found(evidence: Evidence, ledger: Ledger) -> tuple[Charge, ...]:
    return tuple(
        Charge(host=host, cause=Cause.ENVIRONMENT, why=f"{host}: {_died(failure)}, not found")
        for failure in facts.own_failures(evidence)
        if failure.exit_code in NOT_FOUND
        for host in known((failure.host,), ledger)
    )


def _same_as_last_time(charge: Charge, evidence: Evidence, ledger: Ledger) -> bool:
    return any(
        entry.cause is charge.cause and entry.attempt == evidence.attempt - 1 > 0
        for entry in ledger.retired
    )


def _votes(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    votes = complaints(evidence, ledger)
    everyone = (*evidence.hits, *evidence.minor)
    talkative = frozenset(canonical_host(e.hit.host) for e in everyone if e.hit.host)
    found = agreed(votes, talkative)
    if found:
        return _charged(found, Confidence.LIKELY)
    return _suspicion(evidence, ledger, votes)


def _suspicion(
    evidence: Evidence, ledger: Ledger, votes: dict[str, dict[str, Hit]]
) -> Verdict | None:
    """One complaint is a strike; a second one in another attempt blames."""
    first = next(((host, hit) for host, by in votes.items() for hit in by.values()), None)
    if first is None or facts.first_failure(evidence) is not None:
        return None
    host, hit = first
    if _struck_before(host, evidence, ledger):
        why = f"complained of in two attempts: {told(hit)}"
        charge = Charge(host=host, cause=hit.cause, why=why, quotes=(quoted(hit),))
        return _charged((charge,), Confidence.LIKELY)
    return replace(_because(hit, Confidence.WEAK), suspects=tuple(votes)[:2])


def _said(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    proofs = (event.hit for event in evidence.hits if event.hit.role is Role.PROOF)
    left = frozenset({Cause.LAUNCHER, Cause.STORAGE, Cause.HANG}) | OWNED
    hit = next((hit for hit in proofs if hit.cause in left and not accused(hit, ledger)), None)
    if hit is None or hit.cause in (Cause.NODE_LOST, Cause.NODE_HARDWARE, Cause.GPU_MEMORY_HW):
        return None
    early = hit.cause is Cause.HOST_OOM and evidence.first_step is None
    quota = "quota" in hit.line.lower()
    return replace(_because(hit, Confidence.LIKELY), final=early or quota)


def _probes(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    answers = {answer.answer for answer in evidence.answers}
    if evidence.passed or len(evidence.answers) < len(ledger.active):
        return None
    if answers == {"unreachable"}:
        why = "no host answers its probe, so the way to the hosts is broken, not every host"
        return Verdict(cause=Cause.LAUNCHER, why=why)
    if answers == {"fail"}:
        why = f"every host fails its probe: {evidence.answers[0].why}"
        return Verdict(cause=Cause.ENVIRONMENT, why=why, confidence=Confidence.PROVEN)
    return None


def _hang(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    if evidence.end_cause is not Cause.HANG:
        return None
    return Verdict(cause=Cause.HANG, why=evidence.end_why, confidence=Confidence.PROVEN)


def _strikes(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """A second unexplained failure on a host blames it, unless the fault has gone with its rank
    before.
    """
    failure = facts.first_failure(evidence)
    if failure is None or _explained(failure, evidence):
        return None
    host = next(iter(known((failure.host,), ledger)), None)
    if host is None or not _struck_before(host, evidence, ledger):
        return None
    if any(old.rank == failure.rank and old.host != host for old in ledger.strikes):
        return None
    why = f"second unexplained failure on {host}: {_died(failure)}"
    return _charged((Charge(host=host, cause=Cause.UNKNOWN, why=why),), Confidence.LIKELY)


def _struck_before(host: str, evidence: Evidence, ledger: Ledger) -> bool:
    return any(s.host == host and s.attempt < evidence.attempt for s in ledger.strikes)


def _explained(failure: RankFailed, evidence: Evidence) -> bool:
    """The rank raised an exception of its own: software, so no suspicion falls on the host."""
    return any(hit.host == failure.host for hit in facts.application_hits(evidence))


def _else(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    failure = facts.first_failure(evidence)
    if failure is not None:
        hosts = () if _explained(failure, evidence) else known((failure.host,), ledger)
        said = facts.application_hits(evidence)[:1]
        why = f"{_died(failure)} and nothing says why"
        if said:
            why = f"{told(said[0])}: seen on one rank only, so it may not come again"
        lines = tuple(quoted(hit) for hit in said)
        return Verdict(cause=Cause.UNKNOWN, why=why, suspects=hosts, lines=lines)
    if evidence.failures or any(event.hit.role is Role.CASCADE for event in evidence.minor):
        why = "every failure seen is the consequence of another, unseen one"
        return Verdict(cause=Cause.CASCADE_ONLY, why=why)
    return Verdict(cause=Cause.UNKNOWN, why=_silence(evidence))


def _silence(evidence: Evidence) -> str:
    ended = evidence.ended
    if ended is None:
        return "nothing says why"
    if ended.reports:
        word = f"{ended.ranks_succeeded} of {ended.ranks_total} ranks reported success"
        return f"{word}, the launcher left with {_left(ended.exit_code, ended.signal)}"
    return f"the launcher left with {_left(ended.exit_code, ended.signal)} and nothing says why"


ORDER: tuple[Weigh, ...] = (
    _success,
    _scheduler,
    _owner,
    _application,
    _one_host,
    _votes,
    _said,
    _probes,
    _hang,
    _strikes,
    _else,
)


def _because(hit: Hit, confidence: Confidence) -> Verdict:
    return Verdict(cause=hit.cause, why=hit.title, confidence=confidence, lines=(quoted(hit),))


def _charged(found: tuple[Charge, ...], confidence: Confidence) -> Verdict:
    first = found[0]
    return Verdict(
        cause=first.cause,
        why=first.why,
        confidence=confidence,
        charges=found,
        lines=_lines(found),
    )


def _lines(found: tuple[Charge, ...]) -> tuple[Quote, ...]:
    """What the charges rest on; a probe's word stands in no log."""
    quotes = (quote for charge in found for quote in charge.quotes or (Quote(text=charge.why),))
    return tuple(dict.fromkeys(quotes))[:MAX_LINES]


def _once(found: tuple[Charge, ...]) -> tuple[Charge, ...]:
    return tuple({charge.host: charge for charge in reversed(found)}.values())[::-1]


def _unless_all(found: tuple[Charge, ...], ledger: Ledger) -> tuple[Charge, ...]:
    """Two hosts and more never all break at once: then the accuser is wrong."""
    hosts = {charge.host for charge in found}
    return () if len(hosts) > 1 and hosts >= set(ledger.active) else found


def _unless_most(found: tuple[Charge, ...], ledger: Ledger) -> tuple[Charge, ...]:
    """Ranks that lose their devices on most hosts at once have met a defect of software."""
    most = len(found) > 1 and 2 * len(found) > len(ledger.active)
    return () if most else found


def _died(failure: RankFailed) -> str:
    return f"rank {failure.rank} on {failure.host} {_ended_by(failure.exit_code, failure.signal)}"


def _ended_by(exit_code: int | None, signal: int | None) -> str:
    return f"died of signal {signal}" if signal is not None else f"left with exit code {exit_code}"


def _left(exit_code: int | None, signal: int | None) -> str:
    return f"signal {signal}" if signal is not None else f"exit code {exit_code}"


def _set_aside(evidence: Evidence) -> tuple[Quote, ...]:
    """What looked like evidence and was not used, and why."""
    hearsay = (
        quoted(event.hit, "a rank's word convicts nobody else")
        for event in evidence.hits
        if event.hit.role is Role.PROOF and not is_proof(event.hit)
    )
    cascade = (event.hit for event in evidence.minor if event.hit.role is Role.CASCADE)
    consequences = (quoted(hit, "consequence of a peer's end") for hit in cascade)
    torn_down = (f for f in evidence.failures if facts.is_victim(evidence, f))
    victims = (Quote(text=_died(failure), note="torn down") for failure in torn_down)
    return (*hearsay, *consequences, *victims)
