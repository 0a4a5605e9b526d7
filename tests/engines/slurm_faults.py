"""What happens to nodes of the Slurm that tests run: frozen, shepherds killed, up again."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import psutil
from engines.launchers import found
from engines.slurm import Slurm, until


def allocate(slurm: Slurm, nodes: int) -> str:
    """The id of a job that lives on without its lost nodes, and in which nothing runs yet."""
    argv = ["salloc", "--no-kill", "--no-shell", f"--nodes={nodes}", "--ntasks-per-node=2"]
    said = subprocess.run(
        [*argv, "--time=30"],
        env=os.environ | slurm.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stderr
    return said.partition("job allocation ")[2].split()[0]


def cancel(slurm: Slurm, job: str) -> None:
    """End an allocation, and wait until its nodes are free."""
    if job:
        slurm.ask("scancel", "--signal=KILL", job)
        slurm.ask("scancel", job)
        until(lambda: not slurm.ask("squeue", "-h", "-j", job, "-o", "%T"))


def revive(slurm: Slurm) -> None:
    """Every node is idle again, whatever became of it."""
    for process in slurm.processes():
        with suppress(psutil.Error):
            process.send_signal(signal.SIGCONT)
    for number in range(1, slurm.nodes + 1):
        pid = int((slurm.folder / f"slurmd-node{number}.pid").read_text())
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            argv = (str(found("slurmd")), "-N", f"node{number}")
            subprocess.run(argv, env=os.environ | slurm.environ, check=True, timeout=30)
    until(lambda: _all_idle(slurm))


def _all_idle(slurm: Slurm) -> bool:
    states = dict(line.split() for line in slurm.ask("sinfo", "-hN", "-o%N %T").splitlines())
    for node, state in states.items():
        if state.startswith(("down", "drain", "fail")) and not state.endswith("*"):
            slurm.ask("scontrol", "update", f"nodename={node}", "state=resume")
    return set(states.values()) == {"idle"}


def stop_node(slurm: Slurm, node: str) -> None:
    """Freeze its slurmd, its stepds and their ranks."""
    daemon = int((slurm.folder / f"slurmd-{node}.pid").read_text())
    os.kill(daemon, signal.SIGSTOP)
    for process in (*_shepherds(slurm, node), *_ranks(slurm, node)):
        with suppress(psutil.Error):
            process.suspend()


def kill_step_daemon(slurm: Slurm, node: str) -> None:
    """SIGKILL the slurmstepd of the ranks on a node."""
    for process in _shepherds(slurm, node):
        with suppress(psutil.Error):
            process.kill()


def _ranks(slurm: Slurm, node: str) -> Iterator[psutil.Process]:
    for process in slurm.processes():
        with suppress(psutil.Error):
            if process.environ().get("SLURMD_NODENAME") == node:
                yield process


def _shepherds(slurm: Slurm, node: str) -> set[psutil.Process]:
    """The parents of its ranks that are Slurm's."""
    parents = set()
    for process in _ranks(slurm, node):
        with suppress(psutil.Error):
            parents |= {p for p in process.parents()[:1] if "slurmstepd" in " ".join(p.cmdline())}
    return parents
