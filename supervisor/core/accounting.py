"""What a run cost: from its events to attempts, ETTR, MTBF, time to recover and lost steps.

Owns the arithmetic and the definitions below. It folds the events through the machine, so
verdicts are those that were acted on. Times are of this run inside its allocation: time in the
queue is not counted.

    productive    time of steps that never had to be done again: from an attempt's first step to
                  the step from which the next one resumed, or to its top step when it was the last
    ETTR          productive / wall time of the run
    MTBF          wall time of attempts / failures
    recovery      from a failure to the next attempt's first step
    lost steps    steps done after the resume point and done again
"""

from collections.abc import Iterable
from dataclasses import replace

from supervisor.core.actions import Action, Finish, Launch, Outcome
from supervisor.core.events import AttemptEnded, Event, ProgressSeen
from supervisor.core.machine import State, initial, step
from supervisor.core.signature import Cause
from supervisor.core.value import value
from supervisor.core.verdict import Verdict


@value
class Attempt:
    """One attempt as it went."""

    number: int
    hosts: tuple[str, ...]
    started_at: float
    resume_step: int | None
    first_step_at: float | None = None
    first_step: int | None = None
    top_step: int | None = None
    top_step_at: float | None = None
    ended_at: float | None = None
    verdict: Verdict | None = None  # None while it runs, and when it succeeded or was stopped


@value
class Account:
    """A run in figures; what cannot be told is None."""

    attempts: tuple[Attempt, ...]
    outcome: Outcome | None
    exit_code: int | None
    wall: float
    productive: float
    ettr: float | None
    failures: int
    mtbf: float | None
    time_to_recover: float | None  # mean
    lost_steps: int


def account(events: Iterable[Event]) -> Account:
    """The figures of a run, finished or not, from its events."""
    state, attempts, finish = initial(), tuple[Attempt, ...](), None
    now = 0.0
    for event in events:
        state, actions = step(state, event)
        now = max(now, event.at)
        attempts = _noted(attempts, state, event, actions)
        finish = next((a for a in actions if isinstance(a, Finish)), finish)
    return _figures(attempts, state, finish, now)


def _noted(
    attempts: tuple[Attempt, ...], state: State, event: Event, actions: tuple[Action, ...]
) -> tuple[Attempt, ...]:
    if attempts:
        attempts = (*attempts[:-1], _seen(attempts[-1], state, event))
    launch = next((action for action in actions if isinstance(action, Launch)), None)
    if launch is None:
        return attempts
    begun = Attempt(
        number=launch.attempt,
        hosts=launch.hosts,
        started_at=event.at,
        resume_step=state.evidence.resume_step,
    )
    return (*attempts, begun)


def _seen(attempt: Attempt, state: State, event: Event) -> Attempt:
    match event:
        case ProgressSeen(step=int(reached)) if event.attempt == attempt.number:
            return _risen(attempt, reached, event.at if event.step_at is None else event.step_at)
        case AttemptEnded() if event.attempt == attempt.number and attempt.ended_at is None:
            attempt = replace(attempt, ended_at=event.at)
    verdict = state.verdict
    judged = verdict is not None and verdict.attempt == attempt.number
    return replace(attempt, verdict=verdict) if judged else attempt


def _risen(attempt: Attempt, reached: int, at: float) -> Attempt:
    if attempt.first_step is None:
        attempt = replace(attempt, first_step=reached, first_step_at=at)
    if attempt.top_step is not None and reached <= attempt.top_step:
        return attempt
    return replace(attempt, top_step=reached, top_step_at=at)


def _figures(
    attempts: tuple[Attempt, ...], state: State, finish: Finish | None, now: float
) -> Account:
    wall = now - (state.started_at if state.started_at is not None else now)
    pairs = tuple(zip(attempts, (*attempts, None)[1:], strict=True))
    productive = sum(_productive(one, after) for one, after in pairs)
    failed = tuple((one, after) for one, after in pairs if _is_failure(one))
    ran = sum((one.ended_at or now) - one.started_at for one in attempts)
    recoveries = tuple(
        after.first_step_at - one.ended_at
        for one, after in failed
        if after is not None and after.first_step_at is not None and one.ended_at is not None
    )
    return Account(
        attempts=attempts,
        outcome=finish.outcome if finish else None,
        exit_code=finish.exit_code if finish else None,
        wall=wall,
        productive=productive,
        ettr=productive / wall if wall > 0 else None,
        failures=len(failed),
        mtbf=ran / len(failed) if failed else None,
        time_to_recover=sum(recoveries) / len(recoveries) if recoveries else None,
        lost_steps=sum(_lost(one, after) for one, after in pairs),
    )


def _is_failure(one: Attempt) -> bool:
    return one.verdict is not None and one.verdict.cause not in (Cause.WALLTIME, Cause.PREEMPTED)


def _productive(one: Attempt, after: Attempt | None) -> float:
    """Steps are taken to be evenly long within an attempt: the journal keeps no time for each."""
    if one.first_step_at is None or one.first_step is None or one.top_step is None:
        return 0.0
    span = (one.top_step_at or one.first_step_at) - one.first_step_at
    if after is None:
        return span
    done = one.top_step - one.first_step
    kept = min(after.resume_step or 0, one.top_step) - one.first_step
    return span * min(1.0, max(0.0, kept / done)) if done else 0.0


def _lost(one: Attempt, after: Attempt | None) -> int:
    if after is None or one.top_step is None:
        return 0
    return max(0, one.top_step - max(after.resume_step or 0, (one.resume_step or 0)))
