"""Moves that several phases make: ask hosts, prepare, launch, end, sweep.

Owns how a move and its actions are put together. When each is made belongs to alive and moves.
"""

from dataclasses import replace

from supervisor.core import deadline, notice, words
from supervisor.core.actions import (
    Action,
    Announce,
    AskScheduler,
    ChooseCheckpoint,
    EndAttempt,
    Finish,
    Launch,
    Outcome,
    ProbeHosts,
    RequeueJob,
    RetireHost,
    Sweep,
)
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Ledger, retired_hosts, suspect
from supervisor.core.policy import Case, Stop, end_code, spent
from supervisor.core.progress import Watch
from supervisor.core.signature import Cause
from supervisor.core.state import State
from supervisor.core.verdict import Verdict
from supervisor.errors import ExitCode

Actions = tuple[Action, ...]
Move = tuple[str, State, Actions]


def ask(trigger: str, state: State, hosts: tuple[str, ...], before: Actions = ()) -> Move:
    """Have these hosts reaped and checked."""
    asking = replace(state, asked=(*state.asked, *hosts), unanswered=frozenset(hosts))
    return trigger, asking, (*before, *probing(asking))


def probing(state: State) -> Actions:
    """What is still asked of hosts between attempts."""
    hosts = tuple(host for host in state.asked if host in state.unanswered)
    return (ProbeHosts(attempt=state.attempt, hosts=hosts, reap=True),)


def prepare(trigger: str, state: State, before: Actions = ()) -> Move:
    """Have the checkpoint of the next attempt chosen."""
    return trigger, replace(state, checkpoint=None, asked=()), (*before, *choosing(state))


def choosing(state: State) -> Actions:
    """The checkpoint is chosen for the attempt that comes next."""
    return (ChooseCheckpoint(attempt=state.attempt + 1),)


def launch(state: State, now: float, before: Actions = ()) -> Move:
    """Begin the next attempt with fresh evidence."""
    attempt = state.attempt + 1
    step = state.checkpoint.step if state.checkpoint else None
    begun = replace(
        state,
        attempt=attempt,
        ledger=suspect(state.ledger, ()),
        evidence=Evidence(attempt=attempt, resume_step=step),
        watch=Watch(launched_at=now, phase_at=now),
        launch=None,
        stacks=None,
        asked=(),
        looks=(),
        looking=(),
        noticed=(),
        wake_at=None,
    )
    return "launch", begun, (*before, *launching(begun))


def launching(state: State) -> Actions:
    """The launch of the attempt that has begun."""
    path = state.checkpoint.path if state.checkpoint else ""
    order = Launch(
        attempt=state.attempt,
        hosts=state.ledger.active,
        retired=retired_hosts(state.ledger),
        resume_from=path,
    )
    return (order,)


def end(
    state: State, now: float, cause: Cause | None, why: str, grace: float, said: Actions = ()
) -> Move:
    """Have the attempt ended; what its ranks say from now on is the consequence of it."""
    evidence = replace(state.evidence, end_ordered_at=now, end_cause=cause, end_why=why)
    ending = replace(state, evidence=evidence, end_grace=grace, wake_at=None)
    return "end", ending, (*said, *ending_orders(ending))


def ending_orders(state: State) -> Actions:
    """The newest order to end the attempt."""
    why = state.evidence.end_why
    return (EndAttempt(attempt=state.attempt, grace=state.end_grace, why=why),)


def give_up(state: State, verdict: Verdict, stop: Stop, before: Actions = ()) -> Move:
    """No attempt follows: write down whom the verdict proved bad, sweep, and leave with the
    stop's exit code.
    """
    written = retirements(state.ledger, stop.ledger)
    message = words.gave_up(state.evidence, verdict, stop)
    ledger = replace(state, ledger=stop.ledger, verdict=verdict)
    finish = finished(state, stop.outcome, stop.exit_code, message)
    grounded = replace(finish, grounds=words.grounds(verdict))
    return sweep("give_up", ledger, grounded, (*before, *written))


