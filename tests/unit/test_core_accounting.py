"""The figures of a run, from its events alone."""

import pytest

from supervisor.core.accounting import account
from supervisor.core.actions import Outcome
from supervisor.core.events import (
    AttemptEnded,
    AttemptLaunched,
    CheckpointChosen,
    Event,
    HostProbed,
    ProgressSeen,
    RankFailed,
    RunStarted,
    SweepFinished,
)
from supervisor.core.settings import Settings
from supervisor.core.signature import Cause


def started(deadline: float | None = None) -> RunStarted:
    settings = Settings(ranks_per_host=1, checkpoints=True)
    return RunStarted(
        at=100.0, run_id="r", active=("a",), spares=(), deadline=deadline, settings=settings
    )


def chosen(at: float, attempt: int, step: int | None) -> CheckpointChosen:
    return CheckpointChosen(at=at, attempt=attempt, step=step, path="")


def stepped(at: float, attempt: int, step: int | None) -> ProgressSeen:
    return ProgressSeen(
        at=at + 1,
        attempt=attempt,
        ranks_started=1,
        step=step,
        top_step=step,
        phase="step",
        step_at=None if step is None else at,
        output_at=at,
    )


def ended(at: float, attempt: int, well: int = 0) -> AttemptEnded:
    return AttemptEnded(
        at=at,
        attempt=attempt,
        exit_code=0,
        signal=None,
        ranks_total=1,
        ranks_succeeded=well,
        reports=True,
    )


# Steps 1 to 41 at one a second, lost down to 31; then 31 to 51, and the end.
STORY: tuple[Event, ...] = (
    started(),
    chosen(100.0, 1, None),
    AttemptLaunched(at=100.0, attempt=1),
    stepped(105.0, 1, None),
    stepped(110.0, 1, 1),
    stepped(150.0, 1, 41),
    stepped(151.0, 1, 40),
    RankFailed(at=152.0, attempt=1, rank=0, host="a", exit_code=None, signal=9, step=41),
    ended(160.0, 1),
    HostProbed(at=161.0, attempt=1, host="a", answer="pass"),
    chosen(162.0, 2, 31),
    AttemptLaunched(at=163.0, attempt=2),
    stepped(170.0, 2, 32),
    stepped(190.0, 2, 52),
    ended(195.0, 2, well=1),
    SweepFinished(at=200.0, attempt=2, leftovers=0),
)


def test_a_run_with_one_failure() -> None:
    told = account(STORY)

    assert (Outcome.SUCCEEDED, 0) == (told.outcome, told.exit_code)
    assert [None, 31] == [attempt.resume_step for attempt in told.attempts]
    assert [(1, 41), (32, 52)] == [(one.first_step, one.top_step) for one in told.attempts]
    assert [Cause.UNKNOWN, None] == [one.verdict and one.verdict.cause for one in told.attempts]
    assert (100.0, 30.0 + 20.0, 0.5) == (told.wall, told.productive, told.ettr)
    assert (1, 60.0 + 33.0, 10.0) == (told.failures, told.mtbf, told.time_to_recover)
    assert 10 == told.lost_steps


@pytest.mark.parametrize("length", range(len(STORY)))
def test_an_unfinished_run_has_the_figures_so_far(length: int) -> None:
    told = account(STORY[:length])

    assert told.outcome is None
    assert 0 <= told.productive <= told.wall


def test_nothing_has_no_figures() -> None:
    told = account(())

    assert ((), 0.0, None, None) == (told.attempts, told.wall, told.ettr, told.mtbf)


def test_an_attempt_that_made_one_step_kept_no_time() -> None:
    one_step = (*STORY[:5], *STORY[7:11])

    assert 0.0 == account(one_step).productive
    assert 0 == account(one_step).lost_steps


def test_walltime_is_no_failure() -> None:
    told = account((started(deadline=160.0), *STORY[1:9]))

    assert Cause.WALLTIME is getattr(told.attempts[0].verdict, "cause", None)
    assert (0, None) == (told.failures, told.mtbf)
