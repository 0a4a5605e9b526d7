"""What is done while an attempt may be alive: wait, look, dump, end, and take note of its end.

Owns the phases launching, running, dumping and ending. Nothing here begins another attempt.

When proof of a fault has been seen, the attempt gets a settle window in which the rest of the
story may arrive, and is then ended if it has not ended by itself: several launchers leave the
other ranks running, or waiting for ever, when one has died. A hang is not acted on at once:
stacks are dumped first, and a step that rises meanwhile calls it off.
"""

from dataclasses import replace

from supervisor.core import notice, orders, progress, words
from supervisor.core.actions import Action, DumpStacks, Outcome, ProbeHosts
from supervisor.core.deadline import grace_on_request, last_moment, time_to_save
from supervisor.core.events import LaunchFailed
from supervisor.core.evidence import first_failure, last_exception, succeeded
from supervisor.core.judge import judge
from supervisor.core.orders import Actions, Move
from supervisor.core.owners import probe_words
from supervisor.core.policy import stops
from supervisor.core.quotes import told
from supervisor.core.signature import Cause, Role
from supervisor.core.state import State
from supervisor.core.testimony import is_proof, known
from supervisor.errors import ExitCode

HURRIED_GRACE = 0.5  # after a second request to stop
DOOMED_GRACE = 10.0  # an attempt that lost a part of itself can save nothing together
LOOK_AGAIN = 3.0  # silence_timeouts between two looks at the same silent host


def launching(state: State, now: float) -> Move | None:
    """A launcher that is being started is not ended before it has answered: there would be
    nothing to end.
    """
    if state.evidence.ended is not None:
        return _ended(state, now)
    if isinstance(state.launch, LaunchFailed):
        return _refused(state, state.launch.why)
    return None if state.launch is None else ("launched", state, ())


def _refused(state: State, why: str) -> Move:
    if state.stop is not None:
        return orders.stop(state)
    message = f"attempt {state.attempt} could not be launched: {why}"
    finish = orders.finished(state, Outcome.GAVE_UP, ExitCode.PLATFORM, message)
    return orders.sweep("refused", state, finish)


def running(state: State, now: float) -> Move | None:
    """The heart of the watch."""
    if state.evidence.ended is not None:
        return _ended(state, now)
    if state.stop is not None:
        return _end_on_request(state, now)
    if _is_lost(state):
        return _end_for_silence(state, now)
    if state.evidence.gone:
        return _end_for_absence(state, now)
    if state.evidence.fault_at is not None and now >= settled_at(state):
        return _end_for_fault(state, now)
    if (ends_at := last_moment(state)) is not None and now >= ends_at:
        return _end_for_walltime(state, now)
    why = _hang(state)
    if why is not None:
        return _dump(state, now, why)
    return _look(state, now) or _notice(state, now)


def dumping(state: State, now: float) -> Move | None:
    """Stacks are being gathered; they may come late, and the hang may turn out to be none."""
    if state.evidence.ended is not None:
        return _ended(state, now)
    if state.stop is not None:
        return _end_on_request(state, now)
    why = _hang(state)
    if why is None:
        text = f"attempt {state.attempt} makes progress again: not a hang"
        return "progress", replace(state, wake_at=None), (orders.announce(state, text),)
    if state.stacks is None and now < (state.wake_at or now):
        return None
    return orders.end(state, now, Cause.HANG, why, state.settings.grace)


def ending(state: State, now: float) -> Move | None:
    """Told to end; a second request to stop makes the grace a short one."""
    if state.evidence.ended is not None:
        return _ended(state, now)
    if state.hurry and state.end_grace > HURRIED_GRACE:
        hurried = replace(state, end_grace=HURRIED_GRACE)
        return "hurry", hurried, orders.ending_orders(hurried)
    return None


def settled_at(state: State) -> float:
    """When the story of a fault is taken to be complete."""
    return (state.evidence.fault_at or 0.0) + state.settings.settle


def looking(state: State) -> Actions:
    """What is still asked of silent hosts."""
    if not state.looking:
        return ()
    return (ProbeHosts(attempt=state.attempt, hosts=state.looking, reap=False),)


def _ended(state: State, now: float) -> Move:
    if state.stop is not None:
        return orders.stop(state)
    if succeeded(state.evidence):
        message = words.succeeded(state.evidence)
        finish = orders.finished(state, Outcome.SUCCEEDED, ExitCode.SUCCEEDED, message)
        return orders.sweep("succeed", state, finish)
    verdict = judge(state.evidence, state.ledger)
    stop = stops(orders.case_of(state, verdict, now))
    if stop is not None and verdict.cause in (Cause.WALLTIME, Cause.PREEMPTED):
        return orders.give_up(state, verdict, stop)
    state = replace(state, asked=(), looking=())
    return orders.ask("fail", state, _to_probe(state, len(verdict.charges)))


def _to_probe(state: State, blamed: int) -> tuple[str, ...]:
    """Active hosts, less those known to be out of reach, and the spares that may be needed."""
    convicted = state.evidence.convicted if state.evidence.well else ()
    lost = known((a.host for a in convicted if a.answer == "unreachable"), state.ledger)
    active = tuple(host for host in state.ledger.active if host not in lost)
    return (*active, *state.ledger.spares[: max(1, blamed)])


