"""From a verdict to what happens next: relaunch here, retire and relaunch, or stop. One table.

Owns the cure for each cause, the budget, backoff, and the exit code of a run that stops. It
never blames: whom a verdict charges is retired, and whom it does not is kept.

The budget counts relaunches since the last real progress: a newer complete checkpoint or,
without a checkpoint folder, a higher step than ever. So an attempt that redoes the same fifty
steps for ever runs out of it.
"""

from collections.abc import Mapping
from dataclasses import replace

from supervisor.core.actions import Outcome
from supervisor.core.evidence import Evidence, first_failure, last_exception
from supervisor.core.hosts import Ledger, Retired, Strike, promote, retire, strike
from supervisor.core.settings import Settings
from supervisor.core.signature import Cause
from supervisor.core.value import value
from supervisor.core.verdict import Confidence, Verdict
from supervisor.errors import ExitCode

COMMANDS_OWN = None  # the exit code of a run whose failure is the user's
SIGNAL_BASE = 128  # what shells add to the number of a signal


@value
class Cure:
    """What to do about a cause when no host is blamed; a blamed host is retired first, whatever
    the cause.
    """

    stop: bool = False
    exit_code: ExitCode | None = (
        ExitCode.NO_PROGRESS
    )  # when stopping, at once or for want of budget
    patience: float = 0.0  # factor on every wait; 0: no wait before the first relaunch
    repeats: bool = True  # the same failure at the same step is the command's own


CURES: Mapping[Cause, Cure] = {
    Cause.NODE_HARDWARE: Cure(),
    Cause.GPU_MEMORY_HW: Cure(),
    Cause.NODE_LOST: Cure(),
    Cause.NETWORK: Cure(repeats=False),
    Cause.HOST_OOM: Cure(),
    Cause.USER_ERROR: Cure(stop=True, exit_code=COMMANDS_OWN),
    Cause.USER_OOM: Cure(stop=True, exit_code=COMMANDS_OWN),
    Cause.ENVIRONMENT: Cure(stop=True, exit_code=COMMANDS_OWN),
    Cause.STORAGE: Cure(patience=1.0, repeats=False),
    Cause.WALLTIME: Cure(stop=True, exit_code=ExitCode.TERMINATED),
    Cause.PREEMPTED: Cure(stop=True, exit_code=ExitCode.REQUEUE),
    Cause.LAUNCHER: Cure(patience=4.0, repeats=False),
    Cause.HANG: Cure(exit_code=ExitCode.HANG, repeats=False),
    Cause.CASCADE_ONLY: Cure(),
    Cause.UNKNOWN: Cure(),
    Cause.SUCCESS: Cure(stop=True, exit_code=ExitCode.SUCCEEDED),
}


@value
class Failure:
    """What makes two failures the same one."""

    rank: int
    exit_code: int | None
    signal: int | None
    step: int | None
    resume_step: int | None


@value
class Budget:
    """Relaunches since the last real progress."""

    used: int = 0
    waits: int = 0  # backoffs drawn so far: which jitter comes next
    best: int | None = None  # newest complete checkpoint, or highest step
    failures: tuple[Failure, ...] = ()


@value
class Case:
    """All that a decision depends on."""

    verdict: Verdict
    evidence: Evidence
    ledger: Ledger
    budget: Budget
    settings: Settings
    last_moment: float | None  # when an attempt must begin to end
    relaunch_cost: float
    now: float


@value
class Relaunch:
    """Launch the next attempt on this ledger after this wait."""

    ledger: Ledger
    budget: Budget
    wait: float
    placed: str  # what became of the hosts, in words


@value
class Stop:
    """End the run."""

    ledger: Ledger
    outcome: Outcome
    exit_code: int
    why: str


Decision = Relaunch | Stop


def choose(case: Case) -> Decision:
    """Decide what follows a failed attempt."""
    return stops(case) or _exhausted(case) or _relaunch(case)


