"""What is a hang, what is a late start, what is silence - and what is none of them."""

from dataclasses import replace

from supervisor.core.events import ProgressSeen
from supervisor.core.progress import (
    Pace,
    Watch,
    hang,
    learned,
    silent_hosts,
    step_limit,
    with_digest,
)
from supervisor.core.settings import Settings

SETTINGS = Settings(
    ranks_per_host=1, idle_timeout=100.0, startup_timeout=500.0, step_floor=10.0, step_factor=10.0
)
UNPACED = Pace()
NEW = Watch(launched_at=0.0, phase_at=0.0)


def digest(
    at: float, step: int | None = None, phase: str = "launch", **more: object
) -> ProgressSeen:
    values = {"ranks_started": 2, "top_step": step, "step_at": None, "output_at": 0.0, "beating": 1}
    return ProgressSeen(at=at, attempt=1, step=step, phase=phase, **{**values, **more})  # type: ignore[arg-type]


def told(*digests: ProgressSeen, pace: Pace = UNPACED) -> str | None:
    watch = NEW
    for one in digests:
        watch = with_digest(watch, one)
    return hang(watch, pace, SETTINGS)


def paced(*seconds: float) -> Pace:
    return Pace(times=seconds, states_steps=True)


def test_nothing_is_judged_before_the_first_digest() -> None:
    assert hang(NEW, Pace(), SETTINGS) is None


def test_an_older_digest_changes_nothing() -> None:
    watch = with_digest(NEW, digest(5))

    assert watch == with_digest(watch, digest(5, step=9))


def test_few_step_times_teach_nothing() -> None:
    assert 100.0 == step_limit(paced(0.1, 0.1, 0.1, 0.1), SETTINGS)


def test_learned_limit_lies_between_floor_and_ceiling() -> None:
    assert 10.0 == step_limit(paced(*[0.1] * 5), SETTINGS)
    assert 30.0 == step_limit(paced(*[3.0] * 5), SETTINGS)
    assert 100.0 == step_limit(paced(*[50.0] * 5), SETTINGS)
    assert 5.0 == step_limit(paced(*[0.1] * 5), replace(SETTINGS, idle_timeout=5.0))


def test_one_slow_step_in_ten_teaches_nothing() -> None:
    """A save within a step is long once in a while; the limit is for the steps between."""
    assert 20.0 == step_limit(paced(*[2.0] * 10, 60.0), SETTINGS)


def test_step_times_are_learned_from_rises_only() -> None:
    first = digest(10, step=1, step_at=10.0)

    assert Pace(states_steps=True) == learned(Pace(), None, first)
    assert (2.0,) == learned(Pace(), first, digest(20, step=6, step_at=20.0)).times
    assert () == learned(Pace(), first, digest(20, step=1, step_at=10.0)).times
    assert () == learned(Pace(), first, digest(20, step=2, step_at=None)).times
    assert Pace() == learned(Pace(), None, digest(5))


def test_hang_when_the_lowest_step_has_not_risen_for_the_learned_limit() -> None:
    rising = digest(50, step=5, step_at=50.0, phase="step")
    late = replace(rising, at=81.0, top_step=9, output_at=81.0)

    assert told(rising, replace(rising, at=79.0), pace=paced(*[3.0] * 5)) is None
    assert "step 5 has not risen for 31 s (limit 30 s)" == told(
        rising, late, pace=paced(*[3.0] * 5)
    )


def test_waiting_for_the_rank_that_saves_is_no_hang() -> None:
    """Rank 0 alone writes the checkpoint while all others wait for it in the next step."""
    saving = digest(50, step=5, step_at=50.0, phase="step", phases=("step", "checkpoint"))

    assert told(saving, replace(saving, at=149.0), pace=paced(*[0.1] * 5)) is None
    assert told(saving, replace(saving, at=151.0), pace=paced(*[0.1] * 5)) is not None


def test_a_rank_that_keeps_changing_phase_does_not_mask_a_hang_for_ever() -> None:
    phases = ("step", "eval") * 21
    told_by = [digest(50.0 * n, step=5, step_at=1.0, phase=p) for n, p in enumerate(phases, 1)]

    assert told(*told_by[:40]) is None
    assert "step 5 has not risen for 2049 s (limit 2000 s)" == told(*told_by[:41])


def test_compiling_again_after_steps_has_the_time_of_a_start() -> None:
    again = digest(50, step=5, step_at=50.0, phase="compile")

    assert told(again, replace(again, at=549.0)) is None
    assert told(again, replace(again, at=551.0)) is not None


def test_silence_before_any_step_is_a_hang() -> None:
    assert told(digest(1), digest(100)) is None
    assert told(digest(1), digest(102)) is not None


def test_a_printing_command_that_never_states_steps_is_not_late() -> None:
    assert told(digest(1), digest(900, output_at=890.0)) is None


def test_a_printing_command_that_should_be_stepping_is_late() -> None:
    printing = digest(501, output_at=500.0)

    assert "no step 501 s after the launch (limit 500 s)" == told(
        printing, pace=Pace(states_steps=True)
    )


def test_a_stated_compilation_may_be_silent_longer() -> None:
    quiet = digest(1, phase="compile")

    assert told(quiet, replace(quiet, at=499.0)) is None
    assert "no step and no output for 501 s (limit 500 s)" == told(quiet, replace(quiet, at=502.0))


def test_the_ranks_that_stand_are_named() -> None:
    rising = digest(50, step=5, step_at=50.0, phase="step")
    behind = replace(rising, at=200.0, lagging_ranks=tuple(range(10)))

    assert str(told(rising, behind)).endswith(
        "; ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more are behind"
    )
    assert str(told(rising, replace(behind, stopped_ranks=(3,)))).endswith("; rank 3 does not run")


def test_silence_needs_others_who_beat() -> None:
    """When all fall silent at once it is the supervisor's own ear that is deaf."""
    silent = digest(100, silent=(("a", 70.0), ("b", 90.0)))

    assert ("a",) == silent_hosts(silent, SETTINGS, 3)
    assert () == silent_hosts(replace(silent, beating=0), SETTINGS, 2)
    assert ("a",) == silent_hosts(replace(silent, beating=0), SETTINGS, 3)  # one has ended


def test_a_rank_that_told_of_an_exception_shortens_the_patience() -> None:
    """Under MPI it waits in its exit for the others, and they for it."""
    settings = replace(SETTINGS, step_floor=60.0, silence_timeout=20.0)
    watch = with_digest(NEW, digest(21, step=9, phase="step", step_at=20.0))
    watch = with_digest(watch, digest(45, step=9, phase="step", step_at=20.0))
    pace = paced(*[0.1] * 5)

    assert hang(watch, pace, settings) is None
    assert hang(watch, pace, settings, died=True) is not None


def test_after_an_exception_little_is_waited_for_where_no_step_time_is_known() -> None:
    settings = replace(SETTINGS, idle_timeout=1800.0, startup_timeout=1800.0)
    stepped = with_digest(NEW, digest(1, step=1, phase="step", step_at=1.0))
    stepped = with_digest(stepped, digest(400, step=1, phase="step", step_at=1.0))
    unstepped = with_digest(with_digest(NEW, digest(1)), digest(400))

    for watch in (stepped, unstepped):
        assert hang(watch, Pace(), settings) is None
        assert hang(watch, Pace(), settings, died=True) is not None
    assert 10.0 == step_limit(paced(0.1), settings, died=True)
