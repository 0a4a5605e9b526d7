"""One SIGTERM, many meanings: what the scheduler says, else what the deadline says."""

import pytest

from supervisor.core.deadline import grace_on_request, last_moment, time_to_save
from supervisor.core.events import RunStarted, SchedulerAnswered, StopRequested, SweepFinished
from supervisor.core.machine import State, initial, outstanding, step
from supervisor.core.notice import JobState, end_of
from supervisor.core.settings import Settings
from supervisor.core.signature import Cause
from supervisor.core.waits import waited_for

LEAD = 300.0


def cause(
    signal: int, state: str | None = None, *, at: float = 10.0, deadline: float | None = None
) -> str:
    stop = StopRequested(at=at, signal=signal)
    answer = None if state is None else SchedulerAnswered(at=at, attempt=1, state=state)
    end = end_of(stop, answer, deadline, LEAD)
    return "nobody's" if end.cause is None else end.cause.value


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (JobState.TIMED_OUT, Cause.WALLTIME),
        (JobState.PREEMPTED, Cause.PREEMPTED),
        (JobState.REQUEUED, Cause.PREEMPTED),
        (JobState.LOST_HOST, Cause.NODE_LOST),
        (JobState.CANCELLED, "nobody's"),
        (JobState.RUNNING, "nobody's"),
        (JobState.UNKNOWN, "nobody's"),
        ("a word of a later version", "nobody's"),
    ],
)
def test_the_schedulers_word_counts_most(state: str, expected: str) -> None:
    assert expected == cause(15, state)


def test_where_it_says_nothing_the_deadline_decides() -> None:
    assert Cause.WALLTIME == cause(15, "running", at=996.0, deadline=1000.0)
    assert "nobody's" == cause(15, "running", at=900.0, deadline=1000.0)
    assert Cause.WALLTIME == cause(10, "unknown", at=600.0, deadline=1000.0)
    assert Cause.PREEMPTED == cause(10, "running", at=100.0, deadline=1000.0)
    assert Cause.PREEMPTED == cause(12)
    assert "nobody's" == cause(2, at=999.0, deadline=1000.0)


def run(deadline: float | None, **more: object) -> State:
    settings = Settings(ranks_per_host=1, **more)  # type: ignore[arg-type]
    started = RunStarted(
        at=0.0, run_id="r", active=("a",), spares=(), deadline=deadline, settings=settings
    )
    return step(initial(), started)[0]


def test_the_end_is_told_in_time_to_save_and_of_a_short_allocation_a_tenth_must_do() -> None:
    assert last_moment(run(None)) is None
    assert 6900.0 == last_moment(run(7200.0))
    assert 900.0 == last_moment(run(1000.0))
    assert 7165.0 == last_moment(run(7200.0, signal_before=1.0))


def test_an_attempt_may_take_what_is_left_to_save() -> None:
    assert 295.0 == time_to_save(run(7200.0), 6900.0)
    assert 95.0 == time_to_save(run(1000.0), 900.0)
    assert 2.0 == time_to_save(run(1000.0), 996.0)
    assert 295.0 == time_to_save(run(None), 10.0)


def test_an_announcement_leaves_more_time_than_a_demand() -> None:
    state = run(7200.0)

    assert 30.0 == grace_on_request(step(state, StopRequested(at=5.0, signal=15))[0], 6900.0)
    assert 295.0 == grace_on_request(step(state, StopRequested(at=5.0, signal=12))[0], 6900.0)


def test_a_supervisor_that_took_over_asks_again_what_was_not_answered() -> None:
    state, actions = step(run(7200.0, scheduler="slurm"), StopRequested(at=5.0, signal=15))

    assert ["AskScheduler", "Sweep"] == sorted(type(action).__name__ for action in actions)
    assert ["AskScheduler", "Sweep"] == sorted(type(a).__name__ for a in outstanding(state))


def test_what_is_asked_of_the_scheduler_is_what_is_waited_for() -> None:
    run_ends = StopRequested(at=5.0, signal=15)
    asked, _ = step(run(7200.0, scheduler="slurm", requeue=True), run_ends)
    swept, _ = step(asked, SweepFinished(at=6.0, attempt=0, leftovers=0))
    queued, _ = step(swept, SchedulerAnswered(at=7.0, attempt=0, state="preempted"))

    assert "seeing that nothing of the run is left on any host" == waited_for(asked)
    assert "asking the scheduler what becomes of the job" == waited_for(swept)
    assert "asking the scheduler to queue the job again" == waited_for(queued)
