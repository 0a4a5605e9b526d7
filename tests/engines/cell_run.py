"""Runs one cell of the matrix and says what was wrong with it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.grounds import ACTIVE, SPARES, Ground
from engines.matrix import AT_LAUNCH, IN_RANK, SILENT, TO_HOST, Cell, expected

import supervisor

TOY = Path(__file__).with_name("toy_train.py")
FAULT_STEP = 25
STEPS = 60
IDLE_SECONDS = "12"  # what only a rank's silence shows
LOST_SECONDS = 30.0  # a lost host is found within this, by default
RUN_SECONDS = 150.0
_FOREIGN = ("SUPERVISE_", "SLURM_", "PBS_", "PMI", "OMPI_", "PYTHON")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What a cell left: the run folder's word, and what the hosts say."""

    folder: Path
    exit_code: int | None  # None: it had to be ended
    struck_at: float | None
    left: dict[str, object]

    def journal(self, kind: str) -> list[dict[str, Any]]:
        entries = map(json.loads, (self.folder / "run/journal.jsonl").read_text().splitlines())
        return [entry for entry in entries if entry["event"] == kind]

    @property
    def attempts(self) -> list[dict[str, Any]]:
        path = self.folder / "run/summary.json"
        return list(json.loads(path.read_text())["attempts"]) if path.exists() else []

    @property
    def verdict(self) -> dict[str, Any]:
        return dict(self.attempts[0]["verdict"] or {}) if self.attempts else {}

    @property
    def hostfiles(self) -> list[list[str]]:
        """The hosts that each attempt's launcher was given."""
        texts = [p.read_text() for p in sorted(self.folder.glob("run/attempts/*/hostfile"))]
        lines = [[line.split()[0].partition(":")[0] for line in t.splitlines()] for t in texts]
        return [list(dict.fromkeys(each)) for each in lines]

    @property
    def losses(self) -> list[dict[str, float]]:
        path = self.folder / "loss.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def noticed(self) -> float | None:
        """Seconds from the fault to the end of the attempt, or the order to end it."""
        entries = map(json.loads, (self.folder / "run/journal.jsonl").read_text().splitlines())
        for entry in entries if self.struck_at is not None else ():
            orders = [action["action"] for action in entry.get("actions", [])]
            if entry["event"] == "AttemptEnded" or "EndAttempt" in orders:
                return float(entry["at"] - self.struck_at)
        return None


