"""No input makes matching slow: lines made from each shipped pattern to hurt it cost little."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from supervisor.adapters.hostile_lines import hostile_shapes
from supervisor.adapters.hostile_lines import slow_line as found_slow
from supervisor.adapters.matcher import Matcher
from supervisor.adapters.signature_entry import Entry
from supervisor.adapters.signature_files import SignatureSet
from supervisor.adapters.signature_rules import SLOW_SECONDS

LENGTHS = {"64 KiB": 64 << 10, "1 MiB": 1 << 20}
PARTS = 6
BENIGN = b"[2026-11-29 03:11:08][I][train.py:212] step=81 loss=2.31 dt=0.41 tokens_per_s=91203 "


@pytest.mark.timeout(120)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_hostile_line_takes_longer_than_the_rule_allows(
    shipped: SignatureSet, part: int
) -> None:
    slow = {
        entry.signature.id: (found.seconds, found.line[:60])
        for entry in shipped.entries[part::PARTS]
        if (found := found_slow(entry.signature.pattern, entry.literal, SLOW_SECONDS))
    }

    assert slow == {}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_long_line_made_for_a_signature_costs_little(shipped: SignatureSet, length: int) -> None:
    """`re` sees eight windows of it at most, and each of them is within the rule."""
    benign = BENIGN * (length // len(BENIGN)) + b"\n"
    slow = {}
    for entry in shipped.entries:
        alone = Matcher(SignatureSet(entries=(entry,), digest=""), engine="plain")
        allowed = 8 * SLOW_SECONDS + 4 * least(partial(alone.match, benign))
        for line in long_lines(entry, length):
            if (seconds := least(partial(alone.match, line), allowed)) > allowed:
                slow[entry.signature.id] = (seconds, line[:60])

    assert slow == {}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("length", [8 << 10, *LENGTHS.values()], ids=["8 KiB", *LENGTHS])
def test_whole_set_reads_hostile_lines_at_a_bounded_ratio(
    shipped: SignatureSet, length: int
) -> None:
    """Against a harmless line of the same length, which the matcher has learned as these."""
    matcher = Matcher(shipped, engine="plain")
    benign = least(partial(matcher.match, BENIGN * (length // len(BENIGN)) + b"\n"), tries=5)
    texts = [b"a", b" ", b"7", b".", b"a1", b": ", b"[", b"\x1b[", b"Error: "]
    ratios = {
        text: least(partial(matcher.match, text * (length // len(text)) + b"\n")) / benign
        for text in texts
    }

    assert {text: ratio for text, ratio in ratios.items() if ratio > 100} == {}


@pytest.mark.parametrize("length", [8 << 10, *LENGTHS.values()], ids=["8 KiB", *LENGTHS])
def test_line_that_holds_every_literal_costs_a_millisecond_a_signature(
    shipped: SignatureSet, length: int
) -> None:
    """A tenth of what the rule allows each; 15 ms in all for 465 signatures when written."""
    matcher = Matcher(shipped, engine="plain")
    every = b"".join(entry.literal for entry in shipped.entries)
    line = every * (length // len(every) + 1) + b"\n"

    assert least(partial(matcher.match, line)) < len(shipped.entries) * SLOW_SECONDS / 10


def long_lines(entry: Entry, length: int) -> Iterator[bytes]:
    literal = entry.literal
    yield literal * (length // len(literal)) + b"\n"
    yield literal[:-1] * (length // len(literal)) + literal + b"\n"
    sample = entry.samples[0].line.encode()[:-1]
    yield (sample + b"\x01") * (length // len(sample)) + literal + b"\n"
    for shape in hostile_shapes(entry.signature.pattern, literal)[:: length // 1024]:
        yield shape(8192) * (length // 8192) + b"\n"


def least(work: Callable[[], object], enough: float = 0.0, tries: int = 3) -> float:
    """CPU seconds of the quickest of some tries; one that is quick enough ends them."""
    costs = []
    for _ in range(tries):
        began = time.thread_time()
        work()
        costs.append(time.thread_time() - began)
        if costs[-1] <= enough:
            break
    return min(costs)
