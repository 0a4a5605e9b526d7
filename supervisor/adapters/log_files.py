"""The logs of a job as blocks of whole lines: files, gzip files, folders of them, standard input.

Owns which files of a folder are logs. A folder that is a run folder of ours stands for the logs of
its newest attempt. Memory is bounded: a line that does not end within a block is handed on in
pieces.
"""

import gzip
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import NoReturn

from supervisor.errors import UsageError

BLOCK = 256 * 1024
STANDARD_INPUT = "-"
_SNIFFED = 4096
_GZIP = b"\x1f\x8b"

Seen = Callable[[int], None]  # told how many bytes are read
_Text = BufferedReader | gzip.GzipFile


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file: the name it is shown by, its path (None: standard input), bytes on disk."""

    name: str
    path: Path | None
    size: int


def find_logs(names: Sequence[str]) -> tuple[LogFile, ...]:
    """The log files behind these names; UsageError for one that is missing or has none in it."""
    return tuple(log for name in names for log in _logs_of(name))


def told_apart(logs: Sequence[LogFile], seen: Seen) -> Iterator[tuple[LogFile, Seen]]:
    """Each log, with whom to tell how much of it is read; `seen` is told how much of all."""
    before = 0
    for log in logs:
        yield log, _after(before, seen)
        before += log.size


def refuse(text: str) -> NoReturn:
    """A log that cannot be read is the user's mistake, unless the caller can do with a part."""
    raise UsageError(text)


def read_blocks(
    log: LogFile,
    seen: Seen = lambda size: None,
    warn: Callable[[str], None] = refuse,
) -> Iterator[bytes]:
    """Its bytes in blocks that end with a line; `seen` learns how many bytes of it are read, `warn`
    that the rest cannot be: jobs that die leave .gz files that are cut off.
    """
    with ExitStack() as stack:
        raw = _opened(log, stack)
        text: _Text = raw
        end = log.size  # none for a pipe
        if _is_gzip(raw):
            text, end = stack.enter_context(gzip.GzipFile(fileobj=raw)), 0
        read = 0
        for block in _blocks(text, lambda why: warn(f"{log.name}: {why}")):
            yield block
            read += len(block)
            seen(raw.tell() if raw.seekable() else read)
            if 0 < end <= read:  # what a job that still writes adds meanwhile has no end
                return


def _after(before: int, seen: Seen) -> Seen:
    return lambda size: seen(before + size)


def _blocks(text: _Text, warn: Callable[[str], None]) -> Iterator[bytes]:
    """One buffer for all: fresh memory for each block costs more than reading does."""
    buffer, kept = bytearray(BLOCK), 0
    view = memoryview(buffer)
    while size := _fill(text, view[kept:], warn):
        end = kept + size
        cut = buffer.rfind(b"\n", 0, end) + 1 or buffer.rfind(b"\r", 0, end) + 1
        if not cut and end == BLOCK:
            cut = end
        if cut:
            yield bytes(view[:cut])
        kept = end - cut
        view[:kept] = view[cut:end]
    if kept:
        yield bytes(view[:kept])


def _fill(text: _Text, room: memoryview, warn: Callable[[str], None]) -> int:
    filled = 0
    try:
        while size := text.readinto1(room[filled:]):
            filled += size
    except (OSError, EOFError, zlib.error) as error:
        warn(f"cannot be read to its end: {error}")
    return filled


def _opened(log: LogFile, stack: ExitStack) -> BufferedReader:
    source = 0 if log.path is None else log.path
    try:
        return stack.enter_context(open(source, "rb", closefd=log.path is not None))
    except OSError as error:
        raise UsageError(f"{log.name}: cannot be read: {error.strerror}") from error


def _is_gzip(raw: BufferedReader) -> bool:
    """Looks without reading: a pipe cannot be wound back."""
    return raw.peek(len(_GZIP)).startswith(_GZIP)


def _logs_of(name: str) -> list[LogFile]:
    if name == STANDARD_INPUT:
        if sys.stdin is None:  # its number may by now be that of another file
            raise UsageError("standard input: is closed; give log files or folders of them")
        return [LogFile(name="standard input", path=None, size=0)]
    path = Path(name)
    if path.is_dir():
        return _of_folder(path)
    if not path.exists():
        raise UsageError(f"{name}: no such file; give log files, folders of them, or -")
    return [_log(path, name)]


def _of_folder(folder: Path) -> list[LogFile]:
    attempts = sorted((folder / "attempts").glob("[0-9]*"), key=lambda path: _natural(path.name))
    top = attempts[-1] if attempts else folder
    paths = [path for path in top.rglob("*") if path.is_file() and _is_log(path, top)]
    if not paths:
        raise UsageError(f"{folder}: holds no log file")
    ordered = sorted(paths, key=lambda path: _natural(str(path.relative_to(top))))
    return [_log(path, str(path.relative_to(top))) for path in ordered]


def _log(path: Path, name: str) -> LogFile:
    return LogFile(name=name, path=path, size=path.stat().st_size)


def _is_log(path: Path, top: Path) -> bool:
    """Text or gzip; the keeper's spool holds again what the logs beside it hold."""
    inside = path.relative_to(top).parts
    if any(part.startswith(".") for part in inside) or "spool" in inside:
        return False
    if path.suffix in (".json", ".jsonl"):
        return False
    try:
        with open(path, "rb") as file:
            head = os.read(file.fileno(), _SNIFFED)
    except OSError:
        return True  # told when it is read
    return head.startswith(_GZIP) or b"\0" not in head


def _natural(name: str) -> list[tuple[int, str]]:
    """rank_9 before rank_10."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
