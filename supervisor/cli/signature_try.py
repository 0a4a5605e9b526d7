"""`supervise signatures try PATTERN LOG`: is the pattern accepted, and what does it hit?"""

from collections.abc import Iterator

from supervisor.adapters.hits import Found
from supervisor.adapters.hostile_lines import slow_line
from supervisor.adapters.line_text import printable, without_escapes
from supervisor.adapters.log_files import LogFile, find_logs, read_blocks, told_apart
from supervisor.adapters.matcher import Matcher
from supervisor.adapters.pattern_check import MIN_LITERAL, complaint, expand, required_literal
from supervisor.adapters.signature_entry import Entry
from supervisor.adapters.signature_files import SLOW_SECONDS, SignatureSet, told_slow
from supervisor.adapters.signature_rules import benign_hits, pattern_complaints
from supervisor.cli.bar import Bar
from supervisor.core.signature import Blames, Cause, Role, Signature, Source
from supervisor.errors import UsageError

_MOST_SHOWN = 100


def main(pattern: str, log: str) -> int:
    """Show the hits, the first hundred of them; 0 if there are any, 1 if none, 2 if refused."""
    logs = find_logs([log])
    entry = _entry(expand(pattern))
    print("\n".join(_acceptance(entry)))
    bar, number = Bar(sum(one.size for one in logs)), 0
    for text in _hits(Matcher(SignatureSet(entries=(entry,), digest=""), "plain"), logs, bar):
        number += 1
        if number <= _MOST_SHOWN:
            bar.clear()
            print(text)
    bar.clear()
    rest = f", the first {_MOST_SHOWN} shown" if number > _MOST_SHOWN else ""
    print(f"{number} hit{'s' * (number != 1)}{rest}")
    return 0 if number else 1


def _entry(pattern: str) -> Entry:
    """An entry as loading would make it; UsageError for a pattern that loading would refuse."""
    if why := _refusal(pattern):
        raise UsageError(f"the pattern is refused: it {why}")
    return Entry(
        signature=Signature(
            id="pattern",
            title="",
            cause=Cause.UNKNOWN,
            role=Role.NOTICE,
            sources=frozenset(Source),
            blames=Blames.NOBODY,
            pattern=pattern,
        ),
        literal=required_literal(pattern),
        samples=(),
        near_misses=(),
        references=(),
        status="experimental",
        description="",
        file="command line",
        line=1,
    )


def _refusal(pattern: str) -> str | None:
    if why := complaint(pattern):
        return why
    literal = required_literal(pattern)
    if len(literal) < MIN_LITERAL:
        return f"has no fixed text of {MIN_LITERAL} bytes or more in all it matches"
    slow = slow_line(pattern, literal, SLOW_SECONDS)
    return told_slow(slow) if slow else None


def _acceptance(entry: Entry) -> Iterator[str]:
    found = list(pattern_complaints(entry, benign_hits([entry])["pattern"]))
    yield f"accepted; looked for by {entry.literal.decode()!r}"
    for text in found:
        yield f"but `signatures test` will say: {text.partition('pattern: ')[2]}"


def _hits(matcher: Matcher, logs: tuple[LogFile, ...], bar: Bar) -> Iterator[str]:
    for log, seen in told_apart(logs, bar.show):
        name = f"{log.name}:" if len(logs) > 1 else ""
        line = 1
        for block in read_blocks(log, seen):
            at = 0
            for found in matcher.match(block):
                line += block.count(b"\n", at, found.start)
                at = found.start
                yield f"{name}{line}: {_shown(found, block)}"
            line += block.count(b"\n", at)


def _shown(found: Found, block: bytes) -> str:
    text = printable(without_escapes(block[found.start : found.end]), found.at)
    captures = (f"{name}={printable(value)}" for name, value in found.captures.items())
    return "  ".join([text, *captures])
