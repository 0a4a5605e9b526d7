"""The facts of one attempt in the order they arrived, bounded, and which of the failures came
first.

Owns what is remembered and what is told apart as cascade. It blames nobody: verdict does.
Arrival order is used, not the clocks of hosts: those differ.

A rank is a victim when it was torn down (SIGTERM, or 143 after it), when the supervisor had
already ordered the end, or when it complained of a peer before it said anything wrong of its
own. The first failure is the earliest that is no victim's; there may be none, as when a whole
host vanishes and only its peers are left to speak.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from supervisor.core.events import AttemptEnded, HitSeen, HostProbed, RankFailed
from supervisor.core.signature import Blames, Cause, Hit, Role, Source
from supervisor.wire import canonical_host

MAX_FAILURES = 64
MAX_HITS = 512  # of those that can decide
MAX_CASCADE = 64  # of those that only accompany: ten thousand hosts may say the same
LIVED_THROUGH = 900.0  # seconds: collective timeouts, the slowest echo of a fault, are shorter
STEP_NEWS = 5.0  # seconds by which a step may be heard of later than a line printed after it
SIGTERM = 15
SIGABRT = 6
TORN_DOWN = 128 + SIGTERM
ENDS = frozenset({Cause.UNKNOWN, Cause.PREEMPTED})  # of notices: a rank's end, a cancelled job
APPLICATION = frozenset({Cause.USER_ERROR, Cause.USER_OOM, Cause.ENVIRONMENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of one attempt."""

    attempt: int
    resume_step: int | None = None
    failures: tuple[RankFailed, ...] = ()
    hits: tuple[HitSeen, ...] = ()
    minor: tuple[HitSeen, ...] = ()  # cascade and notice
    answers: tuple[HostProbed, ...] = ()  # of probes, those that are not "pass"
    passed: int = 0  # hosts whose probe passed
    convicted: tuple[HostProbed, ...] = ()  # answers of silent hosts while the attempt ran
    well: bool = False  # another host was, when one was convicted: so the way to hosts works
    gone: tuple[str, ...] = ()  # hosts that answer, and have lost their ranks without a word
    first_step: int | None = None
    top_step: int | None = None
    risen_at: float | None = None  # when the lowest step last rose
    fault_at: float | None = None  # when something came that the attempt cannot survive
    end_ordered_at: float | None = None
    end_cause: Cause | None = None  # why the supervisor ended it, when it did
    end_why: str = ""
    past_deadline: bool = False
    ended: AttemptEnded | None = None


def with_failure(evidence: Evidence, event: RankFailed) -> Evidence:
    """Remember that a rank failed, once a rank."""
    known = any(failure.rank == event.rank for failure in evidence.failures)
    if known or len(evidence.failures) >= MAX_FAILURES:
        return evidence
    return replace(evidence, failures=(*evidence.failures, event))


def with_hit(evidence: Evidence, event: HitSeen) -> Evidence:
    """Remember a hit. Each weight has its own room: neither the consequences nor a storm of votes
    can crowd out a proof.
    """
    if event.hit.role in (Role.PROOF, Role.VOTE):
        return replace(evidence, hits=_append(evidence.hits, event, MAX_HITS))
    return replace(evidence, minor=_append(evidence.minor, event, MAX_CASCADE))


def succeeded(evidence: Evidence) -> bool:
    """Every rank's own word says so, though it then had to be ended for hanging in its exit;
    without any word, the launcher's does and nothing proves otherwise.
    """
    ended = evidence.ended
    if ended is None or (evidence.end_ordered_at is not None and evidence.end_cause != Cause.HANG):
        return False
    if ended.ranks_succeeded == ended.ranks_total > 0:
        return True
    if ended.reports or evidence.end_ordered_at is not None:
        return False
    contradicted = any(outsider_proof(event.hit) for event in evidence.hits)
    return ended.exit_code == 0 and not contradicted


def outsider_proof(hit: Hit) -> bool:
    """Proof on the word of somebody who is not a rank."""
    return hit.role is Role.PROOF and hit.source is not Source.RANK


def first_failure(evidence: Evidence) -> RankFailed | None:
    """The earliest failure that is no consequence of another."""
    return next((f for f in evidence.failures if not is_victim(evidence, f)), None)


def passed_probe(evidence: Evidence, host: str) -> bool:
    """The host was asked after the end, and is well."""
    return evidence.passed > 0 and all(answer.host != host for answer in evidence.answers)


def some_answer(evidence: Evidence) -> bool:
    """Some host answered its probe and failed no check, though it may not have been able to make
    one: so another's failure is its own.
    """
    return evidence.passed > 0 or any(each.answer == "unknown" for each in evidence.answers)


def is_reachable(evidence: Evidence, host: str) -> bool:
    """The host was asked after the end, and answered, whatever it could not say of itself."""
    said = {each.host: each.answer for each in evidence.answers}
    return evidence.passed > 0 if host not in said else said[host] != "unreachable"


def own_failures(evidence: Evidence) -> tuple[RankFailed, ...]:
    """Failures that are nobody else's doing, in order of time."""
    return tuple(f for f in evidence.failures if not is_victim(evidence, f))


