"""Devices lost on one host, and what a crash that came first means for its peers' complaints."""

from weighing import UNSTEPPED, names, own, probed, said, short, verdict, vote

from supervisor.core.events import HitSeen
from supervisor.core.signature import Cause, Role, Source


def lost(host: str, rank: int) -> HitSeen:
    return own(Cause.NODE_HARDWARE, host, Source.RANK, role=Role.VOTE, rank=rank)


def test_devices_lost_by_two_ranks_of_one_host_alone_blame_it() -> None:
    assert (Cause.NODE_HARDWARE, ("b",)) == short(verdict(lost("b", 2), lost("b", 3), passed=0))


def test_devices_lost_on_two_hosts_blame_nobody() -> None:
    assert () == verdict(lost("b", 2), lost("c", 4), passed=0).blame


def test_one_rank_alone_may_have_lost_its_device_by_chance() -> None:
    assert () == verdict(lost("b", 2), lost("b", 2), passed=0).blame


def test_devices_lost_before_the_first_step_may_be_the_programs_doing() -> None:
    assert () == verdict(lost("b", 2), lost("b", 3), base=UNSTEPPED, passed=0).blame


def test_a_host_whose_probe_passes_has_its_devices() -> None:
    events = (lost("b", 2), lost("b", 3))

    assert () == verdict(*events, passed=4).blame
    assert ("b",) == verdict(*events, probed("b", "unknown"), passed=3).blame


def test_a_crash_that_came_first_explains_its_peers_complaints() -> None:
    crash = said(Cause.UNKNOWN, "c", role=Role.NOTICE, line_number=1)
    complaints = (vote("a", "c", line_number=2), vote("b", "c", line_number=3))

    assert ("c",) == verdict(*complaints, passed=0).blame
    assert (Cause.UNKNOWN, ()) == short(verdict(crash, *complaints, passed=0))


def test_memory_that_two_hosts_lack_before_the_first_step_is_lacking_for_good() -> None:
    hungry = [said(Cause.HOST_OOM, host, rank=rank) for rank, host in enumerate("ab")]

    assert verdict(*hungry, base=UNSTEPPED).final
    assert not verdict(hungry[0], base=UNSTEPPED).final
    assert not verdict(*hungry).final


def test_a_host_out_of_reach_is_lost_though_the_others_know_too_little_to_pass() -> None:
    """A check that cannot be made is an answer all the same: the way to the hosts works."""
    answers = [*(probed(host, "unknown") for host in "acd"), probed("b", "unreachable")]

    assert (Cause.NODE_LOST, ("b",)) == short(verdict(*answers, passed=0))


def test_a_host_that_answers_is_not_lost_whatever_the_launcher_lost_there() -> None:
    word = names(Cause.NODE_LOST, "b", role=Role.VOTE)

    assert ("b",) == verdict(word, passed=0).blame
    assert () == verdict(word, probed("b", "unknown"), passed=3).blame


def test_a_host_that_fails_where_others_cannot_make_a_check_is_bad() -> None:
    """Before the first save no host has the checkpoint folder: unknown is not fail."""
    answers = [*(probed(host, "unknown") for host in "acd"), probed("b", "fail", "no device")]

    assert ("b",) == verdict(*answers, passed=0).blame
