"""The database travels in the wheel and is found there."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
COUNT = (
    "from supervisor.adapters.signature_files import load_signatures, shipped_folder as shipped;"
    "print(shipped(), len(load_signatures([shipped()]).entries))"
)


def done(words: list[str], cwd: Path) -> str:
    ended = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=110)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_signatures_of_the_wheel_are_those_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    done([sys.executable, "-c", BUILD, str(tmp_path)], REPO)
    installed = tmp_path / "installed"
    zipfile.ZipFile(next(tmp_path.glob("*.whl"))).extractall(installed)

    folder, count = done([sys.executable, "-c", COUNT], installed).split()
    checkout, expected = done([sys.executable, "-c", COUNT], REPO).split()

    assert folder == str(installed / "supervisor" / "signatures")
    assert checkout == str(REPO / "signatures")
    assert expected == count
