"""Kills supervisors at random moments of a run that loses a rank and recovers; nothing may be lost.

usage: python tests/campaigns/kill_supervisor.py [--launchers local,mpich] [--runs 50] [--seed N]

Launchers: local and mpich on virtual hosts; mpich5, openmpi5, openmpi4, intelmpi on a cluster of
namespaces and slurm on a real Slurm (as root). Each run is ended by TERM, INT, HUP or KILL, in
turn, somewhere between its start and past its end. After TERM, INT and HUP the run must be over: no
process of it left, a final word in its summary. After KILL the same command is given again, and
must finish: every step's loss there, no attempt begun twice. And always the journal, put through
the core again, must tell the same decisions. Prints a row a run, and exits with 1 when any of them
failed. 50 runs take some five minutes a launcher.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from place import Place, end, living, places

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)
STEPS = 40
LONGEST = 6.0  # seconds: a run with its recovery takes about five
END_SECONDS = 60.0


def main(argv: list[str] | None = None) -> int:
    """Run the campaign and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launchers", default="local,mpich")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args(argv)
    print(f"seed {chosen.seed}", flush=True)
    dice, failed = random.Random(chosen.seed), 0
    with places(chosen.launchers.split(",")) as found:
        for place in found:
            for number in range(chosen.runs):
                kill = SIGNALS[number % len(SIGNALS)]
                failed += bool(one_run(place, number, kill, dice.uniform(0.0, LONGEST)))
    print(f"{failed} failed")
    return int(failed > 0)


def one_run(place: Place, number: int, kill: signal.Signals, after: float) -> list[str]:
    """One run and what was wrong with it."""
    with tempfile.TemporaryDirectory(prefix="supervise-") as name:
        folder = Path(name)
        first = start(place, folder)
        ended_itself = killed_after(first, kill, after)
        wrong = after_a_kill(place, folder, kill, ended_itself, first.returncode)
        if wrong:
            print((folder / "out").read_text(errors="replace")[-3000:])
    words = "; ".join(wrong) or ("had ended" if ended_itself else "as it should")
    print(f"{place.name:9} {number + 1:3} {kill.name:8} after {after:4.1f} s  {words}", flush=True)
    return wrong


def start(place: Place, folder: Path) -> "subprocess.Popen[bytes]":
    """The command, each time the same."""
    toy = ["--steps", str(STEPS), "--step-time", "0.05"]
    toy += ["--fault", "sigkill", "--fault-rank", "2", "--fault-step", "15"]
    return place.supervise(folder, ["--grace", "2"], toy)


def killed_after(process: "subprocess.Popen[bytes]", kill: signal.Signals, after: float) -> bool:
    """Whether the run had ended before its moment came."""
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(kill)
        process.wait(END_SECONDS)
        return False
    return True


def after_a_kill(
    place: Place, folder: Path, kill: signal.Signals, ended_itself: bool, code: int
) -> list[str]:
    """Everything that is not as it should be."""
    finished = ended_itself
    if kill is signal.SIGKILL and not ended_itself:
        code = start(place, folder).wait(END_SECONDS)
        finished = True
    wrong = [f"exit code {code}"] if finished and code != 0 else []
    if finished:
        wrong += losses(folder)
    return [
        *wrong,
        *journal(place, folder),
        *summary(folder, finished),
        *retired(folder),
        *orphans(folder),
    ]


def losses(folder: Path) -> Iterator[str]:
    """Every step was made, and none after it was complete in a checkpoint."""
    path = folder / "loss.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    steps = [json.loads(line)["step"] for line in lines]
    if sorted(set(steps)) != list(range(1, STEPS + 1)):
        yield f"steps {sorted(set(range(1, STEPS + 1)) - set(steps))} were never made"
    if len(steps) > STEPS + 10:  # a checkpoint every ten steps: so many may be made again
        yield f"{len(steps) - STEPS} steps were made again"


def retired(folder: Path) -> Iterator[str]:
    """A rank was killed on a host that is well: nobody is to blame."""
    path = folder / "run" / "retired.txt"
    if path.exists() and path.read_text().strip():
        yield f"retired: {path.read_text().strip()}"


def journal(place: Place, folder: Path) -> Iterator[str]:
    """The journal leads today's core to the same decisions, and begins no attempt twice."""
    path = folder / "run" / "journal.jsonl"
    if not path.exists():
        return
    replay = [sys.executable, "-m", "supervisor.cli", "replay", "run"]
    told = subprocess.run(
        replay, cwd=folder, env=place.environ(), capture_output=True, text=True, check=False
    )
    if told.returncode:
        yield f"replay: {told.stdout[-500:]}{told.stderr[-500:]}"
    begun = [
        action["attempt"]
        for line in path.read_text().splitlines()
        for action in json.loads(line).get("actions", ())
        if action["action"] == "Launch"
    ]
    if begun != sorted(set(begun)):
        yield f"attempts launched: {begun}"


def summary(folder: Path, finished: bool) -> Iterator[str]:
    """A run that was told to end says so; one killed before it began has nothing to say."""
    path = folder / "run" / "summary.json"
    if not (folder / "run" / "journal.jsonl").exists():
        return
    if not path.exists():
        yield "no summary"
        return
    wanted, outcome = (
        "succeeded" if finished else "stopped",
        json.loads(path.read_text())["outcome"],
    )
    if outcome not in (wanted, "succeeded"):
        yield f"outcome {outcome}"


def orphans(folder: Path) -> Iterator[str]:
    """Nothing of the run is left, known by the run folder in its environment."""
    deadline = time.monotonic() + 2.0  # a keeper leaves a moment after its supervisor
    while (left := list(living(folder))) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        yield f"left behind: {left}"
        end(left)


if __name__ == "__main__":
    sys.exit(main())
