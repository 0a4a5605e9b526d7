"""Which hosts are active and which spares, and what cannot be."""

import pytest

from supervisor.adapters.split import Split, split
from supervisor.errors import UsageError


def _split(
    number: int, *, nodes: int | None = None, spares: int | str | None = None, ppn: int = 2
) -> Split:
    hosts = tuple(f"h{index}" for index in range(number))
    return split(hosts=hosts, nodes=nodes, spare_nodes=spares, ppn=ppn, source="hostfile X")


@pytest.mark.parametrize(
    ("number", "nodes", "spares", "expected"),
    [
        (4, None, None, (4, 0, 0)),
        (4, None, 1, (3, 1, 0)),
        (4, None, 0, (4, 0, 0)),
        (4, 3, None, (3, 0, 1)),
        (4, 2, 1, (2, 1, 1)),
        (4, 3, "auto", (3, 1, 0)),
        (4, 4, "auto", (4, 0, 0)),
        (1, None, "auto", (1, 0, 0)),
        (2, None, "auto", (2, 0, 0)),
        (3, None, "auto", (2, 1, 0)),
        (100, None, "auto", (98, 2, 0)),
        (1000, None, "auto", (980, 20, 0)),
    ],
)
def test_hosts_are_divided_in_order(
    number: int, nodes: int | None, spares: int | str | None, expected: tuple[int, int, int]
) -> None:
    got = _split(number, nodes=nodes, spares=spares)

    assert expected == (len(got.active), len(got.spares), len(got.unused))
    assert tuple(f"h{index}" for index in range(number)) == got.active + got.spares + got.unused


@pytest.mark.parametrize(
    ("number", "nodes", "spares", "words"),
    [
        (4, 3, 2, "3 active + 2 spare hosts asked for, but the allocation (hostfile X) has 4:"),
        (4, 5, None, "5 active hosts asked for, but the allocation (hostfile X) has 4:"),
        (4, 5, "auto", "5 active hosts asked for, but the allocation (hostfile X) has 4:"),
        (4, None, 4, "4 spare hosts asked for, but the allocation (hostfile X) has 4:"),
        (4, 0, None, "--nodes 0: must be at least 1"),
        (4, -2, None, "--nodes -2: must be at least 1"),
        (4, None, -1, "--spare-nodes -1: must be at least 0"),
    ],
)
def test_impossible_combination_names_the_numbers(
    number: int, nodes: int | None, spares: int | str | None, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        _split(number, nodes=nodes, spares=spares)

    assert words in str(caught.value)


def test_no_ranks_on_a_host_is_an_error() -> None:
    with pytest.raises(UsageError, match="--ppn 0: must be at least 1"):
        _split(1, ppn=0)
