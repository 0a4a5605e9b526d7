"""Job scripts are read by people who change them: short, commented, and nothing a linter finds."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
SCRIPTS = sorted((*REPO.glob("deploy/slurm/*.sbatch"), *REPO.glob("deploy/pbs/*.pbs")))
MOST_LINES = 60


def test_there_are_job_scripts_for_both_schedulers() -> None:
    assert {"pbs", "slurm"} <= {path.parent.name for path in SCRIPTS}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_job_script_fits_on_a_screen(path: Path) -> None:
    assert len(path.read_text().splitlines()) < MOST_LINES


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_job_script_becomes_the_supervisor(path: Path) -> None:
    """A shell that waits for a child loses the scheduler's signal, or acts on it too late."""
    commands = [line for line in path.read_text().splitlines() if "supervise \\" in line]

    assert commands == ["exec supervise \\"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_has_nothing_to_say(path: Path) -> None:
    program = shutil.which("shellcheck")
    if program is None:
        assert "CI" not in os.environ, "shellcheck is missing"
        pytest.skip("shellcheck is missing")
    ended = subprocess.run([program, path], capture_output=True, text=True, timeout=15)

    assert (ended.returncode, ended.stdout) == (0, "")