def _end_on_request(state: State, now: float) -> Move:
    grace = HURRIED_GRACE if state.hurry else grace_on_request(state, now)
    asked, question = orders.inquiry(state)
    return orders.end(asked, now, None, _request(state), grace, question)


def _request(state: State) -> str:
    if state.stop is None or state.stop.drain:
        return "drain"
    if notice.announces(state.stop):
        return f"{notice.SIGNALS[state.stop.signal or 0]} announces the end of the job"
    return "stop requested"


def _is_lost(state: State) -> bool:
    """A host is, once another is well; where none is, all have been asked first."""
    evidence = state.evidence
    everyone = len(evidence.convicted) >= len(state.ledger.active)
    return bool(evidence.convicted) and (evidence.well or everyone)


def _end_for_silence(state: State, now: float) -> Move:
    answer = state.evidence.convicted[-1]
    why = f"no rank on {answer.host} has been heard of, and {probe_words(answer)}"
    text = f"attempt {state.attempt} cannot go on: {why}; ending it"
    said = (orders.announce(state, text),)
    return orders.end(state, now, Cause.NODE_LOST, why, _doomed_grace(state), said)


def _end_for_absence(state: State, now: float) -> Move:
    why = f"no rank on {state.evidence.gone[-1]} is left, and none said that it ended"
    text = f"attempt {state.attempt} cannot go on: {why}; ending it"
    said = (orders.announce(state, text),)
    return orders.end(state, now, Cause.LAUNCHER, why, _doomed_grace(state), said)


def _end_for_fault(state: State, now: float) -> Move:
    why = _fault(state)
    text = f"attempt {state.attempt} cannot go on: {why}; ending it"
    said = (orders.announce(state, text),)
    return orders.end(state, now, None, why, _doomed_grace(state), said)


def _end_for_walltime(state: State, now: float) -> Move:
    left = max(0.0, (state.deadline or now) - now)
    why = f"{left:.0f} s are left before the deadline"
    return orders.end(state, now, Cause.WALLTIME, why, time_to_save(state, now))


def _doomed_grace(state: State) -> float:
    return min(state.settings.grace, DOOMED_GRACE)


def _fault(state: State) -> str:
    failure = first_failure(state.evidence) or next(iter(state.evidence.failures), None)
    proofs = (event.hit for event in state.evidence.hits if is_proof(event.hit))
    hit = next(proofs, None)
    if hit is not None:
        return told(hit)
    return f"rank {failure.rank} on {failure.host} failed" if failure else "a fault was seen"


def _hang(state: State) -> str | None:
    """MPI makes a rank that dies of an exception wait for the others in its exit, and them for it:
    what it said is the only sign, so less patience is due.
    """
    died = last_exception(state.evidence) is not None
    return progress.hang(state.watch, state.pace, state.settings, died=died)


def _dump(state: State, now: float, why: str) -> Move:
    text = f"attempt {state.attempt} seems to hang: {why}; asking all ranks for their stacks"
    actions: tuple[Action, ...] = (orders.announce(state, text), DumpStacks(attempt=state.attempt))
    wake_at = now + state.settings.stacks_wait
    return "hang", replace(state, stacks=None, wake_at=wake_at), actions


def _look(state: State, now: float) -> Move | None:
    """A silent host is asked how it is; one that answered well is asked again later."""
    pause = LOOK_AGAIN * state.settings.silence_timeout
    recent = {host for host, at in state.looks if now - at < pause}
    due = tuple(host for host in state.ledger.suspects if host not in recent)
    if not due:
        return None
    asked = (*due, *_witness(state))
    looks = (*(entry for entry in state.looks if entry[0] in recent), *((h, now) for h in asked))
    looked = replace(
        state, looks=looks, looking=(*(h for h in state.looking if h not in asked), *asked)
    )
    hosts = f"{', '.join(due[:4])}{f' and {len(due) - 4} more' if len(due) > 4 else ''}"
    text = f"{hosts}: no rank has been heard of for a while; asking the host{'s' * (len(due) > 1)}"
    order = ProbeHosts(attempt=state.attempt, hosts=asked, reap=False)
    return "look", looked, (orders.announce(state, text), order)


def _witness(state: State) -> tuple[str, ...]:
    """Where no rank beats any more, a host whose ranks have ended: it tells whether hosts can be
    reached at all.
    """
    digest = state.watch.digest
    if digest is None or digest.beating or not digest.silent:
        return ()
    ended = (host for host in state.ledger.active if host not in state.ledger.suspects)
    return tuple(ended)[:1]


def _notice(state: State, now: float) -> Move | None:
    """A mistake of the command that ends nothing: its user must hear of it. A program of another
    MPI than the launcher's trains as many times as it has ranks, and all end well.
    """
    said = (
        event.hit
        for event in state.evidence.hits
        if event.hit.cause is Cause.USER_ERROR
        and event.hit.role is Role.PROOF
        and event.hit.signature not in state.noticed
        and now - event.at >= state.settings.settle
    )
    hit = next(said, None)
    if hit is None:
        return None
    text = f"attempt {state.attempt} goes on, but look: {hit.title} [{told(hit)}]"
    noticed = replace(state, noticed=(*state.noticed, hit.signature))
    return "notice", noticed, (orders.announce(state, text),)
