"""From the death of a rank to the first process of the next attempt, less the launcher's own part.

usage: python tests/benchmarks/bench_recovery.py [--runs N] [--launchers local,mpich]

Two virtual hosts of two ranks. Rank 1 kills itself at its third step; the others go on until they
are ended. The first process of attempt 2 tells the time. The launcher's own part is its exit (the
death to the end the keeper noted) and its start (the keeper's note of the next start to the first
process); both are of the same run. What is left is ours. Nothing is judged here.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

REPO = Path(__file__).parents[2]
PROGRAM = """
import os, signal, time
rank, attempt = os.environ["RANK"], os.environ["SUPERVISE_ATTEMPT"]
with open(f"began.{attempt}.{rank}", "w") as file:
    file.write(repr(time.time()))
if attempt == "1":
    for step in range(1, 2000):
        print(f"step={step} loss=1.0", flush=True)
        time.sleep(0.05)
        if rank == "1" and step == 3:
            with open("died", "w") as file:
                file.write(repr(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
"""


def options(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--launchers", default="local,mpich")
    return parser.parse_args(argv)


def run(launcher: str, folder: Path) -> None:
    """One death and one recovery."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(REPO), "PATH": path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as where the package is installed
    line = [sys.executable, "-m", "supervisor.cli", "--launcher", launcher, "--run-dir", "run"]
    line += ["--virtual-hosts", "2", "--ppn", "2", "--grace", "3", "--console", "none", "-q"]
    line += ["--", sys.executable, "-S", "-c", PROGRAM]
    with (folder / "out").open("wb") as out:
        ended = subprocess.run(line, cwd=folder, env=environment, stdout=out, stderr=out)
    if ended.returncode:
        sys.exit(f"supervise ended with {ended.returncode}: {(folder / 'out').read_text()}")


def moments(folder: Path) -> dict[str, float]:
    """When each thing of the recovery happened."""
    entries = [json.loads(text) for text in (folder / "run/journal.jsonl").open()]
    ending = json.loads((folder / "run/attempts/001/exit.json").read_text())
    began = [float(path.read_text()) for path in folder.glob("began.2.*")]
    launch = folder / "run/attempts/002/keeper.json"
    return {
        "death": float((folder / "died").read_text()),
        "seen": at(entries, "RankFailed"),
        "launcher ended": float(ending["ended_at"]),
        "end seen": at(entries, "AttemptEnded"),
        "probed": last(entries, "HostProbed"),
        "launch": last(entries, "CheckpointChosen"),
        "launcher started": launch.stat().st_mtime,
        "first process": min(began),
    }


def at(entries: list[dict[str, Any]], kind: str) -> float:
    """When the first event of this kind came."""
    return next(float(entry["at"]) for entry in entries if entry["event"] == kind)


def last(entries: list[dict[str, Any]], kind: str) -> float:
    """When the last event of this kind came; each is of attempt 1 or leads to attempt 2."""
    return [float(entry["at"]) for entry in entries if entry["event"] == kind][-1]


def parts(when: dict[str, float]) -> dict[str, float]:
    """Seconds of each part, in order, and the sums."""
    gone = {
        "launcher's exit": when["launcher ended"] - when["death"],
        "its end seen": when["end seen"] - when["launcher ended"],
        "hosts probed": when["probed"] - when["end seen"],
        "decided": when["launch"] - when["probed"],
        "keeper and launcher up": when["launcher started"] - when["launch"],
        "launcher's start": when["first process"] - when["launcher started"],
    }
    whole = when["first process"] - when["death"]
    theirs = gone["launcher's exit"] + gone["launcher's start"]
    told = {"death seen after": when["seen"] - when["death"]}
    return {**gone, "whole": whole, "launcher's own": theirs, "ours": whole - theirs, **told}


def measure(launcher: str, runs: int) -> dict[str, float]:
    """Median of each part."""
    taken = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as name:
            run(launcher, Path(name))
            taken.append(parts(moments(Path(name))))
    return {name: statistics.median(each[name] for each in taken) for name in taken[0]}


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    chosen = options(argv)
    launchers = chosen.launchers.split(",")
    results = {launcher: measure(launcher, chosen.runs) for launcher in launchers}
    print(f"{'ms, median of ' + str(chosen.runs):26}" + "".join(f"{each:>9}" for each in launchers))
    for name in results[launchers[0]]:
        row = "".join(f"{results[each][name] * 1000:9.0f}" for each in launchers)
        print(f"{name:26}{row}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
