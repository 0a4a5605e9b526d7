"""What must always hold, whatever comes: events stale, doubled, missing, early, out of phase."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core.actions import Action, ChooseCheckpoint, Finish, Launch
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
from supervisor.core.machine import Phase, State, initial, next_wake, outstanding, step
from supervisor.core.notice import JobState
from supervisor.core.record import event_from_json, event_to_json
from supervisor.core.settings import Settings
from supervisor.core.signature import Blames, Cause, Hit, Role, Source

HOSTS = ("x1", "x2", "x3", "x4", "x5")
STRANGER = "y9"

hosts = st.sampled_from((*HOSTS, STRANGER))
steps = st.none() | st.integers(0, 40)
hits = st.builds(
    Hit,
    signature=st.sampled_from(("a", "b", "c")),
    title=st.just("title"),
    cause=st.sampled_from(Cause),
    role=st.sampled_from(Role),
    blames=st.sampled_from(Blames),
    source=st.sampled_from(Source),
    host=st.none() | hosts,
    rank=st.none() | st.integers(0, 5),
    named=st.lists(hosts, max_size=3).map(tuple),
    line=st.sampled_from(("something broke", "Disk quota exceeded")),
    line_number=st.integers(1, 9),
)
# Each kind of event, without its time and attempt.
kinds: tuple[st.SearchStrategy[Callable[..., Event]], ...] = (
    st.builds(lambda s, p: _later(CheckpointChosen, step=s, path=p), steps, st.just("/c")),
    st.just(lambda **when: AttemptLaunched(**when)),
    st.just(lambda **when: LaunchFailed(**when, why="no launcher")),
    st.builds(
        lambda low, top, phase, ago, silent, beating: _later(
            ProgressSeen,
            ranks_started=6,
            step=low,
            top_step=top,
            phase=phase,
            step_at=None if low is None else 1.0 + ago,
            output_at=1.0 + ago,
            silent=tuple((host, 0.0) for host in silent),
            beating=beating,
        ),
        steps,
        steps,
        st.sampled_from(("launch", "compile", "step", "checkpoint")),
        st.integers(0, 2000),
        st.lists(hosts, max_size=2),
        st.integers(0, 3),
    ),
    st.builds(
        lambda rank, host, code, signal, at_step: _later(
            RankFailed, rank=rank, host=host, exit_code=code, signal=signal, step=at_step
        ),
        st.integers(0, 5),
        hosts,
        st.sampled_from((None, 1, 127, 143)),
        st.sampled_from((None, 6, 9, 15)),
        steps,
    ),
    hits.map(lambda hit: _later(HitSeen, hit=hit)),
    st.builds(
        lambda code, well, reports: _later(
            AttemptEnded,
            exit_code=code,
            signal=None if code is not None else 9,
            ranks_total=6,
            ranks_succeeded=well,
            reports=reports,
        ),
        st.sampled_from((None, 0, 1, 143)),
        st.sampled_from((0, 3, 6)),
        st.booleans(),
    ),
    st.builds(
        lambda host, answer, live, cause: _later(
            HostProbed, host=host, answer=answer, live=live, cause=cause
        ),
        hosts,
        st.sampled_from(("pass", "fail", "unknown", "unreachable")),
        st.booleans(),
        st.sampled_from(("", "environment", "nonsense")),
    ),
    st.just(lambda **when: StacksDumped(**when, ranks=6)),
    st.just(lambda **when: SweepFinished(**when, leftovers=0)),
    st.builds(
        lambda signal, drain: _timed(StopRequested, signal=signal, drain=drain),
        st.sampled_from((None, 2, 10, 15)),
        st.booleans(),
    ),
    st.sampled_from((*JobState, "nonsense")).map(
        lambda word: _later(SchedulerAnswered, state=word)
    ),
    st.sampled_from(("", "not allowed")).map(lambda why: _later(JobRequeued, refused=why)),
    st.builds(
        lambda spares, deadline: _timed(
            AllocationGranted,
            active=HOSTS[spares:],
            spares=HOSTS[:spares],
            deadline=deadline,
            allocation="slurm 7 start 1",
        ),
        st.integers(0, 3),
        st.none() | st.floats(10, 5000),
    ),
    st.just(lambda at, attempt: SupervisorReturned(at=at)),
    st.just(lambda at, attempt: Ticked(at=at)),
)
wild = st.tuples(
    st.one_of(kinds), st.sampled_from((-1, 0, 0, 0, 0, 1)), st.sampled_from((0.0, 0.5, 5.0, 100.0))
)
runs = st.builds(
    lambda spares, limit, least, deadline, preflight, checkpoints, scheduler: RunStarted(
        at=1.0,
        run_id="r",
        active=HOSTS[: len(HOSTS) - spares],
        spares=HOSTS[len(HOSTS) - spares :],
        deadline=deadline,
        settings=Settings(
            ranks_per_host=2,
            max_relaunches=limit,
            min_hosts=least,
            preflight=preflight,
            checkpoints=checkpoints,
            jitter=(0.5, 1.4),
            requeue=bool(scheduler),
            scheduler=scheduler,
        ),
    ),
    st.integers(0, 3),
    st.integers(0, 3),
    st.none() | st.integers(1, 4),
    st.none() | st.floats(10, 5000),
    st.booleans(),
    st.booleans(),
    st.sampled_from(("", "slurm")),
)


def _later(kind: Callable[..., Event], **values: Any) -> Callable[..., Event]:
    return lambda **when: kind(**values, **when)


def _timed(kind: Callable[..., Event], **values: Any) -> Callable[..., Event]:
    return lambda at, attempt: kind(at=at, **values)


def check_step(before: State, event: Event, after: State, actions: tuple[Action, ...]) -> None:
    """The promises that one step can break."""
    ledger = after.ledger
    everywhere = (*ledger.active, *ledger.spares, *(entry.host for entry in ledger.retired))

    assert sorted(set(everywhere)) == sorted(everywhere), "a host is in two lists"
    assert set(HOSTS) in (set(everywhere), set(everywhere) | set(HOSTS)), "a host is invented"
    assert set(ledger.suspects) <= set(ledger.active)
    assert after.budget.used <= after.settings.max_relaunches, "budget exceeded"
    if after.verdict is not None:
        assert set(after.verdict.blame) <= set(HOSTS), "a stranger is blamed"
    again = isinstance(event, AllocationGranted)
    if before.phase is Phase.FINISHED and not again:
        assert () == actions, "a finished run emits nothing"
    for action in actions:
        check_action(before, after, action)
    assert (after, ()) == step(after, event), "a doubled event changes something"
    elsewhere = getattr(event, "attempt", before.attempt) != before.attempt
    if elsewhere and not isinstance(event, CheckpointChosen):
        assert (after, actions) == step(before, Ticked(at=event.at)), "a stale event counts"
    wake = next_wake(after)
    assert wake is None or wake > event.at, "a wake-up that is due already would never end"


def check_action(before: State, after: State, action: Action) -> None:
    """Each action speaks of the attempt at hand, and a launch of no retired host."""
    if isinstance(action, Launch):
        retired = {entry.host for entry in after.ledger.retired}
        assert action.attempt == after.attempt
        assert not retired & set(action.hosts), "a retired host holds a rank"
        assert action.hosts, "a launch on no host"
        assert after.stop is None, "a launch after a stop was asked for"
    elif isinstance(action, ChooseCheckpoint):
        assert action.attempt in (after.attempt, after.attempt + 1)
    else:
        assert action.attempt in (before.attempt, after.attempt)


class Alive:
    """Which attempt may be alive, by the orders and answers alone."""

    def __init__(self) -> None:
        self.attempt: int | None = None

    def heard(self, event: Event) -> None:
        if isinstance(event, AttemptEnded | LaunchFailed) and event.attempt == self.attempt:
            self.attempt = None
        if isinstance(event, AllocationGranted):  # it ended with the allocation it ran in
            self.attempt = None

    def ordered(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Launch):
                assert self.attempt is None, "two attempts alive"
                self.attempt = action.attempt


@settings(max_examples=300, deadline=None)
@given(runs, st.lists(wild, max_size=60))
def test_wild_events_break_no_promise(run: RunStarted, told: list[Any]) -> None:
    """Nothing raises, and nothing that must always hold is broken, by any sequence of events."""
    state, alive, at = initial(), Alive(), 1.0
    replayed = initial()
    for make, off, later in (((lambda **_: run), 0, 0.0), *told):
        at += later
        attempt = max(0, state.attempt + off + (state.phase is Phase.PREPARING))
        event = make(at=at, attempt=attempt)
        alive.heard(event)
        after, actions = step(state, event)
        alive.ordered(actions)
        check_step(state, event, after, actions)
        outstanding(after)
        again = event_from_json(json.loads(json.dumps(event_to_json(event))))
        replayed, same = step(replayed, again)

        assert (after, actions) == (replayed, same), "replay differs from the live state"
        state = after


class World:
    """An engine that answers every order, with whatever answer the draw says."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self.at = 1.0

    def answer(self, action: Action) -> list[Event]:  # noqa: C901  # one row an action
        """The events that follow an order."""
        self.at += 1
        when = {"at": self.at, "attempt": action.attempt}
        match type(action).__name__:
            case "ChooseCheckpoint":
                return [CheckpointChosen(**when, step=self.draw(steps), path="/c")]
            case "Launch":
                return [AttemptLaunched(**when)]
            case "ProbeHosts":
                live = not action.reap  # type: ignore[union-attr]
                answers = st.sampled_from(("pass", "pass", "pass", "fail", "unreachable"))
                return [
                    HostProbed(**when, host=host, answer=self.draw(answers), live=live)
                    for host in action.hosts  # type: ignore[union-attr]
                ]
            case "EndAttempt":
                return [self.end(action.attempt)]
            case "DumpStacks":
                return [StacksDumped(**when, ranks=6)]
            case "AskScheduler":
                return [SchedulerAnswered(**when, state=self.draw(st.sampled_from(JobState)))]
            case "RequeueJob":
                return [JobRequeued(**when)]
            case "Sweep":
                return [SweepFinished(**when, leftovers=0)]
        return []

    def end(self, attempt: int) -> AttemptEnded:
        """The end of an attempt, well or not."""
        return AttemptEnded(
            at=self.at,
            attempt=attempt,
            exit_code=self.draw(st.sampled_from((0, 1, 143))),
            signal=None,
            ranks_total=6,
            ranks_succeeded=self.draw(st.sampled_from((0, 0, 0, 6))),
            reports=True,
        )


