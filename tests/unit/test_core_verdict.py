"""Blame with evidence or not at all: each rank of the order, and the traps beside it."""

from dataclasses import replace

from weighing import (
    ENDED,
    LEDGER,
    STEPPED,
    UNSTEPPED,
    failed,
    names,
    own,
    probed,
    said,
    short,
    verdict,
    vote,
)

from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Retired, Strike, make_ledger
from supervisor.core.quotes import Quote
from supervisor.core.signature import Cause, Role, Source
from supervisor.core.verdict import Confidence


def test_success_beats_every_word() -> None:
    well = replace(STEPPED, ended=replace(ENDED, ranks_succeeded=8))

    assert (Cause.SUCCESS, ()) == short(verdict(own(Cause.NODE_HARDWARE, "a"), base=well))


def test_scheduler_beats_what_follows() -> None:
    events = (names(Cause.NODE_LOST, "b"), said(Cause.WALLTIME, source=Source.SCHEDULER))

    assert (Cause.WALLTIME, ()) == short(verdict(*events))


def test_a_passed_deadline_is_walltime() -> None:
    assert (Cause.WALLTIME, ()) == short(verdict(base=replace(STEPPED, past_deadline=True)))


def test_a_rank_that_speaks_of_walltime_proves_nothing() -> None:
    assert Cause.WALLTIME is not verdict(said(Cause.WALLTIME)).cause


def test_an_owners_word_blames_its_host() -> None:
    found = verdict(own(Cause.GPU_MEMORY_HW, "B-hsn0.cluster"))

    assert (Cause.GPU_MEMORY_HW, ("b",)) == short(found)
    assert Confidence.PROVEN is found.confidence


def test_a_host_outside_the_allocation_is_never_blamed() -> None:
    assert (Cause.UNKNOWN, ()) == short(verdict(names(Cause.NODE_LOST, "elsewhere")))


def test_several_proofs_of_one_host_blame_it_once_and_two_hosts_in_time_order() -> None:
    events = (names(Cause.NODE_LOST, "c"), names(Cause.NODE_LOST, "c", "b", line_number=2))

    assert (Cause.NODE_LOST, ("c", "b")) == short(verdict(*events))


def test_proof_against_every_host_proves_nothing() -> None:
    assert () == verdict(names(Cause.NODE_LOST, *"abcd")).blame


def test_devices_lost_by_ranks_on_most_hosts_are_software() -> None:
    """A broken stack loses the device on every rank at its first use."""
    lost = [own(Cause.NODE_HARDWARE, host, Source.RANK) for host in "abc"]

    assert ("a",) == verdict(lost[0]).blame
    assert () == verdict(*lost).blame


def test_a_ranks_word_on_another_host_convicts_nobody_and_is_set_aside() -> None:
    found = verdict(vote("a", "b", role=Role.PROOF), vote("c", "b", role=Role.PROOF))

    assert ((), ()) == (found.blame, found.suspects)
    assert "a rank's word convicts nobody else" == found.set_aside[0].note


def test_a_host_that_does_not_answer_while_others_do_is_lost() -> None:
    found = verdict(failed(3, "a", signal=9), probed("b", "unreachable", "no answer in 10 s"))

    assert (Cause.NODE_LOST, ("b",)) == short(found)
    assert "b does not answer its probe: no answer in 10 s" == found.why


def test_a_failed_check_says_what_it_stands_for() -> None:
    assert Cause.ENVIRONMENT is verdict(probed("b", "fail", cause="environment")).cause
    assert Cause.NODE_HARDWARE is verdict(probed("b", "fail", cause="no such word")).cause


def test_unknown_is_not_fail_and_a_spare_is_not_to_blame() -> None:
    assert () == verdict(probed("b", "unknown"), probed("s", "unreachable")).blame


def test_a_lone_host_can_fail_its_probe_but_not_be_out_of_reach() -> None:
    alone = make_ledger(("a",), ())

    assert ("a",) == verdict(probed("a", "fail"), ledger=alone, passed=0).blame
    out = verdict(probed("a", "unreachable"), ledger=alone, passed=0)
    assert (Cause.LAUNCHER, ()) == short(out)


def test_every_host_failing_its_probe_is_the_environment() -> None:
    answers = [probed(host, "fail", "no checkpoint folder") for host in "abcd"]

    assert (Cause.ENVIRONMENT, ()) == short(verdict(*answers, passed=0))


def test_storage_that_fails_every_host_may_come_back() -> None:
    answers = [
        replace(probed(host, "fail", "/lustre does not answer"), cause="storage") for host in "abcd"
    ]

    assert (Cause.STORAGE, ()) == short(verdict(*answers, passed=0))


def test_mixed_bad_answers_everywhere_decide_nothing() -> None:
    answers = [probed(host, "fail") for host in "abc"] + [probed("d", "unreachable")]

    assert (Cause.UNKNOWN, ()) == short(verdict(*answers, passed=0))


