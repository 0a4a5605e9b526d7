"""A real Slurm of several nodes on this machine, for tests: its own folder, ports, key and socket.

Debian's slurmd lets several of itself run on one host, each under a node's name, so that nodes can
die one by one. Nothing of the machine's own Slurm is touched, and only processes that were started
here are ended.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from engines.launchers import found, missing

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "scontrol", "squeue", "srun", "scancel")
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={here}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2,batch_sched_delay=0
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=1
PropagateResourceLimits=NONE
SlurmdTimeout=10
MessageTimeout=5
TCPTimeout=2
KillWait=10
MinJobAge=600
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
{nodes}
PartitionName=plain Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=first Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF
"""


@dataclass(kw_only=True)
class Slurm:
    """Nodes node1..nodeN, and partitions plain and first, which preempts jobs of plain."""

    folder: Path
    nodes: int
    environ: dict[str, str] = field(default_factory=dict)

    def up(self) -> None:
        """Start it and wait until every node is idle."""
        if any(found(name) is None for name in PROGRAMS) or os.geteuid() != 0:
            missing("Slurm: its programs, or the superuser to run them, are missing")
        self.environ["SLURM_CONF"] = str(self.folder / "slurm.conf")
        for name in ("munge", "state", *(f"spool/node{n}" for n in range(1, self.nodes + 1))):
            (self.folder / name).mkdir(parents=True, mode=0o755)
        (self.folder / "munge").chmod(0o700)
        self._write()
        self._start_munge()
        self._run(str(found("slurmctld")), "-c")
        for number in range(1, self.nodes + 1):
            self._run(str(found("slurmd")), "-N", f"node{number}")
        until(lambda: self.ask("sinfo", "-hN", "-o%T").split() == ["idle"] * 2 * self.nodes)

    def down(self) -> None:
        """End all jobs and all that was started, the stepds of dead nodes too."""
        self.ask("scancel", "--user=root", "--state=RUNNING")
        self.ask("scancel", "--user=root", "--state=PENDING")
        for path in sorted(self.folder.glob("*.pid"), key=lambda path: "munge" in path.name):
            with suppress(OSError, ValueError):
                os.kill(int(path.read_text()), signal.SIGKILL)
        until(self._nothing_is_left)  # a stepd may just have been born

    def _nothing_is_left(self) -> bool:
        left = self.processes()
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        return not left

    def ask(self, *argv: str) -> str:
        """What a program of Slurm's prints."""
        return subprocess.run(
            argv, env=self._environment(), capture_output=True, text=True, timeout=30
        ).stdout.strip()

    def submit(self, *argv: str, folder: Path, **variables: str) -> str:
        """A job's id, by sbatch."""
        return subprocess.run(
            ("sbatch", "--parsable", "--output=job.out", *argv),
            env=self._environment() | variables,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout.strip()

    def state(self, job: str) -> str:
        return self.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T")

    def start_again(self, job: str) -> None:
        """Slurm makes a job that was queued again wait for two minutes; an operator need not. This
        start has time enough to finish.
        """
        until(lambda: self.state(job) == "PENDING")
        self.ask("scontrol", "update", f"jobid={job}", "starttime=now", "timelimit=20")

    def kill_node(self, node: str) -> None:
        """A power cut: its slurmd, its stepds and their ranks."""
        daemon = int((self.folder / f"slurmd-{node}.pid").read_text())
        victims = [psutil.Process(daemon)]
        for process in self.processes(SLURMD_NODENAME=node):
            with suppress(psutil.Error):
                victims += [process, *process.parents()[:1]]
        for process in victims:
            with suppress(psutil.Error):
                process.kill()

    def processes(self, **variables: str) -> list[psutil.Process]:
        """Whatever runs with this Slurm's configuration and these variables."""
        wanted = {"SLURM_CONF": self.environ["SLURM_CONF"], **variables}.items()
        running = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if wanted <= process.environ().items() and process.pid != os.getpid():
                    running.append(process)
        return running

    def _write(self) -> None:
        port, here = _free_ports(self.nodes + 1), socket.gethostname().partition(".")[0]
        nodes = "\n".join(
            f"NodeName=node{n} NodeHostname={here} NodeAddr=127.0.0.1 Port={port + n} CPUs=4"
            " RealMemory=1000 State=UNKNOWN"
            for n in range(1, self.nodes + 1)
        )
        text = CONFIGURATION.format(folder=self.folder, port=port, here=here, nodes=nodes)
        (self.folder / "slurm.conf").write_text(text)

    def _start_munge(self) -> None:
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        places = {"key-file": "munge/key", "socket": "munge/socket", "seed-file": "munge/seed"}
        places |= {"pid-file": "munge.pid", "log-file": "munge/log"}
        words = [f"--{name}={self.folder / place}" for name, place in places.items()]
        self._run(str(found("munged")), "--force", "--num-threads=2", *words)

    def _run(self, *argv: str) -> None:
        subprocess.run(
            argv, env=self._environment(), check=True, timeout=30, stdout=subprocess.DEVNULL
        )

    def _environment(self) -> dict[str, str]:
        return os.environ | self.environ


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Poll; Slurm's programs are slow to answer and there is nothing to wait on."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.2)


def _free_ports(count: int) -> int:
    """The first of so many ports in a row, below those that the kernel gives away."""
    for start in range(17000 + os.getpid() % 3000, 32000, count):
        with suppress(OSError):
            for port in range(start, start + count):
                with socket.socket() as tried:
                    tried.bind(("127.0.0.1", port))
            return start
    raise AssertionError("no free ports")


def running(folder: Path, nodes: int, environ: dict[str, str]) -> Iterator[Slurm]:
    """A Slurm for as long as a fixture lives."""
    slurm = Slurm(folder=folder, nodes=nodes, environ=dict(environ))
    try:
        slurm.up()
        yield slurm
    finally:
        if "SLURM_CONF" in slurm.environ:
            slurm.down()
