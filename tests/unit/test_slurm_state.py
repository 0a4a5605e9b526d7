"""What becomes of a Slurm job, by the words of scontrol (recorded on 22.05.8, shortened)."""

from pathlib import Path

import pytest

from supervisor.adapters.schedulers import slurm
from supervisor.core.notice import JobState

ENDING = "JobId=7 JobName=train JobState=COMPLETING Reason=None Requeue=1 Restarts=0"


def environ(folder: Path, text: str, code: int = 0, **more: str) -> dict[str, str]:
    """A scontrol on PATH that says this."""
    program = folder / "scontrol"
    program.write_text(f"#!/bin/sh\necho '{text}'\necho 'slurm error: {text}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:/bin", "SLURM_JOB_ID": "7", **more}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (ENDING.replace("COMPLETING", "RUNNING") + " PreemptTime=None", JobState.RUNNING),
        (ENDING.replace("Reason=None", "Reason=TimeLimit"), JobState.TIMED_OUT),
        (ENDING.replace("COMPLETING", "TIMEOUT"), JobState.TIMED_OUT),
        (ENDING.replace("Reason=None", "Reason=NodeDown"), JobState.LOST_HOST),
        (ENDING.replace("Restarts=0", "Restarts=1"), JobState.REQUEUED),
        (ENDING + " PreemptTime=2026-11-30T20:11:40", JobState.PREEMPTED),
        (ENDING + " PreemptTime=None", JobState.CANCELLED),
        (ENDING.replace("COMPLETING", "PENDING"), JobState.UNKNOWN),
        ("", JobState.UNKNOWN),
    ],
)
def test_a_job_that_is_ended_is_completing_and_the_other_fields_tell_why(
    tmp_path: Path, said: str, expected: JobState
) -> None:
    assert expected == slurm.state("7", environ(tmp_path, said))


def test_a_job_that_was_queued_again_before_is_not_being_so_now(tmp_path: Path) -> None:
    said = ENDING.replace("COMPLETING", "RUNNING").replace("Restarts=0", "Restarts=2")

    assert JobState.RUNNING == slurm.state("7", environ(tmp_path, said, SLURM_RESTART_COUNT="2"))
    assert JobState.RUNNING == slurm.state("7", environ(tmp_path, said, SLURM_JOB_ID="9"))


def test_why_a_job_is_not_queued_again_is_said_in_slurms_own_words(tmp_path: Path) -> None:
    assert "slurm error: no" == slurm.requeue("7", environ(tmp_path, "no", 1))
    assert "there is no scontrol on PATH" == slurm.requeue("7", {"PATH": ""})
    assert "" == slurm.requeue("7", environ(tmp_path, "yes"))
