"""What a checkpoint folder is: its names, manifest and marker, and what tells good from damaged.

    CHECKPOINT_DIR/step-00000120/   the shards, manifest.json, and last of all .complete
    CHECKPOINT_DIR/step-00000130.a2.tmp/   one that attempt 2 has not finished
    CHECKPOINT_DIR/step-00000110.bad/      one that was found damaged and set aside

The agent writes these and the supervisor chooses among them, so both import this and neither
imports the other. It owns no choice and no protocol: only what can be said of one folder.
Standard library only.

Whose folder it is matters, because a damaged one of ours is renamed and anybody else's must not
be: a folder is ours when it has a manifest, or a marker with our words in it.
"""

import json
import re
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
MARKER = ".complete"
MARKER_TEXT = "supervise-hpc checkpoint 1\n"
VERSION = 1

_NAME = re.compile(r"step-(\d+)")
_UNFINISHED = re.compile(r"step-\d+\.a\d+\.tmp|step-\d+.*\.trash")
_CHUNK = 1 << 20
_MAX_MANIFEST_BYTES = 256 << 20  # 10,000 ranks need about 1 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSum:
    """Size and CRC-32 of one file."""

    size: int
    crc32: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the folder must hold."""

    step: int
    world_size: int
    files: dict[str, FileSum]


class DamagedError(ValueError):
    """The folder is ours and cannot be trusted; the message says why."""


def folder_name(step: int) -> str:
    """The name of a finished checkpoint."""
    return f"step-{step:08d}"


def unfinished_name(step: int, attempt: int) -> str:
    """The name a checkpoint is written under; two attempts never share one."""
    return f"{folder_name(step)}.a{attempt}.tmp"


def is_unfinished(name: str) -> bool:
    """Whether a folder of this name is a write or a removal that never ended."""
    return _UNFINISHED.fullmatch(name) is not None


def by_step(parent: Path) -> list[tuple[int, Path]]:
    """All folders named like a checkpoint, highest step first. A missing parent holds none."""
    try:
        names = [entry.name for entry in parent.iterdir()]
    except FileNotFoundError:
        return []
    found = [(int(match[1]), parent / match[0]) for match in map(_NAME.fullmatch, names) if match]
    return sorted(found, key=lambda pair: (pair[0], pair[1].name), reverse=True)


def is_complete(folder: Path) -> bool:
    """Whether the marker says that the checkpoint was finished."""
    return (folder / MARKER).is_file()


def is_ours(folder: Path) -> bool:
    """Whether this package wrote the folder."""
    if (folder / MANIFEST).is_file():
        return True
    try:
        with (folder / MARKER).open("rb") as marker:
            return marker.read(len(MARKER_TEXT)) == MARKER_TEXT.encode()
    except (FileNotFoundError, NotADirectoryError):
        return False


def dump_manifest(manifest: Manifest, **notes: Any) -> bytes:
    """The manifest as bytes; notes are for people and are not read back."""
    files = {
        name: {"size": one.size, "crc32": one.crc32} for name, one in sorted(manifest.files.items())
    }
    fields = {"version": VERSION, "step": manifest.step, "world_size": manifest.world_size}
    return json.dumps({**fields, **notes, "files": files}, indent=1).encode() + b"\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, or DamagedError."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            fields = json.loads(file.read(_MAX_MANIFEST_BYTES))
    except FileNotFoundError:
        raise DamagedError(f"{MANIFEST} is missing") from None
    except ValueError as error:
        raise DamagedError(f"{MANIFEST} is not JSON: {error}") from None
    try:
        return _manifest_of(fields)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(f"{MANIFEST} lacks or misspells a field: {error}") from None


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """Raise DamagedError unless every file is there with its size."""
    for name, expected in manifest.files.items():
        try:
            size = (folder / name).stat().st_size
        except FileNotFoundError:
            raise DamagedError(f"{name} is missing") from None
        if size != expected.size:
            raise DamagedError(f"{name} has {size} bytes instead of {expected.size}")


def check_sums(folder: Path, manifest: Manifest, names: list[str], *, until: float) -> None:
    """Raise DamagedError when bytes changed. Past `until` (monotonic) the rest is believed."""
    for name in names:
        try:
            found = sum_of(folder / name, until=until)
        except FileNotFoundError:
            raise DamagedError(f"{name} is missing") from None
        if found is not None and found != manifest.files[name]:
            raise DamagedError(f"{name} does not match its checksum")


def sum_of(path: Path, *, until: float = float("inf")) -> FileSum | None:
    """Size and CRC-32 of a file as it is now; None when the time was up before its end."""
    size = crc = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if time.monotonic() > until:
                return None
            size, crc = size + len(chunk), zlib.crc32(chunk, crc)
    return FileSum(size=size, crc32=crc)


def check(folder: Path, *, until: float) -> Manifest:
    """The manifest of a folder whose sizes, and as many checksums as the time allows, are right."""
    manifest = read_manifest(folder)
    check_sizes(folder, manifest)
    check_sums(folder, manifest, list(manifest.files), until=until)
    return manifest


def set_aside(folder: Path) -> Path:
    """Rename a damaged folder so that nothing chooses it again; its bytes stay, to be looked at."""
    number = 1
    while True:
        target = folder.with_name(f"{folder.name}.bad" + (f".{number}" if number > 1 else ""))
        if not target.exists():
            return folder.rename(target)
        number += 1


def _manifest_of(fields: dict[str, Any]) -> Manifest:
    if fields["version"] != VERSION:
        raise ValueError(f"version {fields['version']} is not {VERSION}")
    files = {
        _plain(name): FileSum(size=int(one["size"]), crc32=int(one["crc32"]))
        for name, one in fields["files"].items()
    }
    return Manifest(step=int(fields["step"]), world_size=int(fields["world_size"]), files=files)


def _plain(name: str) -> str:
    if "/" in name or name in {"", ".", ".."}:
        raise ValueError(f"{name!r} is not a file name")
    return name
