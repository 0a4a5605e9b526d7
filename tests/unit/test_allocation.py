"""Which hosts an allocation has and until when, by what a scheduler's job puts into the world."""

import os
import socket
import time
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from supervisor.adapters.allocation import Allocation, advice_on_spares, find_allocation
from supervisor.errors import UsageError

FAKES = str(Path(__file__).parents[1] / "engines" / "fakes")
HERE = socket.gethostname()


def _find(
    environ: dict[str, str],
    *,
    hostfile: Path | None = None,
    virtual_hosts: int | None = None,
    scheduler: str = "auto",
) -> Allocation:
    return find_allocation(
        hostfile=hostfile, virtual_hosts=virtual_hosts, scheduler=scheduler, environ=environ
    )


def _pbs(folder: Path, *lines: str, **more: str) -> dict[str, str]:
    nodefile = folder / "12.head"
    nodefile.write_text("".join(f"{line}\n" for line in lines))
    return {"PBS_NODEFILE": str(nodefile), "PBS_JOBID": "12.head", **more}


def _said(environ: dict[str, str], **options: str) -> str:
    with pytest.raises(UsageError) as caught:
        _find(environ, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_without_anything_it_is_this_machine() -> None:
    found = _find({})

    assert found.hosts == (HERE,)
    assert found.this_machine
    assert (found.deadline, found.job) == (None, None)


def test_virtual_hosts_are_named_and_need_no_scheduler() -> None:
    found = _find({}, virtual_hosts=3)

    assert found.hosts == ("vhost1", "vhost2", "vhost3")
    assert found.virtual
    assert not found.this_machine


@pytest.mark.parametrize("number", [0, -1, 100_001])
def test_impossible_number_of_virtual_hosts_is_named(number: int) -> None:
    with pytest.raises(UsageError, match=f"--virtual-hosts {number}: must be at least 1"):
        _find({}, virtual_hosts=number)


def test_virtual_hosts_and_hostfile_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        _find({}, virtual_hosts=2, hostfile=tmp_path / "hosts")


def test_pbs_node_file_is_enough_without_qstat(tmp_path: Path) -> None:
    """A job's PATH is minimal; one tool needed qstat for the hosts and died of its absence."""
    found = _find(_pbs(tmp_path, HERE, HERE, "node2.hpc", "node2.hpc", "node1", "node1", PATH=""))

    assert found.hosts == (HERE, "node2.hpc", "node1")
    assert found.ranks_per_host == 2
    assert found.job is not None
    assert found.job.job_id == "12.head"
    assert found.source == "PBS_NODEFILE of PBS job 12.head"
    assert found.notes == ("deadline unknown: pbs does not tell when job 12.head ends",)


def test_pbs_hosts_with_unequal_lines_say_nothing_about_ranks(tmp_path: Path) -> None:
    assert _find(_pbs(tmp_path, HERE, HERE, "node2")).ranks_per_host is None


def test_pbs_deadline_is_start_plus_walltime_by_qstat(tmp_path: Path) -> None:
    found = _find(_pbs(tmp_path, HERE, PATH=FAKES))

    assert datetime(2026, 11, 29, 16, 12, 33).astimezone().timestamp() == found.deadline
    assert found.notes == ()


def test_failing_qstat_costs_only_the_deadline(tmp_path: Path) -> None:
    found = _find(_pbs(tmp_path, HERE, "node2", PATH=FAKES, FAKE_SCHEDULER="fail"))

    assert (found.hosts, found.deadline) == ((HERE, "node2"), None)


def test_hanging_qstat_is_ended_with_its_children(tmp_path: Path) -> None:
    """An overloaded PBS server lets qstat hang for minutes; the run must not wait for it."""
    pid_file = tmp_path / "pid"
    environ = _pbs(
        tmp_path, HERE, PATH=FAKES, FAKE_SCHEDULER="slow", FAKE_SCHEDULER_PID=str(pid_file)
    )

    found = _find(environ)

    assert found.deadline is None
    assert _ends(int(pid_file.read_text()))


def _ends(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def test_node_file_without_this_host_is_stale_and_said(tmp_path: Path) -> None:
    """A saved job environment on a login host must not turn into a silent local run."""
    said = _said(_pbs(tmp_path, "elsewhere1", "elsewhere2"))

    assert f"this host, {HERE}, is not among the 2 hosts of PBS job 12.head" in said
    assert "--scheduler none" in said


def test_node_file_matches_full_name_and_interface_name(tmp_path: Path) -> None:
    assert (f"{HERE}-hsn0.hpc.example",) == _find(_pbs(tmp_path, f"{HERE}-hsn0.hpc.example")).hosts


def test_node_file_of_addresses_is_taken_as_it_is(tmp_path: Path) -> None:
    assert _find(_pbs(tmp_path, "10.0.0.1", "10.0.0.2")).hosts == ("10.0.0.1", "10.0.0.2")


def test_node_file_that_is_gone_is_stale_and_said(tmp_path: Path) -> None:
    said = _said({"PBS_NODEFILE": str(tmp_path / "gone"), "PBS_JOBID": "12.head"})

    assert f"{tmp_path / 'gone'}, which cannot be read" in said
    assert "12.head stale" in said


def test_empty_node_file_is_an_error(tmp_path: Path) -> None:
    assert "which is empty" in _said(_pbs(tmp_path))


def test_job_id_without_node_file_is_not_silently_local() -> None:
    assert "PBS_JOBID is 12.head but PBS_NODEFILE is not set" in _said({"PBS_JOBID": "12.head"})


def test_scheduler_none_ignores_a_job(tmp_path: Path) -> None:
    assert _find(_pbs(tmp_path, "elsewhere"), scheduler="none").hosts == (HERE,)


@pytest.mark.parametrize(
    ("scheduler", "variable"), [("pbs", "PBS_NODEFILE"), ("slurm", "SLURM_JOB_NODELIST")]
)
def test_asked_scheduler_without_a_job_is_an_error(scheduler: str, variable: str) -> None:
    assert f"--scheduler {scheduler}: {variable} is not set" in _said({}, scheduler=scheduler)


@pytest.mark.parametrize("name", ["SLURM_JOB_NODELIST", "SLURM_NODELIST"])
def test_slurm_list_is_written_out_without_scontrol(name: str) -> None:
    """One tool honoured only the older of the two names, and failed with the newer alone."""
    found = _find({name: "nid[001-002],gpu[05-06]", "SLURM_JOB_ID": "7", "PATH": ""})

    assert found.hosts == ("nid001", "nid002", "gpu05", "gpu06")
    assert f"{name} of Slurm job 7" == found.source


def test_slurm_asks_scontrol_where_there_is_one() -> None:
    found = _find({"SLURM_JOB_NODELIST": "node[1-3,5]", "SLURM_JOB_ID": "7", "PATH": FAKES})

    assert found.hosts == ("node1", "node2", "node3", "node5")
    assert datetime(2026, 11, 29, 15, 30, 33).astimezone().timestamp() == found.deadline


@pytest.mark.parametrize(
    ("answer", "hosts"),
    [
        ("node[1-2,5]", ("node1", "node2", "node5")),
        ("node[1-3,5]", ("node1", "node2", "node3", "node5")),
        ("", ("node1", "node2", "node3", "node5")),
        ("other[1-9]", ("node1", "node2", "node3", "node5")),
        ("node[1-", ("node1", "node2", "node3", "node5")),
    ],
)
def test_hosts_that_slurm_took_out_of_the_job_are_not_used(
    tmp_path: Path, answer: str, hosts: tuple[str, ...]
) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\ncase $5 in %N) echo '{answer}' ;; *) echo N/A ;; esac\n")
    squeue.chmod(0o755)
    job = {"SLURM_JOB_NODELIST": "node[1-3,5]", "SLURM_JOB_ID": "7", "PATH": f"{tmp_path}:/bin"}

    found = _find(job)

    assert found.hosts == hosts
    noted = [note for note in found.notes if "no longer in the job, and not used: node3" in note]
    assert bool(noted) == ("node3" not in hosts) == (found.lost == ("node3",))


