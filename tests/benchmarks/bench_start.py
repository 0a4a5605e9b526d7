"""What `supervise` adds to the start of a command: seconds and memory, beside what it stands on.

usage: python tests/benchmarks/bench_start.py [--runs N] [--launcher mpich|local]

All rows are measured in turns in one run, and are medians: a busy machine moves them together, and
hardly the ratios. Bytecode is kept, as where the package is installed. A peak below that of this
bench itself cannot be told from it. Nothing is judged here.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPO = Path(__file__).parents[2]
PYTHON = sys.executable
SUPERVISE = [PYTHON, "-m", "supervisor.cli"]


def options(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--launcher", choices=("mpich", "local"), default="mpich")
    return parser.parse_args(argv)


def environment() -> dict[str, str]:
    """Ours, with this checkout and this interpreter's launcher first, and bytecode kept."""
    path = f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PATH": path, "PYTHONPATH": str(REPO)}


def run(words: list[str], folder: Path) -> tuple[float, float]:
    """Seconds to the end, and peak MB of the process itself."""
    with (folder / "out").open("ab") as out:
        begin = time.time()
        process = subprocess.Popen(words, cwd=folder, env=environment(), stdout=out, stderr=out)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.time() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{words} ended with {process.returncode}, see {folder / 'out'}")
    return seconds, used.ru_maxrss / 1024


def supervised(launcher: str, folder: Path, command: list[str]) -> list[str]:
    """A run of one rank in a run folder of its own."""
    run_dir = tempfile.mkdtemp(dir=folder)
    return [*SUPERVISE, "--launcher", launcher, "--run-dir", run_dir, "-q", "--", *command]


def launched(launcher: str, folder: Path, command: list[str]) -> list[str]:
    """The same under the launcher alone."""
    if launcher == "mpich":
        return ["mpiexec", "-iface", "lo", "-launcher", "fork", "-n", "1", *command]
    hosts = folder / "hosts"
    hosts.write_text("localhost\n")
    program = str(REPO / "supervisor" / "local_launcher.py")
    words = ["--hostfile", str(hosts), "--ranks-per-host", "1", "--", *command]
    return [PYTHON, "-S", "-I", program, *words]


def time_to_command(words: Callable[[list[str]], list[str]], folder: Path) -> float:
    """From the start of the first process to the command's own first instruction."""
    told = folder / "told"
    command = ["/bin/sh", "-c", f"date +%s.%N > {told}"]
    line = words(command)
    begin = time.time()
    run(line, folder)
    return float(told.read_text()) - begin


def measure(launcher: str, runs: int, folder: Path) -> dict[str, tuple[float, float]]:
    """Median seconds and peak MB of each row."""

    def alone(command: list[str]) -> list[str]:
        return launched(launcher, folder, command)

    def ours(command: list[str]) -> list[str]:
        return supervised(launcher, folder, command)

    rows: dict[str, Callable[[], tuple[float, float]]] = {
        "python -c pass": lambda: run([PYTHON, "-c", "pass"], folder),
        "supervise --help": lambda: run([*SUPERVISE, "--help"], folder),
        f"{launcher} alone, true": lambda: run(alone(["true"]), folder),
        f"supervise {launcher}, true": lambda: run(ours(["true"]), folder),
        f"{launcher} alone, to command": lambda: (time_to_command(alone, folder), 0.0),
        f"supervise {launcher}, to command": lambda: (time_to_command(ours, folder), 0.0),
        "supervise, command of 1 s": lambda: run(ours(["sleep", "1"]), folder),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    for turn in range(runs + 1):
        for name, row in rows.items():
            result = row()
            if turn:  # the first turn fills the caches
                taken[name].append(result)
    return {
        name: (statistics.median(s for s, _ in each), max(mb for _, mb in each))
        for name, each in taken.items()
    }


def show(launcher: str, results: dict[str, tuple[float, float]]) -> None:
    """One line a row, then what was asked."""
    base = results["python -c pass"][0]
    print(f"{'':34} {'ms':>8} {'x python':>9} {'peak MB':>8}")
    for name, (seconds, peak) in results.items():
        memory = f"{peak:8.1f}" if peak else f"{'':8}"
        print(f"{name:34} {seconds * 1000:8.1f} {seconds / base:9.1f} {memory}")
    whole = _beyond(results, f"supervise {launcher}, true", f"{launcher} alone, true")
    start = _beyond(results, f"supervise {launcher}, to command", f"{launcher} alone, to command")
    print(f"beyond {launcher} alone: {start:.0f} ms to the command, {whole:.0f} ms to the end")


def _beyond(results: dict[str, tuple[float, float]], ours: str, theirs: str) -> float:
    return (results[ours][0] - results[theirs][0]) * 1000


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    chosen = options(argv)
    if chosen.launcher == "mpich" and not shutil.which("mpiexec", path=environment()["PATH"]):
        print("mpiexec is not on PATH: measuring with local", file=sys.stderr)
        chosen.launcher = "local"
    with tempfile.TemporaryDirectory() as folder:
        results = measure(chosen.launcher, chosen.runs, Path(folder))
    show(chosen.launcher, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
