"""`supervise signatures list | show ID | test [DIR] | try PATTERN LOG`: the shipped entries and
the user's own.

Exit codes: 0; 1 when `test` has a complaint or `try` no hit; 2 for what cannot be used, which
includes a pattern that is refused. So `try` ends as grep does.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from supervisor.adapters.signature_entry import Entry
from supervisor.adapters.signature_files import SignatureSet, load_signatures, shipped_folder
from supervisor.adapters.signature_folders import own_folders
from supervisor.cli.parser import parse_with
from supervisor.errors import UsageError

_SILENT_SECONDS = 2.0


def main(words: list[str]) -> int:
    """List, show, test or try; 1 when an entry does not do what it says, or nothing is hit."""
    if not words or (words[0].startswith("--") and words[0] != "--help"):
        words = ["list", *words]
    options = parse_with(_parser(), words)
    match options.what:
        case "show":
            return _show(options)
        case "test":
            return _test(options)
        case "try":
            from supervisor.cli import signature_try

            return signature_try.main(options.pattern, options.log)
        case _:
            return _list(options)


def _parser() -> argparse.ArgumentParser:
    keywords: dict[str, Any] = {"allow_abbrev": False, "exit_on_error": False}
    parser = argparse.ArgumentParser(
        prog="supervise signatures",
        description="The failure signatures: ours, then your own of ~/.config/supervise/signatures,"
        " $SUPERVISE_SIGNATURES and --signatures, in this order; of two with one id the later"
        " counts.",
        epilog="exit codes: 0; 1 when test has a complaint, or try no hit; 2 usage, or refused",
        **keywords,
    )
    kinds = parser.add_subparsers(dest="what", required=True)
    listing = kinds.add_parser("list", help="all entries, a line each", **keywords)
    showing = kinds.add_parser("show", help="one entry in full", **keywords)
    showing.add_argument("id", metavar="ID")
    testing = kinds.add_parser("test", help="hold entries to samples and rules", **keywords)
    testing.add_argument(
        "folder", nargs="?", metavar="DIR", help="only these (default: all, which takes long)"
    )
    for kind in (listing, showing, testing):
        kind.add_argument(
            "--signatures",
            dest="folders",
            action="append",
            default=[],
            metavar="DIR",
            help="further signature files; may be repeated, the last one decides",
        )
    for kind in (listing, showing):
        kind.add_argument("--json", action="store_true", help="as JSON")
    trying = kinds.add_parser("try", help="what a pattern hits in a log", **keywords)
    trying.add_argument("pattern", metavar="PATTERN", help="as in a signature; <HOST>, <TAG> work")
    trying.add_argument("log", metavar="LOG", help="a file, .gz, folder, or - ")
    return parser


def _loaded(folders: list[str]) -> SignatureSet:
    return load_signatures((shipped_folder(), *own_folders(folders)))


def _list(options: argparse.Namespace) -> int:
    entries = _loaded(options.folders).entries
    print(json.dumps(list(map(_fields, entries)), indent=2) if options.json else _table(entries))
    return 0


def _show(options: argparse.Namespace) -> int:
    loaded = _loaded(options.folders)
    entry = loaded.by_id(options.id)
    if entry is None:
        raise UsageError(f"no signature {options.id!r}{_like(options.id, loaded)}")
    print(json.dumps(_fields(entry), indent=2) if options.json else "\n".join(_told(entry)))
    return 0


def _like(identifier: str, loaded: SignatureSet) -> str:
    import difflib

    known = [entry.signature.id for entry in loaded.entries]
    found = difflib.get_close_matches(identifier, known, n=3) or [
        one for one in known if identifier in one
    ]
    meant = f": did you mean {', '.join(found[:5])}?"
    return meant if found else "; see `supervise signatures list`"


def _test(options: argparse.Namespace) -> int:
    from supervisor.adapters.signature_rules import complaints

    given = [options.folder] if options.folder else []
    loaded = _loaded([*options.folders, *given])
    tested = [entry for entry in loaded.entries if _stands_in(entry, options.folder)]
    progress = _Progress(len(tested))
    found = list(complaints(loaded, tested, progress.show))
    progress.clear()
    samples = sum(len(entry.samples) + len(entry.near_misses) for entry in tested)
    told = _counted(len(found), "complaint") if found else "all hold"
    of = f"{_counted(len(tested), 'signature')}, {_counted(samples, 'sample')}"
    print("\n".join([*found, f"{of}: {told}"]))
    return 1 if found else 0


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _stands_in(entry: Entry, folder: str | None) -> bool:
    path = Path(entry.file)
    return folder is None or Path(folder).absolute() in (path, path.parent)


class _Progress:
    """How many entries are tested, on a terminal, when it takes long."""

    def __init__(self, total: int) -> None:
        self._total, self._begun, self._shown = total, time.monotonic(), False

    def show(self, number: int) -> None:
        if time.monotonic() - self._begun > _SILENT_SECONDS and sys.stderr.isatty():
            self._shown = True
            sys.stderr.write(f"\rsupervise: tested {number} of {self._total}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")


def _table(entries: tuple[Entry, ...]) -> str:
    width = max((len(entry.signature.id) for entry in entries), default=0)
    return "\n".join(
        f"{entry.signature.id:{width}}  {entry.signature.role:7}  {entry.signature.cause:13}"
        f"  {entry.signature.title}"
        for entry in entries
    )


def _told(entry: Entry) -> Iterator[str]:
    """Every field that says something, for a person."""
    fields = _fields(entry)
    place = f"{fields.pop('file')}:{fields.pop('line')}"
    samples, near_misses = fields.pop("samples"), fields.pop("near_misses")
    for name, value in {**fields, "file": place}.items():
        if value not in ("", [], False):
            yield f"{name:12} {', '.join(value) if isinstance(value, list) else value}"
    for sample in samples:
        captures = "".join(f"  {name}={text}" for name, text in sample["expect"].items())
        yield f"{'hits':12} {sample['line']}{captures and '  ->' + captures}"
    for line in near_misses:
        yield f"{'not':12} {line}"


def _fields(entry: Entry) -> dict[str, Any]:
    signature = entry.signature
    return {
        "id": signature.id,
        "title": signature.title,
        "cause": signature.cause,
        "role": signature.role,
        "sources": sorted(signature.sources),
        "blames": signature.blames,
        "fallback": signature.fallback,
        "pattern": signature.pattern,
        "literal": entry.literal.decode(),
        "status": entry.status,
        "description": entry.description,
        "references": list(entry.references),
        "samples": [
            {"line": sample.line, "source": sample.source, "expect": sample.expect}
            for sample in entry.samples
        ],
        "near_misses": list(entry.near_misses),
        "file": entry.file,
        "line": entry.line,
    }
