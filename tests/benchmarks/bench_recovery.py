"""From a fault to the verdict, and to the first step of the next attempt: whose time is it?

usage: python tests/benchmarks/bench_recovery.py [--runs N] [--launchers local,mpich,mpich5,...]
                                                 [--faults raise,sigkill,sigsegv,host,power]

Three hosts of two ranks and a spare: virtual ones for local and mpich, a cluster of namespaces (as
root) for mpich5, openmpi5, openmpi4 and intelmpi, a real Slurm (as root) for slurm; the power can
be lost on the cluster only. One rank, or its host, is lost at the third step; the others go on
until they are ended. All parts are of the same run, so their shares can be compared, and the times
of one machine with another's not:

    launcher's exit   from the fault to the launcher's end; or to our order to end it, for the
                      launchers that do not notice
    settling          from there, when we ordered it, to the launcher's end
    probes            hosts reaped and checked, which is as long as ssh takes; a dead one longest
    supervisor        all else from the launcher's end to the next launch: its end seen, decided,
                      a keeper started
    launcher's start  from there to the first process
    framework         from there to the first step: here a bare Python, so next to nothing
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tests" / "campaigns"))

from place import Place, end, living, places  # noqa: E402

PROGRAM = """
import os, signal, sys, time
fault, rank, attempt = sys.argv[1], os.environ["RANK"], os.environ["SUPERVISE_ATTEMPT"]
def mark(name):
    with open(name + ".new", "w") as file:
        file.write(repr(time.time()))
    os.rename(name + ".new", name)
mark(f"began.{attempt}.{rank}")
for step in range(1, 2000 if attempt == "1" else 3):
    print(f"step={step} loss=1.0", flush=True)
    mark(f"step.{attempt}.{rank}.{step}")
    time.sleep(0.05)
    if (rank, step, attempt) == ("3", 3, "1"):
        mark("fault")
        if fault == "raise": raise RuntimeError("as asked")
        if fault == "sigkill": os.kill(os.getpid(), signal.SIGKILL)
        if fault == "sigsegv": os.kill(os.getpid(), signal.SIGSEGV)
"""
VICTIM = 1  # rank 3 is on the second host
LONGEST = 120.0
PARTS = ("launcher's exit", "settling", "probes", "supervisor", "launcher's start", "framework")


def main(argv: list[str] | None = None) -> int:
    """Measure and print a row a launcher and fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--launchers", default="local,mpich")
    parser.add_argument("--faults", default="raise,sigkill,host")
    chosen = parser.parse_args(argv)
    heads = (*PARTS, "verdict", "whole")
    print(f"{'ms, median of ' + str(chosen.runs):22}" + "".join(f"{each:>17}" for each in heads))
    with places(chosen.launchers.split(",")) as found:
        for place in found:
            for fault in chosen.faults.split(","):
                row = measured(place, fault, chosen.runs)
                told = "".join(f"{row[name] * 1000:17.0f}" for name in heads)
                print(f"{place.name + ' ' + fault:22}{told}", flush=True)
    return 0


def measured(place: Place, fault: str, runs: int) -> dict[str, float]:
    """Median of each part."""
    taken = []
    for _ in range(runs):
        with TemporaryDirectory(prefix="supervise-") as name:
            run(place, fault, Path(name))
            taken.append(parts(moments(Path(name))))
            end(list(living(Path(name))))
        place.ground.repair()
    return {name: statistics.median(each[name] for each in taken) for name in taken[0]}


def run(place: Place, fault: str, folder: Path) -> None:
    """One fault and one recovery."""
    (folder / "program.py").write_text(PROGRAM)
    command = [place.python, "-S", str(folder / "program.py"), fault]
    process = place.start(folder, ["--grace", "3", "--console", "none"], command)
    if fault in ("host", "power"):
        lose(place, fault, folder)
    code = process.wait(LONGEST)
    if code:
        sys.exit(f"supervise ended with {code}: {(folder / 'out').read_text()}")


def lose(place: Place, fault: str, folder: Path) -> None:
    """Lose the victim's host once its rank says that it is time."""
    deadline = time.monotonic() + LONGEST
    while not (folder / "fault").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    run_id = json.loads((folder / "run" / "status.json").read_text())["run_id"]
    kind = {"host": "host killed", "power": "power loss"}[fault]
    place.ground.strike(kind, place.ground.hosts[VICTIM], run_id)


def moments(folder: Path) -> dict[str, float]:
    """When each thing of the recovery happened."""
    entries = [json.loads(text) for text in (folder / "run/journal.jsonl").open()]
    ending = json.loads((folder / "run/attempts/001/exit.json").read_text())
    launched = ordered_at(entries, "Launch", attempt=2)
    assert launched is not None
    ended = float(ending["ended_at"])
    return {
        "fault": float((folder / "fault").read_text()),
        "ordered": ordered_at(entries, "EndAttempt", attempt=1) or ended,
        "ended": ended,
        "asked": ordered_at(entries, "ProbeHosts", attempt=1) or launched,
        "answered": max(float(e["at"]) for e in entries if answers(e)),
        "decided": launched,
        "up": (folder / "run/attempts/002/keeper.json").stat().st_mtime,
        "began": min(float(path.read_text()) for path in folder.glob("began.2.*")),
        "stepped": min(float(path.read_text()) for path in folder.glob("step.2.*")),
    }


def answers(entry: dict[str, Any]) -> bool:
    """An answer of the probes after attempt 1."""
    return entry["event"] == "HostProbed" and entry["attempt"] == 1 and not entry["live"]


def ordered_at(entries: list[dict[str, Any]], action: str, attempt: int) -> float | None:
    """When the first event came that led to this action; not to a look at a silent host."""
    found = (
        float(entry["at"])
        for entry in entries
        for given in entry.get("actions", ())
        if (given["action"], given["attempt"]) == (action, attempt) and given.get("reap", True)
    )
    return next(found, None)


def parts(when: dict[str, float]) -> dict[str, float]:
    """Seconds of each part, in order, and the sums."""
    probes = when["answered"] - when["asked"]
    lines = (
        when["ordered"] - when["fault"],
        when["ended"] - when["ordered"],
        probes,
        when["up"] - when["ended"] - probes,
        when["began"] - when["up"],
        when["stepped"] - when["began"],
    )
    sums = {
        "verdict": when["decided"] - when["fault"],
        "whole": when["stepped"] - when["fault"],
    }
    return {**dict(zip(PARTS, lines, strict=True)), **sums}


if __name__ == "__main__":
    sys.exit(main())
