"""Every mpiexec at hand: ranks find their places, and their failures come back.

Real launchers, found by name on PATH; one that is not installed is skipped by its name. PALS is a
stand-in (fakes/pals): it starts real processes, by the options on record.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.timeout(90)]
PALS = Path(__file__).parent / "fakes" / "pals" / "mpiexec"
INSTALLED = ("mpiexec.mpich", "mpiexec.openmpi", "mpiexec.hydra")
PRINT = "import os; print(*(os.environ[n] for n in {names}), flush=True)"
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MINE")


def supervise(
    folder: Path, launcher: str, *command: str, ranks: int = 3
) -> "subprocess.CompletedProcess[str]":
    """One run on this machine."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    argv = [sys.executable, "-m", "supervisor.cli", "--launcher", launcher]
    argv += [
        "--ppn",
        str(ranks),
        "--run-dir",
        str(folder / "run"),
        "--max-relaunches",
        "0",
        "--",
        *command,
    ]
    return subprocess.run(
        argv,
        env={**environment, "MINE": "of-mine"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )


@pytest.fixture(params=[*INSTALLED, "pals"])
def launcher(request: pytest.FixtureRequest) -> str:
    """A launcher's path."""
    found = str(PALS) if request.param == "pals" else shutil.which(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed")
    return found


def test_ranks_find_their_places_and_the_users_variables(tmp_path: Path, launcher: str) -> None:
    done = supervise(tmp_path, launcher, sys.executable, "-c", PRINT.format(names=NAMES))

    logs = sorted((tmp_path / "run" / "attempts" / "001" / "ranks").glob("*.log"))
    said = [log.read_text().split() for log in logs]
    assert 0 == done.returncode, done.stderr
    assert [[str(rank), "3", str(rank), "3", "127.0.0.1", "of-mine"] for rank in range(3)] == said


def test_rank_that_fails_gives_the_run_its_exit_code(tmp_path: Path, launcher: str) -> None:
    """Of several ranks Open MPI may end the others before they have left by themselves."""
    done = supervise(tmp_path, launcher, sys.executable, "-c", "import os; os._exit(3)", ranks=1)

    assert 3 == done.returncode, done.stderr