def test_failing_scontrol_and_squeue_fall_back() -> None:
    found = _find(
        {
            "SLURM_JOB_NODELIST": "node[1-2]-ib",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_END_TIME": "1800000000",
            "PATH": FAKES,
            "FAKE_SCHEDULER": "fail",
        }
    )

    assert (found.hosts, found.deadline) == (("node1-ib", "node2-ib"), 1_800_000_000.0)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SLURM_TASKS_PER_NODE": "2(x6)"}, 2),
        ({"SLURM_TASKS_PER_NODE": "4"}, 4),
        ({"SLURM_TASKS_PER_NODE": "4,4(x3)"}, 4),
        ({"SLURM_TASKS_PER_NODE": "4(x2),3"}, None),
        ({"SLURM_NTASKS_PER_NODE": "8", "SLURM_TASKS_PER_NODE": "2(x6)"}, 8),
        ({"SLURM_TASKS_PER_NODE": "many"}, None),
        ({}, None),
    ],
)
def test_slurm_says_how_many_ranks_a_host(variables: dict[str, str], expected: int | None) -> None:
    assert expected == _find({"SLURM_JOB_NODELIST": "a1", "PATH": "", **variables}).ranks_per_host


@pytest.mark.parametrize("text", ["(null)", "node[1-"])
def test_unusable_slurm_list_names_its_variable(text: str) -> None:
    assert "SLURM_JOB_NODELIST" in _said({"SLURM_JOB_NODELIST": text, "PATH": ""})


def test_hostfile_in_a_job_keeps_the_deadline_of_the_job(tmp_path: Path) -> None:
    hostfile = tmp_path / "mine"
    hostfile.write_text("node2\nnode9\n")
    environ = {"SLURM_JOB_NODELIST": "node[1-3,5]", "SLURM_JOB_ID": "7", "PATH": FAKES}

    found = _find(environ, hostfile=hostfile)

    assert found.hosts == ("node2", "node9")
    assert found.deadline is not None
    assert (f"hostfile {hostfile}: not in SLURM_JOB_NODELIST of Slurm job 7: node9",) == found.notes


def test_hostfile_works_although_the_job_variables_are_stale(tmp_path: Path) -> None:
    hostfile = tmp_path / "mine"
    hostfile.write_text("elsewhere1\n")

    found = _find(_pbs(tmp_path, "elsewhere1"), hostfile=hostfile)

    assert (found.hosts, found.deadline) == (("elsewhere1",), None)
    assert "is not among" in found.notes[0]


def test_fakes_are_programs() -> None:
    assert all(os.access(f"{FAKES}/{name}", os.X_OK) for name in ("qstat", "squeue", "scontrol"))


def test_job_that_may_die_with_its_first_lost_host_is_advised() -> None:
    environ = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_ID": "7", "PATH": ""}

    (line,) = advice_on_spares(_find(environ), environ)

    assert "--no-kill" in line


def test_elsewhere_there_is_nothing_to_advise(tmp_path: Path) -> None:
    slurm = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_ID": "7", "PATH": ""}
    pbs = _pbs(tmp_path, HERE, PATH="")

    assert advice_on_spares(_find(slurm, virtual_hosts=3), slurm) == ()
    assert advice_on_spares(_find(pbs), pbs) == ()
    assert advice_on_spares(_find({}), {}) == ()
