"""Speed of the matcher on a training log, beside ripgrep with the same patterns, and a plain read.

usage: python tests/benchmarks/bench_matcher.py [MEGABYTES]    default 50; 500 for a figure to quote

Each reader is a process of its own, so that its CPU seconds and peak memory are its own; starting
up is told apart. Ratios are against the plain engine of the same run: a busy machine hardly moves
them.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

REPO = Path(__file__).parents[2]
BLOCK = 256 * 1024
HITS = (
    "srun: error: Node failure on nid200403",
    "[rank13]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
    "gpu-c-9 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
)


def lines() -> Iterator[str]:
    """About what a training prints: steps, library chatter, warnings, bars, one hit in 1e5."""
    number = 0
    while True:
        number += 1
        rank = number % 1024
        if number % 100_000 == 0:
            yield HITS[number // 100_000 % len(HITS)] + "\n"
        elif number % 7 == 0:
            yield f"gpu-{rank}:4711:4733 [{rank % 8}] NCCL INFO Channel {number % 32}/0 : 0 -> 1\n"
        elif number % 13 == 0:
            yield f'  File "/opt/env/lib/python3.11/torch/x.py", line {number % 999}, in f\n'
        elif number % 31 == 0:
            yield f"\rTrain: {number % 100}%|###     | {number % 400}/400 [00:05<09:10, 1.5it/s]\n"
        else:
            yield f"[2026-01-01 10:00:00][I] step={number} loss=2.4100 lr=2.1e-04 dt=0.80s mfu=41\n"


def write_log(path: Path, size: int) -> None:
    """A log of this size in bytes."""
    source = lines()
    written = 0
    with path.open("w") as file:
        while written < size:
            text = "".join(next(source) for _ in range(5000))
            written += file.write(text)


def read_with(path: str, engine: str) -> int:
    """Match a file in blocks of whole lines; how many hits."""
    from supervisor.adapters.matcher import Matcher
    from supervisor.adapters.signature_files import load_signatures, shipped_folder

    matcher = Matcher(load_signatures([shipped_folder()]), engine=engine)
    return sum(len(matcher.match(block)) for block in blocks(path))


def read_plainly(path: str) -> int:
    """Only read the blocks."""
    return sum(0 for _ in blocks(path))


def blocks(path: str) -> Iterator[bytes]:
    """The file in blocks cut at newlines."""
    rest = b""
    with open(path, "rb", buffering=0) as file:
        while data := file.read(BLOCK):
            cut = data.rfind(b"\n") + 1
            yield rest + data[:cut]
            rest = data[cut:]
    yield rest


def ripgrep(path: str) -> int:
    """The same patterns in ripgrep; how many lines."""
    from supervisor.adapters.signature_files import load_signatures, shipped_folder

    entries = load_signatures([shipped_folder()]).entries
    with tempfile.NamedTemporaryFile("w", suffix=".patterns") as file:
        patterns = "\n".join(entry.signature.pattern for entry in entries)
        file.write(re.sub(r"\(\?P<\w+>", "(?:", patterns))  # a name may stand in it only once
        file.flush()
        command = ["rg", "--no-unicode", "-j1", "-a", "-c", "-f", file.name, path]
        return int(subprocess.run(command, capture_output=True, text=True).stdout or 0)


READERS: dict[str, Callable[[str], int]] = {
    "plain engine": lambda path: read_with(path, "plain"),
    "fast engine": lambda path: read_with(path, "fast"),
    "ripgrep": ripgrep,
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


def main() -> int:
    """Write the log, run all readers that are here, print one line each."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "train.log", Path(folder) / "warm.log"
        write_log(path, megabytes * 1_000_000)
        write_log(small, 1)
        names = [name for name in READERS if name != "ripgrep" or shutil.which("rg")]
        for name in names:
            measured(name, small)  # fills the caches, as any run but the first finds them
        starts = {name: measured(name, small)[0] for name in names}
        results = {name: measured(name, path) for name in names}
    base = results["plain engine"][0] - starts["plain engine"]
    print(f"{megabytes} MB, {os.cpu_count()} cores")
    for name, (seconds, peak, hits) in results.items():
        if hits < 0:
            print(f"{name:13} is not available here")
            continue
        reading = max(seconds - starts[name], 0.001)
        print(
            f"{name:13} {megabytes / reading:8.1f} MB/cpu-s {base / reading:7.1f} x plain"
            f"  start {starts[name]:5.2f} cpu-s  peak {peak:6.1f} MB  {hits} hits"
        )
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(REPO))
    if sys.argv[1:2] == ["--reader"]:
        report_reader(*sys.argv[2:4])
    else:
        sys.exit(main())
