"""`supervise signatures list|test`: the database, the shipped entries and the user's own.

`test` holds every entry to its own samples: each must hit that entry and no other, with the
captures it states, and no near miss may hit the entry it is one of.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from supervisor.adapters.matcher import Matcher
from supervisor.adapters.signature_entry import Entry, Sample
from supervisor.adapters.signature_files import load_signatures, shipped_folder
from supervisor.cli.parser import parse_with


def main(words: list[str]) -> int:
    """List the entries, or test them; 1 when an entry does not do what it says."""
    options = parse_with(_parser(), words)
    loaded = load_signatures((shipped_folder(), *map(Path, options.folders)))
    if options.what == "list":
        print(_as_json(loaded.entries) if options.json else _told(loaded.entries))
        return 0
    complaints = list(_complaints(Matcher(loaded, engine="plain"), loaded.entries))
    samples = sum(len(entry.samples) for entry in loaded.entries)
    print("\n".join([*complaints, f"{len(loaded.entries)} signatures, {samples} samples:"]), end="")
    print(f" {len(complaints)} complaints" if complaints else " all hold")
    return 1 if complaints else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="supervise signatures",
        description="List the failure signatures, or test each against its own samples.",
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument("what", nargs="?", choices=("list", "test"), default="list")
    parser.add_argument(
        "--signatures",
        dest="folders",
        action="append",
        default=[],
        metavar="DIR",
        help="further signature files; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="the list as JSON")
    return parser


def _told(entries: tuple[Entry, ...]) -> str:
    width = max((len(entry.signature.id) for entry in entries), default=0)
    return "\n".join(
        f"{entry.signature.id:{width}}  {entry.signature.role:7}  {entry.signature.cause:13}"
        f"  {entry.signature.title}"
        for entry in entries
    )


def _as_json(entries: tuple[Entry, ...]) -> str:
    return json.dumps([_fields(entry) for entry in entries], indent=2)


def _fields(entry: Entry) -> dict[str, Any]:
    signature = entry.signature
    return {
        "id": signature.id,
        "title": signature.title,
        "cause": signature.cause,
        "role": signature.role,
        "sources": sorted(signature.sources),
        "blames": signature.blames,
        "pattern": signature.pattern,
        "status": entry.status,
        "description": entry.description,
        "references": list(entry.references),
        "file": entry.file,
        "line": entry.line,
    }


def _complaints(matcher: Matcher, entries: tuple[Entry, ...]) -> Iterator[str]:
    for entry in entries:
        place = f"{entry.file}:{entry.line}: {entry.signature.id}"
        for sample in entry.samples:
            yield from (f"{place}: {wrong}" for wrong in _sample(matcher, entry, sample))
        for line in entry.near_misses:
            if entry.signature.id in _hits(matcher, line):
                yield f"{place}: hits its near miss {line!r}"


def _sample(matcher: Matcher, entry: Entry, sample: Sample) -> Iterator[str]:
    hits = _hits(matcher, sample.line)
    own = hits.pop(entry.signature.id, None)
    if own is None:
        yield f"does not hit its sample {sample.line!r}"
    elif sample.expect != {name: own.get(name) for name in sample.expect}:
        yield f"captures {own}, not {sample.expect}, of {sample.line!r}"
    if hits:
        yield f"its sample {sample.line!r} is hit by {', '.join(hits)} too"


def _hits(matcher: Matcher, line: str) -> dict[str, dict[str, str]]:
    """The ids that hit a line, with what they capture."""
    return {
        found.signature.id: {name: text.decode() for name, text in found.captures.items()}
        for found in matcher.match(line.encode() + b"\n")
    }
