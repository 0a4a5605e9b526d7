"""What to do: frozen, imperative, each with the attempt it belongs to. Performing one twice
does it once.
"""

from enum import StrEnum

from supervisor.core.value import value


class Outcome(StrEnum):
    """How a run ended."""

    SUCCEEDED = "succeeded"
    GAVE_UP = "gave_up"
    DRAINED = "drained"
    STOPPED = "stopped"
    REQUEUED = "requeued"  # not over: it goes on in the next allocation


@value
class ChooseCheckpoint:
    """Find the checkpoint this attempt resumes from. Answered by CheckpointChosen."""

    attempt: int


@value
class Launch:
    """Start the command on these hosts, in this order. Answered by AttemptLaunched or
    LaunchFailed.
    """

    attempt: int
    hosts: tuple[str, ...]
    retired: tuple[str, ...]  # the plan must name none of these
    resume_from: str


@value
class EndAttempt:
    """SIGTERM the launcher, SIGKILL after the grace. Answered by AttemptEnded."""

    attempt: int
    grace: float
    why: str


@value
class ProbeHosts:
    """Reap leftovers of this run and check the host, on each of these. Answered by one
    HostProbed a host.
    """

    attempt: int
    hosts: tuple[str, ...]
    reap: bool  # False while the attempt runs: only look


@value
class DumpStacks:
    """Ask all ranks for their stacks. Answered by StacksDumped."""

    attempt: int


@value
class RetireHost:
    """Write down that a host is retired, and why. No answer."""

    attempt: int
    host: str
    cause: str
    why: str


@value
class Announce:
    """Tell the user in one line what was decided. No answer."""

    attempt: int
    text: str
    grounds: tuple[str, ...] = ()  # what the verdict rests on and what it set aside, in lines


@value
class Sweep:
    """End whatever is left of the run on these hosts. Answered by SweepFinished."""

    attempt: int
    hosts: tuple[str, ...]


@value
class AskScheduler:
    """Find out what becomes of the job. Answered by SchedulerAnswered."""

    attempt: int


@value
class RequeueJob:
    """Have the scheduler queue the job again. Answered by JobRequeued, if we live to hear it."""

    attempt: int


@value
class Finish:
    """The run is over: say so and leave with this exit code. Nothing follows it."""

    attempt: int
    outcome: Outcome
    exit_code: int
    message: str
    grounds: tuple[str, ...] = ()


Action = (
    ChooseCheckpoint
    | Launch
    | EndAttempt
    | ProbeHosts
    | DumpStacks
    | RetireHost
    | Announce
    | Sweep
    | AskScheduler
    | RequeueJob
    | Finish
)
