"""CPU seconds to keep, match and show a rank's output, beside a plain tee without matching.

usage: python tests/benchmarks/bench_output.py [--megabytes N] [--launcher local|mpich]

The command is `cat` of a log of 130-byte lines; its own CPU is not counted. Ours is split by
process, from /proc/PID/stat, read every 20 ms: the last 20 ms of each process may be missing, and
the kernel counts there in steps of 10 ms.
The tee reads lines of text and writes each to a file and to standard output, flushing both.
Three figures: of the supervisor, which is what a tee inside it would cost; of all our processes;
and of these without what a run without output costs, which a long run spreads over more.
Nothing is judged here.
"""

import argparse
import filecmp
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import psutil

REPO = Path(__file__).parents[2]
SAMPLE_SECONDS = 0.02
LINE_BYTES = 130
PROGRAMS = {
    "keeper.py": "keeper",
    "shim.py": "shim",
    "local_launcher.py": "launcher",
    "mpiexec": "launcher",
    "hydra_pmi_proxy": "launcher",
    "supervisor.cli": "supervisor",
}
OURS = ("supervisor", "keeper", "shim")
TEE = """
import sys
with open(sys.argv[1], "w") as log:
    while line := sys.stdin.readline():
        log.write(line)
        log.flush()
        sys.stdout.write(line)
        sys.stdout.flush()
"""


def options(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--launcher", choices=("mpich", "local"), default="local")
    return parser.parse_args(argv)


def write_log(path: Path, megabytes: int) -> None:
    """Lines as a training prints them, no two alike."""
    with path.open("wb") as file:
        number = 0
        while file.tell() < megabytes * 1_000_000:
            lines = (one_line(each) for each in range(number, number + 5000))
            file.write(b"".join(lines))
            number += 5000


def one_line(number: int) -> bytes:
    """130 bytes with the newline."""
    text = (
        b"[2026-01-01 10:00:%02d][I] step=%d loss=%d.41 lr=2.1e-04 dt=0.80s mfu=41.2 tok/s=%d"
        % (
            number % 60,
            number,
            number % 9,
            number * 7919 % 99991,
        )
    )
    return text.ljust(LINE_BYTES - 1, b".") + b"\n"


def role(words: str) -> str:
    """Which of ours this command line is; empty when it is the command's own."""
    return next((name for program, name in PROGRAMS.items() if program in words), "")


def on_cpu(process: psutil.Process) -> float:
    """User and system seconds of a process, its ended threads included."""
    times = process.cpu_times()
    return float(times.user + times.system)


def follow(process: "subprocess.Popen[bytes]") -> dict[str, float]:
    """CPU seconds by role until the process ends."""
    used: dict[int, tuple[str, float]] = {}
    root = psutil.Process(process.pid)
    while process.poll() is None:
        with suppress(psutil.Error):
            for each in (root, *root.children(recursive=True)):
                with suppress(psutil.Error, KeyError):
                    words = " ".join(each.cmdline()[:6])  # of a process that has ended: none
                    name = role(words) if words else used[each.pid][0]
                    used[each.pid] = name, on_cpu(each)
        time.sleep(SAMPLE_SECONDS)
    sums: defaultdict[str, float] = defaultdict(float)
    for name, seconds in used.values():
        sums[name] += seconds
    return sums


def supervise(
    launcher: str, log: Path, folder: Path, run_dir: str = "run"
) -> tuple[dict[str, float], float, bool]:
    """CPU seconds by role, wall seconds, and whether the rank's log is the same as what it read."""
    line = [sys.executable, "-m", "supervisor.cli", "--launcher", launcher, "--run-dir", run_dir]
    line += ["-q", "--console", "all", "--", "/bin/cat", str(log)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(REPO), "PATH": path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as where the package is installed
    begin = time.monotonic()
    process = subprocess.Popen(line, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    used = follow(process)
    seconds = time.monotonic() - begin
    if process.returncode:
        sys.exit(f"supervise ended with {process.returncode}")
    kept = folder / run_dir / "attempts/001/ranks/00000.log"
    return used, seconds, kept.exists() and filecmp.cmp(log, kept, shallow=False)


def tee(log: Path, folder: Path) -> tuple[float, float]:
    """CPU and wall seconds of the plain tee; it starts cat itself, as a supervisor would."""
    begin = time.monotonic()
    source = subprocess.Popen(["/bin/cat", str(log)], stdout=subprocess.PIPE)
    line = [sys.executable, "-c", TEE, str(folder / "tee.log")]
    plain = subprocess.Popen(line, stdin=source.stdout, stdout=subprocess.DEVNULL)
    assert source.stdout is not None
    source.stdout.close()
    _, _, cost = os.wait4(plain.pid, 0)
    source.wait()
    plain.returncode = 0
    return cost.ru_utime + cost.ru_stime, time.monotonic() - begin


def show(
    megabytes: int,
    used: dict[str, float],
    silent: dict[str, float],
    wall: float,
    tee_used: tuple[float, float],
) -> None:
    """CPU, speed, ratio."""
    ours, start = (sum(each.get(name, 0.0) for name in OURS) for each in (used, silent))
    print(f"{megabytes} MB of {LINE_BYTES}-byte lines, {os.cpu_count()} cores")
    print(f"{'':24} {'cpu s':>8} {'MB/cpu-s':>9} {'wall s':>7}")
    for name in (*OURS, "launcher"):
        _row(name, megabytes, used.get(name, 0.0))
    _row("ours, without launcher", megabytes, ours, wall)
    _row("a run without output", 0, start)
    cpu, tee_wall = tee_used
    _row("plain tee", megabytes, cpu, tee_wall)
    print("times the MB per CPU second of the tee:")
    print(f"  the supervisor {cpu / used['supervisor']:.1f}, all of ours {cpu / ours:.1f}")
    print(f"  all of ours beyond a run without output {cpu / max(ours - start, 0.01):.1f}")


def _row(name: str, megabytes: int, seconds: float, wall: float | None = None) -> None:
    speed = megabytes / seconds if seconds else 0.0
    print(f"{name:24} {seconds:8.2f} {speed:9.0f}" + ("" if wall is None else f" {wall:7.2f}"))


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    chosen = options(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, nothing = folder / "log", folder / "nothing"
        write_log(log, chosen.megabytes)
        nothing.write_text("one line\n")  # one: what reads output is loaded for it
        supervise(chosen.launcher, nothing, folder, "warm")
        silent, _, _ = supervise(chosen.launcher, nothing, folder, "silent")
        used, wall, same = supervise(chosen.launcher, log, folder)
        tee_used = tee(log, folder)
    show(chosen.megabytes, used, silent, wall, tee_used)
    print(f"rank log byte-identical: {'yes' if same else 'NO'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
