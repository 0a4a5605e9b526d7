"""What hosts and the launcher say of others, where nobody says anything of himself."""

from dataclasses import replace
from typing import Any

from weighing import (
    ENDED,
    LEDGER,
    STEPPED,
    UNSTEPPED,
    failed,
    names,
    own,
    said,
    short,
    verdict,
    vote,
)

from supervisor.core.events import HitSeen, RankFailed
from supervisor.core.evidence import Evidence
from supervisor.core.hosts import Ledger, make_ledger
from supervisor.core.signature import Blames, Cause, Role, Source
from supervisor.core.verdict import Confidence, Verdict

MUTE = replace(ENDED, reports=False)  # a log: no shim told how ranks ended
LOG = replace(STEPPED, ended=MUTE)
EARLY_LOG = replace(UNSTEPPED, ended=MUTE)
PAIR = make_ledger(("a", "b"), ())


def lost(*hosts: str, **more: Any) -> HitSeen:
    """The launcher says that it cannot reach these."""
    return names(Cause.NODE_LOST, *hosts, role=Role.VOTE, **more)


def waited(host: str, **more: object) -> HitSeen:
    return said(Cause.HANG, host, role=Role.NOTICE, **more)


def asked(
    *events: HitSeen | RankFailed,
    base: Evidence = EARLY_LOG,
    ledger: Ledger = LEDGER,
    passed: int = 0,
) -> Verdict:
    return verdict(*events, base=base, ledger=ledger, passed=passed)


def test_the_one_host_that_cannot_reach_the_first_is_cut_off() -> None:
    found = asked(vote("c", "a"))

    assert (Cause.NETWORK, ("c",)) == short(found)
    assert "only c cannot reach the others: network line" == found.why


def test_when_more_hosts_cannot_reach_the_first_it_is_that_one() -> None:
    assert ("a",) == asked(vote("c", "a"), vote("b", "a")).blame


def test_of_two_hosts_nobody_can_tell_which_is_cut_off() -> None:
    assert () == asked(vote("b", "a"), ledger=PAIR).blame


def test_a_host_that_trained_was_not_cut_off() -> None:
    assert () == asked(vote("c", "a"), base=LOG).blame


def test_who_cannot_reach_another_than_the_first_is_not_cut_off() -> None:
    assert () == asked(vote("c", "b")).blame
    assert () == asked(vote("c", "a"), vote("d", "b")).blame


def test_a_host_whose_probe_passed_is_not_cut_off() -> None:
    assert () == asked(vote("c", "a"), passed=4).blame


def test_a_lost_peer_is_no_way_that_is_broken() -> None:
    complaint = vote("c", "a")
    lost_peer = replace(complaint, hit=replace(complaint.hit, cause=Cause.NODE_LOST))

    assert () == asked(lost_peer).blame


def test_a_stranger_is_not_cut_off() -> None:
    assert () == asked(vote("elsewhere", "a")).blame


def test_the_one_host_that_the_launcher_first_lost_is_blamed() -> None:
    found = asked(lost("b"), base=LOG)

    assert (Cause.NODE_LOST, ("b",)) == short(found)
    assert Confidence.LIKELY is found.confidence


def test_several_hosts_that_the_launcher_lost_were_torn_down() -> None:
    found = asked(lost("b"), lost("c", line_number=2), base=LOG)

    assert ((), ()) == (found.blame, found.suspects)


def test_an_exception_explains_why_the_launcher_lost_a_host() -> None:
    raised = said(Cause.USER_ERROR, "b", role=Role.VOTE)

    assert () == asked(lost("b"), raised, base=LOG).blame


def test_what_the_launcher_said_before_explains_why_it_lost_a_host() -> None:
    before = said(Cause.UNKNOWN, None, source=Source.LAUNCHER, role=Role.NOTICE)
    before = replace(before, at=1.0)

    assert () == asked(before, lost("b"), base=LOG).blame


def test_a_lost_host_whose_probe_passes_is_not_blamed() -> None:
    assert () == asked(lost("b"), base=LOG, passed=4).blame


def test_the_launcher_on_a_host_may_itself_be_cut_off() -> None:
    """A daemon that loses its parent tells only of the way between them."""
    word = lost("b")

    assert () == asked(replace(word, hit=replace(word.hit, host="a")), base=LOG).blame


