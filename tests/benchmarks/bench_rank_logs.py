"""CPU and delay of following many rank logs, beside plain ways to do it, one after the other.

usage: python tests/benchmarks/bench_rank_logs.py [--files N] [--lines-per-second N] [--seconds N]
                                                  [--burst] [--readers NAME...]

    ours       watches of the kernel's, matched against all signatures, steps read
    polled     the same on a file system that reports no changes
    watchdog   the same reading and matching, told by watchdog instead of our watch
    poll       a plain loop: each file read four times a second, descriptors kept, nothing matched
    aiofiles   a task a file that reads once a second, nothing matched

Each reader is a process of its own. A line carries the time it was written at; its delay ends
when it has been matched (where nothing is matched: read). With --burst all files are written
at the same moment, once a second, as ranks do that step together. Nothing is judged here.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from log_readers import READERS, STOP

REPO = Path(__file__).parents[2]
LINE_BYTES = 130
TICK_SECONDS = 0.002
WARM_SECONDS = 6.0  # delays of lines before do not count: a polled file is cold until it has grown


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--lines-per-second", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--burst", action="store_true")
    parser.add_argument("--readers", nargs="+", choices=tuple(READERS), default=tuple(READERS))
    parser.add_argument("--reader", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    return parser.parse_args()


def one_line(number: int) -> bytes:
    """What a rank prints, with the time it is written at."""
    text = b"%.6f [I] step=%d loss=%d.41 lr=2.1e-04 dt=0.80s tok/s=%d" % (
        time.monotonic(),
        number,
        number % 9,
        number * 7919 % 99991,
    )
    return text.ljust(LINE_BYTES - 1, b".") + b"\n"


def write(paths: list[Path], per_second: int, seconds: float, *, burst: bool) -> int:
    """Write lines to files in an order of chance; how many."""
    order = [os.open(path, os.O_WRONLY | os.O_APPEND) for path in paths]
    random.Random(1).shuffle(order)
    begin, written, tick = time.monotonic(), 0, 1.0 if burst else TICK_SECONDS
    while (gone := time.monotonic() - begin) < seconds:
        due = int((gone // tick + 1) * tick * per_second) if burst else int(gone * per_second)
        for number in range(written, due):
            os.write(order[number % len(order)], one_line(number // len(order)))
        written = max(written, due)
        time.sleep(max(0.0, tick - (time.monotonic() - begin) % tick))
    for descriptor in order:
        os.close(descriptor)
    return written


def run_reader(name: str, folder: Path) -> None:
    """Read until told to stop, then print the delays."""
    seen = READERS[name](folder)
    lines = [(at, float(line.split()[0])) for at, data in seen for line in data.splitlines()]
    warm = min(written for _, written in lines) + WARM_SECONDS
    cuts = statistics.quantiles([at - written for at, written in lines if written > warm], n=100)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(cuts[49], cuts[98], len(lines), peak)


def measured(name: str, chosen: argparse.Namespace) -> tuple[float, float, float, float, float]:
    """CPU share, p50 and p99 in seconds, the share of lines seen, peak MB of one reader."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        paths = [folder / f"rank_{number:05d}.log" for number in range(chosen.files)]
        for path in paths:
            path.touch()
        line = [sys.executable, __file__, "--reader", name, text]
        with subprocess.Popen(line, cwd=REPO, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            reader.stdout.readline()
            rate = chosen.lines_per_second
            written = write(paths, rate, chosen.seconds, burst=chosen.burst)
            time.sleep(1.0)
            (folder / STOP).touch()
            share = float(reader.stdout.readline())
            middle, late, count, peak = map(float, reader.stdout.readline().split())
    return share, middle, late, count / written, peak


def main() -> int:
    """Measure and print, ratios against the first of ours."""
    chosen = options()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if chosen.reader:
        run_reader(chosen.reader[0], Path(chosen.reader[1]))
        return 0
    print(f"{chosen.files} files, {chosen.lines_per_second} lines/s, {os.cpu_count()} cores")
    print(f"{'':9} {'of a core':>9} {'ratio':>6} {'p50 ms':>7} {'p99 ms':>7} {'ratio':>6}  lines")
    first = None
    for name in chosen.readers:
        share, middle, late, found, peak = measured(name, chosen)
        first = first or (share, late)
        print(
            f"{name:9} {share:9.1%} {share / first[0]:6.1f} {middle * 1e3:7.1f} {late * 1e3:7.1f}"
            f" {late / first[1]:6.1f}  {found:.1%} seen, peak {peak:.0f} MB",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(REPO))
    sys.exit(main())
