"""Where cells of the matrix run: how a run is started there, how its hosts suffer, what is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from engines import slurm_faults
from engines.cluster import Cluster
from engines.launchers import Engine
from engines.slurm import Slurm

from supervisor import linux, virtual_host

ACTIVE = 4
SPARES = 1


class Ground(Protocol):
    """What a cell needs of the hosts it runs on."""

    python: str  # what the training runs under
    environment: Mapping[str, str]
    options: Sequence[str]  # launcher and hosts
    told: str  # what the training must be told: variables for env

    @property
    def hosts(self) -> tuple[str, ...]: ...

    def start(self, argv: Sequence[str], **popen: Any) -> "subprocess.Popen[bytes]": ...

    def before(self, fault: str, host: str, command: Path) -> None: ...

    def strike(self, fault: str, host: str, run_id: str) -> None: ...

    def left_of(self, run_id: str) -> Mapping[str, object]: ...

    def repair(self) -> None: ...


@dataclass(kw_only=True)
class ClusterGround:
    """Namespaces with sshd, under a real mpiexec."""

    cluster: Cluster
    engine: Engine
    told: str = ""

    @property
    def python(self) -> str:
        return str(self.engine.python)

    @property
    def environment(self) -> Mapping[str, str]:
        return self.engine.environment

    @property
    def options(self) -> list[str]:
        (self.cluster.folder / "hostfile").write_text("".join(f"{h}\n" for h in self.hosts))
        hostfile = str(self.cluster.folder / "hostfile")
        return ["--launcher", str(self.engine.launcher), "--hostfile", hostfile]

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.cluster.nodes

    def start(self, argv: Sequence[str], **popen: Any) -> "subprocess.Popen[bytes]":
        return self.cluster.head(argv, **popen)

    def before(self, fault: str, host: str, command: Path) -> None:
        if fault == "host unreachable at launch":
            self.cluster.cut(host)
        if fault == "command missing on one host":
            self.cluster.hide(host, command.parent)

    def strike(self, fault: str, host: str, run_id: str) -> None:
        if fault == "daemon killed":
            self._kill_daemon(host)
        else:
            ways = {
                "host killed": self.cluster.kill,
                "host frozen": self.cluster.stop,
                "power loss": self.cluster.lose_power,
                "link cut": self.cluster.cut,
            }
            ways[fault](host)

    def _kill_daemon(self, host: str) -> None:
        names = {p.pid: os.path.basename(p.command[0]) for p in self.cluster.processes(host)}
        daemons = [pid for pid, name in names.items() if name == self.engine.daemon]
        assert daemons, f"no {self.engine.daemon} among {sorted(names.values())}"
        for pid in daemons:
            os.kill(pid, signal.SIGKILL)

    def left_of(self, run_id: str) -> Mapping[str, object]:
        return self.cluster.left_of(run_id)

    def repair(self) -> None:
        self.cluster.repair()


@dataclass(kw_only=True)
class SlurmGround:
    """An allocation of a real Slurm whose nodes are daemons on this machine, under srun."""

    slurm: Slurm
    engine: Engine  # whose mpi4py speaks PMI2, as this Slurm does
    job: str = ""
    told: str = "MASTER_ADDR=127.0.0.1"  # nobody resolves the names of these nodes

    @property
    def python(self) -> str:
        return str(self.engine.python)

    @property
    def environment(self) -> Mapping[str, str]:
        ours = {"SLURM_CONF": self.slurm.environ["SLURM_CONF"], "SLURM_MPI_TYPE": "pmi2"}
        nodes = {"SLURM_JOB_ID": self.job, "SLURM_JOB_NODELIST": ",".join(self.hosts)}
        return {**self.engine.environment, **ours, **nodes}

    @property
    def options(self) -> list[str]:
        return ["--launcher", "srun"]

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(f"node{n}" for n in range(1, self.slurm.nodes + 1))

    def start(self, argv: Sequence[str], **popen: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(argv, **popen)

    def before(self, fault: str, host: str, command: Path) -> None:
        if fault == "host unreachable at launch":
            self.slurm.kill_node(host)

    def strike(self, fault: str, host: str, run_id: str) -> None:
        if fault == "host killed":
            self.slurm.kill_node(host)
        elif fault == "host frozen":
            slurm_faults.stop_node(self.slurm, host)
        else:
            slurm_faults.kill_step_daemon(self.slurm, host)

    def left_of(self, run_id: str) -> Mapping[str, object]:
        pids = linux.processes_with({"SUPERVISE_RUN_ID": run_id})
        return {"all hosts": pids} if pids else {}

    def repair(self) -> None:
        """A new allocation on nodes that are all up."""
        slurm_faults.cancel(self.slurm, self.job)
        slurm_faults.revive(self.slurm)
        self.job = slurm_faults.allocate(self.slurm, self.slurm.nodes)


@dataclass(kw_only=True)
class VirtualGround:
    """Virtual hosts of this machine."""

    launcher: str = "local"
    count: int = ACTIVE + SPARES
    python: str = sys.executable
    told: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(f"vhost{n}" for n in range(1, self.count + 1))

    @property
    def options(self) -> list[str]:
        return ["--launcher", self.launcher, "--virtual-hosts", str(self.count)]

    def start(self, argv: Sequence[str], **popen: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(argv, **popen)

    def before(self, fault: str, host: str, command: Path) -> None:
        """Nothing: faults at launch are not to be had here."""

    def strike(self, fault: str, host: str, run_id: str) -> None:
        if fault == "host killed":
            virtual_host.kill_virtual_host(run_id, host)
        elif fault == "host frozen":
            virtual_host.suspend_virtual_host(run_id, host)
        else:
            for pid in self._daemons(host, run_id):
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    def _daemons(host: str, run_id: str) -> list[int]:
        """A host's first process, which serves the launcher."""
        all_there = linux.processes_with({"SUPERVISE_RUN_ID": run_id, "SUPERVISE_HOST": host})
        marked = linux.processes_with(
            {"SUPERVISE_RUN_ID": run_id, "SUPERVISE_HOST": host, "SUPERVISE_ROLE": "virtual-host"}
        )
        return marked or all_there[:1]

    def left_of(self, run_id: str) -> Mapping[str, object]:
        left = {h: linux.processes_with({"SUPERVISE_RUN_ID": run_id}) for h in ("all hosts",)}
        return {host: pids for host, pids in left.items() if pids}

    def repair(self) -> None:
        """Nothing: each run makes its own hosts."""
