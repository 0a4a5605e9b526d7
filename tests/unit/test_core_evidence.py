"""What came first, what was only its consequence, and what success means."""

from dataclasses import replace

from supervisor.core.events import AttemptEnded, HitSeen, RankFailed
from supervisor.core.evidence import (
    MAX_CASCADE,
    MAX_FAILURES,
    MAX_HITS,
    Evidence,
    application_hits,
    first_failure,
    last_exception,
    own_failures,
    recent,
    succeeded,
    with_failure,
    with_hit,
)
from supervisor.core.signature import Blames, Cause, Hit, Role, Source

ENDED = AttemptEnded(
    at=99.0, attempt=1, exit_code=0, signal=None, ranks_total=2, ranks_succeeded=2, reports=True
)


def failed(rank: int, host: str = "a", signal: int | None = None, at: float = 10.0) -> RankFailed:
    code = 1 if signal is None else None
    return RankFailed(
        at=at, attempt=1, rank=rank, host=host, exit_code=code, signal=signal, step=None
    )


def seen(cause: Cause, role: Role = Role.PROOF, at: float = 9.0, **more: object) -> HitSeen:
    hit = Hit(
        signature="s",
        title="t",
        cause=cause,
        role=role,
        blames=Blames.NOBODY,
        source=Source.RANK,
        host="a",
        rank=0,
        named=(),
        line="line",
        line_number=1,
    )
    return HitSeen(at=at, attempt=1, hit=replace(hit, **more))  # type: ignore[arg-type]


def gathered(*events: RankFailed | HitSeen) -> Evidence:
    evidence = Evidence(attempt=1)
    for event in events:
        add = with_failure if isinstance(event, RankFailed) else with_hit
        evidence = add(evidence, event)  # type: ignore[arg-type]
    return evidence


def test_evidence_is_bounded_and_cascade_never_crowds_out_what_decides() -> None:
    """A log of ten thousand hosts dying of one may not cost memory, nor hide the one."""
    evidence = gathered(
        *(failed(rank) for rank in range(100)),
        *(seen(Cause.UNKNOWN, Role.CASCADE, line_number=n) for n in range(1000)),
        *(seen(Cause.USER_ERROR, line_number=n) for n in range(1000)),
    )

    assert MAX_FAILURES == len(evidence.failures)
    assert MAX_CASCADE == len(evidence.minor)
    assert MAX_HITS == len(evidence.hits)


def test_the_same_fact_twice_is_one_fact() -> None:
    once = gathered(failed(1), seen(Cause.USER_ERROR))

    assert once == with_hit(with_failure(once, failed(1, "b")), seen(Cause.USER_ERROR))


def test_first_failure_is_the_first_that_is_nobody_elses_doing() -> None:
    torn = replace(failed(3), exit_code=143)
    evidence = gathered(failed(2, signal=15), torn, failed(1, "b", signal=9), failed(0, signal=11))

    assert 1 == getattr(first_failure(evidence), "rank", None)
    assert (1, 0) == tuple(failure.rank for failure in own_failures(evidence))


def test_a_rank_that_first_complained_of_a_peer_is_a_victim() -> None:
    complaint = seen(Cause.CASCADE_ONLY, Role.CASCADE, at=8.0)

    assert first_failure(gathered(complaint, failed(0))) is None
    assert first_failure(gathered(complaint, failed(0, signal=6))) is None
    assert first_failure(gathered(complaint, failed(0, signal=11))) is not None


def test_a_rank_that_first_raised_is_no_victim_of_what_it_says_later() -> None:
    evidence = gathered(
        seen(Cause.USER_ERROR, at=8.0),
        seen(Cause.CASCADE_ONLY, Role.CASCADE, at=8.5, signature="c"),
        failed(0),
    )

    assert first_failure(evidence) is not None
    assert 1 == len(application_hits(evidence))


def test_a_rank_without_a_word_of_its_own_is_judged_by_its_host() -> None:
    """Repeats of a line on one host are counted, not kept, so only one rank's is there."""
    evidence = gathered(seen(Cause.CASCADE_ONLY, Role.CASCADE, at=8.0), failed(1))

    assert first_failure(evidence) is None


def test_what_ranks_do_after_the_order_to_end_is_its_consequence() -> None:
    evidence = replace(gathered(failed(0, signal=9, at=12.0)), end_ordered_at=11.0)

    assert first_failure(evidence) is None


def test_exceptions_count_only_from_hosts_that_failed() -> None:
    evidence = gathered(seen(Cause.USER_OOM, host="b", rank=3), seen(Cause.USER_ERROR), failed(0))

    assert (Cause.USER_ERROR,) == tuple(hit.cause for hit in application_hits(evidence))


def test_what_a_rank_lived_through_long_ago_is_forgotten() -> None:
    """A storage error that was retried an hour before a KeyError has not caused it."""
    old = seen(Cause.STORAGE, at=9.0)
    kernel = seen(Cause.NODE_HARDWARE, at=9.0, source=Source.KERNEL)
    evidence = gathered(old, kernel, failed(0, at=4000.0))

    assert (kernel,) == recent(evidence).hits
    assert (old,) == recent(gathered(old)).hits


def test_success_is_the_word_of_every_rank() -> None:
    well = Evidence(attempt=1, ended=ENDED)

    assert succeeded(well)
    assert succeeded(replace(well, ended=replace(ENDED, exit_code=1)))
    assert not succeeded(replace(well, ended=replace(ENDED, ranks_succeeded=1)))
    assert not succeeded(replace(well, ended=replace(ENDED, ranks_total=0, ranks_succeeded=0)))
    assert not succeeded(replace(well, end_ordered_at=50.0))
    assert succeeded(replace(well, end_ordered_at=50.0, end_cause=Cause.HANG))  # in its exit
    assert not succeeded(Evidence(attempt=1))


def test_without_reports_the_launchers_word_must_do_unless_it_contradicts_itself() -> None:
    """srun --no-kill and Open MPI answer 0 after they said themselves that a host was lost."""
    mute = Evidence(attempt=1, ended=replace(ENDED, reports=False, ranks_succeeded=0))
    lost = seen(Cause.NODE_LOST, source=Source.LAUNCHER)

    assert succeeded(mute)
    assert not succeeded(replace(mute, end_ordered_at=50.0, end_cause=Cause.HANG))
    assert succeeded(with_hit(mute, seen(Cause.USER_OOM)))
    assert not succeeded(with_hit(mute, lost))
    failed = replace(ENDED, reports=False, ranks_succeeded=0, exit_code=1)
    assert not succeeded(replace(mute, ended=failed))
    assert succeeded(replace(mute, ended=replace(failed, ranks_succeeded=2)))  # the agents' word


def test_votes_never_crowd_out_a_proof() -> None:
    """Ten thousand hosts complain of their peers before one kernel speaks for itself."""
    votes = [seen(Cause.NETWORK, Role.VOTE, line_number=number) for number in range(MAX_HITS + 9)]
    proof = seen(Cause.NODE_HARDWARE, Role.PROOF)

    assert gathered(*votes, proof).hits[-1] == proof


def test_a_step_may_be_heard_of_after_the_exception_that_followed_it() -> None:
    said = gathered(seen(Cause.USER_ERROR, Role.VOTE, at=9.0))
    trained = replace(said, first_step=1, top_step=5)

    assert last_exception(replace(trained, risen_at=9.5)) is not None
    assert last_exception(replace(trained, risen_at=60.0)) is None
