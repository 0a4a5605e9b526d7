"""Nominates lines by running all patterns at once with hyperscan, an optional dependency.

Its import can kill a process on an older CPU (SIGILL) and no `except` catches that. So a child
process tries it first: imports, compiles, finds a canary line, hands back the serialized
database. The answer is cached under the patterns, the library's version and the CPU's flags.
While the child works (half a second, once per machine type) the plain engine serves.
"""

import atexit
import hashlib
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from supervisor.adapters.cache_files import read_cache, write_cache
from supervisor.adapters.pattern_check import MACROS
from supervisor.errors import PlatformError

_PROBE_SECONDS = 120.0
_GOOD, _BAD = b"+", b"-"
_CANARY = b"supervise canary [0-9] sings"

# Tags may come before anything, so they tell nothing apart, yet double the cost.
_TAG = MACROS["<TAG>"].encode()
# Wide bounds cost the automaton a state per repetition; without them it only nominates more.
_WIDE_BOUND = re.compile(rb"(?<=[\])\w.])\{(\d+),\d{2,}\}")
# A class that excludes may run on over line ends, for the rest of the block. Lines hold none.
_EXCLUDING = re.compile(rb"(?<!\\)\[\^")

_PROBE = """
import json, sys, hyperscan as hs
patterns = [text.encode() for text in json.load(sys.stdin)]
database = hs.Database(mode=hs.HS_MODE_BLOCK)
count = len(patterns)
flags = [hs.HS_FLAG_MULTILINE] * count
database.compile(expressions=patterns, ids=list(range(count)), elements=count, flags=flags)
data = hs.dumpb(database)
database = hs.loadb(data, hs.HS_MODE_BLOCK)
database.scratch = hs.Scratch(database)
seen = []
line = b"la la\\nsupervise canary 7 sings\\n"
database.scan(line, match_event_handler=lambda *event: seen.append(event[0]))
if count - 1 not in seen:
    sys.exit("the canary was not found")
sys.stdout.buffer.write(data)
"""


class FastEngine:
    """A hyperscan database, or the probe that is making one."""

    def __init__(self, name: str, patterns: Sequence[bytes]) -> None:  # as coarse() makes them
        self._name, self._count = name, len(patterns)
        self._database: Any = None
        self._probe: _Probe | None = None
        cached = read_cache(name)
        if cached is None:
            self._probe = _Probe([*patterns, _CANARY])
        else:
            self._open(cached)

    def ready(self) -> bool:
        """Whether `nominate` can be asked; starts to hold once the probe has ended well."""
        if self._probe is not None and (answer := self._probe.answer()) is not None:
            self._probe = None
            write_cache(self._name, answer)
            self._open(answer)
        return self._database is not None

    def wait(self) -> None:
        """Wait for the probe's answer."""
        if self._probe is not None:
            self._probe.wait()

    def nominate(self, block: bytes) -> Iterable[tuple[int, int]]:
        """(signature, position) for each place where a pattern ends."""
        found: list[tuple[int, int]] = []

        def note(index: int, start: int, end: int, flags: int, context: object) -> None:
            if index < self._count:
                found.append((index, end - 1))

        if block:
            self._database.scan(block, match_event_handler=note)
        return found

    def _open(self, answer: bytes) -> None:
        if answer[:1] != _GOOD:
            return
        import hyperscan

        self._database = hyperscan.loadb(answer[1:], hyperscan.HS_MODE_BLOCK)
        self._database.scratch = hyperscan.Scratch(self._database)


class _Probe:
    """The child process that tries the library out."""

    def __init__(self, patterns: Sequence[bytes]) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by answer()
        self._process = self._start(json.dumps([text.decode() for text in patterns]).encode())
        atexit.register(self._end)

    def _start(self, question: bytes) -> subprocess.Popen[bytes]:
        with tempfile.TemporaryFile() as file:
            file.write(question)
            file.seek(0)
            return subprocess.Popen(
                [sys.executable, "-P", "-c", _PROBE],
                stdin=file,
                stdout=self._output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def answer(self) -> bytes | None:
        """Good and the database, or bad; None as long as the child works."""
        if self._process.poll() is None:
            return None
        atexit.unregister(self._end)
        with self._output as file:
            file.seek(0)
            return _GOOD + file.read() if self._process.returncode == 0 else _BAD

    def wait(self) -> None:
        try:
            self._process.wait(_PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()


def fast_engine(patterns: Sequence[bytes], *, wait: bool) -> FastEngine | None:
    """The fast engine, where it is installed; with `wait`, ready or a PlatformError."""
    release = _release()
    if release is None:
        if wait:
            raise PlatformError("the fast engine needs hyperscan: pip install supervise-hpc[fast]")
        return None
    wide = [*map(coarse, patterns)]
    engine = FastEngine(_cache_name(wide, release), wide)
    if wait:
        engine.wait()
        if not engine.ready():
            raise PlatformError("hyperscan does not work on this machine; use the plain engine")
    return engine


def coarse(pattern: bytes) -> bytes:
    """The pattern without tag and wide bounds: it matches all that it did in a line, and more."""
    untagged = pattern.removeprefix(_TAG)
    open_ended = _WIDE_BOUND.sub(lambda bound: b"*" if bound[1] == b"0" else b"+", untagged)
    return _EXCLUDING.sub(rb"[^\\n", open_ended)


def _release() -> str | None:
    try:
        return version("hyperscan")
    except PackageNotFoundError:
        return None


def _cache_name(patterns: Sequence[bytes], release: str) -> str:
    parts = [*patterns, _PROBE.encode(), release.encode(), sys.version.encode(), _cpu()]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return f"matcher-{digest.hexdigest()[:32]}.db"


def _cpu() -> bytes:
    """What the CPU can do: a home folder may be shared by machines of different age."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        lines = []
    flags = (line for line in lines if line.startswith((b"flags", b"Features")))
    return platform.machine().encode() + next(flags, b"")