def retirements(old: Ledger, new: Ledger) -> Actions:
    """One action for each host that is retired now and was not before."""
    return tuple(
        RetireHost(attempt=entry.attempt, host=entry.host, cause=entry.cause, why=entry.why)
        for entry in new.retired[len(old.retired) :]
    )


def sweep(trigger: str, state: State, finish: Finish | None, before: Actions = ()) -> Move:
    """See that nothing of the run is left, then finish; with None, by what was asked for."""
    leaving = replace(state, finish=finish, wake_at=None, unanswered=frozenset(), looking=())
    return trigger, leaving, (*before, *sweeping(leaving))


def sweeping(state: State) -> Actions:
    """Every host that may still hold something of the run; a lost one would only cost the time
    to find out.
    """
    lost = {entry.host for entry in state.ledger.retired if entry.cause is Cause.NODE_LOST}
    hosts = dict.fromkeys((*state.ledger.active, *retired_hosts(state.ledger)))
    return (Sweep(attempt=state.attempt, hosts=tuple(h for h in hosts if h not in lost)),)


def finished(state: State, outcome: Outcome, exit_code: int, message: str) -> Finish:
    """The last action of a run."""
    return Finish(attempt=state.attempt, outcome=outcome, exit_code=int(exit_code), message=message)


def stop(state: State) -> Move:
    """The end that was asked for; what it means, the scheduler may know."""
    asked, question = inquiry(state)
    return sweep("stop", asked, None, question)


def inquiry(state: State) -> tuple[State, Actions]:
    """Ask the scheduler, once, where a signal may have come from it."""
    if state.inquired or not state.settings.scheduler or not notice.is_askable(state.stop):
        return state, ()
    return replace(state, inquired=True), asking(state)


def asking(state: State) -> Actions:
    """The question what becomes of the job."""
    return (AskScheduler(attempt=state.attempt),)


def requeuing(state: State) -> Actions:
    """The wish to be queued again."""
    return (RequeueJob(attempt=state.attempt),)


def stop_finish(state: State) -> Finish:
    """The end that was asked for, by what it turned out to be."""
    assert state.stop is not None
    if state.stop.drain:
        message = words.drained(state.attempt)
        return finished(state, Outcome.DRAINED, ExitCode.SUCCEEDED, message)
    end = notice.end_of(state.stop, state.answer, state.deadline, deadline.lead(state.settings))
    if end.cause is None:
        interrupted = state.stop.signal == notice.SIGINT
        code = ExitCode.INTERRUPTED if interrupted else ExitCode.TERMINATED
        return finished(state, Outcome.STOPPED, code, words.stopped(state.attempt, end.why))
    queued = state.answer is not None and state.answer.state == notice.JobState.REQUEUED
    outcome = Outcome.REQUEUED if queued else Outcome.GAVE_UP
    message = words.ended(state.attempt, end.cause, end.why)
    return finished(state, outcome, end_code(end.cause, state.settings), message)


def not_again(state: State, finish: Finish) -> Finish:
    """A run that comes no further in one allocation after another is not queued again."""
    why = spent(state.budget, state.settings)
    message = f"{finish.message}; the job is not queued again: {why}"
    return replace(finish, exit_code=int(ExitCode.NO_PROGRESS), message=message)


def after_requeue(state: State) -> Finish:
    """The end that was due, with what the scheduler said to being asked to queue the job again."""
    assert state.finish is not None
    refused = "" if state.requeued is None else state.requeued.refused
    message = words.requeued(state.finish.message, refused)
    outcome = Outcome.GAVE_UP if refused else Outcome.REQUEUED
    return replace(state.finish, outcome=outcome, message=message)


def announce(state: State, text: str, grounds: tuple[str, ...] = ()) -> Announce:
    """One line to the user, and what it rests on."""
    return Announce(attempt=state.attempt, text=text, grounds=grounds)


def case_of(state: State, verdict: Verdict, now: float) -> Case:
    """All that policy needs."""
    return Case(
        verdict=verdict,
        evidence=state.evidence,
        ledger=state.ledger,
        budget=state.budget,
        settings=state.settings,
        last_moment=deadline.last_moment(state),
        relaunch_cost=deadline.relaunch_cost(state.settings, state.pace),
        now=now,
    )
