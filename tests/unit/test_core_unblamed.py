"""What ends an attempt without any host's fault, and what is left when nothing explains it."""

from dataclasses import replace

from weighing import ENDED, LEDGER, STEPPED, UNSTEPPED, failed, names, own, said, short, verdict

from supervisor.core.events import HitSeen
from supervisor.core.hosts import make_ledger
from supervisor.core.judge import judge
from supervisor.core.signature import Blames, Cause, Role, Source
from supervisor.core.unblamed import HINTS
from supervisor.core.verdict import Confidence

LOG = replace(STEPPED, ended=replace(ENDED, reports=False))
EARLY_LOG = replace(UNSTEPPED, ended=LOG.ended)


def outside(cause: Cause, **more: object) -> HitSeen:
    """The launcher's word."""
    return said(cause, None, source=Source.LAUNCHER, **more)


def noted(cause: Cause, **more: object) -> HitSeen:
    return outside(cause, role=Role.NOTICE, **more)


def collective(op: str, seq: str, **more: object) -> HitSeen:
    """A rank waits in vain in this collective of this number."""
    facts = (("op", op), ("seq", seq), *((name, str(word)) for name, word in more.items()))
    return said(Cause.HANG, f"h{op}", role=Role.VOTE, facts=facts)


def test_a_signal_that_is_passed_on_is_somebodys_wish() -> None:
    found = verdict(noted(Cause.PREEMPTED), base=LOG)

    assert (Cause.PREEMPTED, ()) == short(found)
    assert Confidence.WEAK is found.confidence


def test_a_signal_that_follows_a_fault_is_its_consequence() -> None:
    later = replace(noted(Cause.PREEMPTED), at=20.0)

    assert ("b",) == verdict(own(Cause.NODE_HARDWARE, "b"), later, base=LOG).blame
    assert Cause.UNKNOWN is verdict(noted(Cause.UNKNOWN), later, base=LOG).cause


def test_a_signal_after_an_end_of_our_own_is_ours() -> None:
    found = verdict(noted(Cause.PREEMPTED), base=replace(LOG, end_ordered_at=5.0))

    assert Cause.PREEMPTED is not found.cause


def test_what_names_nobody_decides_without_blame() -> None:
    for cause in (Cause.LAUNCHER, Cause.STORAGE, Cause.HANG, Cause.NETWORK):
        assert (cause, ()) == short(verdict(outside(cause), base=LOG))


def test_what_the_launcher_says_of_the_command_names_nobody() -> None:
    assert (Cause.USER_ERROR, ()) == short(verdict(outside(Cause.USER_ERROR), base=LOG))


def test_what_names_a_host_of_the_allocation_is_not_nobodys() -> None:
    """The owner's rank of evidence refuses proof against all, and then nobody is left."""
    everyone = names(Cause.NETWORK, "a", "b", "c", "d")

    assert (Cause.UNKNOWN, ()) == short(verdict(everyone, base=LOG))


def test_a_quota_is_final_wherever_it_is_told() -> None:
    assert verdict(outside(Cause.STORAGE, line="Disk quota exceeded"), base=LOG).final
    assert not verdict(outside(Cause.STORAGE, line="Input/output error"), base=LOG).final


def test_one_ranks_lack_of_host_memory_is_not_final() -> None:
    assert verdict(outside(Cause.HOST_OOM), base=EARLY_LOG).final
    assert not verdict(said(Cause.HOST_OOM), base=EARLY_LOG).final


def test_a_notice_is_a_hint_when_nothing_else_is_known() -> None:
    for cause in HINTS - {Cause.HANG}:
        found = verdict(noted(cause), base=LOG)
        assert (cause, (), Confidence.WEAK) == (*short(found), found.confidence)


def test_a_notice_of_what_hosts_do_is_no_hint() -> None:
    """Corrected errors are reported of healthy hosts too."""
    assert Cause.UNKNOWN is verdict(noted(Cause.NODE_HARDWARE), base=LOG).cause


def test_a_hint_explains_consequences() -> None:
    echo = said(Cause.CASCADE_ONLY, role=Role.CASCADE)

    assert Cause.NETWORK is verdict(echo, noted(Cause.NETWORK), base=LOG).cause