def stops(case: Case) -> Stop | None:
    """The stop that the verdict alone demands: no checkpoint and no budget could change it."""
    cure, verdict = CURES[case.verdict.cause], case.verdict
    if verdict.charges or not (cure.stop or verdict.final):
        return None
    code = (
        cure.exit_code if cure.stop and cure.exit_code is not None else command_code(case.evidence)
    )
    if verdict.cause in (Cause.WALLTIME, Cause.PREEMPTED):
        code = end_code(verdict.cause, case.settings)
    outcome = Outcome.SUCCEEDED if verdict.cause is Cause.SUCCESS else Outcome.GAVE_UP
    return Stop(ledger=case.ledger, outcome=outcome, exit_code=code, why="")


def end_code(cause: Cause, settings: Settings) -> int:
    """The exit code of an end that the scheduler brought: 75 where the run goes on later."""
    if cause is Cause.WALLTIME and not settings.requeue:
        return int(ExitCode.TERMINATED)
    return int(ExitCode.REQUEUE)


def wants_requeue(outcome: Outcome, exit_code: int, settings: Settings) -> bool:
    """Whether another allocation may help and was wished for. A command that itself exits 75 (try
    again later, says sysexits.h) asks for it too.
    """
    gave_up = outcome is Outcome.GAVE_UP and exit_code == ExitCode.REQUEUE
    return gave_up and settings.requeue and bool(settings.scheduler)


def can_go_on(outcome: Outcome, exit_code: int) -> bool:
    """Whether a finished run goes on when it is given another allocation."""
    ended_by_time = outcome is Outcome.GAVE_UP and exit_code == ExitCode.TERMINATED
    return exit_code == ExitCode.REQUEUE or ended_by_time


def refill(budget: Budget, reached: int | None) -> Budget:
    """Real progress gives the whole budget back."""
    if reached is None or (budget.best is not None and reached <= budget.best):
        return budget
    return Budget(best=reached, waits=budget.waits)


def command_code(evidence: Evidence) -> int:
    """The exit code of the rank that failed first, as a shell would give it; never 0."""
    failure = first_failure(evidence)
    if failure is None and last_exception(evidence) is not None:
        return 1  # of an exception; ending the others is what the codes tell of
    failure = failure or next(iter(evidence.failures), None)
    ended = evidence.ended
    for told in (failure, ended):
        if told is not None and (told.signal or told.exit_code):
            return SIGNAL_BASE + told.signal if told.signal else int(told.exit_code or 1)
    return 1


def _exhausted(case: Case) -> Stop | None:
    """Reasons not to relaunch that lie in the run rather than in the verdict."""
    cure, settings = CURES[case.verdict.cause], case.settings
    if _same_again(case):
        why = "the same rank failed the same way at the same step from the same checkpoint twice"
        return _stop(case, command_code(case.evidence), why)
    if case.budget.used >= settings.max_relaunches:
        code = ExitCode.HANG if cure.exit_code is ExitCode.HANG else ExitCode.NO_PROGRESS
        return _stop(case, code, spent(case.budget, settings))
    left = None if case.last_moment is None else case.last_moment - case.now - _wait(case)
    if left is not None and left < case.relaunch_cost:
        why = f"{max(left, 0):.0f} s are left before an attempt must end for the deadline"
        cost = f"a relaunch needs {case.relaunch_cost:.0f} s"
        return _stop(case, ExitCode.REQUEUE, f"{why}, and {cost}")
    return None


def spent(budget: Budget, settings: Settings) -> str:
    """What the budget went on, in words."""
    progress = "a newer checkpoint" if settings.checkpoints else "a higher step"
    times = "1 relaunch" if budget.used == 1 else f"{budget.used} relaunches"
    return f"{times} without {progress}, {settings.max_relaunches} allowed"


def _same_again(case: Case) -> bool:
    proven = case.verdict.charges and case.verdict.confidence is Confidence.PROVEN
    if proven or not CURES[case.verdict.cause].repeats:
        return False
    failure = failure_of(case.evidence)
    return failure is not None and failure in case.budget.failures