def test_the_one_host_that_all_others_waited_for_is_absent() -> None:
    found = asked(*map(waited, "abc"))

    assert (Cause.NODE_LOST, ("d",)) == short(found)
    assert "all hosts but d waited for the others, it said nothing" == found.why
    assert 3 == len(found.lines)


def test_a_host_that_said_anything_is_not_absent() -> None:
    echo = said(Cause.CASCADE_ONLY, "d", role=Role.CASCADE)

    assert () == asked(*map(waited, "abc"), echo).blame
    assert () == asked(*map(waited, "abc"), failed(6, "d", None, 15)).blame


def test_two_absent_hosts_are_not_guessed_between() -> None:
    assert () == asked(*map(waited, "ab")).blame


def test_hosts_that_have_trained_together_miss_nobody() -> None:
    assert () == asked(*map(waited, "abc"), base=LOG).blame


def test_one_waiting_host_cannot_tell_who_is_absent() -> None:
    assert () == asked(waited("a"), ledger=PAIR).blame


def test_all_others_must_have_waited() -> None:
    echo = said(Cause.CASCADE_ONLY, "c", role=Role.CASCADE)

    assert () == asked(*map(waited, "ab"), echo).blame


def test_an_absent_host_whose_probe_passes_is_not_blamed() -> None:
    assert () == asked(*map(waited, "abc"), passed=4).blame


def test_an_exception_of_a_host_voids_what_peers_say_of_it() -> None:
    raised = said(Cause.USER_ERROR, "c", role=Role.VOTE)

    assert () == asked(vote("a", "c"), vote("b", "c"), raised, base=LOG).blame


def test_a_port_that_is_taken_voids_what_peers_say_of_its_host() -> None:
    taken = said(Cause.LAUNCHER, "a")

    found = asked(vote("b", "a"), vote("c", "a"), taken)

    assert (Cause.LAUNCHER, ()) == short(found)


def test_a_lone_complaint_is_explained_by_an_end_the_launcher_saw() -> None:
    seen = said(Cause.UNKNOWN, None, source=Source.LAUNCHER, role=Role.NOTICE)
    ended = asked(vote("b", "c"), replace(seen, at=1.0), base=LOG)

    assert ("c",) == asked(vote("b", "c"), base=LOG).suspects
    assert () == ended.suspects


def test_hosts_that_told_how_they_ended_went_down_with_the_rank_that_complained_of_nobody() -> None:
    """All ranks meet at the first host's, as in a star: the others miss it once it has missed the
    one that failed; its own end may even be told before that one's.
    """
    complaints = (vote("a", "b", rank=0), vote("b", "a", rank=3), vote("c", "a", rank=4))
    ends = (failed(0, "a"), failed(2, "b", code=3), failed(3, "b"), failed(4, "c"))

    found = asked(*complaints, *ends, base=STEPPED)

    assert (Cause.UNKNOWN, (), ("b",)) == (found.cause, found.blame, found.suspects)


def test_a_host_that_told_nothing_of_its_end_is_lost_when_its_peers_agree() -> None:
    complaints = (vote("a", "b", rank=0), vote("c", "b", rank=4))
    ends = (failed(0, "a"), failed(4, "c"))

    assert ("b",) == asked(*complaints, *ends, base=STEPPED).blame


def test_a_hosts_own_word_beats_the_votes_against_another() -> None:
    broken = own(Cause.NODE_HARDWARE, "d")

    assert ("d",) == asked(vote("a", "c"), vote("b", "c"), broken).blame


def test_a_vote_that_names_nobody_is_none() -> None:
    assert () == asked(vote("a", "c", blames=Blames.NOBODY), vote("b", "c"), base=LOG).blame


def test_ranks_that_the_supervisor_ended_have_not_vanished() -> None:
    """Hydra's proxies may die of the end before their ranks have told of theirs."""
    ended = replace(STEPPED, ended=replace(ENDED, exit_code=255, vanished=("c",)))
    ordered = replace(ended, end_ordered_at=5.0, end_cause=Cause.HANG, end_why="no step rose")

    assert (Cause.LAUNCHER, ("c",)) == (asked(base=ended).cause, asked(base=ended).suspects)
    assert (Cause.HANG, ()) == (asked(base=ordered).cause, asked(base=ordered).suspects)
