"""How long the preflight of many virtual hosts takes, beside as many bare interpreter starts.

usage: python tests/benchmarks/bench_preflight.py [--hosts N] [--rounds N]

The floor starts that many `python -S -I -c pass` two at a time per processor, in the same run. Both
are medians of rounds in turns. Starting the virtual hosts is not counted. Nothing is judged here.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from supervisor import wire
from supervisor.adapters.probing import ProbeOrder, Way, probe_hosts
from supervisor.core.events import HostProbed
from supervisor.virtual_host import start_virtual_hosts, stop_virtual_hosts


def options(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args(argv)


async def preflight(run_dir: Path, hosts: list[str]) -> float:
    """Seconds until all hosts have passed."""
    answers: list[HostProbed] = []

    async def answered(answer: HostProbed) -> None:
        answers.append(answer)

    order = ProbeOrder(attempt=0, run_id="bench", reap=True, folders=(run_dir,), seconds=60.0)
    begin = time.perf_counter()
    await probe_hosts(order, hosts, Way(argv_on=lambda _, argv: argv, run_dir=run_dir), answered)
    seconds = time.perf_counter() - begin
    if len(hosts) != sum(answer.answer == "pass" for answer in answers):
        sys.exit(f"not all hosts passed: {answers}")
    return seconds


async def bare_starts(count: int) -> float:
    """Seconds that as many interpreters take that do nothing."""
    gate = asyncio.Semaphore(2 * (os.cpu_count() or 1))

    async def start() -> None:
        async with gate:
            words = (sys.executable, "-S", "-I", "-c", "pass")
            await (await asyncio.create_subprocess_exec(*words)).wait()

    begin = time.perf_counter()
    await asyncio.gather(*(start() for _ in range(count)))
    return time.perf_counter() - begin


def main(argv: list[str] | None = None) -> int:
    """Measure in turns and print medians and their ratio."""
    asked = options(argv)
    hosts = [f"vhost{number}" for number in range(1, asked.hosts + 1)]
    with tempfile.TemporaryDirectory(prefix="supervise-bench-") as folder:
        run_dir = Path(folder)
        start_virtual_hosts(run_dir, hosts, {wire.RUN_ID: "bench"})
        try:
            rounds = [
                (asyncio.run(bare_starts(len(hosts))), asyncio.run(preflight(run_dir, hosts)))
                for _ in range(asked.rounds)
            ]
        finally:
            stop_virtual_hosts(run_dir)
    floor, took = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"{asked.hosts} hosts: preflight {took:.2f} s, bare interpreters {floor:.2f} s, ", end="")
    print(f"ratio {took / floor:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