def test_the_same_exception_on_two_hosts_is_the_users() -> None:
    events = [said(Cause.USER_ERROR, host) for host in "ab"]
    events += [failed(0, "a"), failed(2, "b")]

    assert (Cause.USER_ERROR, ()) == short(verdict(*events))


def test_one_exception_of_one_rank_after_progress_is_unknown_and_strikes_nobody() -> None:
    found = verdict(said(Cause.USER_ERROR, role=Role.VOTE), failed(0, "a"))

    assert (Cause.UNKNOWN, ()) == short(found)
    assert () == found.suspects


def test_an_exception_before_the_first_step_with_nobody_ahead_is_the_users() -> None:
    raised = (said(Cause.USER_ERROR, role=Role.VOTE), failed(0, "a"))

    assert Cause.USER_ERROR is verdict(*raised, base=UNSTEPPED).cause
    killed = failed(4, "c", None, 9)
    assert Cause.UNKNOWN is verdict(*raised, killed, base=UNSTEPPED).cause


def test_memory_of_the_device_is_the_users_wherever() -> None:
    assert Cause.USER_OOM is verdict(said(Cause.USER_OOM), failed(0, "a")).cause


def test_a_defect_of_the_program_is_the_users_whichever_rank_meets_it() -> None:
    found = verdict(said(Cause.USER_ERROR, role=Role.PROOF), failed(0, "a"))

    assert (Cause.USER_ERROR, ()) == short(found)


def test_exceptions_of_a_log_without_hosts_are_counted_by_rank() -> None:
    """A saved log may say which rank spoke and not where."""
    events = [said(Cause.USER_ERROR, None, rank=rank, role=Role.VOTE) for rank in (0, 1)]
    mute = replace(STEPPED, ended=replace(ENDED, reports=False))

    assert Cause.USER_ERROR is verdict(*events, base=mute).cause
    assert Cause.UNKNOWN is verdict(events[0], base=mute).cause


def test_handled_exceptions_do_not_explain_a_hang() -> None:
    hung = replace(STEPPED, end_cause=Cause.HANG, end_why="step 5 has not risen")
    events = [said(Cause.USER_OOM, host) for host in "ab"]

    assert (Cause.HANG, ()) == short(verdict(*events, base=hung))


def test_exceptions_that_follow_a_proven_cause_do_not_hide_it() -> None:
    events = [said(Cause.LAUNCHER, None, source=Source.LAUNCHER)]
    events += [said(Cause.USER_ERROR, host) for host in "ab"]

    assert Cause.LAUNCHER is verdict(*events, failed(0, "a"), failed(2, "b")).cause