def run_cell(cell: Cell, ground: Ground, folder: Path) -> Ended:
    """One run from its start to its end, with its fault."""
    victim = ground.hosts[cell.victim - 1]
    command = _training(folder, ground)
    ground.before(cell.fault, victim, command)
    with (folder / "out").open("wb") as out:
        popen = {"cwd": folder, "env": _environ(folder, ground), "stdin": subprocess.DEVNULL}
        popen |= {"stdout": out, "stderr": subprocess.STDOUT, "start_new_session": True}
        process = ground.start(_line(cell, ground, command), **popen)
    try:
        struck_at = _strike(cell, ground, victim, folder)
        exit_code = _end_of(process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    left = dict(ground.left_of(_run_id(folder)))
    left.pop(victim if cell.fault in SILENT else "", None)  # nobody can reach what runs there
    return Ended(folder=folder, exit_code=exit_code, struck_at=struck_at, left=left)


def _training(folder: Path, ground: Ground) -> Path:
    """The command, in a folder of its own that a host may lack."""
    command = folder / "programs" / "train"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec env {ground.told} {ground.python} {TOY} "$@"\n')
    command.chmod(0o755)
    packages = folder / "packages"  # ours alone: an engine's Python keeps its own mpi4py
    packages.mkdir()
    (packages / "supervisor").symlink_to(Path(supervisor.__file__).parent)
    return command


def _line(cell: Cell, ground: Ground, command: Path) -> list[str]:
    words = [sys.executable, "-m", "supervisor.cli", *ground.options, "--run-dir", "run"]
    words += ["--spare-nodes", str(SPARES), "--ppn", "2", "--grace", "3", "--console", "none"]
    words += ["--checkpoint-dir", "saved"]
    if cell.fault in IN_RANK or cell.fault == "daemon killed":
        words += ["--idle-timeout", IDLE_SECONDS]
    if cell.fault in AT_LAUNCH:
        words += ["--startup-timeout", IDLE_SECONDS]
    words += ["--", str(command), "--ckpt-dir", "saved", "--loss-file", "loss.jsonl"]
    words += ["--steps", str(STEPS), "--step-time", "0.1"]
    if cell.fault in IN_RANK:
        words += ["--fault", IN_RANK[cell.fault], "--fault-rank", str(cell.rank)]
        words += ["--fault-step", str(FAULT_STEP)]
    return words + (["--mpi"] if cell.kind == "mpi" else [])


def _environ(folder: Path, ground: Ground) -> dict[str, str]:
    kept = {name: v for name, v in os.environ.items() if not name.startswith(_FOREIGN)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ours = {"PATH": path, "PYTHONPATH": str(folder / "packages")}
    return {**kept, **ours, **ground.environment}


def _strike(cell: Cell, ground: Ground, victim: str, folder: Path) -> float | None:
    """Do to the host what this cell is about, once the training is under way."""
    if cell.fault not in TO_HOST:
        return None
    ended = Ended(folder=folder, exit_code=None, struck_at=None, left={})
    _await(lambda: len(ended.losses) >= FAULT_STEP - 3, "the training did not get under way")
    struck_at = time.time()
    ground.strike(cell.fault, victim, _run_id(folder))
    return struck_at


def _run_id(folder: Path) -> str:
    with (folder / "run/journal.jsonl").open() as file:
        return str(json.loads(file.readline())["run_id"])


def _await(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def _end_of(process: "subprocess.Popen[bytes]") -> int | None:
    try:
        return process.wait(RUN_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def faults_of(cell: Cell, ended: Ended, hosts: tuple[str, ...]) -> Iterator[str]:
    """Everything that is not as it must be."""
    if ended.exit_code != 0:
        yield f"exit code {ended.exit_code}, not 0"
    if ended.left:
        yield f"left running: {ended.left}"
    if not ended.verdict:
        yield "no verdict on the first attempt"
        return
    yield from _misjudged(cell, ended, hosts[cell.victim - 1])
    yield from _misplaced(cell, ended, hosts)
    yield from _miscounted(ended)
    if cell.fault in SILENT and (ended.noticed is None or ended.noticed > LOST_SECONDS):
        yield f"noticed after {ended.noticed} s, not within {LOST_SECONDS}"


def _misjudged(cell: Cell, ended: Ended, victim: str) -> Iterator[str]:
    must, verdict = expected(cell), ended.verdict
    if verdict["cause"] not in must.causes:
        yield f"cause {verdict['cause']}, not {' or '.join(must.causes)}"
    wanted = {True: [[victim]], False: [[]], None: [[victim], []]}[must.retired]
    if verdict["blame"] not in wanted:
        yield f"blames {verdict['blame']}, not {' or '.join(map(str, wanted))}"


def _misplaced(cell: Cell, ended: Ended, hosts: tuple[str, ...]) -> Iterator[str]:
    """The spare stands where the retired host stood, or everybody stays."""
    before = list(hosts[:ACTIVE])
    after = list(before)
    if ended.verdict["blame"]:  # rightly, or that is said already
        after[cell.victim - 1] = hosts[ACTIVE]
    if ended.hostfiles != [before, after]:
        yield f"launched on {ended.hostfiles}, not {[before, after]}"


def _miscounted(ended: Ended) -> Iterator[str]:
    """The second attempt starts behind the newest checkpoint, and no loss differs."""
    chosen = ended.journal("CheckpointChosen")[-1]["step"] or 0
    steps = [int(loss["step"]) for loss in ended.losses]
    first = steps[: steps.index(STEPS) + 1] if STEPS in steps else steps
    top = max(first[: -(STEPS - chosen)], default=0)
    if steps != [*range(1, top + 1), *range(chosen + 1, STEPS + 1)] or top - chosen > 11:
        yield f"steps {steps}, resumed from {chosen}"
    if any(loss["loss"] != 1.0 / loss["step"] for loss in ended.losses):
        yield "losses differ from those of an undisturbed run"
