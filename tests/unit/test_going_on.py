"""Which runs go on where: the next allocation is welcome, one that is over or elsewhere is not."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from supervisor.adapters.going_on import next_event
from supervisor.adapters.run_folder import open_run_folder
from supervisor.adapters.run_spec import RunSpec
from supervisor.adapters.schedulers import Job
from supervisor.core.actions import Finish, Outcome
from supervisor.core.events import AllocationGranted, SupervisorReturned
from supervisor.core.machine import Phase, State
from supervisor.errors import UsageError


def spec(job_id: str, start: str = "0") -> RunSpec:
    job = Job(scheduler="slurm", job_id=job_id, start=start)
    return cast(
        "RunSpec",
        SimpleNamespace(
            job=job,
            allocation=job.allocation,
            active=("a",),
            spares=(),
            deadline=None,
            run_dir=Path("run"),
        ),
    )


def asked(tmp_path: Path, now: RunSpec, state: State, said: str = "") -> Any:
    program = tmp_path / "scontrol"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    folder = open_run_folder(tmp_path / "run")
    folder.summary.touch()
    return next_event(now, state, folder, {"PATH": f"{tmp_path}:/bin", "SLURM_JOB_ID": "8"})


RUNS = State(phase=Phase.RUNNING, allocation="slurm 7 start 0", attempt=1)


def over(outcome: Outcome, code: int) -> State:
    finish = Finish(attempt=1, outcome=outcome, exit_code=code, message="")
    return State(phase=Phase.FINISHED, allocation="slurm 7 start 0", attempt=1, finish=finish)


def test_the_same_allocation_is_taken_over(tmp_path: Path) -> None:
    assert isinstance(asked(tmp_path, spec("7"), RUNS), SupervisorReturned)


def test_a_job_that_starts_again_goes_on(tmp_path: Path) -> None:
    event = asked(tmp_path, spec("7", "1"), RUNS)

    assert isinstance(event, AllocationGranted)
    assert event.allocation == "slurm 7 start 1"


def test_a_run_in_another_job_that_still_runs_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="may still be running in slurm job 7"):
        asked(tmp_path, spec("8"), RUNS, "JobState=RUNNING Reason=None")
    assert isinstance(asked(tmp_path, spec("8"), RUNS, "JobState=TIMEOUT"), AllocationGranted)


def test_a_run_that_time_ended_goes_on_and_one_that_is_over_does_not(tmp_path: Path) -> None:
    for state in (over(Outcome.GAVE_UP, 143), over(Outcome.REQUEUED, 75)):
        assert isinstance(asked(tmp_path, spec("8"), state), AllocationGranted)
    with pytest.raises(UsageError, match="has ended"):
        asked(tmp_path, spec("8"), over(Outcome.SUCCEEDED, 0))