def test_all_ranks_leaving_alike_before_any_step_is_the_commands_doing() -> None:
    everyone = [failed(rank, "abcd"[rank // 2], 3) for rank in range(8)]

    assert Cause.USER_ERROR is verdict(*everyone, base=UNSTEPPED).cause
    assert Cause.UNKNOWN is verdict(*everyone[:7], base=UNSTEPPED).cause
    assert Cause.UNKNOWN is verdict(*everyone).cause
    assert Cause.UNKNOWN is verdict(failed(0, "a"), base=replace(UNSTEPPED, ended=None)).cause


def test_all_ranks_dying_of_a_signal_before_any_step_is_not() -> None:
    everyone = [failed(rank, "abcd"[rank // 2], None, 11) for rank in range(8)]

    assert Cause.UNKNOWN is verdict(*everyone, base=UNSTEPPED).cause


def test_a_command_found_on_all_hosts_but_one_is_that_hosts_environment() -> None:
    assert (Cause.ENVIRONMENT, ("b",)) == short(verdict(failed(2, "b", 127), base=UNSTEPPED))


def test_a_command_found_nowhere_is_everyones_environment() -> None:
    events = [failed(0, "a", 127), failed(2, "b", 127)]

    assert (Cause.ENVIRONMENT, ()) == short(verdict(*events, base=UNSTEPPED))


def test_surroundings_broken_on_one_host_blame_it_whomever_the_signature_blames() -> None:
    found = verdict(said(Cause.ENVIRONMENT, "b"), failed(2, "b"), base=UNSTEPPED)

    assert (Cause.ENVIRONMENT, ("b",)) == short(found)


def test_the_launchers_word_on_one_hosts_surroundings_counts() -> None:
    assert ("c",) == verdict(names(Cause.ENVIRONMENT, "c")).blame


def test_storage_of_one_host_blames_it_and_of_all_nobody() -> None:
    local = [own(Cause.STORAGE, host, Source.RANK) for host in "abcd"]

    assert (Cause.STORAGE, ("a",)) == short(verdict(local[0], failed(0, "a")))
    assert (Cause.STORAGE, ()) == short(verdict(*local))
    assert not verdict(*local).final


def test_a_spent_quota_is_final() -> None:
    line = "OSError: [Errno 122] Disk quota exceeded"

    assert verdict(said(Cause.STORAGE, line=line)).final
    assert verdict(*[own(Cause.STORAGE, host, Source.RANK, line=line) for host in "ab"]).final


def test_surroundings_that_stay_broken_on_the_next_host_are_everyones() -> None:
    """With every host lacking a module, one spare after the other was once retired for it."""
    before = Retired(host="z", attempt=1, cause=Cause.ENVIRONMENT, why="no module")
    found = verdict(
        said(Cause.ENVIRONMENT, "b"), failed(2, "b"), ledger=replace(LEDGER, retired=(before,))
    )

    assert (Cause.ENVIRONMENT, ()) == short(found)


def test_two_reporters_that_agree_blame_and_one_does_not() -> None:
    assert (Cause.NETWORK, ("c",)) == short(verdict(vote("a", "c"), vote("b", "c")))
    assert () == verdict(vote("a", "c"), vote("a", "c", line_number=2)).blame
    assert () == verdict(vote("c", "c"), vote("a", "c")).blame


def test_between_equals_the_silent_one_is_blamed() -> None:
    """Those that left early are complained of as well, but they complained themselves."""
    votes = [vote("a", "c"), vote("b", "c"), vote("a", "b"), vote("d", "b")]

    assert ("c",) == verdict(*votes).blame


def test_between_two_silent_ones_nobody_is() -> None:
    votes = [vote("a", "c"), vote("b", "c"), vote("a", "d"), vote("b", "d")]

    assert () == verdict(*votes).blame


def test_a_complaint_in_two_attempts_blames() -> None:
    first = verdict(vote("a", "c"))
    struck = replace(LEDGER, strikes=(Strike(host="c", attempt=1, rank=None),))

    assert ((), ("c",)) == (first.blame, first.suspects)
    assert (Cause.NETWORK, ("c",)) == short(verdict(vote("a", "c"), ledger=struck))


def test_host_memory_before_the_first_step_is_final_and_later_is_not() -> None:
    killed = said(Cause.HOST_OOM, source=Source.KERNEL)

    assert verdict(killed, base=UNSTEPPED).final
    assert (Cause.HOST_OOM, ()) == short(verdict(killed))
    assert not verdict(killed).final


def test_host_memory_eaten_by_a_strangers_process_blames_the_host() -> None:
    assert (Cause.HOST_OOM, ("b",)) == short(verdict(own(Cause.HOST_OOM, "b")))


def test_a_lost_host_that_nobody_can_name_is_not_guessed() -> None:
    assert (Cause.UNKNOWN, ()) == short(verdict(said(Cause.NODE_LOST, source=Source.LAUNCHER)))


def test_a_second_unexplained_failure_on_a_host_blames_it() -> None:
    struck = replace(LEDGER, strikes=(Strike(host="b", attempt=1, rank=2),))
    found = verdict(failed(3, "b", None, 9), ledger=struck)

    assert (Cause.UNKNOWN, ("b",)) == short(found)
    assert Confidence.LIKELY is found.confidence


def test_a_fault_that_goes_with_its_rank_does_not_blame_the_host() -> None:
    strikes = (Strike(host="a", attempt=0, rank=2), Strike(host="b", attempt=1, rank=4))

    found = verdict(failed(2, "b", None, 9), ledger=replace(LEDGER, strikes=strikes))

    assert () == found.blame


def test_a_failure_on_an_unknown_host_strikes_nobody() -> None:
    found = verdict(failed(2, "elsewhere", None, 9))

    assert ((), ()) == (found.blame, found.suspects)


def test_only_consequences_blame_nobody() -> None:
    torn = verdict(failed(0, "a", None, 15), failed(2, "b", None, 15))
    echo = verdict(said(Cause.CASCADE_ONLY, role=Role.CASCADE))

    assert (Cause.CASCADE_ONLY, ()) == short(torn)
    assert (Cause.CASCADE_ONLY, ()) == short(echo)
    assert Quote(text="rank 0 on a died of signal 15", note="torn down") == torn.set_aside[0]
    assert "consequence of a peer's end" == echo.set_aside[0].note


def test_without_any_word_the_verdict_says_how_it_ended() -> None:
    mute = replace(STEPPED, ended=replace(ENDED, reports=False, exit_code=None, signal=9))

    assert "0 of 8 ranks reported success, the launcher left with exit code 1" == verdict().why
    assert "the launcher left with signal 9 and nothing says why" == verdict(base=mute).why
    told = replace(STEPPED, ended=replace(ENDED, reports=False, meaning="a host was lost"))
    words = "the launcher left with exit code 1 (a host was lost) and nothing says why"
    assert words == verdict(base=told).why
    assert "nothing says why" == verdict(base=Evidence(attempt=2)).why
