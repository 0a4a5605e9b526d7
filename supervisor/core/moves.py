"""What each phase does next: one function a phase, from the state and the time to a move, or to
none.

Owns the flow of a run between attempts. The legal moves stand in state.TRANSITIONS; who is
blamed and what that leads to is asked of verdict and policy. A stop that was requested comes
first everywhere: never a new launch after it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from supervisor.core import alive, orders, words
from supervisor.core.actions import Outcome
from supervisor.core.evidence import some_answer
from supervisor.core.hosts import Retired, retire
from supervisor.core.judge import judge
from supervisor.core.orders import Actions, Move
from supervisor.core.owners import probe_cause, probe_words
from supervisor.core.policy import Relaunch, Stop, choose, place, stops, wants_requeue
from supervisor.core.signature import Cause
from supervisor.core.state import Phase, State
from supervisor.core.testimony import known
from supervisor.core.verdict import Verdict
from supervisor.errors import ExitCode


def new(state: State, now: float) -> Move | None:
    """Wait for the run to start."""
    if state.started_at is None:
        return None
    if state.stop is not None:
        finish = orders.stop_finish(state)
        return "stop", replace(state, finish=finish), (finish,)
    if state.settings.preflight:
        return orders.ask("preflight", state, (*state.ledger.active, *state.ledger.spares))
    return orders.prepare("begin", state)


def probing(state: State, now: float) -> Move | None:
    """Wait for every host, judge, and see that as many spares are fit as will be needed."""
    if state.stop is not None:
        return orders.stop(state)
    if state.unanswered:
        return None
    fit = _drop_bad_spares(state)
    gone = orders.retirements(state.ledger, fit.ledger)
    verdict = judge(fit.evidence, fit.ledger)
    stop = stops(orders.case_of(fit, verdict, now))
    wanted = fit.ledger.spares[: len(verdict.charges)]
    unasked = tuple(host for host in wanted if host not in fit.asked)
    if unasked:
        return orders.ask("ask_more", fit, unasked, gone)
    if fit.evidence.ended is None:
        return _after_preflight(fit, verdict, now, gone)
    if stop is not None:
        return orders.give_up(fit, verdict, stop, gone)
    return orders.prepare("probed", replace(fit, verdict=verdict), gone)


def preparing(state: State, now: float) -> Move | None:
    """With the checkpoint known, all facts are there: decide."""
    if state.stop is not None:
        return orders.stop(state)
    if state.checkpoint is None:
        return None
    if state.verdict is None:
        return orders.launch(state, now)
    decision = choose(orders.case_of(state, state.verdict, now))
    if isinstance(decision, Stop):
        return orders.give_up(state, state.verdict, decision)
    return _relaunch(state, state.verdict, decision, now)


def waiting(state: State, now: float) -> Move | None:
    """Back off until it is time."""
    if state.stop is not None:
        return orders.stop(state)
    if state.wake_at is not None and now < state.wake_at:
        return None
    return orders.launch(state, now)


def sweeping(state: State, now: float) -> Move | None:
    """Nothing follows but the end, and for a job that can go on later its place in the queue."""
    unknown = state.finish is None and state.inquired and state.answer is None
    if state.sweep is None or unknown:
        return None
    finish = state.finish or orders.stop_finish(state)
    ended = replace(state, finish=finish)
    if not wants_requeue(finish.outcome, finish.exit_code, state.settings):
        return "swept", ended, (finish,)
    if state.budget.used >= state.settings.max_relaunches:
        finish = orders.not_again(state, finish)
        return "swept", replace(state, finish=finish), (finish,)
    return "requeue", ended, orders.requeuing(ended)


def requeuing(state: State, now: float) -> Move | None:
    """The scheduler may end us before it has answered."""
    if state.requeued is None:
        return None
    finish = orders.after_requeue(state)
    return "answered", replace(state, finish=finish), (finish,)


def finished(state: State, now: float) -> Move | None:
    """A finished run emits nothing."""
    return None


MOST_UNFIT = 20  # hosts that are named

BY_PHASE: Mapping[Phase, Callable[[State, float], Move | None]] = {
    Phase.NEW: new,
    Phase.PROBING: probing,
    Phase.PREPARING: preparing,
    Phase.WAITING: waiting,
    Phase.LAUNCHING: alive.launching,
    Phase.RUNNING: alive.running,
    Phase.DUMPING: alive.dumping,
    Phase.ENDING: alive.ending,
    Phase.SWEEPING: sweeping,
    Phase.REQUEUING: requeuing,
    Phase.FINISHED: finished,
}


def _relaunch(state: State, verdict: Verdict, decision: Relaunch, now: float) -> Move:
    chosen = state.checkpoint
    point = words.resume_point(chosen.step, chosen.set_aside) if chosen else ""
    text = words.relaunching(state.evidence, verdict, decision, point)
    said = (
        *orders.retirements(state.ledger, decision.ledger),
        orders.announce(state, text, words.grounds(verdict)),
    )
    next_state = replace(state, ledger=decision.ledger, budget=decision.budget)
    if decision.wait:
        return "back_off", replace(next_state, wake_at=now + decision.wait), said
    return orders.launch(next_state, now, said)


def _drop_bad_spares(state: State) -> State:
    """A spare that fails its probe while others pass is retired before it can cost an attempt."""
    bad = tuple(
        Retired(
            host=host, attempt=state.attempt, cause=probe_cause(answer), why=probe_words(answer)
        )
        for answer in state.evidence.answers
        if answer.answer in ("fail", "unreachable") and some_answer(state.evidence)
        for host in known((answer.host,), state.ledger)
        if host in state.ledger.spares
    )
    for entry in bad:
        state = replace(state, ledger=retire(state.ledger, entry))
    return state


def _before(state: State) -> str:
    return f"before attempt {state.attempt + 1}" if state.attempt else "before the first attempt"


def _unfit(state: State) -> tuple[str, ...]:
    """Every host that failed, in its probe's words; a common mistake fails a thousand alike."""
    bad = [probe_words(each) for each in state.evidence.answers if each.answer != "unknown"]
    more = (f"and {len(bad) - MOST_UNFIT} more",) if len(bad) > MOST_UNFIT else ()
    return (*bad[:MOST_UNFIT], *more)


def _after_preflight(state: State, verdict: Verdict, now: float, gone: Actions) -> Move:
    """Before the first attempt bad hosts are replaced; a place where nothing answers is unfit."""
    if not verdict.charges and verdict.cause in (Cause.LAUNCHER, Cause.ENVIRONMENT):
        message = f"{_before(state)}: {verdict.why}"
        finish = orders.finished(state, Outcome.GAVE_UP, ExitCode.PLATFORM, message)
        return orders.sweep("give_up", state, finish, gone)
    ledger, placed = place(orders.case_of(state, verdict, now))
    if ledger is None:
        finish = orders.finished(
            state, Outcome.GAVE_UP, ExitCode.REQUEUE, f"{_before(state)}: {placed}"
        )
        return orders.sweep("give_up", state, finish, gone)
    said = orders.retirements(state.ledger, ledger)
    if said or gone:
        text = f"{_before(state)}: {placed if said else 'a spare is unfit and retired'}"
        said = (*said, orders.announce(state, text, _unfit(state)))
    return orders.prepare("probed", replace(state, ledger=ledger), (*gone, *said))