def failure_of(evidence: Evidence) -> Failure | None:
    """What to compare with the failures of other attempts."""
    first = first_failure(evidence)
    if first is None:
        return _exception_that_hangs(evidence)
    step = evidence.top_step if first.step is None else first.step
    return Failure(
        rank=first.rank,
        exit_code=first.exit_code,
        signal=first.signal,
        step=step,
        resume_step=evidence.resume_step,
    )


def _exception_that_hangs(evidence: Evidence) -> Failure | None:
    """A rank whose exit waits for the others never says how it ended."""
    said = last_exception(evidence)
    if said is None or said.hit.rank is None or evidence.end_cause is not Cause.HANG:
        return None
    return Failure(
        rank=said.hit.rank,
        exit_code=1,
        signal=None,
        step=evidence.top_step,
        resume_step=evidence.resume_step,
    )


def _relaunch(case: Case) -> Decision:
    ledger, placed = place(case)
    if ledger is None:
        return _stop(case, ExitCode.REQUEUE, placed)
    failure = failure_of(case.evidence)
    kept = () if failure is None else (failure,)
    wait = _wait(case)
    budget = replace(
        case.budget,
        used=case.budget.used + 1,
        waits=case.budget.waits + (wait > 0),
        failures=(*case.budget.failures, *kept),
    )
    return Relaunch(ledger=_struck(case, ledger), budget=budget, wait=wait, placed=placed)


def _wait(case: Case) -> float:
    """None for the first relaunch after progress; then doubling, jittered, up to the ceiling."""
    settings, used = case.settings, case.budget.used
    patience = CURES[case.verdict.cause].patience if not case.verdict.charges else 0.0
    if not patience and not used:
        return 0.0
    doublings = min(used if patience else used - 1, 32)  # past any ceiling, and short of overflow
    plain = settings.backoff_first * 2.0**doublings * max(patience, 1.0)
    jitter = settings.jitter or (1.0,)
    return min(settings.backoff_ceiling, plain) * jitter[case.budget.waits % len(jitter)]


def place(case: Case) -> tuple[Ledger | None, str]:
    """Give each blamed host's place to a spare; without one: shrink, or stay where nothing is
    proven.
    """
    ledger, said = case.ledger, list[str]()
    for entry in _entries(case):
        if ledger.spares:
            said.append(f"{entry.host} is retired, spare {ledger.spares[0]} takes its place")
            ledger = promote(ledger, entry)
        elif _may_shrink(ledger, case.settings):
            said.append(f"{entry.host} is retired, no spare is left, going on with one host less")
            ledger = retire(ledger, entry)
        elif case.verdict.confidence is Confidence.PROVEN:
            return None, f"{entry.host} is retired and no spare is left"
        else:
            said.append(
                f"{entry.host} is suspect but not proven bad, and no spare is left: it stays"
            )
    return ledger, "; ".join(said) or "same hosts"


def _entries(case: Case) -> tuple[Retired, ...]:
    return tuple(
        Retired(host=charge.host, attempt=case.evidence.attempt, cause=charge.cause, why=charge.why)
        for charge in case.verdict.charges
        if charge.host in case.ledger.active
    )


def _may_shrink(ledger: Ledger, settings: Settings) -> bool:
    return settings.min_hosts is not None and len(ledger.active) - 1 >= max(settings.min_hosts, 1)


def _struck(case: Case, ledger: Ledger) -> Ledger:
    failure = first_failure(case.evidence)
    rank = None if failure is None else failure.rank
    for host in case.verdict.suspects:
        ledger = strike(ledger, Strike(host=host, attempt=case.evidence.attempt, rank=rank))
    return ledger


def _stop(case: Case, code: int, why: str) -> Stop:
    """Give up; what was proven is still written down for whoever comes next."""
    ledger = case.ledger
    if case.verdict.confidence is Confidence.PROVEN:
        for entry in _entries(case):
            ledger = retire(ledger, entry)
    return Stop(ledger=ledger, outcome=Outcome.GAVE_UP, exit_code=int(code), why=why)
