"""What is installed is the wheel, so the wheel is what is tested here."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import supervisor

REPO = Path(__file__).parents[2]
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"


def _done(words: tuple[str | Path, ...], cwd: Path) -> str:
    ended = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=110)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built without fetching anything."""
    folder = tmp_path_factory.mktemp("wheel")
    _done((sys.executable, "-c", BUILD, folder), REPO)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_wheel_holds_the_package_and_the_signatures_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {name.split("/")[0] for name in names} == {
        "supervisor",
        f"supervise_hpc-{supervisor.__version__}.dist-info",
    }
    assert {"supervisor/py.typed", "supervisor/cli/main.py", "supervisor/shim.py"} <= names
    assert {Path(path).name for path in (REPO / "signatures").glob("*.y*ml")} == {
        Path(name).name for name in names if name.startswith("supervisor/signatures/")
    }
    assert [name for name in names if "test" in Path(name).parts[:-1]] == []


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_command_of_the_wheel_runs_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    """Without its dependencies: --version and --help need none of them."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    pip = (home / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    _done((*pip, "install", "--no-index", "--no-deps", wheel), tmp_path)

    command = home / "bin" / "supervise"
    assert _done((command, "--version"), tmp_path) == f"supervise {supervisor.__version__}\n"
    assert "usage: supervise" in _done((command, "--help"), tmp_path)
