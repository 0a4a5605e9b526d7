"""A verdict on an attempt that is over and of which only its log is left.

Owns how the facts around a log (exit code, time used, time allowed) become evidence. The verdict
is judge's, the same as for an attempt of our own.
"""

from dataclasses import replace
from enum import StrEnum

from supervisor.core import evidence as facts
from supervisor.core.events import AttemptEnded, HitSeen, RankFailed
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import make_ledger
from supervisor.core.judge import judge
from supervisor.core.policy import CURES
from supervisor.core.signature import Cause
from supervisor.core.value import value
from supervisor.core.verdict import Verdict

AT_THE_LIMIT = 30.0  # seconds: schedulers end a job a little early or late


class Advice(StrEnum):
    """What a supervisor does about a verdict."""

    RETIRE = "retire_and_relaunch"
    RELAUNCH = "relaunch"
    STOP = "stop"


@value
class PastAttempt:
    """What is known of it; None where nobody said."""

    hosts: tuple[str, ...]
    hits: tuple[HitSeen, ...] = ()
    failures: tuple[RankFailed, ...] = ()
    exit_code: int | None = None
    ranks: int | None = None
    first_step: int | None = None
    top_step: int | None = None
    elapsed: float | None = None
    walltime: float | None = None


def explain(past: PastAttempt) -> Verdict:
    """Judge it as if it had just ended; without an exit code, the log alone must tell."""
    evidence = evidence_of(past)
    quiet = facts.first_sign(evidence) is None and not (past.failures or evidence.past_deadline)
    if past.exit_code is None and quiet:
        why = "the log shows no failure; the exit code would tell whether it ended well"
        return Verdict(cause=Cause.UNKNOWN, why=why)
    return judge(evidence, make_ledger(past.hosts, ()))


def advice(verdict: Verdict) -> Advice:
    """What follows from a verdict while spares and budget last."""
    if verdict.charges:
        return Advice.RETIRE
    return Advice.STOP if CURES[verdict.cause].stop or verdict.final else Advice.RELAUNCH


def evidence_of(past: PastAttempt) -> Evidence:
    """Fold the facts as the machine does."""
    evidence = Evidence(attempt=1, first_step=past.first_step, top_step=past.top_step)
    for failure in past.failures:
        evidence = facts.with_failure(evidence, failure)
    for hit in past.hits:
        evidence = facts.with_hit(evidence, hit)
    return replace(evidence, ended=_ended(past), past_deadline=_past_deadline(past))


def _ended(past: PastAttempt) -> AttemptEnded:
    times = [*(hit.at for hit in past.hits), *(failure.at for failure in past.failures)]
    return AttemptEnded(
        at=max(times, default=0.0),
        attempt=1,
        exit_code=past.exit_code,
        signal=None,
        ranks_total=past.ranks or 0,
        ranks_succeeded=0,
        reports=False,
    )


def _past_deadline(past: PastAttempt) -> bool:
    if past.elapsed is None or past.walltime is None:
        return False
    return past.elapsed >= past.walltime - AT_THE_LIMIT