def test_the_end_the_launcher_saw_is_told_unless_a_peer_died_before() -> None:
    end = noted(Cause.UNKNOWN, line="rank 3 died of signal 11")
    echo = replace(said(Cause.CASCADE_ONLY, role=Role.CASCADE), at=1.0)

    alone, echoed = verdict(end, base=LOG), verdict(echo, end, base=LOG)
    assert (Cause.UNKNOWN, "rank 3 died of signal 11") == (alone.cause, alone.lines[0].text)
    assert Cause.CASCADE_ONLY is echoed.cause


def test_a_wait_in_vain_is_a_hang() -> None:
    wait = said(Cause.HANG, "a", role=Role.VOTE, blames=Blames.NOBODY)

    assert (Cause.HANG, ()) == short(verdict(wait, base=LOG))


def test_different_collectives_of_one_number_are_the_commands() -> None:
    found = verdict(collective("ALLREDUCE", "7"), collective("BROADCAST", "7"), base=LOG)

    assert (Cause.USER_ERROR, ()) == short(found)
    assert "ranks wait in different collectives with the same number, 7" == found.why
    assert 2 == len(found.lines)


def test_the_same_collective_is_a_wait_and_other_numbers_are_other_collectives() -> None:
    same = (collective("ALLREDUCE", "7"), collective("ALLREDUCE", "7", group="0"))
    later = (collective("ALLREDUCE", "7"), collective("BROADCAST", "8"))

    assert Cause.USER_ERROR is not verdict(*same, base=LOG).cause
    assert Cause.USER_ERROR is not verdict(*later, base=LOG).cause


def test_collectives_of_different_groups_are_not_compared() -> None:
    groups = (collective("ALLREDUCE", "7", group="0"), collective("BROADCAST", "7", group="1"))

    assert Cause.USER_ERROR is not verdict(*groups, base=LOG).cause


def test_a_number_without_a_collective_says_nothing() -> None:
    half = said(Cause.HANG, role=Role.VOTE, facts=(("seq", "7"),))

    assert Cause.USER_ERROR is not verdict(half, collective("BROADCAST", "7"), base=LOG).cause


def test_broken_surroundings_of_nobody_in_particular_are_everyones() -> None:
    found = verdict(said(Cause.ENVIRONMENT, None), base=EARLY_LOG)

    assert (Cause.ENVIRONMENT, ()) == short(found)


def test_exceptions_of_nobody_in_particular_are_counted_by_line() -> None:
    once = said(Cause.USER_ERROR, None, role=Role.VOTE)
    again = said(Cause.USER_ERROR, None, role=Role.VOTE, line_number=2)
    other = said(Cause.USER_ERROR, None, role=Role.VOTE, line_number=2, line="another")

    assert Cause.USER_ERROR is verdict(once, again, base=LOG).cause
    assert Cause.USER_ERROR is not verdict(once, other, base=LOG).cause


def test_a_host_whose_probe_passed_can_still_be_named_by_its_owner() -> None:
    assert ("b",) == verdict(own(Cause.NODE_HARDWARE, "b"), base=LOG, passed=4).blame


def test_the_verdict_belongs_to_its_attempt() -> None:
    assert 2 == judge(LOG, LEDGER).attempt


def test_a_storm_is_quoted_in_few_lines() -> None:
    echoes = [said(Cause.CASCADE_ONLY, role=Role.CASCADE, line_number=n) for n in range(40)]

    assert 5 == len(verdict(*echoes, base=LOG).set_aside)


def test_rank_failures_without_a_word_are_of_unknown_cause() -> None:
    found = verdict(failed(0, "a", None, 11), ledger=make_ledger(("a", "b"), ()))

    assert "rank 0 on a died of signal 11 and nothing says why" == found.why


def test_what_one_rank_complained_of_explains_no_exception_of_another() -> None:
    """Also where the log does not say which rank raised it, nor where the ranks are."""
    echo = said(Cause.CASCADE_ONLY, None, role=Role.CASCADE, rank=1)
    raised = said(Cause.USER_ERROR, None, line_number=2)
    nobodys = replace(echo, hit=replace(echo.hit, rank=None))

    assert Cause.USER_ERROR is verdict(echo, raised, base=LOG).cause
    assert Cause.CASCADE_ONLY is verdict(nobodys, raised, base=LOG).cause
