"""Causes that name no host, and what is left when nothing explains the end."""

from dataclasses import replace

from supervisor.core import evidence as facts
from supervisor.core.events import AttemptEnded
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Ledger
from supervisor.core.peers import explained
from supervisor.core.quotes import Quote, quoted, told
from supervisor.core.signature import Blames, Cause, Hit, Role, Source
from supervisor.core.testimony import AGREEMENT, accused, is_proof, known
from supervisor.core.verdict import Confidence, Verdict, because, died, is_quota

NAMELESS = frozenset(
    {Cause.LAUNCHER, Cause.STORAGE, Cause.HANG, Cause.NETWORK, Cause.HOST_OOM}
)  # what can go wrong without any host's fault
HINTS = NAMELESS - {Cause.HOST_OOM}


def success(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """Nothing failed: the ranks' own word, or the launcher's where they have none."""
    if not facts.succeeded(evidence):
        return None
    return Verdict(cause=Cause.SUCCESS, why="every rank ended well", confidence=Confidence.PROVEN)


def scheduler(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """The allocation's end, which explains everything that was said at it."""
    proofs = (event.hit for event in evidence.hits if facts.outsider_proof(event.hit))
    word = next((hit for hit in proofs if hit.cause in (Cause.WALLTIME, Cause.PREEMPTED)), None)
    if word is not None:
        return because(word, Confidence.PROVEN)
    if evidence.end_cause is Cause.WALLTIME:
        why = f"ended in time for the deadline: {evidence.end_why}"
        return Verdict(cause=Cause.WALLTIME, why=why, confidence=Confidence.PROVEN)
    if evidence.past_deadline:
        why = "the attempt ended when the deadline had passed"
        return Verdict(cause=Cause.WALLTIME, why=why, confidence=Confidence.LIKELY)
    return None


def said(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """The first proof that names no host."""
    proofs = (event.hit for event in evidence.hits if event.hit.role is Role.PROOF)
    hit = next((hit for hit in proofs if _names_nobody(hit, ledger)), None)
    if hit is None:
        return None
    hosts = {other.host for other in _same_said(evidence, hit)}
    alone = hit.source is Source.RANK and len(hosts) < AGREEMENT  # one host's may pass
    early = hit.cause is Cause.HOST_OOM and evidence.first_step is None and not alone
    return replace(because(hit, Confidence.LIKELY), final=early or is_quota(hit.line))


def _same_said(evidence: Evidence, hit: Hit) -> tuple[Hit, ...]:
    """The hits of the same signature."""
    return tuple(e.hit for e in evidence.hits if e.hit.signature == hit.signature)


def _names_nobody(hit: Hit, ledger: Ledger) -> bool:
    command = hit.source is not Source.RANK and hit.cause in facts.APPLICATION
    placeless = hit.blames is Blames.REPORTER and hit.host is None  # a log that does not say where
    return (command or placeless or hit.cause in NAMELESS) and not accused(hit, ledger)


def asked_to_end(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """The first thing wrong is a signal passed on: somebody cancelled the job."""
    hit = facts.first_word(evidence)
    if evidence.end_ordered_at is not None or hit is None or hit.cause is not Cause.PREEMPTED:
        return None
    return because(hit, Confidence.WEAK)


def probes(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """Every host that was asked is out of reach, or fails: the trouble is none of theirs."""
    answers = {answer.answer for answer in evidence.answers}
    if evidence.passed or len(evidence.answers) < len(ledger.active):
        return None
    if answers == {"unreachable"}:
        why = "no host answers its probe, so the way to the hosts is broken, not every host"
        return Verdict(cause=Cause.LAUNCHER, why=why)
    if answers == {"fail"} and all(a.cause == Cause.STORAGE for a in evidence.answers):
        why = f"the storage fails on every host: {evidence.answers[0].why}"
        return Verdict(cause=Cause.STORAGE, why=why, confidence=Confidence.PROVEN)
    if answers == {"fail"}:
        why = f"every host fails its probe: {evidence.answers[0].why}"
        return Verdict(cause=Cause.ENVIRONMENT, why=why, confidence=Confidence.PROVEN)
    return None


def hang(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """The supervisor ended the attempt for want of progress."""
    if evidence.end_cause is not Cause.HANG:
        return None
    said = facts.last_exception(evidence)
    if said is not None:
        why = f"{told(said.hit)}: and no step rose after it"
        return Verdict(cause=Cause.UNKNOWN, why=why, lines=(quoted(said.hit),))
    return Verdict(cause=Cause.HANG, why=evidence.end_why, confidence=Confidence.PROVEN)


def otherwise(evidence: Evidence, ledger: Ledger) -> Verdict | None:
    """Nobody is blamed; the host of a first failure that nothing explains is suspect."""
    failure = facts.first_failure(evidence)
    if failure is not None:
        hosts = () if explained(failure, evidence) else known((failure.host,), ledger)
        said = facts.application_hits(evidence)[:1]
        why = f"{died(failure)} and nothing says why"
        if said:
            why = f"{told(said[0])}: seen on one rank only, so it may not come again"
        lines = tuple(quoted(hit) for hit in said)
        return Verdict(cause=Cause.UNKNOWN, why=why, suspects=hosts, lines=lines)
    return _hinted(evidence) or Verdict(cause=Cause.UNKNOWN, why=_silence(evidence))


def _hinted(evidence: Evidence) -> Verdict | None:
    """What comes nearest to a cause: a wait in vain, consequences only, an end, a notice."""
    word, sign = facts.first_word(evidence), facts.first_sign(evidence)
    hint = next((event.hit for event in evidence.minor if _is_hint(event.hit)), None)
    if word is not None and word.cause is Cause.HANG:
        return because(word, Confidence.WEAK)
    if sign is not None and (sign.cause is Cause.UNKNOWN or sign.cause in facts.APPLICATION):
        return replace(because(sign, Confidence.WEAK), cause=Cause.UNKNOWN)
    if hint is not None:
        return because(hint, Confidence.WEAK)
    cascade = any(event.hit.role is Role.CASCADE for event in evidence.minor)
    if evidence.failures or cascade:
        why = "every failure seen is the consequence of another, unseen one"
        return Verdict(cause=Cause.CASCADE_ONLY, why=why)
    return None


def _is_hint(hit: Hit) -> bool:
    return hit.role is Role.NOTICE and hit.cause in HINTS


def _silence(evidence: Evidence) -> str:
    ended = evidence.ended
    if ended is None or (not ended.reports and ended.exit_code is None and ended.signal is None):
        return "nothing says why"
    if ended.reports:
        word = f"{ended.ranks_succeeded} of {ended.ranks_total} ranks reported success"
        return f"{word}, the launcher left with {_left(ended)}"
    return f"the launcher left with {_left(ended)} and nothing says why"


def _left(ended: AttemptEnded) -> str:
    if ended.signal is not None:
        return f"signal {ended.signal}"
    means = f" ({ended.meaning})" if ended.meaning else ""
    return f"exit code {ended.exit_code}{means}"


def set_aside(evidence: Evidence) -> tuple[Quote, ...]:
    """What looked like evidence and was not used, and why."""
    hearsay = (
        quoted(event.hit, "a rank's word convicts nobody else")
        for event in evidence.hits
        if event.hit.role is Role.PROOF and not is_proof(event.hit)
    )
    cascade = (event.hit for event in evidence.minor if event.hit.role is Role.CASCADE)
    consequences = (quoted(hit, "consequence of a peer's end") for hit in cascade)
    torn_down = (f for f in evidence.failures if facts.is_victim(evidence, f))
    victims = (Quote(text=died(failure), note="torn down") for failure in torn_down)
    return (*hearsay, *consequences, *victims)
