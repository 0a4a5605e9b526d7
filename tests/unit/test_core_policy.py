"""One table of cures, and the reasons not to try again."""

from dataclasses import replace

import pytest

from supervisor.core.actions import Outcome
from supervisor.core.deadline import relaunch_cost
from supervisor.core.events import AttemptEnded, RankFailed
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import make_ledger, retired_hosts
from supervisor.core.policy import (
    CURES,
    Budget,
    Case,
    Failure,
    Relaunch,
    Stop,
    can_go_on,
    choose,
    command_code,
    failure_of,
    refill,
    stops,
    wants_requeue,
)
from supervisor.core.progress import Pace
from supervisor.core.settings import Settings
from supervisor.core.signature import Cause
from supervisor.core.testimony import Charge
from supervisor.core.verdict import Confidence, Verdict
from supervisor.errors import ExitCode

FAILED = RankFailed(at=9.0, attempt=1, rank=2, host="b", exit_code=None, signal=9, step=30)
ENDED = AttemptEnded(
    at=9.5, attempt=1, exit_code=1, signal=None, ranks_total=4, ranks_succeeded=0, reports=True
)
EVIDENCE = Evidence(attempt=1, failures=(FAILED,), top_step=31, resume_step=20, ended=ENDED)
SETTINGS = Settings(ranks_per_host=2, checkpoints=True)
CASE = Case(
    verdict=Verdict(cause=Cause.UNKNOWN, why="unknown"),
    evidence=EVIDENCE,
    ledger=make_ledger(("a", "b", "c"), ("s",)),
    budget=Budget(),
    settings=SETTINGS,
    last_moment=None,
    relaunch_cost=60.0,
    now=10.0,
)
SAME = Failure(rank=2, exit_code=None, signal=9, step=30, resume_step=20)


def case(cause: Cause = Cause.UNKNOWN, *blamed: str, sure: bool = True, **more: object) -> Case:
    charges = tuple(Charge(host=host, cause=cause, why="seen") for host in blamed)
    confidence = Confidence.PROVEN if sure else Confidence.LIKELY
    verdict = Verdict(cause=cause, why="seen", charges=charges, confidence=confidence)
    return replace(CASE, **{"verdict": verdict, **more})  # type: ignore[arg-type]


def relaunched(given: Case) -> Relaunch:
    decision = choose(given)
    assert isinstance(decision, Relaunch)
    return decision


def stopped(given: Case) -> Stop:
    decision = choose(given)
    assert isinstance(decision, Stop)
    return decision


def test_every_cause_has_a_cure() -> None:
    assert set(Cause) == set(CURES)


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (Cause.USER_ERROR, 137),
        (Cause.USER_OOM, 137),
        (Cause.ENVIRONMENT, 137),
        (Cause.WALLTIME, 143),
        (Cause.PREEMPTED, 75),
    ],
)
def test_what_cannot_be_cured_stops_at_once(cause: Cause, code: int) -> None:
    decision = stopped(case(cause))

    assert (Outcome.GAVE_UP, code) == (decision.outcome, decision.exit_code)
    assert CASE.ledger == decision.ledger


def test_success_is_an_outcome_of_its_own() -> None:
    decision = stopped(case(Cause.SUCCESS))

    assert (Outcome.SUCCEEDED, 0) == (decision.outcome, decision.exit_code)


def test_a_final_verdict_stops_whatever_its_cause() -> None:
    final = Verdict(cause=Cause.STORAGE, why="quota", final=True)

    assert 137 == stopped(replace(CASE, verdict=final)).exit_code
    assert stops(case(Cause.STORAGE)) is None


def test_a_blamed_host_is_retired_whatever_the_cause() -> None:
    decision = relaunched(case(Cause.ENVIRONMENT, "b"))

    assert ("a", "s", "c") == decision.ledger.active
    assert ("b",) == retired_hosts(decision.ledger)
    assert "b is retired, spare s takes its place" == decision.placed


