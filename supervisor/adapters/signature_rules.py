"""What authors of signatures are held to beyond what loading checks: `supervise signatures test`.

An entry that breaks one of these rules works, but reads lines it should not, costs time on
healthy logs, or proves nothing about itself. Each complaint says where, what, and what to write.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from supervisor.adapters.benign_log import LINES, benign_log
from supervisor.adapters.hostile_lines import slow_line
from supervisor.adapters.matcher import Matcher
from supervisor.adapters.matcher_plain import PlainEngine
from supervisor.adapters.pattern_check import all_literals
from supervisor.adapters.signature_entry import Entry, Sample
from supervisor.adapters.signature_files import SignatureSet, told_slow

GOOD_LITERAL = 8  # bytes; "port " is found in "support ", and made 94 % of all false candidates
SLOW_SECONDS = 0.01
_MOST_BENIGN = LINES // 10_000


def complaints(
    signatures: SignatureSet,
    tested: Sequence[Entry],
    seen: Callable[[int], None] = lambda number: None,
) -> Iterator[str]:
    """All that is wrong with the tested entries, each beside all the others of the set; `seen`
    learns how many are done.
    """
    benign = benign_hits(tested)
    matcher = Matcher(signatures, engine="plain")
    for number, entry in enumerate(tested):
        seen(number)
        yield from pattern_complaints(entry, benign[entry.signature.id])
        yield from _own_samples(matcher, entry)
        if not entry.near_misses:
            yield entry.complaint("near_misses", "is missing; add a harmless line much like it")
    others = (entry for entry in signatures.entries if entry not in tested)
    yield from _foreign_samples(SignatureSet(entries=tuple(tested), digest=""), others)


def pattern_complaints(entry: Entry, benign_lines: int) -> Iterator[str]:
    """What is wrong with its pattern, which as such has been accepted."""
    texts = all_literals(entry.signature.pattern)
    if sum(map(len, texts)) < GOOD_LITERAL and "literal" not in entry.lines:
        yield entry.complaint(
            "pattern",
            f"has less than {GOOD_LITERAL} bytes of fixed text (best: {entry.literal!r}); spell"
            " more of the message out, or state it as `literal:` to say that it is rare",
        )
    if benign_lines > _MOST_BENIGN:
        yield entry.complaint(
            "pattern",
            f"its fixed text {entry.literal!r} stands in {benign_lines} of {LINES} lines of a"
            " healthy log; spell out more of the message, or another part of it",
        )
    slow = slow_line(entry.signature.pattern, entry.literal, SLOW_SECONDS)
    if slow is not None:
        yield entry.complaint("pattern", told_slow(slow))


def benign_hits(entries: Iterable[Entry]) -> dict[str, int]:
    """How many lines of a healthy log each entry makes `re` look at."""
    known = list(entries)
    engine = PlainEngine(
        [entry.literal for entry in known],
        lambda index: all_literals(known[index].signature.pattern),
    )
    counts = {entry.signature.id: 0 for entry in known}
    for index, _ in engine.nominate(benign_log()):
        counts[known[index].signature.id] += 1
    return counts


def _own_samples(matcher: Matcher, entry: Entry) -> Iterator[str]:
    for index, sample in enumerate(entry.samples):
        for wrong in _sample(matcher, entry.signature.id, sample):
            yield entry.complaint(f"samples[{index}]", wrong)
    for index, line in enumerate(entry.near_misses):
        if entry.signature.id in _hits(matcher, line):
            yield entry.complaint(f"near_misses[{index}]", f"is hit: {line!r}; narrow the pattern")


def _sample(matcher: Matcher, identifier: str, sample: Sample) -> Iterator[str]:
    hits = _hits(matcher, sample.line)
    own = hits.pop(identifier, None)
    if own is None and not hits:
        yield f"is not hit: {sample.line!r}; widen the pattern, or mend the line"
    elif own is not None and sample.expect != {name: own.get(name) for name in sample.expect}:
        yield f"captures {own}, not {sample.expect}, of {sample.line!r}; mend one of the two"
    if hits:
        yield f"is hit by {', '.join(hits)} too: {sample.line!r}; narrow one of them"


def _foreign_samples(tested: SignatureSet, others: Iterable[Entry]) -> Iterator[str]:
    """A user's entry that takes the lines of a shipped one as well counts them twice."""
    matcher = Matcher(tested, engine="plain")
    for other in others:
        for sample in other.samples:
            for identifier in _hits(matcher, sample.line):
                entry = tested.by_id(identifier)
                assert entry is not None
                yield entry.complaint(
                    "pattern",
                    f"hits a sample of {other.signature.id} too: {sample.line!r}; narrow it, or"
                    " override that entry by giving this one its id",
                )


def _hits(matcher: Matcher, line: str) -> dict[str, dict[str, str]]:
    """The ids that hit a line, with what they capture."""
    return {
        found.signature.id: {name: _text(text) for name, text in found.captures.items()}
        for found in matcher.match(line.encode() + b"\n")
    }


def _text(captured: bytes) -> str:
    return captured.decode("utf-8", "replace")
