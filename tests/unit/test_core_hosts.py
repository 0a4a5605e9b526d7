"""The ledger keeps every host in one list and every place in order."""

from dataclasses import replace

from supervisor.core.hosts import (
    Ledger,
    Retired,
    Strike,
    make_ledger,
    promote,
    renew,
    retire,
    retired_hosts,
    spelling,
    strike,
    suspect,
)
from supervisor.core.signature import Cause


def gone(host: str) -> Retired:
    return Retired(host=host, attempt=1, cause=Cause.NODE_LOST, why="lost")


def test_spare_takes_the_place_of_the_host_it_replaces() -> None:
    ledger = promote(make_ledger(("a", "b", "c"), ("s", "t")), gone("b"))

    assert ("a", "s", "c") == ledger.active
    assert ("t",) == ledger.spares
    assert ("b",) == retired_hosts(ledger)


def test_names_of_one_host_are_one_host() -> None:
    """A hostfile with slots repeated, and spares that were active too, once gave a wrong set."""
    ledger = make_ledger(("A.cluster", "a-hsn0", "b"), ("b", "c", "C.cluster"))

    assert ("A.cluster", "b") == ledger.active
    assert ("c",) == ledger.spares
    assert {"a": "A.cluster", "b": "b", "c": "c"} == spelling(ledger)


def test_retiring_closes_the_place_and_ends_suspicion() -> None:
    ledger = suspect(make_ledger(("a", "b"), ("s",)), ("b", "nobody"))

    assert ("b",) == ledger.suspects
    assert Ledger(active=("a",), spares=("s",), retired=(gone("b"),)) == retire(ledger, gone("b"))
    assert () == retire(ledger, gone("s")).spares


def test_retiring_twice_or_a_stranger_changes_nothing() -> None:
    ledger = retire(make_ledger(("a", "b"), ()), gone("b"))

    assert ledger == retire(ledger, gone("b"))
    assert ledger == retire(ledger, gone("z"))


def test_a_host_is_struck_once_an_attempt() -> None:
    first = Strike(host="a", attempt=1, rank=0)
    ledger = strike(make_ledger(("a",), ()), first)

    assert ledger == strike(ledger, Strike(host="a", attempt=1, rank=3))
    assert 2 == len(strike(ledger, Strike(host="a", attempt=2, rank=0)).strikes)


def test_another_allocation_keeps_retired_hosts_off_while_there_are_others() -> None:
    bad = (gone("b"), gone("d"), gone("z"))
    old = replace(make_ledger(("a",), ()), retired=bad)

    new = renew(old, ("a", "b", "d"), ("c",))
    assert (("a", "c", "d"), ()) == (new.active, new.spares)
    assert ("b",) == retired_hosts(new)
    spare = renew(old, ("a", "c"), ("b",))
    assert (("a", "c"), (), ("b",)) == (spare.active, spare.spares, retired_hosts(spare))
