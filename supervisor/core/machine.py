"""The machine: events in, state and actions out.

Owns the loop that joins the parts and the questions asked of it from outside. `observe` only
records; `decide` looks at the whole state and makes moves until none is called for; every move
is looked up in TRANSITIONS, and one that is not there is a bug and says how it came to be. An
event doubled or replayed changes nothing, and one that was lost is made good by the next. Time
is the event's own; there is no other.

A supervisor that took over from one that died folds the journal through `step`, then performs
`outstanding` again: every action is idempotent, so it does not matter whether the last one had
been performed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from supervisor.core import alive, deadline, orders
from supervisor.core.actions import Action, DumpStacks
from supervisor.core.events import Event
from supervisor.core.hosts import Ledger
from supervisor.core.moves import BY_PHASE
from supervisor.core.observing import observe
from supervisor.core.orders import Actions
from supervisor.core.state import TRANSITIONS, Phase, State
from supervisor.errors import InvalidTransition

MAX_STORY = 16

__all__ = ["TRANSITIONS", "Phase", "State", "decide", "initial", "next_wake", "observe"]
__all__ += ["outstanding", "step"]


def initial() -> State:
    """A run of which nothing is known yet."""
    return State()


def step(state: State, event: Event) -> tuple[State, Actions]:
    """Record one event, then do what the state calls for."""
    return decide(observe(state, event), event.at)


def decide(state: State, now: float) -> tuple[State, Actions]:
    """Make moves until none is called for."""
    actions: list[Action] = []
    while (move := BY_PHASE[state.phase](state, now)) is not None:
        trigger, moved, orders_given = move
        state = _enter(moved, trigger)
        actions.extend(orders_given)
    return state, tuple(actions)


def next_wake(state: State) -> float | None:
    """When to send Ticked if nothing else happens before."""
    match state.phase:
        case Phase.WAITING | Phase.DUMPING:
            return state.wake_at
        case Phase.RUNNING if state.evidence.fault_at is not None:
            return alive.settled_at(state)
        case Phase.RUNNING:
            return deadline.last_moment(state)
        case _:
            return None


def outstanding(state: State) -> Actions:
    """What a supervisor that took over performs again: the actions whose answers have not come."""
    retired = orders.retirements(Ledger(), state.ledger)
    unanswered = state.inquired and state.answer is None
    question = orders.asking(state) if unanswered else ()
    return (*retired, *question, *OUTSTANDING.get(state.phase, _nothing)(state))


def _nothing(state: State) -> Actions:
    return ()


OUTSTANDING: Mapping[Phase, Callable[[State], Actions]] = {
    Phase.PROBING: orders.probing,
    Phase.PREPARING: orders.choosing,
    Phase.LAUNCHING: orders.launching,
    Phase.RUNNING: alive.looking,
    Phase.DUMPING: lambda state: (DumpStacks(attempt=state.attempt),),
    Phase.ENDING: orders.ending_orders,
    Phase.SWEEPING: orders.sweeping,
    Phase.REQUEUING: orders.requeuing,
    Phase.FINISHED: lambda state: () if state.finish is None else (state.finish,),
}


def _enter(state: State, trigger: str) -> State:
    target = TRANSITIONS[state.phase].get(trigger)
    story = (*state.story, f"{state.phase} -{trigger}-> {target or '?'}")[-MAX_STORY:]
    if target is None:
        told = "; ".join(story)
        raise InvalidTransition(f"attempt {state.attempt}: no move {trigger!r}; the story: {told}")
    return replace(state, phase=target, story=story)
