"""What happened: frozen, past tense, each with `at` in seconds since 1970 on a clock that never
runs backwards.

Events are what the journal keeps. Those of an attempt carry its number; one of an older attempt
changes nothing.
"""

from supervisor.core.settings import Settings
from supervisor.core.signature import Hit
from supervisor.core.value import value


@value
class RunStarted:
    """The first event of every run."""

    at: float
    run_id: str
    active: tuple[str, ...]
    spares: tuple[str, ...]
    deadline: float | None
    settings: Settings
    command: tuple[str, ...] = ()
    allocation: str = ""  # which job of the scheduler's, and which start of it; empty: none


@value
class AllocationGranted:
    """The run goes on in another allocation: its job was queued again, or another one follows."""

    at: float
    active: tuple[str, ...]
    spares: tuple[str, ...]
    deadline: float | None
    allocation: str


@value
class SupervisorReturned:
    """A new supervisor took over this run folder after the last one died."""

    at: float


@value
class CheckpointChosen:
    """The newest complete and verified checkpoint; step is None when there is none to resume
    from.
    """

    at: float
    attempt: int
    step: int | None
    path: str
    set_aside: tuple[str, ...] = ()


@value
class AttemptLaunched:
    """The keeper holds a running launcher."""

    at: float
    attempt: int


@value
class LaunchFailed:
    """The launcher could not be started at all."""

    at: float
    attempt: int
    why: str


@value
class ProgressSeen:
    """A digest of shims, slots, step lines and output, taken every few seconds and at each
    first.

    `silent` names hosts whose shims have stopped beating, with the time of their last beat; a
    host that never beat is not in it.
    """

    at: float
    attempt: int
    ranks_started: int
    step: int | None  # lowest step among ranks that state one; None before any
    top_step: int | None  # highest
    phase: str  # the phase most ranks are in
    step_at: float | None  # when the lowest step last rose
    output_at: float  # when anything was last printed, or the launch
    silent: tuple[tuple[str, float], ...] = ()
    beating: int = 0  # hosts that beat recently
    stopped_ranks: tuple[int, ...] = ()  # ranks whose command is stopped (T) or dead asleep (D)
    lagging_ranks: tuple[
        int, ...
    ] = ()  # ranks at the lowest step when others are ahead, at most 16
    phases: tuple[str, ...] = ()  # every phase some rank is in; empty: only `phase` is known
    missing: tuple[str, ...] = ()  # hosts of which no rank has started, at most 64


@value
class RankFailed:
    """A rank ended by a non-zero exit code or a signal, on its shim's word. At most 64 are kept
    an attempt.
    """

    at: float
    attempt: int
    rank: int
    host: str
    exit_code: int | None
    signal: int | None
    step: int | None


@value
class HitSeen:
    """A line matched a signature. Repeats of signature, host and named hosts are counted, not
    kept.
    """

    at: float
    attempt: int
    hit: Hit
    written_at: float | None = None  # the line was there by then; `at` less this is our delay


@value
class AttemptEnded:
    """The launcher is gone and all its output has been read."""

    at: float
    attempt: int
    exit_code: int | None
    signal: int | None
    ranks_total: int
    ranks_succeeded: int  # ranks whose shim reported exit code 0, or whose agent said it was done
    reports: bool  # whether shims report at all (--no-shim: the launcher's word must do)
    last_words: tuple[str, ...] = ()  # last lines of the first failed rank, or of the launcher
    vanished: tuple[str, ...] = ()  # hosts whose ranks all left without a word while others' told
    meaning: str = ""  # what the launcher means by its exit code, where that is known


@value
class HostProbed:
    """A probe's answer from one host, or its absence."""

    at: float
    attempt: int
    host: str
    answer: str  # "pass", "fail", "unknown" or "unreachable"
    why: str = ""
    leftovers: int = 0  # processes of this run it had to end
    cause: str = ""  # of a "fail": the Cause the failed check speaks for; empty: node_hardware
    live: bool = False  # the answer to a look while the attempt runs (ProbeHosts with reap=False)
    running: int | None = None  # of a look: processes of the attempt there; None: not counted


@value
class StacksDumped:
    """The stacks of the ranks have been asked for and waited for."""

    at: float
    attempt: int
    ranks: int


@value
class StopRequested:
    """A signal, or `supervise stop`, or `supervise drain` asks for the end of the run."""

    at: float
    signal: int | None = None
    drain: bool = False


@value
class SchedulerAnswered:
    """What the scheduler says of the job when a signal asks for the end: one of notice.JobState."""

    at: float
    attempt: int
    state: str


@value
class JobRequeued:
    """The scheduler's answer to a wish to be queued again; `refused` says why not."""

    at: float
    attempt: int
    refused: str = ""


@value
class SweepFinished:
    """After the last attempt nothing of the run is left on any reachable host."""

    at: float
    attempt: int
    leftovers: int


@value
class Ticked:
    """Time passed up to a moment the machine asked to be woken at."""

    at: float


Event = (
    RunStarted
    | AllocationGranted
    | SupervisorReturned
    | CheckpointChosen
    | AttemptLaunched
    | LaunchFailed
    | ProgressSeen
    | RankFailed
    | HitSeen
    | AttemptEnded
    | HostProbed
    | StacksDumped
    | StopRequested
    | SchedulerAnswered
    | JobRequeued
    | SweepFinished
    | Ticked
)

__all__ = [
    "AllocationGranted",
    "AttemptEnded",
    "AttemptLaunched",
    "CheckpointChosen",
    "Event",
    "HitSeen",
    "HostProbed",
    "JobRequeued",
    "LaunchFailed",
    "ProgressSeen",
    "RankFailed",
    "RunStarted",
    "SchedulerAnswered",
    "StacksDumped",
    "StopRequested",
    "SupervisorReturned",
    "SweepFinished",
    "Ticked",
]