def test_a_charge_against_a_host_that_is_gone_changes_nothing() -> None:
    assert CASE.ledger == relaunched(case(Cause.NODE_LOST, "z")).ledger


def test_a_suspect_is_struck_and_stays() -> None:
    doubt = replace(CASE.verdict, suspects=("b",))
    ledger = relaunched(replace(CASE, verdict=doubt)).ledger

    assert CASE.ledger.active == ledger.active
    assert [("b", 1, 2)] == [(mark.host, mark.attempt, mark.rank) for mark in ledger.strikes]


def test_without_a_spare_the_proven_stops_and_the_doubtful_stays() -> None:
    bare = make_ledger(("a", "b"), ())

    decision = stopped(case(Cause.NODE_LOST, "b", ledger=bare))
    assert (75, ("b",)) == (decision.exit_code, retired_hosts(decision.ledger))
    assert bare == relaunched(case(Cause.NETWORK, "b", sure=False, ledger=bare)).ledger


def test_shrinking_goes_down_to_the_hosts_the_user_needs() -> None:
    bare = make_ledger(("a", "b", "c"), ())
    two = replace(SETTINGS, min_hosts=2)

    one_gone = relaunched(case(Cause.NODE_LOST, "a", ledger=bare, settings=two))
    assert ("b", "c") == one_gone.ledger.active
    assert 75 == stopped(case(Cause.NODE_LOST, "a", "b", ledger=bare, settings=two)).exit_code


def test_shrinking_never_leaves_nobody() -> None:
    none = replace(SETTINGS, min_hosts=0)

    alone = case(Cause.NODE_LOST, "a", ledger=make_ledger(("a",), ()), settings=none)
    assert 75 == stopped(alone).exit_code


def test_first_failure_after_progress_is_relaunched_at_once() -> None:
    decision = relaunched(case())

    assert (0.0, 1) == (decision.wait, decision.budget.used)


@pytest.mark.parametrize(("used", "wait"), [(1, 2.0), (2, 4.0), (3, 8.0), (40, 300.0)])
def test_waits_double_up_to_the_ceiling(used: int, wait: float) -> None:
    patient = replace(SETTINGS, max_relaunches=99)

    assert wait == relaunched(case(settings=patient, budget=Budget(used=used))).wait


def test_waits_are_jittered_in_turn() -> None:
    jittered = replace(SETTINGS, jitter=(0.5, 1.25))
    first = relaunched(case(Cause.NETWORK, settings=jittered, budget=Budget(used=1)))
    second = relaunched(case(Cause.NETWORK, settings=jittered, budget=first.budget))

    assert (1.0, 5.0) == (first.wait, second.wait)


@pytest.mark.parametrize(("cause", "wait"), [(Cause.LAUNCHER, 8.0), (Cause.STORAGE, 2.0)])
def test_what_heals_by_time_is_waited_for_at_once(cause: Cause, wait: float) -> None:
    assert wait == relaunched(case(cause)).wait
    assert 0.0 == relaunched(case(cause, "b")).wait


def test_no_budget_is_no_relaunch() -> None:
    decision = stopped(case(settings=replace(SETTINGS, max_relaunches=0)))

    assert (93, "0 relaunches without a newer checkpoint, 0 allowed") == (
        decision.exit_code,
        decision.why,
    )


def test_a_spent_budget_says_what_spent_it() -> None:
    spent = Budget(used=1)
    one = replace(SETTINGS, max_relaunches=1, checkpoints=False)

    assert ExitCode.HANG == stopped(case(Cause.HANG, settings=one, budget=spent)).exit_code
    unknown = stopped(case(settings=one, budget=spent))
    assert (93, "1 relaunch without a higher step, 1 allowed") == (unknown.exit_code, unknown.why)


def test_only_more_than_ever_refills_the_budget() -> None:
    budget = Budget(used=3, waits=2, best=20, failures=(SAME,))

    assert budget == refill(budget, None) == refill(budget, 20) == refill(budget, 10)
    assert Budget(best=21, waits=2) == refill(budget, 21)


