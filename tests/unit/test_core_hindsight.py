"""A verdict from what is known when all is over: hits, exit code, time used and allowed."""

from typing import Any

from weighing import failed, own, said

from supervisor.core.events import HitSeen
from supervisor.core.hindsight import Advice, PastAttempt, advice, evidence_of, explain
from supervisor.core.signature import Cause, Role, Source
from supervisor.core.verdict import Confidence, Verdict
from supervisor.core.words import explanation

HOSTS = ("a", "b", "c", "d")


def told(*hits: HitSeen, **more: Any) -> Verdict:
    known: dict[str, Any] = {"exit_code": 1} | more
    return explain(PastAttempt(hosts=HOSTS, hits=hits, **known))


def asked_for(found: Verdict) -> tuple[Cause, tuple[str, ...], Advice]:
    return found.cause, found.blame, advice(found)


def test_blame_is_advice_to_retire() -> None:
    expected = (Cause.NODE_HARDWARE, ("b",), Advice.RETIRE)

    assert expected == asked_for(told(own(Cause.NODE_HARDWARE, "b")))


def test_what_a_relaunch_cannot_cure_is_advice_to_stop() -> None:
    quota = said(Cause.STORAGE, None, source=Source.LAUNCHER, line="Disk quota exceeded")

    assert Advice.STOP is advice(told(said(Cause.USER_OOM)))
    assert Advice.STOP is advice(told(quota))


def test_all_else_is_advice_to_relaunch() -> None:
    assert (Cause.UNKNOWN, (), Advice.RELAUNCH) == asked_for(told())


def test_exit_code_0_is_success_unless_somebody_else_proves_otherwise() -> None:
    lost = own(Cause.NODE_LOST, "b", Source.LAUNCHER)

    assert (Cause.SUCCESS, (), Advice.STOP) == asked_for(told(exit_code=0))
    assert Cause.SUCCESS is told(said(Cause.USER_ERROR), exit_code=0).cause
    assert ("b",) == told(lost, exit_code=0).blame


def test_a_log_that_shows_no_failure_leaves_open_how_it_ended() -> None:
    """It may be that of a job which hangs, or was cut off."""
    found = told(exit_code=None)

    assert (Cause.UNKNOWN, True) == (found.cause, found.why.startswith("the log shows no failure"))
    assert "do:    nothing" in explanation(told(exit_code=0), Advice.STOP)
    assert (
        Cause.UNKNOWN
        is told(said(Cause.USER_ERROR, role=Role.VOTE), exit_code=None, first_step=3).cause
    )


def test_the_time_allowed_is_walltime_when_it_was_used() -> None:
    assert Cause.WALLTIME is told(elapsed=3590.0, walltime=3600.0).cause
    assert Cause.WALLTIME is told(elapsed=3700.0, walltime=3600.0).cause
    assert Cause.UNKNOWN is told(elapsed=3000.0, walltime=3600.0).cause


def test_half_of_the_time_is_not_known_to_be_all() -> None:
    assert Cause.UNKNOWN is told(elapsed=3600.0).cause
    assert Cause.UNKNOWN is told(walltime=3600.0).cause


def test_steps_and_failures_are_evidence() -> None:
    past = PastAttempt(hosts=HOSTS, failures=(failed(3, "b"),), first_step=4, top_step=9, ranks=8)

    evidence = evidence_of(past)

    assert (4, 9, 10.0) == (evidence.first_step, evidence.top_step, evidence.failures[0].at)
    assert evidence.ended is not None
    assert (8, 10.0) == (evidence.ended.ranks_total, evidence.ended.at)


def test_without_hosts_nobody_can_be_blamed() -> None:
    past = PastAttempt(hosts=(), hits=(own(Cause.NODE_HARDWARE, "b"),))

    assert () == explain(past).blame


def test_the_explanation_says_what_decided_and_what_did_not() -> None:
    echo = said(Cause.CASCADE_ONLY, "c", role=Role.CASCADE, rank=5)
    found = told(own(Cause.NODE_HARDWARE, "b", file="dmesg.txt", line_number=7), echo)

    assert Confidence.PROVEN is found.confidence
    assert (
        "cause: node_hardware (proven)",
        "blame: b",
        "do:    retire b and relaunch from the newest checkpoint",
        "why:   b: node_hardware line",
        "decided by:",
        "  dmesg.txt:7: node_hardware line",
        "      title of node_hardware [sig-node_hardware]",
        "set aside:",
        "  rank 5, line 1: cascade_only line",
        "      consequence of a peer's end; title of cascade_only [sig-cascade_only]",
    ) == explanation(found, advice(found))


def test_an_explanation_without_grounds_says_so_in_four_lines() -> None:
    found = told()

    assert (
        "cause: unknown (weak)",
        "blame: nobody",
        "do:    relaunch on the same hosts",
        "why:   the launcher left with exit code 1 and nothing says why",
    ) == explanation(found, advice(found))
