"""What becomes of a PBS job, and how it is queued again: by recorded answers of OpenPBS and PBS
Professional.
"""

from datetime import datetime
from pathlib import Path

import pytest

from supervisor.adapters.schedulers import pbs
from supervisor.core.notice import JobState

_JOB = "3472664.pbshpc"
# PBS Professional 2021.1: eight spaces before what is carried over, OpenPBS 23.06: a tab.
_PROFESSIONAL = """Job Id: 3472664.pbshpc
    Job_Name = train
    resources_used.walltime = 00:01:17
    job_state = {letter}
    queue = standard
    Checkpoint = u
    exec_host = khas024/4*2+khas025/0*2
    Error_Path = khas024:/home/user/a folder with a long name/and one more level/s
        tderr
    Rerunable = {rerunnable}
    Resource_List.soft_walltime = 00:10:00
    Resource_List.walltime = 00:20:00
    stime = Wed Apr 26 13:40:15 2023
    substate = {substate}
    Variable_List = PBS_O_HOME=/home/user,PBS_O_LANG=en_US.UTF-8,
        PBS_O_PATH=/usr/bin:/bin,PBS_O_WORKDIR=/scratch
    run_version = 1
"""
_DENIED = "qrerun: Unauthorized Request  3472664.pbshpc"


def _server(
    folder: Path,
    *,
    letter: str = "R",
    substate: int = 42,
    rerunnable: bool = True,
    carried: str = "        ",
    qrerun: str = "exit 0",
) -> dict[str, str]:
    """Programs that answer as a server did, on a PATH of their own."""
    told = _PROFESSIONAL.format(letter=letter, substate=substate, rerunnable=rerunnable)
    (folder / "job.txt").write_text(told.replace("\n        ", f"\n{carried}"))
    asked = folder / "asked"
    for name, answer in (("qstat", f"exec /bin/cat {folder}/job.txt"), ("qrerun", qrerun)):
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>{asked}\n{answer}\n')
        program.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize("carried", ["        ", "\t"], ids=["professional", "openpbs"])
def test_deadline_is_the_start_and_the_hard_limit(tmp_path: Path, carried: str) -> None:
    """A soft walltime ends nothing."""
    expected = datetime(2023, 4, 26, 14, 0, 15).astimezone().timestamp()

    assert expected == pbs.deadline(_JOB, _server(tmp_path, carried=carried))


@pytest.mark.parametrize(
    ("letter", "substate", "expected"),
    [
        ("R", 42, "running"),
        ("R", 43, "running"),
        ("R", 59, "cancelled"),
        ("E", 54, "cancelled"),
        ("R", 60, "requeued"),
        ("E", 63, "requeued"),
        ("Q", 10, "requeued"),
        ("E", 50, "unknown"),
        ("F", 92, "unknown"),
    ],
)
def test_state_is_told_by_letter_and_substate(
    tmp_path: Path, letter: str, substate: int, expected: str
) -> None:
    assert expected == pbs.state(_JOB, _server(tmp_path, letter=letter, substate=substate)).value


def test_state_is_unknown_without_qstat(tmp_path: Path) -> None:
    assert pbs.state(_JOB, {"PATH": str(tmp_path)}) is JobState.UNKNOWN


def test_job_is_queued_again_by_qrerun(tmp_path: Path) -> None:
    assert pbs.requeue(_JOB, _server(tmp_path)) == ""
    assert f"qrerun {_JOB}" in (tmp_path / "asked").read_text().splitlines()


def test_refusal_is_passed_on_in_its_own_words(tmp_path: Path) -> None:
    """At many sites qrerun is for operators."""
    environ = _server(tmp_path, qrerun=f"echo '{_DENIED}' >&2; exit 159")

    assert _DENIED == pbs.requeue(_JOB, environ)


def test_silent_refusal_has_its_exit_code(tmp_path: Path) -> None:
    environ = _server(tmp_path, qrerun="exit 159")

    assert pbs.requeue(_JOB, environ) == "qrerun left with exit code 159"


def test_job_that_may_not_be_run_again_is_not_asked_for(tmp_path: Path) -> None:
    told = pbs.requeue(_JOB, _server(tmp_path, rerunnable=False))

    assert "submit it with qsub -r y" in told
    assert "qrerun" not in (tmp_path / "asked").read_text()


def test_missing_qrerun_is_said(tmp_path: Path) -> None:
    assert pbs.requeue(_JOB, {"PATH": str(tmp_path)}) == "there is no qrerun on PATH"