@settings(max_examples=200, deadline=None)
@given(st.data(), runs)
def test_every_run_that_is_answered_comes_to_an_end(data: Any, run: RunStarted) -> None:
    """When every order is answered and every attempt ends, no run goes on for ever."""
    world, alive = World(data.draw), Alive()
    run = replace(run, settings=replace(run.settings, checkpoints=True))
    state, actions = step(initial(), run)
    queue = [event for action in actions for event in world.answer(action)]
    finished: list[Finish] = [a for a in actions if isinstance(a, Finish)]
    for _ in range(2000):
        if state.phase is Phase.FINISHED:
            break
        event = queue.pop(0) if queue else _nudge(world, state)
        alive.heard(event)
        after, actions = step(state, event)
        alive.ordered(actions)
        check_step(state, event, after, actions)
        finished += [a for a in actions if isinstance(a, Finish)]
        queue += [answer for action in actions for answer in world.answer(action)]
        state = after

    assert Phase.FINISHED is state.phase
    assert 1 == len(finished)


def _nudge(world: World, state: State) -> Event:
    """What the world does by itself: time passes, ranks fail, hosts fall silent, attempts end."""
    world.at += 50
    wake = next_wake(state)
    if wake is not None:
        world.at = max(world.at, wake)
        return Ticked(at=world.at)
    when = {"at": world.at, "attempt": state.attempt}
    if world.draw(st.booleans()):
        return world.end(state.attempt)
    if world.draw(st.booleans()):
        return HitSeen(**when, hit=world.draw(hits))
    host = world.draw(st.sampled_from(state.ledger.active))
    return RankFailed(**when, rank=0, host=host, exit_code=1, signal=None, step=None)
