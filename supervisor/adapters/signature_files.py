"""The signature database on disk: folders of YAML files in, one checked set of entries out.

Later folders override earlier ones by id. A file with a mistake is refused whole. YAML is slow
(70 ms for the shipped set), so the checked set is kept as JSON in the user's cache folder under a
digest of all that was read; content that has changed has another digest, so a stale set cannot be
served.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supervisor.adapters.cache_files import read_cache, write_cache
from supervisor.adapters.pattern_check import MACROS
from supervisor.adapters.signature_entry import Entry, Place, Sample, read_entry, sequence
from supervisor.core.signature import Blames, Cause, Role, Signature, Source
from supervisor.errors import PlatformError, UsageError

if TYPE_CHECKING:
    from yaml.nodes import Node

    from supervisor.adapters.hostile_lines import Slow

_FORMAT = "3"  # of the cached JSON and of the checks; raise it when either changes
_MOST_BYTES = 4 << 20  # of one file: a signature file of 4 MiB is a mistake
_SUFFIXES = (".yaml", ".yml")
SLOW_SECONDS = 0.05  # on one line; where the matcher, too, begins to call a signature slow


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureSet:
    """All entries that hold, by position, and a digest of the files they came from."""

    entries: tuple[Entry, ...]
    digest: str

    def by_id(self, identifier: str) -> Entry | None:
        """The entry of this id, if there is one."""
        found = (entry for entry in self.entries if entry.signature.id == identifier)
        return next(found, None)


def shipped_folder() -> Path:
    """The folder that came with this package: inside it in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "signatures", package.parent / "signatures"):
        if any(folder.glob("*.yaml")):
            return folder
    raise PlatformError(f"no signatures beside {package}: install supervise-hpc again")


def signature_paths(folders: Sequence[Path]) -> list[list[Path]]:
    """The files of each folder in order; a file may stand for a folder."""
    return [_paths(folder) for folder in folders]


def load_signatures(folders: Sequence[Path]) -> SignatureSet:
    """Read, check and join the signature files of these folders."""
    texts = [[(path, _read(path)) for path in paths] for paths in signature_paths(folders)]
    digest = _digest(texts)
    name = f"signatures-{digest}.json"
    cached = read_cache(name)
    if cached is not None:
        return _from_json(cached, digest)
    signatures = SignatureSet(entries=_joined(texts), digest=digest)
    _refuse_slow(signatures.entries)
    write_cache(name, _to_json(signatures))
    return signatures


def _paths(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder of signatures; name a folder or a .yaml file")
    try:
        names = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read: {error.strerror}") from error
    return [path for path in names if path.suffix in _SUFFIXES and path.is_file()]


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot read the signature file: {error.strerror}") from error
    if len(text) > _MOST_BYTES:
        raise UsageError(f"{path}: over {_MOST_BYTES >> 20} MiB; split the signature file")
    return text


def _digest(texts: list[list[tuple[Path, bytes]]]) -> str:
    digest = hashlib.sha256(f"{_FORMAT} {_release()} {MACROS}".encode())
    for folder in texts:
        digest.update(b"\0folder")
        for path, text in folder:
            digest.update(f"\0{path}\0{len(text)}\0".encode("utf-8", "surrogateescape"))
            digest.update(text)
    return digest.hexdigest()[:32]


def _release() -> str:
    try:
        return version("supervise-hpc")
    except PackageNotFoundError:
        return "checkout"


def _joined(texts: list[list[tuple[Path, bytes]]]) -> tuple[Entry, ...]:
    entries: dict[str, Entry] = {}
    for folder in texts:
        entries |= _folder_entries(folder)
    return tuple(entries.values())


def _folder_entries(texts: list[tuple[Path, bytes]]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for entry in (entry for path, text in texts for entry in _file_entries(path, text)):
        identifier = entry.signature.id
        other = entries.setdefault(identifier, entry)
        if other is not entry:
            here, there = f"{entry.file}:{entry.line}", f"{other.file}:{other.line}"
            raise UsageError(
                f"{here}: entry '{identifier}': id: also at {there}; rename one of the two"
            )
    return entries


def _refuse_slow(entries: Iterable[Entry]) -> None:
    """Nothing can interrupt `re`: a slow pattern is found out here, or not before a job hangs.

    The shipped ones are held to stricter limits where they are made; trying them all takes long.
    """
    from supervisor.adapters.hostile_lines import slow_line

    shipped = shipped_folder()
    for entry in entries:
        if Path(entry.file).parent == shipped:
            continue
        slow = slow_line(entry.signature.pattern, entry.literal, SLOW_SECONDS)
        if slow is not None:
            raise UsageError(entry.complaint("pattern", told_slow(slow)))


def told_slow(slow: "Slow") -> str:
    """What a slow pattern is told, and what to write instead."""
    return (
        f"takes {slow.seconds:.3f} s of a line of {len(slow.line)} bytes, {slow.line[:40]!r}..; it"
        " can read the same text in many ways: let each repeat stop where the next text begins,"
        " as [^ ]{1,80} before a space, and bound it"
    )


def _file_entries(path: Path, text: bytes) -> Iterator[Entry]:
    root = _compose(path, text)
    if root is None:
        return
    for node in sequence(root, Place(str(path)), "file"):
        yield read_entry(node, str(path))


def _compose(path: Path, text: bytes) -> "Node | None":
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node: Node | None = yaml.compose(text.decode(), Loader=loader)
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8; save the file as UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error)
        raise UsageError(f"{path}:{line}: not YAML: {problem}; mend this line") from error
    except RecursionError as error:
        raise UsageError(f"{path}:1: nested too deeply; write a list of entries") from error
    return node


def _to_json(signatures: SignatureSet) -> bytes:
    return json.dumps([_plain(entry) for entry in signatures.entries]).encode()


def _plain(entry: Entry) -> dict[str, Any]:
    fields = asdict(entry)
    fields["literal"] = entry.literal.decode()
    fields["signature"]["sources"] = sorted(entry.signature.sources)
    return fields


def _from_json(data: bytes, digest: str) -> SignatureSet:
    return SignatureSet(entries=tuple(_entry(fields) for fields in json.loads(data)), digest=digest)


def _entry(fields: dict[str, Any]) -> Entry:
    return Entry(
        signature=_signature(fields["signature"]),
        literal=fields["literal"].encode(),
        samples=tuple(_sample(sample) for sample in fields["samples"]),
        near_misses=tuple(fields["near_misses"]),
        references=tuple(fields["references"]),
        status=fields["status"],
        description=fields["description"],
        file=fields["file"],
        line=fields["line"],
        lines=fields["lines"],
    )


def _signature(fields: dict[str, Any]) -> Signature:
    return Signature(
        id=fields["id"],
        title=fields["title"],
        cause=Cause(fields["cause"]),
        role=Role(fields["role"]),
        sources=frozenset(map(Source, fields["sources"])),
        blames=Blames(fields["blames"]),
        pattern=fields["pattern"],
        fallback=fields["fallback"],
    )


def _sample(fields: dict[str, Any]) -> Sample:
    source = fields["source"]
    return Sample(
        line=fields["line"],
        source=Source(source) if source else None,
        expect=fields["expect"],
    )
