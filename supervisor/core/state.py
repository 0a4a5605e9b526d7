"""The phases of a run, the moves between them as one literal, and all that is known at a
moment.

Owns the shape of the state and nothing that happens to it: observing records events in it,
moves decides, machine joins both.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from supervisor.core.actions import Finish
from supervisor.core.events import (
    AttemptLaunched,
    CheckpointChosen,
    JobRequeued,
    LaunchFailed,
    SchedulerAnswered,
    StacksDumped,
    StopRequested,
    SweepFinished,
)
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Ledger
from supervisor.core.policy import Budget
from supervisor.core.progress import Pace, Watch
from supervisor.core.settings import Settings
from supervisor.core.value import value
from supervisor.core.verdict import Verdict


class Phase(StrEnum):
    """Where a run stands."""

    NEW = "new"
    PROBING = "probing"  # hosts are checked: before the first attempt, and after each failed one
    PREPARING = "preparing"  # the checkpoint of the next attempt is being chosen
    WAITING = "waiting"  # backing off
    LAUNCHING = "launching"
    RUNNING = "running"
    DUMPING = "dumping"  # a hang is suspected: the ranks' stacks are asked for
    ENDING = "ending"  # the attempt has been told to end
    SWEEPING = "sweeping"  # no attempt will follow
    REQUEUING = "requeuing"  # nothing is left, and the scheduler is asked to queue the job again
    FINISHED = "finished"


# phase -> word of the trigger -> phase. What is absent is illegal and raises.
TRANSITIONS: Mapping[Phase, Mapping[str, Phase]] = {
    Phase.NEW: {
        "begin": Phase.PREPARING,
        "preflight": Phase.PROBING,
        "stop": Phase.FINISHED,
    },
    Phase.PROBING: {
        "ask_more": Phase.PROBING,
        "probed": Phase.PREPARING,
        "give_up": Phase.SWEEPING,
        "stop": Phase.SWEEPING,
    },
    Phase.PREPARING: {
        "launch": Phase.LAUNCHING,
        "back_off": Phase.WAITING,
        "give_up": Phase.SWEEPING,
        "stop": Phase.SWEEPING,
    },
    Phase.WAITING: {
        "launch": Phase.LAUNCHING,
        "stop": Phase.SWEEPING,
    },
    Phase.LAUNCHING: {
        "launched": Phase.RUNNING,
        "refused": Phase.SWEEPING,
        "succeed": Phase.SWEEPING,
        "fail": Phase.PROBING,
        "give_up": Phase.SWEEPING,
        "stop": Phase.SWEEPING,
    },
    Phase.RUNNING: {
        "look": Phase.RUNNING,
        "notice": Phase.RUNNING,
        "hang": Phase.DUMPING,
        "end": Phase.ENDING,
        "succeed": Phase.SWEEPING,
        "fail": Phase.PROBING,
        "give_up": Phase.SWEEPING,
        "stop": Phase.SWEEPING,
    },
    Phase.DUMPING: {
        "progress": Phase.RUNNING,
        "end": Phase.ENDING,
        "succeed": Phase.SWEEPING,
        "fail": Phase.PROBING,
        "give_up": Phase.SWEEPING,
        "stop": Phase.SWEEPING,
    },
    Phase.ENDING: {
        "hurry": Phase.ENDING,
        "succeed": Phase.SWEEPING,  # all ranks were done and hung in their exit
        "fail": Phase.PROBING,
        "give_up": Phase.SWEEPING,
        "stop": Phase.SWEEPING,
    },
    Phase.SWEEPING: {"swept": Phase.FINISHED, "requeue": Phase.REQUEUING},
    Phase.REQUEUING: {"answered": Phase.FINISHED},
    Phase.FINISHED: {},
}


@value
class State:
    """All that is known of a run. Equal states decide alike."""

    phase: Phase = Phase.NEW
    run_id: str = ""
    started_at: float | None = None
    deadline: float | None = None
    allocation: str = ""
    allotted: tuple[str, ...] = ()  # its hosts, as it began
    settings: Settings = field(default_factory=lambda: Settings(ranks_per_host=1))
    attempt: int = 0  # the newest launched, or about to be; 0 before the first
    ledger: Ledger = field(default_factory=Ledger)
    budget: Budget = field(default_factory=Budget)
    pace: Pace = field(default_factory=Pace)
    evidence: Evidence = field(default_factory=lambda: Evidence(attempt=0))
    watch: Watch = field(default_factory=lambda: Watch(launched_at=0.0, phase_at=0.0))
    verdict: Verdict | None = None  # of the newest attempt that failed
    checkpoint: CheckpointChosen | None = None
    launch: AttemptLaunched | LaunchFailed | None = None
    stacks: StacksDumped | None = None
    sweep: SweepFinished | None = None
    asked: tuple[str, ...] = ()  # hosts probed in this phase
    unanswered: frozenset[str] = frozenset()
    looks: tuple[tuple[str, float], ...] = ()  # silent hosts looked at while running, and when
    looking: tuple[str, ...] = ()  # those of them that have not answered
    noticed: tuple[str, ...] = ()  # signatures of mistakes told of while the attempt goes on
    wake_at: float | None = None  # when waiting or dumping is over
    end_grace: float = 0.0  # of the newest order to end the attempt
    stop: StopRequested | None = None
    hurry: bool = False  # a second request to stop
    inquired: bool = False  # the scheduler has been asked what the request to stop means
    answer: SchedulerAnswered | None = None
    requeued: JobRequeued | None = None
    finish: Finish | None = None
    returned: int = 0  # supervisors that took over from one that had died
    returned_at: float | None = None
    story: tuple[str, ...] = ()  # the last moves, for whoever meets an illegal one
