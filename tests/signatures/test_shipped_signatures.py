"""Every shipped signature holds to its own samples, and to nobody else's."""

import importlib.util
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from supervisor.adapters.hits import Found, make_hit, speech
from supervisor.adapters.line_origin import origin
from supervisor.adapters.matcher import Matcher
from supervisor.adapters.signature_entry import Entry, Sample
from supervisor.adapters.signature_files import SignatureSet
from supervisor.core.signature import Blames, Cause, Hit, Role, Source

ENGINES = ["plain", *(["fast"] if importlib.util.find_spec("hyperscan") else [])]


@pytest.fixture(scope="module", params=ENGINES)
def matcher(request: pytest.FixtureRequest, shipped: SignatureSet) -> Matcher:
    return Matcher(shipped, engine=request.param)


@pytest.fixture(scope="module")
def plain(shipped: SignatureSet) -> Matcher:
    return Matcher(shipped, engine="plain")


def samples(signatures: SignatureSet) -> Iterator[tuple[Entry, Sample]]:
    return ((entry, sample) for entry in signatures.entries for sample in entry.samples)


def test_each_sample_hits_exactly_its_own_signature(
    shipped: SignatureSet, matcher: Matcher
) -> None:
    wrong = {
        sample.line: found
        for entry, sample in samples(shipped)
        if (found := ids(matcher.match(block(sample.line)))) != [entry.signature.id]
    }

    assert wrong == {}


def test_samples_capture_what_they_say(shipped: SignatureSet, matcher: Matcher) -> None:
    for _, sample in samples(shipped):
        [found] = matcher.match(block(sample.line))
        captured = {name: found.captures[name].decode() for name in sample.expect}

        assert sample.expect == captured


def test_near_misses_hit_nothing(shipped: SignatureSet, matcher: Matcher) -> None:
    """Each one is a line that somebody's looser pattern would take for a fault; a fallback may."""
    loose = {entry.signature.id for entry in shipped.entries if entry.signature.fallback}
    wrong = {
        line: found
        for entry in shipped.entries
        for line in entry.near_misses
        if (found := set(ids(matcher.match(block(line)))) - (loose - {entry.signature.id}))
    }

    assert wrong == {}


def test_every_signature_has_a_near_miss(shipped: SignatureSet) -> None:
    bare = [entry.signature.id for entry in shipped.entries if not entry.near_misses]

    assert bare == []


def test_naming_signatures_show_whom_they_name(shipped: SignatureSet) -> None:
    silent = [
        entry.signature.id
        for entry in shipped.entries
        if entry.signature.blames is Blames.NAMED
        and not any(sample.expect for sample in entry.samples)
    ]

    assert silent == []


def test_consequences_never_blame(shipped: SignatureSet) -> None:
    blaming = [
        entry.signature.id
        for entry in shipped.entries
        if entry.signature.role in (Role.CASCADE, Role.NOTICE)
        and entry.signature.blames is not Blames.NOBODY
    ]

    assert blaming == []


def test_only_those_who_can_know_give_proof_about_a_named_host(shipped: SignatureSet) -> None:
    """A rank's word about another host is at most a vote."""
    proofs = [
        entry.signature.id
        for entry in shipped.entries
        if entry.signature.role is Role.PROOF
        and entry.signature.blames is Blames.NAMED
        and entry.signature.sources & {Source.RANK, Source.KERNEL}
    ]

    assert proofs == []


def test_sample_from_a_source_that_may_not_say_it_is_no_hit(
    shipped: SignatureSet, plain: Matcher
) -> None:
    for entry, sample in samples(shipped):
        [found] = plain.match(block(sample.line))
        for source in set(Source) - entry.signature.sources:
            assert hit(found, sample.line, source) is None


def test_rank_convicts_no_other_host(shipped: SignatureSet, plain: Matcher) -> None:
    """A training script printed an old log, and the host named in it was retired."""
    for _, sample in samples(shipped):
        [found] = plain.match(block(sample.line))
        seen = hit(found, sample.line, Source.RANK)

        assert seen is None or seen.role is not Role.PROOF or seen.named == ()


def test_merged_log_gives_each_sample_a_source_that_may_say_it(
    shipped: SignatureSet, plain: Matcher
) -> None:
    for entry, sample in samples(shipped):
        [found] = plain.match(block(sample.line))
        seen = speech(
            found,
            sample.line.encode(),
            source=None,
            host=None,
            rank=None,
            resolve=lambda name: name,
        )
        tagged = origin(sample.line.encode())
        foreign = tagged.rank is not None and Source.RANK not in entry.signature.sources

        assert foreign or (seen is not None and seen.source in entry.signature.sources)


def test_hostile_lines_cost_little(shipped: SignatureSet) -> None:
    """One line of 16 kB cost a naive crash pattern two seconds; here 8 KiB may cost 50 ms."""
    slow = {
        (entry.signature.id, line[:12])
        for entry in shipped.entries
        for alone in [Matcher(SignatureSet(entries=(entry,), digest=""), engine="plain")]
        for line in hostile(entry.literal)
        if cheapest(partial(alone.match, line)) > 0.05
    }

    assert slow == set()


def test_families_and_causes_are_covered(shipped: SignatureSet) -> None:
    causes = {entry.signature.cause for entry in shipped.entries}

    assert len(shipped.entries) >= 200
    assert set(Cause) - causes == {Cause.SUCCESS}


def block(line: str) -> bytes:
    return b"step=1 loss=2\n" + line.encode() + b"\nstep=2 loss=2\n"


def ids(found: list[Found]) -> list[str]:
    return [one.signature.id for one in found]


def hit(found: Found, line: str, source: Source) -> Hit | None:
    said = speech(
        found,
        line.encode(),
        source=source,
        host="reporter",
        rank=0,
        resolve=lambda name: name,
    )
    return said and make_hit(found, line.encode(), said, line_number=1)


def hostile(literal: bytes) -> Iterator[bytes]:
    for text in (b"a", b"1", b"a.", b"a: ", b"1: ", b"[x] ", b"[1", b"((", b"{12,", b" ", literal):
        yield (text * (8192 // len(text)))[: 8190 - len(literal)] + literal
        yield literal + (text * (8192 // len(text)))[: 8190 - len(literal)]


def cheapest(work: Callable[[], object]) -> float:
    costs = []
    for _ in range(3):
        began = time.thread_time()
        work()
        costs.append(time.thread_time() - began)
        if costs[-1] < 0.01:
            break
    return min(costs)
