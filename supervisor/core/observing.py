"""Recording: an event becomes part of the state, or is dropped because it speaks of another
attempt or phase.

Owns which events still matter. It decides nothing: the same event observed twice is the state
observed once.
"""

from dataclasses import replace

from supervisor.core import evidence as facts
from supervisor.core import progress
from supervisor.core.events import (
    AllocationGranted,
    AttemptEnded,
    AttemptLaunched,
    CheckpointChosen,
    Event,
    HitSeen,
    HostProbed,
    JobRequeued,
    LaunchFailed,
    ProgressSeen,
    RankFailed,
    RunStarted,
    SchedulerAnswered,
    StacksDumped,
    StopRequested,
    SupervisorReturned,
    SweepFinished,
    Ticked,
)
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import make_ledger, renew, suspect
from supervisor.core.notice import ANNOUNCING, LATE
from supervisor.core.policy import refill
from supervisor.core.signature import Cause, Hit
from supervisor.core.state import Phase, State
from supervisor.core.testimony import accused, known

ALIVE = frozenset({Phase.LAUNCHING, Phase.RUNNING, Phase.DUMPING, Phase.ENDING})
TELLING = ALIVE | {Phase.PROBING}  # kernel logs of other hosts arrive late
FATAL = frozenset({Cause.NODE_LOST, Cause.NODE_HARDWARE, Cause.GPU_MEMORY_HW})

Word = ProgressSeen | RankFailed | HitSeen | HostProbed
Milestone = (
    AttemptLaunched | LaunchFailed | AttemptEnded | StacksDumped | SweepFinished | JobRequeued
)
HEARD: dict[type[Word | Milestone], frozenset[Phase]] = {
    AttemptLaunched: frozenset({Phase.LAUNCHING}),
    LaunchFailed: frozenset({Phase.LAUNCHING}),
    ProgressSeen: ALIVE,
    RankFailed: ALIVE,
    HitSeen: TELLING,
    AttemptEnded: ALIVE,
    HostProbed: frozenset({Phase.RUNNING, Phase.PROBING}),
    StacksDumped: frozenset({Phase.DUMPING}),
    SweepFinished: frozenset({Phase.SWEEPING}),
    JobRequeued: frozenset({Phase.REQUEUING}),
}


def observe(state: State, event: Event) -> State:
    """Record an event."""
    match event:
        case RunStarted():
            return _started(state, event) if state.phase is Phase.NEW else state
        case AllocationGranted():
            return _granted(state, event)
        case StopRequested():
            return _stop_requested(state, event)
        case SchedulerAnswered():
            return _scheduler_answered(state, event)
        case SupervisorReturned():
            return _returned(state, event)
        case Ticked():
            return state
        case CheckpointChosen():
            return _checkpoint_chosen(state, event)
        case _:
            return _of_attempt(state, event)


def _of_attempt(state: State, event: Word | Milestone) -> State:
    """Events of an attempt count while that attempt is the newest, in phases that can hear them."""
    if event.attempt != state.attempt or state.phase not in HEARD[type(event)]:
        return state
    match event:
        case ProgressSeen() | RankFailed() | HitSeen() | HostProbed():
            return _told(state, event)
        case _:
            return _passed(state, event)


def _told(state: State, event: Word) -> State:
    match event:
        case ProgressSeen():
            return _progress_seen(state, event)
        case RankFailed():
            fault = replace(state.evidence, fault_at=_first(state.evidence.fault_at, event.at))
            return replace(state, evidence=facts.with_failure(fault, event))
        case HitSeen():
            return _hit_seen(state, event)
        case _:
            return _probed(state, event)


def _passed(state: State, event: Milestone) -> State:
    match event:
        case AttemptLaunched() | LaunchFailed():
            return _launch_answered(state, event)
        case AttemptEnded():
            return _ended(state, event)
        case StacksDumped():
            return replace(state, stacks=event)
        case JobRequeued():
            return replace(state, requeued=event)
        case _:
            return replace(state, sweep=event)


def _started(state: State, event: RunStarted) -> State:
    return replace(
        state,
        run_id=event.run_id,
        started_at=event.at,
        deadline=event.deadline,
        allocation=event.allocation,
        allotted=(*event.active, *event.spares),
        settings=event.settings,
        ledger=make_ledger(event.active, event.spares),
    )


def _granted(state: State, event: AllocationGranted) -> State:
    """Whatever ran in the old allocation has ended with it; what was learned is kept."""
    if state.started_at is None or event.at <= state.started_at:
        return state
    used = min(state.budget.used + 1, state.settings.max_relaunches)  # a start is a relaunch too
    return State(
        run_id=state.run_id,
        started_at=event.at,
        deadline=event.deadline,
        allocation=event.allocation,
        allotted=(*event.active, *event.spares),
        settings=state.settings,
        attempt=state.attempt,
        ledger=renew(state.ledger, event.active, event.spares),
        budget=replace(state.budget, used=used),
        pace=state.pace,
        evidence=Evidence(attempt=state.attempt),
        returned=state.returned,
        returned_at=state.returned_at,
    )


