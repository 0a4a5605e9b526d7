"""What to do: frozen, imperative, each with the attempt it belongs to. Performing one twice
does it once.
"""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """How a run ended."""

    SUCCEEDED = "succeeded"
    GAVE_UP = "gave_up"
    DRAINED = "drained"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseCheckpoint:
    """Find the checkpoint this attempt resumes from. Answered by CheckpointChosen."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Start the command on these hosts, in this order. Answered by AttemptLaunched or
    LaunchFailed.
    """

    attempt: int
    hosts: tuple[str, ...]
    retired: tuple[str, ...]  # the plan must name none of these
    resume_from: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAttempt:
    """SIGTERM the launcher, SIGKILL after the grace. Answered by AttemptEnded."""

    attempt: int
    grace: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeHosts:
    """Reap leftovers of this run and check the host, on each of these. Answered by one
    HostProbed a host.
    """

    attempt: int
    hosts: tuple[str, ...]
    reap: bool  # False while the attempt runs: only look


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpStacks:
    """Ask all ranks for their stacks. Answered by StacksDumped."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireHost:
    """Write down that a host is retired, and why. No answer."""

    attempt: int
    host: str
    cause: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """Tell the user in one line what was decided. No answer."""

    attempt: int
    text: str
    grounds: tuple[str, ...] = ()  # what the verdict rests on and what it set aside, in lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """End whatever is left of the run on these hosts. Answered by SweepFinished."""

    attempt: int
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
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
    | Finish
)
