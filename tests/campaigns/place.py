"""Where a campaign runs: on virtual hosts of this machine, or on a cluster of namespaces under a
real launcher. Three active hosts of two ranks and a spare, in a folder of its own each time.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tests"))

from engines.cluster import Cluster  # noqa: E402
from engines.launchers import ENGINES, Engine  # noqa: E402

TOY = REPO / "tests" / "engines" / "toy_train.py"
VIRTUAL = ("local", "mpich")
HOSTS = 4  # the last one is the spare


@dataclass(frozen=True, kw_only=True)
class Place:
    """A launcher and the hosts it reaches."""

    name: str
    engine: Engine | None = None
    cluster: Cluster | None = None

    @property
    def python(self) -> str:
        """The interpreter whose mpi4py speaks to this launcher."""
        return sys.executable if self.engine is None else str(self.engine.python)

    def supervise(
        self, folder: Path, options: Sequence[str], toy: Sequence[str]
    ) -> "subprocess.Popen[bytes]":
        """Start the toy training in this folder, with checkpoints and a file of losses."""
        command = [self.python, str(TOY), "--ckpt-dir", "saved", *toy, "--loss-file", "loss.jsonl"]
        return self.start(folder, ["--checkpoint-dir", "saved", *options], command)

    def start(
        self, folder: Path, options: Sequence[str], command: Sequence[str]
    ) -> "subprocess.Popen[bytes]":
        """Start a supervised command in this folder; what is said goes to `out` there."""
        line = [sys.executable, "-m", "supervisor.cli", *self._where(folder), *options]
        line += ["--run-dir", "run", "--spare-nodes", "1", "--ppn", "2", "--", *command]
        with (folder / "out").open("ab") as out:
            popen = {"cwd": folder, "env": self.environ(), "stdout": out, "stderr": out}
            if self.cluster is not None:
                return self.cluster.head(line, stdin=subprocess.DEVNULL, **popen)
            return subprocess.Popen(line, stdin=subprocess.DEVNULL, **popen)

    def _where(self, folder: Path) -> list[str]:
        if self.engine is None or self.cluster is None:
            return ["--launcher", self.name, "--virtual-hosts", str(HOSTS)]
        (folder / "hosts").write_text("".join(f"{node}\n" for node in self.cluster.nodes))
        return ["--launcher", str(self.engine.launcher), "--hostfile", "hosts"]

    def environ(self) -> dict[str, str]:
        """What the command line is started with."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SUPERVISE_")}
        kept.pop("PYTHONUNBUFFERED", None)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        more = {} if self.engine is None else self.engine.environment
        return {**kept, "PATH": path, "PYTHONPATH": str(REPO), **more}


@contextmanager
def places(names: Sequence[str]) -> Iterator[list[Place]]:
    """The places of these launchers; real ones share a cluster, which is down afterwards."""
    if unknown := set(names) - {*VIRTUAL, *ENGINES}:
        sys.exit(
            f"no such launcher: {', '.join(unknown)}; there are {', '.join((*VIRTUAL, *ENGINES))}"
        )
    real = [name for name in names if name not in VIRTUAL]
    if absent := [ENGINES[name].missing for name in real if ENGINES[name].missing]:
        sys.exit(f"{'; '.join(absent)}: tests/engines/install-engines installs them")
    with TemporaryDirectory(prefix="cluster-") as folder:
        cluster = Cluster(folder=Path(folder))
        try:
            if real:
                cluster.up(HOSTS)
            yield [_place(name, cluster) for name in names]
        finally:
            cluster.down()


def _place(name: str, cluster: Cluster) -> Place:
    if name in VIRTUAL:
        return Place(name=name)
    return Place(name=name, engine=ENGINES[name], cluster=cluster)


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
