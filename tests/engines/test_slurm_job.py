"""The job script that ships, as real Slurm jobs: a node dies, the time ends, a job is preempted.

MASTER_ADDR is this machine's, since the names of these nodes are known to Slurm only.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import slurm as slurms
from engines import slurm_faults
from engines.slurm import Slurm, until

REPO = Path(__file__).parents[2]
SCRIPT = str(REPO / "deploy" / "slurm" / "train.sbatch")
TOY = str(Path(__file__).with_name("toy_train.py"))

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(170)]


@pytest.fixture(scope="module")
def slurm(
    tmp_path_factory: pytest.TempPathFactory, clean_environ: dict[str, str]
) -> Iterator[Slurm]:
    yield from slurms.running(tmp_path_factory.mktemp("slurm"), 6, clean_environ)


def submit(slurm: Slurm, folder: Path, *words: str, options: tuple[str, ...] = ()) -> str:
    toy = ("env", "MASTER_ADDR=127.0.0.1", sys.executable, TOY, "--ckpt-dir", "run/checkpoints")
    return slurm.submit(
        "--ntasks-per-node=2", *options, SCRIPT, *toy, *words, folder=folder, RUN_DIR="run"
    )


def output(folder: Path) -> str:
    path = folder / "job.out"
    return path.read_text(errors="replace") if path.exists() else ""


def told(folder: Path) -> str:
    """What the supervisor said, for the message of a failing test."""
    return "\n".join(line for line in output(folder).splitlines() if "supervise: " in line)


def summary(folder: Path) -> dict[str, Any]:
    path = folder / "run" / "summary.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def attempts(folder: Path) -> list[list[str]]:
    return [list(attempt["hosts"]) for attempt in summary(folder)["attempts"]]


def left(slurm: Slurm, folder: Path) -> list[int]:
    """Processes of this run that are still there."""
    return [process.pid for process in slurm.processes(SUPERVISE_RUN_DIR=str(folder / "run"))]


def finished(slurm: Slurm, job: str, folder: Path, outcome: str) -> dict[str, Any]:
    until(lambda: summary(folder).get("outcome") == outcome, 100)
    until(lambda: not left(slurm, folder))
    return summary(folder)


def test_a_job_with_spares_outlives_the_loss_of_a_node(slurm: Slurm, tmp_path: Path) -> None:
    job = submit(slurm, tmp_path, "--steps=400", "--step-time=0.05", options=("-N6", "-t20"))
    until(lambda: "step=25 " in output(tmp_path), 30)
    slurm.kill_node("node3")
    ended = finished(slurm, job, tmp_path, "succeeded")

    four = ["node1", "node2", "node3", "node4"]
    assert [four, ["node1", "node2", "node5", "node4"]] == attempts(tmp_path), told(tmp_path)
    assert ended["attempts"][0]["verdict"]["blame"] == ["node3"]
    assert ended["attempts"][0]["verdict"]["cause"] == "node_lost"
    assert ended["attempts"][1]["resume_step"] >= 20
    until(lambda: slurm.state(job) == "COMPLETED")


SAVING = ("--save-on-term", "--save-interval=100000", "--step-time=0.05")


def goes_on(slurm: Slurm, job: str, folder: Path) -> list[str]:
    """From the end of the first allocation to that of the run; answers what is said of it."""
    first = finished(slurm, job, folder, "requeued")
    saved = [path.name for path in (folder / "run" / "checkpoints").glob("step-*")]
    slurm.start_again(job)
    last = finished(slurm, job, folder, "succeeded")

    assert first["exit_code"] == 75
    assert [f"step-{last['attempts'][1]['resume_step']:08d}"] == saved, told(folder)
    assert len(last["attempts"]) == 2
    until(lambda: slurm.state(job) == "COMPLETED")
    return [first["message"], *(first["attempts"][0]["verdict"] or {"blame": []})["blame"]]


def test_a_job_whose_time_ends_saves_and_goes_on_in_the_next(slurm: Slurm, tmp_path: Path) -> None:
    options = ("-N4", "-t1", "--signal=B:USR1@40")
    job = submit(slurm, tmp_path, *SAVING, "--steps=700", options=options)
    said = goes_on(slurm, job, tmp_path)

    assert len(said) == 1, "somebody is blamed"
    assert "ended: walltime: SIGUSR1 came " in said[0]
    assert said[0].endswith("the job is queued again and goes on from the newest checkpoint")


def test_a_job_that_is_preempted_saves_and_goes_on_later(slurm: Slurm, tmp_path: Path) -> None:
    job = submit(slurm, tmp_path, *SAVING, "--steps=400", options=("-N4", "-t20"))
    until(lambda: "step=25 " in output(tmp_path), 30)
    slurm.submit(
        "-pfirst", "-N5", "-c4", "-t1", "--wrap=sleep 1", "--output=/dev/null", folder=tmp_path
    )
    said = goes_on(slurm, job, tmp_path)

    assert said == ["attempt 1 ended: preempted: the scheduler has queued the job again"]


def test_a_job_that_is_cancelled_is_not_queued_again(slurm: Slurm, tmp_path: Path) -> None:
    job = submit(slurm, tmp_path, "--steps=4000", options=("-N4", "-t20"))
    until(lambda: "step=25 " in output(tmp_path), 30)
    slurm.ask("scancel", job)
    ended = finished(slurm, job, tmp_path, "stopped")

    assert (143, "stopped in attempt 1: the job was cancelled") == (
        ended["exit_code"],
        ended["message"],
    )
    until(lambda: slurm.state(job) == "CANCELLED")


def test_a_run_that_begins_after_a_node_was_lost_leaves_it_out(slurm: Slurm) -> None:
    job = slurm_faults.allocate(slurm, 3)
    nodes = slurm.ask("squeue", "-h", "-j", job, "-o", "%N")  # as the job's environment says
    first, *others = slurm.ask("scontrol", "show", "hostnames", nodes).split()
    slurm.kill_node(first)
    until(lambda: slurm.ask("squeue", "-h", "-j", job, "-o", "%N") != nodes)
    environ = {**os.environ, **slurm.environ, "SLURM_JOB_ID": job, "SLURM_JOB_NODELIST": nodes}
    line = [sys.executable, "-m", "supervisor.cli", "--dry-run", "--json", "--", "true"]

    dry = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=30, check=True)

    assert json.loads(dry.stdout)["hosts"] == others
    assert f"no longer in the job, and not used: {first}" in dry.stderr
    slurm_faults.cancel(slurm, job)