def test_the_same_failure_from_the_same_checkpoint_is_the_commands_own() -> None:
    decision = stopped(case(budget=Budget(used=1, failures=(SAME,))))

    assert 137 == decision.exit_code
    assert "from the same checkpoint twice" in decision.why


@pytest.mark.parametrize("other", [{"step": 29}, {"resume_step": 10}, {"rank": 3}, {"signal": 6}])
def test_a_failure_that_differs_is_another_one(other: dict[str, int]) -> None:
    relaunched(case(budget=Budget(used=1, failures=(replace(SAME, **other),))))


def test_proof_and_causes_that_heal_are_not_called_deterministic() -> None:
    again = Budget(used=1, failures=(SAME,))

    relaunched(case(Cause.NODE_LOST, "b", budget=again))
    relaunched(case(Cause.NETWORK, budget=again))


def test_a_rank_that_states_no_step_failed_at_the_highest() -> None:
    mute = replace(EVIDENCE, failures=(replace(FAILED, step=None),))

    assert 31 == getattr(failure_of(mute), "step", None)
    assert failure_of(replace(EVIDENCE, failures=())) is None
    assert () == relaunched(case(evidence=replace(EVIDENCE, failures=()))).budget.failures


def test_time_that_cannot_pay_for_a_relaunch_is_not_spent() -> None:
    decision = stopped(case(last_moment=69.0))
    why = "59 s are left before an attempt must end for the deadline, and a relaunch needs 60 s"

    assert (75, why) == (decision.exit_code, decision.why)
    relaunched(case(last_moment=71.0))
    assert 75 == stopped(case(Cause.LAUNCHER, last_moment=77.0)).exit_code


def test_a_run_that_is_slow_to_start_needs_more_time_for_a_relaunch() -> None:
    assert 60.0 == relaunch_cost(SETTINGS, Pace(starts=(20.0,)))
    assert 450.0 == relaunch_cost(SETTINGS, Pace(starts=(300.0, 20.0)))


def test_a_command_that_asks_for_another_time_is_queued_again_when_wished() -> None:
    wished = replace(SETTINGS, requeue=True, scheduler="slurm")

    assert wants_requeue(Outcome.GAVE_UP, 75, wished)
    assert not wants_requeue(Outcome.GAVE_UP, 75, replace(wished, scheduler=""))
    assert not wants_requeue(Outcome.GAVE_UP, 93, wished)
    assert not wants_requeue(Outcome.REQUEUED, 75, wished)


def test_what_time_ended_can_go_on_and_nothing_else() -> None:
    assert can_go_on(Outcome.GAVE_UP, 143)
    assert can_go_on(Outcome.REQUEUED, 75)
    assert not can_go_on(Outcome.STOPPED, 143)
    assert not can_go_on(Outcome.GAVE_UP, 93)


def test_a_stop_writes_down_only_what_is_proven() -> None:
    late = {"last_moment": 20.0}

    assert ("b",) == retired_hosts(stopped(case(Cause.NODE_LOST, "b", **late)).ledger)
    assert () == retired_hosts(stopped(case(Cause.NETWORK, "b", sure=False, **late)).ledger)


def test_the_commands_code_is_the_first_failures_as_a_shell_gives_it() -> None:
    assert 137 == command_code(EVIDENCE)
    torn = replace(FAILED, signal=15)
    assert 143 == command_code(replace(EVIDENCE, failures=(torn,)))
    assert 1 == command_code(replace(EVIDENCE, failures=()))
    assert 139 == command_code(
        replace(EVIDENCE, failures=(), ended=replace(ENDED, exit_code=None, signal=11))
    )
    assert 1 == command_code(Evidence(attempt=1, ended=replace(ENDED, exit_code=0)))
    assert 1 == command_code(Evidence(attempt=1))
