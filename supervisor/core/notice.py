"""What a signal that asks for the end means: deadline, preemption, a cancelled job, or a user.

Owns that question alone. Schedulers send the same SIGTERM for all of them, so the scheduler is
asked what became of the job, and the deadline decides where it does not say. SIGUSR1 and SIGUSR2
come from schedulers that were told to announce the end (`#SBATCH --signal=B:USR1@300`, qsig).
"""

from collections.abc import Mapping
from enum import StrEnum

from supervisor.core.events import SchedulerAnswered, StopRequested
from supervisor.core.signature import Cause
from supervisor.core.value import value

SIGINT, SIGUSR1, SIGUSR2, SIGTERM = 2, 10, 12, 15
ANNOUNCING = frozenset({SIGUSR1, SIGUSR2})
SCHEDULERS_OWN = ANNOUNCING | {SIGTERM}
SIGNALS = {1: "SIGHUP", 2: "SIGINT", 10: "SIGUSR1", 12: "SIGUSR2", 15: "SIGTERM"}
EARLY = 120.0  # Slurm announces the end up to a minute sooner than it was told to
LATE = 5.0  # schedulers' clocks differ from ours, and some end a job a little early


class JobState(StrEnum):
    """What a scheduler says of the job when it is asked."""

    RUNNING = "running"
    TIMED_OUT = "timed_out"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"  # it has queued the job again by itself
    LOST_HOST = "lost_host"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@value
class End:
    """Why an end was asked for; no cause: somebody wanted it."""

    cause: Cause | None
    why: str


WORDS: Mapping[str, End] = {
    JobState.TIMED_OUT: End(cause=Cause.WALLTIME, why="the job's time limit is reached"),
    JobState.PREEMPTED: End(cause=Cause.PREEMPTED, why="the scheduler takes the job's hosts back"),
    JobState.REQUEUED: End(cause=Cause.PREEMPTED, why="the scheduler has queued the job again"),
    JobState.LOST_HOST: End(
        cause=Cause.NODE_LOST, why="the job has lost a host and does not live on without it"
    ),
    JobState.CANCELLED: End(cause=None, why="the job was cancelled"),
}


def is_askable(stop: StopRequested | None) -> bool:
    """Whether a scheduler may be behind it."""
    return stop is not None and not stop.drain and stop.signal in SCHEDULERS_OWN


def announces(stop: StopRequested) -> bool:
    """Whether the signal tells of an end that is still to come."""
    return stop.signal in ANNOUNCING and not stop.drain


def end_of(
    stop: StopRequested, answer: SchedulerAnswered | None, deadline: float | None, lead: float
) -> End:
    """What the end is, by the scheduler's word, else by the deadline. `lead`: how long before it an
    end is announced.
    """
    said = None if answer is None else WORDS.get(answer.state)
    if said is not None:
        return said
    name = SIGNALS.get(stop.signal or 0, f"signal {stop.signal}")
    early = lead + EARLY if announces(stop) else LATE
    left = None if deadline is None else deadline - stop.at
    if is_askable(stop) and left is not None and left <= early:
        return End(
            cause=Cause.WALLTIME, why=f"{name} came {max(left, 0):.0f} s before the deadline"
        )
    if announces(stop):
        return End(cause=Cause.PREEMPTED, why=f"{name} announced the end of the job")
    return End(cause=None, why="on request" if stop.signal is None else f"by {name}")
