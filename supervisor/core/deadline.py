"""What the deadline allows: when an attempt must begin to end, how long it may take over that, and
whether another can pay for itself. Arithmetic on the state only.
"""

from supervisor.core import notice
from supervisor.core.progress import Pace
from supervisor.core.settings import Settings
from supervisor.core.state import State

CLEARING = 5.0  # seconds from SIGKILL until nothing is left of an attempt
START_FACTOR = 1.5  # a relaunch also reads checkpoints and redoes steps


def lead(settings: Settings) -> float:
    """How long before the deadline an attempt is told to end, that it may save what it has."""
    return max(settings.signal_before, settings.grace + CLEARING)


def last_moment(state: State) -> float | None:
    """When an attempt must be told to end so that it, and what it leaves, is gone by the deadline.

    Of a short allocation a tenth must do.
    """
    if state.deadline is None:
        return None
    whole = state.deadline - (state.started_at or 0.0)
    return state.deadline - min(lead(state.settings), whole / 10)


def time_to_save(state: State, now: float) -> float:
    """The grace of an attempt that the deadline, or its announcement, ends: all that is left."""
    grace = max(state.settings.grace, lead(state.settings) - CLEARING)
    if state.deadline is None:
        return grace
    left = max(0.0, state.deadline - now)
    return min(grace, max(left - CLEARING, left / 2))


def grace_on_request(state: State, now: float) -> float:
    """An end that is announced leaves more time than one that is demanded."""
    if state.stop is not None and notice.announces(state.stop):
        return time_to_save(state, now)
    return state.settings.grace


def relaunch_cost(settings: Settings, pace: Pace) -> float:
    """What a relaunch takes before it gains anything: as long as the slowest start of this run."""
    return max(settings.relaunch_cost, START_FACTOR * max(pace.starts, default=0.0))