def _stop_requested(state: State, event: StopRequested) -> State:
    if state.stop is None:
        return replace(state, stop=event)
    if event.signal in ANNOUNCING:  # said again
        return state
    return replace(state, hurry=state.hurry or event.at > state.stop.at)


def _scheduler_answered(state: State, event: SchedulerAnswered) -> State:
    if event.attempt != state.attempt or not state.inquired or state.answer is not None:
        return state
    return replace(state, answer=event)


def _returned(state: State, event: SupervisorReturned) -> State:
    if state.returned_at is not None and event.at <= state.returned_at:
        return state
    return replace(state, returned=state.returned + 1, returned_at=event.at)


def _checkpoint_chosen(state: State, event: CheckpointChosen) -> State:
    if state.phase is not Phase.PREPARING or event.attempt != state.attempt + 1:
        return state
    reached = event.step if state.settings.checkpoints else state.evidence.top_step
    return replace(state, checkpoint=event, budget=refill(state.budget, reached))


def _launch_answered(state: State, event: AttemptLaunched | LaunchFailed) -> State:
    watch = replace(state.watch, launched_at=event.at, phase_at=event.at)
    return replace(state, launch=event, watch=watch)


def _progress_seen(state: State, event: ProgressSeen) -> State:
    watch = progress.with_digest(state.watch, event)
    if watch is state.watch:
        return state
    old, evidence, pace = state.evidence, state.evidence, state.pace
    if event.step is not None:
        first = event.step if old.first_step is None else old.first_step
        top = max(event.step, old.top_step or event.step, event.top_step or event.step)
        if old.first_step is None:
            pace = progress.started(pace, state.watch, event.step_at or event.at)
        evidence = replace(old, first_step=first, top_step=top, risen_at=event.step_at)
    silent = progress.silent_hosts(event, state.settings, len(state.ledger.active))
    missing = progress.missing_hosts(watch, state.settings)
    return replace(
        state,
        watch=watch,
        evidence=evidence,
        pace=progress.learned(pace, state.watch.digest, event),
        ledger=suspect(state.ledger, known((*silent, *missing), state.ledger)),
    )


def _hit_seen(state: State, event: HitSeen) -> State:
    evidence = facts.with_hit(state.evidence, event)
    if state.phase in ALIVE and _fatal(state, event.hit):
        evidence = replace(evidence, fault_at=_first(evidence.fault_at, event.at))
    return replace(state, evidence=evidence)


def _fatal(state: State, hit: Hit) -> bool:
    """Proof, not by a rank, of something that no attempt on this host survives."""
    if not facts.outsider_proof(hit) or hit.cause not in FATAL:
        return False
    return any(host in state.ledger.active for host in accused(hit, state.ledger))


def _ended(state: State, event: AttemptEnded) -> State:
    late = state.deadline is not None and event.at >= state.deadline - LATE
    return replace(state, evidence=replace(state.evidence, ended=event, past_deadline=late))


def _probed(state: State, event: HostProbed) -> State:
    """An answer names the host as the question did."""
    if state.phase is Phase.RUNNING:
        return _looked_at(state, event)
    if event.live or event.host not in state.unanswered:
        return state
    return _answered(replace(state, unanswered=state.unanswered - {event.host}), event)


def _looked_at(state: State, event: HostProbed) -> State:
    """A silent host's answer while the attempt runs; one that beats again is beyond suspicion."""
    if event.host not in state.looking:
        return state
    left = tuple(name for name in state.looking if name != event.host)
    state = replace(state, looking=left)
    if event.host in state.ledger.suspects:
        return replace(state, evidence=_looked_into(state, event))
    if event.answer == "pass":
        return replace(state, evidence=replace(state.evidence, well=True))
    return state


def _looked_into(state: State, event: HostProbed) -> Evidence:
    """Bad answers convict; a good one from a host without the ranks that had started there tells
    that they are gone.
    """
    evidence, digest = state.evidence, state.watch.digest
    if event.answer in ("fail", "unreachable"):
        well = evidence.well or (digest is not None and digest.beating > 0)
        return replace(evidence, convicted=(*evidence.convicted, event), well=well)
    had_ranks = digest is not None and event.host not in known(digest.missing, state.ledger)
    gone = (event.host,) if event.running == 0 and had_ranks else ()
    return replace(evidence, gone=(*evidence.gone, *gone), well=True)


def _answered(state: State, event: HostProbed) -> State:
    evidence = state.evidence
    if event.answer == "pass":
        return replace(state, evidence=replace(evidence, passed=evidence.passed + 1))
    return replace(state, evidence=replace(evidence, answers=(*evidence.answers, event)))


def _first(known_at: float | None, at: float) -> float:
    return at if known_at is None else min(known_at, at)
