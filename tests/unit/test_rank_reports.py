"""Digests of the ranks' reports."""

import json

from supervisor.adapters.rank_reports import RankReports
from supervisor.core.events import RankFailed


def of_hosts(hosts: str = "aabb") -> RankReports:
    return RankReports(1, list(hosts), beat_seconds=1.0, at=0.0)


def tell(reports: RankReports, kind: str, rank: int, at: float, **words: object) -> list[object]:
    return list(reports.report(kind, rank, json.dumps(words).encode(), at))


def test_the_lowest_step_is_the_progress() -> None:
    """A rank that runs ahead is not the training's progress."""
    ranks = of_hosts()
    for rank, step in enumerate((12, 10, 12, 12)):
        tell(ranks, "b", rank, 5.0, state="S", step=step, phase="step")
    digest = ranks.digest(6.0)

    assert (digest.step, digest.top_step, digest.lagging_ranks) == (10, 12, (1,))


def test_step_at_moves_only_when_the_lowest_rises() -> None:
    """Beats are life, not progress."""
    ranks = of_hosts("a")
    times = []
    for at, step in ((1.0, 5), (2.0, 5), (3.0, 6)):
        tell(ranks, "b", 0, at, state="S", step=step, phase="step")
        times.append(ranks.digest(at).step_at)

    assert times == [1.0, 1.0, 3.0]


def test_a_host_is_silent_when_none_of_its_ranks_beat() -> None:
    """One live shim is enough to know that the host lives."""
    ranks = of_hosts()
    for rank in range(4):
        tell(ranks, "s", rank, 0.0)
    for at in (5.0, 9.5):
        tell(ranks, "b", 1, at, state="S")
    digest = ranks.digest(10.0)

    assert (digest.silent, digest.beating) == ((("b", 0.0),), 1)


def test_a_stopped_rank_is_told() -> None:
    """SIGSTOP leaves a process that will never step again."""
    ranks = of_hosts()
    tell(ranks, "b", 2, 1.0, state="T")

    assert ranks.digest(2.0).stopped_ranks == (2,)


def test_an_exit_is_reported_once() -> None:
    """The second reading of a spool repeats every report."""
    ranks = of_hosts()
    first = tell(ranks, "x", 3, 2.0, exit_code=None, signal=9, step=30)
    again = tell(ranks, "x", 3, 2.5, exit_code=None, signal=9, step=30)
    expected = RankFailed(at=2.0, attempt=1, rank=3, host="b", exit_code=None, signal=9, step=30)

    assert (first, again) == ([expected], [])


def test_success_is_the_ranks_own_word() -> None:
    """Only an exit report with code 0 counts."""
    ranks = of_hosts()
    tell(ranks, "x", 0, 1.0, exit_code=0, signal=None)
    tell(ranks, "x", 1, 1.0, exit_code=3, signal=None)

    assert ranks.succeeded() == [0]


def test_slots_outrank_step_lines() -> None:
    """A script may print steps of something else."""
    ranks = of_hosts("a")
    ranks.step_line(0, 7, 1.0)
    before = ranks.digest(1.0).step
    tell(ranks, "b", 0, 2.0, state="R", step=100, phase="step")
    ranks.step_line(0, 8, 3.0)

    assert (before, ranks.digest(3.0).step) == (7, 100)


def test_nonsense_is_no_news() -> None:
    """What a frame says is data; a rank that does not exist says nothing."""
    ranks = of_hosts("a")
    reports = [ranks.report("b", 0, b"\xff{", 1.0), ranks.report("b", 99, b"{}", 1.0)]
    reports.append(tell(ranks, "b", 0, 1.0, step="x", phase=[1], state=None))

    assert reports == [[], [], []]


def test_a_cascade_of_failures_is_bounded() -> None:
    """10,000 ranks dying write 64 events."""
    ranks = RankReports(1, ["h"] * 1000, beat_seconds=1.0, at=0.0)
    events = [tell(ranks, "x", rank, 1.0, exit_code=1, signal=None) for rank in range(1000)]

    assert sum(map(len, events)) == 64


def test_a_rank_that_prints_one_step_and_never_a_step_again_holds_nobody_back() -> None:
    """Every rank says "resuming from step 30"; only rank 0 prints its steps."""
    ranks = of_hosts("aab")
    for rank in range(3):
        tell(ranks, "s", rank, 0.0)
        ranks.step_line(rank, 30, 1.0)
    ranks.step_line(0, 31, 2.0)
    digest = ranks.digest(2.0)

    assert (digest.step, digest.lagging_ranks) == (31, ())


def test_hosts_of_which_no_rank_has_started_are_missing() -> None:
    """A launcher that waits for a host starts none of its ranks."""
    ranks = of_hosts("aabbcc")
    tell(ranks, "s", 0, 1.0)
    tell(ranks, "s", 5, 1.0)

    assert ranks.digest(2.0).missing == ("b",)


def test_without_shims_nobody_is_missing() -> None:
    """Nobody reports then, and the ranks may well run."""
    ranks = RankReports(1, list("ab"), beat_seconds=1.0, at=0.0, shims=False)

    assert ranks.digest(60.0).missing == ()


def test_a_host_whose_ranks_left_without_a_word_has_vanished() -> None:
    """Shims report every end but one that takes them along."""
    ranks = of_hosts("aabbc")
    for rank in range(4):
        tell(ranks, "s", rank, 1.0)
    tell(ranks, "x", 0, 2.0, exit_code=None, signal=15)

    assert ranks.vanished() == ("b",)


def test_where_no_rank_told_of_its_end_nobody_has_vanished() -> None:
    """Then it was the launcher that took them all."""
    ranks = of_hosts("aab")
    tell(ranks, "s", 0, 1.0)

    assert ranks.vanished() == ()


def test_a_rank_whose_training_was_done_succeeded_however_it_ends() -> None:
    """Frameworks crash and hang in their exit."""
    ranks = of_hosts("ab")
    crashed = tell(ranks, "x", 0, 1.0, exit_code=None, signal=11, done=True)
    tell(ranks, "b", 1, 1.0, state="S", step=9, phase="exit", done=True)

    assert ([], [0, 1]) == (crashed, ranks.succeeded())


def test_an_exit_code_after_the_training_was_done_is_the_commands_word() -> None:
    ranks = of_hosts("a")
    tell(ranks, "b", 0, 1.0, state="S", step=9, phase="exit", done=True)
    failed = tell(ranks, "x", 0, 1.0, exit_code=3, signal=None, done=True)

    assert ([3], []) == ([event.exit_code for event in failed], ranks.succeeded())


def test_nobody_is_silent_while_more_is_written_than_read() -> None:
    """In a storm of output the beats wait their turn."""
    ranks = of_hosts("ab")
    tell(ranks, "b", 0, 1.0, state="S")
    tell(ranks, "b", 1, 90.0, state="S")

    assert ((("a", 1.0),), ()) == (
        ranks.digest(91.0).silent,
        ranks.digest(91.0, behind=True).silent,
    )
