"""What a run is waiting for, in words: whoever watches must never wonder whether it still lives."""

from collections.abc import Iterable

from supervisor.core.state import Phase, State

MOST_NAMED = 4


def waited_for(state: State) -> str | None:
    """What the run waits for now; None while it trains, or has nothing to wait for."""
    match state.phase:
        case Phase.PROBING:
            hosts = tuple(host for host in state.asked if host in state.unanswered)
            return f"waiting for {_count(len(hosts), 'host')} to answer: {_some(hosts)}"
        case Phase.PREPARING:
            return "choosing the checkpoint to resume from"
        case Phase.RUNNING if state.evidence.first_step is None:
            return f"attempt {state.attempt}: {_up(state)}, waiting for the first step"
        case Phase.ENDING:
            return f"waiting for attempt {state.attempt} to end"
        case Phase.SWEEPING if state.sweep is not None:
            return "asking the scheduler what becomes of the job"
        case Phase.REQUEUING:
            return "asking the scheduler to queue the job again"
        case Phase.SWEEPING:
            return "seeing that nothing of the run is left on any host"
        case _:
            return None


def _up(state: State) -> str:
    digest = state.watch.digest
    if digest is None:
        return "launched"
    ranks = len(state.ledger.active) * state.settings.ranks_per_host
    return f"{digest.ranks_started} of {_count(ranks, 'rank')} up"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _some(hosts: Iterable[str]) -> str:
    names = tuple(hosts)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
