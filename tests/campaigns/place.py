"""Where a campaign runs: on virtual hosts of this machine, on a cluster of namespaces under a real
launcher, or in an allocation of a real Slurm. Three active hosts of two ranks and a spare, in a
folder of its own each time.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tests"))

from engines.cluster import Cluster  # noqa: E402
from engines.grounds import ClusterGround, Ground, SlurmGround, VirtualGround  # noqa: E402
from engines.launchers import ENGINES  # noqa: E402
from engines.slurm import Slurm  # noqa: E402

TOY = REPO / "tests" / "engines" / "toy_train.py"
VIRTUAL = ("local", "mpich")
HOSTS = 4  # the last one is the spare
PPN = 2


@dataclass(frozen=True, kw_only=True)
class Place:
    """A launcher and the hosts it reaches."""

    name: str
    ground: Ground

    @property
    def python(self) -> str:
        """The interpreter whose mpi4py speaks to this launcher."""
        return self.ground.python

    def supervise(
        self, folder: Path, options: Sequence[str], toy: Sequence[str]
    ) -> "subprocess.Popen[bytes]":
        """Start the toy training in this folder, with checkpoints and a file of losses."""
        command = [self.python, str(TOY), "--ckpt-dir", "saved", *toy, "--loss-file", "loss.jsonl"]
        told = ["env", self.ground.told] if self.ground.told else []
        return self.start(folder, ["--checkpoint-dir", "saved", *options], [*told, *command])

    def start(
        self, folder: Path, options: Sequence[str], command: Sequence[str]
    ) -> "subprocess.Popen[bytes]":
        """Start a supervised command in this folder; what is said goes to `out` there."""
        line = [sys.executable, "-m", "supervisor.cli", *self.ground.options, *options]
        line += ["--run-dir", "run", "--spare-nodes", "1", "--ppn", str(PPN), "--", *command]
        with (folder / "out").open("ab") as out:
            return self.ground.start(
                line,
                cwd=folder,
                env=self.environ(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def environ(self) -> dict[str, str]:
        """What the command line is started with."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SUPERVISE_")}
        kept.pop("PYTHONUNBUFFERED", None)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**kept, "PATH": path, "PYTHONPATH": str(REPO), **self.ground.environment}


@contextmanager
def places(names: Sequence[str]) -> Iterator[list[Place]]:
    """The places of these launchers; real ones share a cluster, which is down afterwards."""
    _check(names)
    with ExitStack() as stack:
        clusters = [_cluster(stack)] if set(names) & set(ENGINES) else []
        yield [Place(name=name, ground=_ground(stack, name, clusters)) for name in names]


def _check(names: Sequence[str]) -> None:
    every = (*VIRTUAL, *ENGINES, "slurm")
    if unknown := set(names) - set(every):
        sys.exit(f"no such launcher: {', '.join(unknown)}; there are {', '.join(every)}")
    needed = [ENGINES[name] for name in names if name in ENGINES]
    if absent := [engine.missing for engine in needed if engine.missing]:
        sys.exit(f"{'; '.join(absent)}: tests/engines/install-engines installs them")


def _ground(stack: ExitStack, name: str, clusters: Sequence[Cluster]) -> Ground:
    if name in VIRTUAL:
        return VirtualGround(launcher=name, count=HOSTS)
    if name == "slurm":
        return _slurm(stack)
    return ClusterGround(cluster=clusters[0], engine=ENGINES[name])


def _cluster(stack: ExitStack) -> Cluster:
    folder = stack.enter_context(TemporaryDirectory(prefix="cluster-"))
    cluster = Cluster(folder=Path(folder))
    stack.callback(cluster.down)
    cluster.up(HOSTS)
    return cluster


def _slurm(stack: ExitStack) -> SlurmGround:
    folder = stack.enter_context(TemporaryDirectory(prefix="slurm-"))
    slurm = Slurm(folder=Path(folder), nodes=HOSTS)
    stack.callback(slurm.down)
    slurm.up()
    ground = SlurmGround(slurm=slurm, engine=ENGINES["mpich5"])
    ground.repair()
    return ground


def living(folder: Path) -> Iterator[tuple[int, str]]:
    """Processes, on any host, that work in this folder or were started for its run."""
    mark = os.fsencode(str(folder))
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            known = (path / "environ").read_bytes() + (path / "cmdline").read_bytes()
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            if mark in known and state != "Z" and int(path.name) != os.getpid():
                yield int(path.name), (path / "cmdline").read_text().replace("\0", " ")[:120]


def end(left: Sequence[tuple[int, str]]) -> None:
    """SIGKILL what a run left behind, so that the next one is not disturbed."""
    for pid, _ in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
