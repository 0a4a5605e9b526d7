"""Speed of the matcher beside ripgrep and a loop over `re`, with the same patterns.

usage: python tests/benchmarks/bench_matcher.py [MEGABYTES]    default 50; 1000 to quote

Two logs: one of a training that runs well, one of a storm in which three lines in ten hit. Each
reader is a process of its own, so that its CPU seconds and peak memory are its own; starting up is
told apart. The loop over `re` reads the first 2 MB only: it would need a quarter of an hour for
1 GB. Ratios are of one run, in CPU seconds: a busy machine hardly moves them.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from training_logs import calm, storm, write_log

if TYPE_CHECKING:
    from supervisor.adapters.signature_files import SignatureSet

REPO = Path(__file__).parents[2]
BLOCK = 256 * 1024
FEW = 2_000_000  # bytes that a loop over `re` reads
BASES = ("re loop", "ripgrep")
ROTATED = bytes.maketrans(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    b"nopqrstuvwxyzabcdefghijklmNOPQRSTUVWXYZABCDEFGHIJKLM",
)


def shipped() -> "SignatureSet":
    """The database."""
    from supervisor.adapters.signature_files import load_signatures, shipped_folder

    return load_signatures([shipped_folder()])


def sized(count: int) -> "SignatureSet":
    """As many signatures: the database's, then more with literals of the same lengths."""
    known = shipped()
    entries = list(known.entries)
    for number, entry in enumerate(known.entries):
        literal = entry.literal.translate(ROTATED)
        pattern = re.escape(literal.decode()) + r"(?P<host>[\w.-]{1,99})\b"
        signature = replace(entry.signature, id=f"made-{number}", pattern=pattern)
        entries.append(replace(entry, signature=signature, literal=literal))
    return replace(known, entries=tuple(entries[:count]))


def read_with(path: str, engine: str, signatures: "SignatureSet") -> int:
    """Match a file in blocks of whole lines; how many hits."""
    from supervisor.adapters.matcher import Matcher

    matcher = Matcher(signatures, engine=engine)
    return sum(len(matcher.match(block)) for block in blocks(path))


def loop(path: str) -> int:
    """One search after the other, as is mostly done."""
    patterns = [re.compile(pattern.encode(), re.MULTILINE) for pattern in texts()]
    with open(path, "rb") as file:
        text = file.read(FEW)
    return sum(1 for pattern in patterns for _ in pattern.finditer(text))


def read_plainly(path: str) -> int:
    """Only read the blocks."""
    return sum(0 for _ in blocks(path))


def blocks(path: str) -> Iterator[bytes]:
    """The file in blocks cut at newlines."""
    from supervisor.adapters.log_files import find_logs, read_blocks

    (log,) = find_logs([path])
    return read_blocks(log)


def texts() -> list[str]:
    """The patterns."""
    return [entry.signature.pattern for entry in shipped().entries]


def ripgrep_command(folder: str) -> list[str]:
    """How ripgrep searches the same patterns, as fast as it can."""
    patterns = Path(folder) / "patterns"
    # a name may stand in it only once
    patterns.write_text(re.sub(r"\(\?P<\w+>", "(?:", "\n".join(texts())))
    return ["rg", "--no-unicode", "-j1", "-a", "-c", "-f", str(patterns)]


def ripgrep(path: str) -> int:
    """The same patterns in ripgrep; how many lines."""
    with tempfile.TemporaryDirectory() as folder:
        told = subprocess.run(
            [*ripgrep_command(folder), path], capture_output=True, text=True, check=False
        )
    if told.returncode > 1:  # 1: nothing found
        raise RuntimeError(told.stderr)
    return int(told.stdout or 0)


READERS: dict[str, Callable[[str], int]] = {
    "re loop": loop,
    "ripgrep": ripgrep,
    "plain engine": lambda path: read_with(path, "plain", shipped()),
    "plain, 150": lambda path: read_with(path, "plain", sized(150)),
    "plain, 300": lambda path: read_with(path, "plain", sized(300)),
    "fast engine": lambda path: read_with(path, "fast", shipped()),
    "fast, 150": lambda path: read_with(path, "fast", sized(150)),
    "fast, 300": lambda path: read_with(path, "fast", sized(300)),
    "read only": read_plainly,
}


def measured(name: str, path: Path) -> tuple[float, float, int]:
    """CPU seconds, peak MB and hits of one reader in its own process."""
    command = [sys.executable, __file__, "--reader", name, str(path)]
    told = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    if told.returncode:
        return 0.0, 0.0, -1
    seconds, kilobytes, hits = told.stdout.split()
    return float(seconds), float(kilobytes) / 1024, int(hits)


def report_reader(name: str, path: str) -> None:
    """Run one reader here and print what it cost, its children included."""
    hits = READERS[name](path)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    print(seconds, max(one.ru_maxrss for one in used), hits)


def compare(title: str, path: Path, starts: dict[str, float]) -> None:
    """Run all readers that are here, print one line each."""
    print(f"{title}, {path.stat().st_size / 1e6:.0f} MB, {os.cpu_count()} cores")
    costs = {name: measured(name, path) for name in starts}
    speeds = {
        name: (FEW if name == "re loop" else path.stat().st_size) / 1e6 / max(seconds - start, 1e-3)
        for (name, start), (seconds, _, hits) in zip(starts.items(), costs.values(), strict=True)
        if hits >= 0
    }
    for name, speed in speeds.items():
        beside = [f"{speed / speeds[other]:7.2f} x {other}" for other in BASES if other in speeds]
        print(
            f"  {name:13} {speed:8.1f} MB/cpu-s {' '.join(beside)}  start {starts[name]:5.2f} cpu-s"
            f"  peak {costs[name][1]:6.1f} MB  {costs[name][2]} hits"
        )
    for name in starts.keys() - speeds.keys():
        print(f"  {name} is not available here")


def main() -> int:
    """Write the logs and read them."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    names = [name for name in READERS if name != "ripgrep" or shutil.which("rg")]
    with tempfile.TemporaryDirectory() as folder:
        path, none = Path(folder) / "train.log", Path(folder) / "none.log"
        none.write_text("\n")
        for name in names:
            measured(name, none)  # fills the caches, as any run but the first finds them
        starts = {name: measured(name, none)[0] for name in names}
        write_log(path, calm(), megabytes * 1_000_000)
        compare("a training that runs well", path, starts)
        write_log(path, storm(), megabytes * 1_000_000)
        compare("a storm", path, starts)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(REPO))
    if sys.argv[1:2] == ["--reader"]:
        report_reader(*sys.argv[2:4])
    else:
        sys.exit(main())
