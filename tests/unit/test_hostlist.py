"""Slurm host lists written out, and the errors that say where one is wrong."""

import pytest

from supervisor.adapters.hostlist import MAX_HOSTS, expand
from supervisor.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node1", ("node1",)),
        ("a1,a2", ("a1", "a2")),
        ("node[1-3,5]", ("node1", "node2", "node3", "node5")),
        ("nid[001-002],gpu[05-06]", ("nid001", "nid002", "gpu05", "gpu06")),
        ("rack[1-2]n[1-3]", ("rack1n1", "rack1n2", "rack1n3", "rack2n1", "rack2n2", "rack2n3")),
        ("node[1-2]-ib", ("node1-ib", "node2-ib")),
        ("node[7]", ("node7",)),
        ("nid[009-011]", ("nid009", "nid010", "nid011")),
        ("n[9-11]", ("n9", "n10", "n11")),
        (
            "x1000c0s0b[0-1]n0.hpc.example",
            ("x1000c0s0b0n0.hpc.example", "x1000c0s0b1n0.hpc.example"),
        ),
        (" a1,b[1-2]\n", ("a1", "b1", "b2")),
        ("[1-2]", ("1", "2")),
    ],
)
def test_host_list_is_written_out_in_its_own_order(text: str, expected: tuple[str, ...]) -> None:
    """Two parsers of one tool disagreed about half of these, and made one bogus host of `a1,a2`."""
    assert expected == expand(text)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "belongs here"),
        ("node[1-2", 5, "belongs here"),
        ("node1,", 7, "belongs here"),
        ("a,,b", 3, "belongs here"),
        ("node[1-]", 6, "no range"),
        ("node[1,x]", 5, "belongs here"),
        ("node[1,3-2]", 8, "backwards"),
        ("(null)", 1, "belongs here"),
        ("node[[1-2]]", 5, "belongs here"),
        ("a b", 2, "belongs here"),
        ("n\u00e9[1-2]", 2, "belongs here"),
    ],
)
def test_error_names_the_column(text: str, column: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        expand(text)

    assert f"column {column}:" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["n[0-999999999999999999]", "n[0-999]m[0-999]", "a[1-60000],b[1-60000]", "n[1-60000,1-60000]"],
)
def test_number_of_hosts_is_bounded_before_any_is_made(text: str) -> None:
    with pytest.raises(UsageError, match=f"more than {MAX_HOSTS} hosts"):
        expand(text)


def test_largest_list_allowed_is_written_out() -> None:
    assert len(expand(f"n[1-{MAX_HOSTS}]")) == MAX_HOSTS


def test_error_of_a_long_list_shows_only_the_place() -> None:
    with pytest.raises(UsageError) as caught:
        expand(",".join(f"node{number}" for number in range(10_000)) + ",?")

    assert len(str(caught.value)) < 200
