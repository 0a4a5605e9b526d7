"""What the user asked for, as far as decisions depend on it. Every number is in seconds unless
its name says else.
"""

from supervisor.core.value import value


@value
class Settings:
    """The knobs of policy, each with its default and where that comes from."""

    ranks_per_host: int
    checkpoints: bool = (
        False  # a checkpoint folder is known, so only complete checkpoints refill the budget
    )
    min_hosts: int | None = (
        None  # shrink down to this many hosts when spares run out; None: never shrink
    )
    max_relaunches: int = (
        5  # relaunches in a row without progress that reached a complete checkpoint
    )
    idle_timeout: float = 1800.0  # no output and no step; also the ceiling of learned step limits
    startup_timeout: float = 1800.0  # launch to first step: compiles of 4 h exist, but say so then
    step_floor: float = 60.0  # a learned step limit is never under this, nor over idle_timeout
    step_factor: float = 10.0  # learned limit = factor x a high quantile of step times
    silence_timeout: float = 15.0  # a host none of whose shims beat, while others do, is suspect
    grace: float = 30.0  # between SIGTERM and SIGKILL
    signal_before: float = (
        300.0  # before the deadline the attempt is told to end, so that it can save
    )
    requeue: bool = False  # have the scheduler queue the job again where that can help
    scheduler: str = ""  # which can be asked what becomes of the job; empty: none
    settle: float = (
        3.0  # between proof of a fault and ending the attempt, for the rest of the story to arrive
    )
    stacks_wait: float = 5.0  # how long a dump of stacks may take
    backoff_first: float = 2.0
    backoff_ceiling: float = 300.0
    relaunch_cost: float = 60.0  # never relaunch with less than this left before the deadline
    preflight: bool = False
    jitter: tuple[
        float, ...
    ] = ()  # factors in [0.5, 1.5), drawn at the start, used in turn by backoffs
