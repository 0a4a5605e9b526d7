"""What tests share: the command line as a real process, in its own folder and environment."""

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

REPO = Path(__file__).parents[1]
if importlib.util.find_spec("supervisor") is None:  # not installed: test the checkout
    sys.path.insert(0, str(REPO))

_FOREIGN = ("SUPERVISE_", "SLURM", "PBS_", "PMI", "PALS_", "HYDRA", "OMPI_", "MPI", "I_MPI")
_NAMES = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
_NAMES |= {"PYTHONUNBUFFERED", "PYTHONPATH", "GROUP_RANK", "COLUMNS", "XDG_CACHE_HOME"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-cells", action="store_true", help="the whole matrix of faults")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How one `supervise` ended."""

    exit_code: int
    stdout: str
    stderr: str
    run_dir: Path


@dataclass(kw_only=True)
class Started:
    """A `supervise` that runs; its output goes to files, since a keeper may outlive it."""

    process: subprocess.Popen[bytes]
    folder: Path
    run_dir: Path

    @property
    def stdout(self) -> str:
        return (self.folder / "stdout").read_text(errors="replace")

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text(errors="replace")

    def wait(self, timeout: float) -> Ended:
        """Wait for its end; one that does not come is a failure that shows the output."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            pytest.fail(
                f"supervise ran longer than {timeout} s"
                f"\n{self.stdout[-3000:]}\n{self.stderr[-3000:]}"
            )
        return Ended(exit_code=code, stdout=self.stdout, stderr=self.stderr, run_dir=self.run_dir)

    def kill(self) -> None:
        """SIGKILL its process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass(kw_only=True)
class Supervise:
    """Runs the command line; call it to wait for the end, `start` it to do things meanwhile."""

    folder: Path  # where it is run, and below which everything is
    environ: dict[str, str]
    started: list[Started] = field(default_factory=list)

    def __call__(
        self, *words: str, timeout: float = 18.0, env: dict[str, str] | None = None
    ) -> Ended:
        return self.start(*words, env=env).wait(timeout)

    def start(self, *words: str, env: dict[str, str] | None = None) -> Started:
        """Start `supervise WORDS`; a run without --run-dir gets one below this folder."""
        line, run_dir = self._with_run_dir(list(words))
        folder = self.folder / f"supervise-{len(self.started) + 1}"
        folder.mkdir()
        with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "supervisor.cli", *line],
                cwd=self.folder,
                env=self.environ | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        self.started.append(Started(process=process, folder=folder, run_dir=run_dir))
        return self.started[-1]

    def _with_run_dir(self, words: list[str]) -> tuple[list[str], Path]:
        ours = words[: words.index("--")] if "--" in words else words
        if "--run-dir" in ours:
            return words, self.folder / ours[ours.index("--run-dir") + 1]
        run_dir = self.folder / f"run-{len(self.started) + 1}"
        if "--" not in words or "--dry-run" in ours:
            return words, run_dir
        return ["--run-dir", str(run_dir), *words], run_dir

    def end_all(self) -> None:
        """Kill what was started here, and what that left behind in sessions of its own."""
        for started in self.started:
            started.kill()
        for process in _left_behind(str(self.folder)):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _left_behind(folder: str) -> Iterator[psutil.Process]:
    """Processes whose run folder, or an argument, lies below this folder."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            run_dir = process.environ().get("SUPERVISE_RUN_DIR", "")
            if process.pid != os.getpid() and (
                run_dir.startswith(folder) or any(folder in word for word in process.cmdline())
            ):
                yield process


@pytest.fixture(scope="session")
def clean_environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """This environment without what a scheduler, a launcher or a supervisor put into it."""
    import supervisor

    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _NAMES and not name.startswith(_FOREIGN)
    }
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(supervisor.__file__).parents[1]),
        "XDG_CACHE_HOME": str(tmp_path_factory.getbasetemp() / "cache"),
        "XDG_CONFIG_HOME": str(tmp_path_factory.getbasetemp() / "config"),
    }


@pytest.fixture
def supervise(tmp_path: Path, clean_environ: dict[str, str]) -> Iterator[Supervise]:
    """The command line as a real process; nothing of it is left when the test ends."""
    running = Supervise(folder=tmp_path, environ=clean_environ)
    yield running
    running.end_all()
