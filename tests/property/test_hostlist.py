"""Folding a list of hosts the way Slurm does and writing it out again gives the same list."""

from contextlib import suppress
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from supervisor.adapters.hostlist import MAX_HOSTS, expand
from supervisor.errors import UsageError

_words = st.text("abcxyz-_.", min_size=1, max_size=4)
_suffixes = st.sampled_from(["", "-ib", ".hpc", "-hsn"])
_groups = st.tuples(
    _words, st.lists(st.integers(0, 300), min_size=1, max_size=8), st.integers(1, 4), _suffixes
)


def _fold_numbers(numbers: list[int], width: int) -> str:
    """Consecutive numbers become a range, padded to the given width."""
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    texts = []
    for _, run in runs:
        members = [str(number).zfill(width) for _, number in run]
        texts.append(members[0] if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ",".join(texts)


@given(st.lists(_groups, min_size=1, max_size=4))
def test_writing_out_a_folded_list_gives_the_list(
    groups: list[tuple[str, list[int], int, str]],
) -> None:
    hosts, folded = [], []
    for word, numbers, width, suffix in groups:
        hosts += [f"{word}{str(number).zfill(width)}{suffix}" for number in numbers]
        folded.append(f"{word}[{_fold_numbers(numbers, width)}]{suffix}")

    assert tuple(hosts) == expand(",".join(folded))


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=4), min_size=1, max_size=3))
def test_several_brackets_multiply(dimensions: list[list[int]]) -> None:
    text = "".join(f"d[{','.join(map(str, numbers))}]" for numbers in dimensions)
    expected = 1
    for numbers in dimensions:
        expected *= len(numbers)

    assert expected == len(expand(text))


@given(st.text("ab01[]-,() ", max_size=30))
def test_any_text_gives_hosts_or_one_clear_error(text: str) -> None:
    with suppress(UsageError):
        assert 0 < len(expand(text)) <= MAX_HOSTS