def is_victim(evidence: Evidence, failure: RankFailed) -> bool:
    """This rank went down because something else had."""
    if failure.signal == SIGTERM or failure.exit_code == TORN_DOWN:
        return True
    if evidence.end_ordered_at is not None and failure.at >= evidence.end_ordered_at:
        return True
    crashed_alone = failure.signal is not None and failure.signal != SIGABRT
    complained = complained_first(evidence, failure.host, failure.rank)
    return complained and not crashed_alone and not _ended_otherwise(evidence, failure)


def _ended_otherwise(evidence: Evidence, failure: RankFailed) -> bool:
    """It said nothing, and its exit code is not that of the ranks beside it which complained."""
    said = {event.hit.rank for event in (*evidence.hits, *evidence.minor)}
    beside = (f for f in evidence.failures if f.host == failure.host and f.rank in said)
    codes = {other.exit_code for other in beside}
    return failure.rank not in said and bool(codes) and failure.exit_code not in codes


def complained_first(evidence: Evidence, host: str | None, rank: int | None) -> bool:
    """The first thing wrong that this rank (or, lacking a word of its own, its host) said was
    of a peer. Of those whom nobody can tell apart any may have said it.
    """
    of_rank = None if rank is None else _first_word(evidence, lambda hit: hit.rank == rank)
    first = of_rank or _first_word(
        evidence, lambda hit: hit.host == host and (host is not None or hit.rank is None)
    )
    return first is not None and (first.role is Role.CASCADE or _complains(first))


def _complains(hit: Hit) -> bool:
    """It names another host as the one that was lost."""
    others = {canonical_host(name) for name in hit.named} - {canonical_host(hit.host or "")}
    return hit.role is Role.VOTE and hit.blames is Blames.NAMED and bool(others)


def application_hits(evidence: Evidence) -> tuple[Hit, ...]:
    """What the command itself said went wrong, by ranks that failed and had not first
    complained of a peer.
    """
    hosts = {failure.host for failure in evidence.failures}
    return tuple(
        event.hit
        for event in evidence.hits
        if event.hit.cause in APPLICATION
        and event.hit.source is Source.RANK
        and not (event.hit.role is Role.VOTE and event.hit.blames is Blames.NAMED)
        and (not hosts or event.hit.host is None or event.hit.host in hosts)
        and not complained_first(evidence, event.hit.host, event.hit.rank)
    )


def last_exception(evidence: Evidence) -> HitSeen | None:
    """The last that a rank said was wrong with the command, when no step has risen since."""
    said = [
        event
        for event in evidence.hits
        if event.hit.source is Source.RANK and event.hit.cause in APPLICATION
    ]
    risen_at = 0.0 if evidence.first_step is None else evidence.risen_at
    if not said or risen_at is None or said[-1].at + STEP_NEWS < risen_at:
        return None
    return said[-1]


def failed_hosts(failures: Iterable[RankFailed]) -> tuple[str, ...]:
    """Hosts of these failures, in order, once each."""
    return tuple(dict.fromkeys(failure.host for failure in failures))


def _first_word(evidence: Evidence, by: Callable[[Hit], bool]) -> Hit | None:
    """The first of these ranks' hits that is a complaint or a confession."""
    said = (
        event
        for event in (*evidence.hits, *evidence.minor)
        if event.hit.source is Source.RANK and event.hit.role is not Role.NOTICE and by(event.hit)
    )
    first = min(said, key=lambda event: (event.at, event.hit.line_number), default=None)
    return None if first is None else first.hit


def first_word(evidence: Evidence, *, outside: bool = False) -> Hit | None:
    """The first that anybody, or anybody but a rank, said of an end: proof, a vote, or that a rank
    ended or somebody cancelled the job.
    """
    said = (event for event in _of_an_end(evidence) if event.hit.role is not Role.CASCADE)
    heard = (event for event in said if not outside or event.hit.source is not Source.RANK)
    return _earliest(heard)


def first_sign(evidence: Evidence) -> Hit | None:
    """The same of anybody, consequences of a peer's end as ranks tell them included."""
    signs = _of_an_end(evidence)
    return _earliest(
        event
        for event in signs
        if event.hit.role is not Role.CASCADE or event.hit.source is Source.RANK
    )


def _of_an_end(evidence: Evidence) -> tuple[HitSeen, ...]:
    told = (e for e in evidence.minor if e.hit.role is not Role.NOTICE or e.hit.cause in ENDS)
    return (*evidence.hits, *told)


def _earliest(events: Iterable[HitSeen]) -> Hit | None:
    first = min(events, key=lambda event: (event.at, event.hit.line_number), default=None)
    return None if first is None else first.hit


def recent(evidence: Evidence) -> Evidence:
    """Without what ranks said long before anything failed: they lived through it."""
    first = first_failure(evidence)
    if first is None:
        return evidence
    kept = tuple(
        event
        for event in evidence.hits
        if event.hit.source is not Source.RANK or first.at - event.at <= LIVED_THROUGH
    )
    return replace(evidence, hits=kept)


def _append(kept: tuple[HitSeen, ...], event: HitSeen, limit: int) -> tuple[HitSeen, ...]:
    alike = sum(old.hit.role is event.hit.role for old in kept)
    if alike >= limit or event.hit in {old.hit for old in kept}:
        return kept
    return (*kept, event)
