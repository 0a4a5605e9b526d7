"""`supervise explain` as a whole command beside ripgrep on the same logs: time and peak memory.

usage: python tests/benchmarks/bench_explain.py [MEGABYTES]    default 50; 1000 to quote

The logs: a training that runs well, the same as .gz, one line of 100 MB, and a storm in which three
lines in ten hit. ripgrep searches the database's patterns, with its fastest options. Wall seconds
are the least of three, taken in turn, starting up included; memory is each command's own.
"""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench_matcher import REPO, ripgrep_command
from training_logs import calm, storm, write_log

TURNS = 3
LONG_LINE = 100_000_000  # bytes
EXPLAIN = [
    sys.executable,
    "-c",
    "import sys; from supervisor.cli.main import main; sys.exit(main(sys.argv[1:]))",
    "explain",
    "--json",
]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a command took."""

    wall: float
    cpu: float
    peak: float  # MB


def cost(command: Sequence[str]) -> Cost:
    """Run it once."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode > 1:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return Cost(wall=wall, cpu=used.ru_utime + used.ru_stime, peak=used.ru_maxrss / 1024)


def best(costs: Sequence[Cost]) -> Cost:
    """The fastest turn; the most memory of all."""
    fastest = min(costs, key=lambda one: one.wall)
    return Cost(wall=fastest.wall, cpu=fastest.cpu, peak=max(one.peak for one in costs))


def compare(title: str, path: Path, searching: Sequence[str]) -> None:
    """Both commands on one log, by turns."""
    turns = [
        (cost([*EXPLAIN, str(path)]), cost([*searching, str(path)]) if searching else None)
        for _ in range(TURNS)
    ]
    ours, theirs = best([one for one, _ in turns]), [one for _, one in turns if one]
    line = f"{title:12} explain {ours.wall:6.2f} s, {ours.cpu:6.2f} cpu-s, peak {ours.peak:5.1f} MB"
    if theirs:
        grep = best(theirs)
        line += f"   ripgrep {grep.wall:6.2f} s, {grep.cpu:6.2f} cpu-s, peak {grep.peak:6.1f} MB"
        line += f"   explain / ripgrep {ours.wall / grep.wall:5.2f}"
    print(line, flush=True)


def write_logs(folder: Path, size: int) -> dict[str, Path]:
    """All logs, by what they are."""
    paths = {name: folder / name for name in ("calm.log", "calm.log.gz", "line.log", "storm.log")}
    write_log(paths["calm.log"], calm(), size)
    with paths["calm.log"].open("rb") as plain, gzip.open(paths["calm.log.gz"], "wb", 1) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)
    with paths["line.log"].open("w") as file:
        for number in range(LONG_LINE // 100_000):
            file.write(f" item {number:8}" * (100_000 // 14))
    write_log(paths["storm.log"], storm(), size // 10)
    return paths


def main() -> int:
    """Write the logs, run both commands on each."""
    size = (int(sys.argv[1]) if len(sys.argv) > 1 else 50) * 1_000_000
    with tempfile.TemporaryDirectory() as name:
        searching = [*ripgrep_command(name), "-z"] if shutil.which("rg") else []
        logs = write_logs(Path(name), size)
        cost([*EXPLAIN, str(logs["storm.log"])])  # fills the caches, as any run but the first
        print(f"{size / 1e6:.0f} MB, a tenth of it as a storm; {os.cpu_count()} cores")
        for title, path in logs.items():
            compare(title, path, searching)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(REPO))
    sys.exit(main())
