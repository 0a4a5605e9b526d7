"""The run folder and its lock."""

import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.adapters.run_folder import RunFolder, locked, open_run_folder
from supervisor.errors import PlatformError, UsageError

HOLD = """
import sys
from pathlib import Path
from supervisor.adapters.run_folder import RunFolder, locked
with locked(RunFolder(path=Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_supervisor_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    """Two supervisors on one folder would start two attempts."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()

    with pytest.raises(UsageError, match=f"pid {holder.pid}"), locked(RunFolder(path=tmp_path)):
        pass

    holder.kill()
    holder.communicate()
    with locked(RunFolder(path=tmp_path)):
        pass


def test_a_folder_that_cannot_be_made_is_the_platform(tmp_path: Path) -> None:
    """One line that names the folder and the option."""
    (tmp_path / "file").touch()

    with pytest.raises(PlatformError, match=r"cannot write the run folder .*--run-dir"):
        open_run_folder(tmp_path / "file" / "run")


def test_attempts_are_numbered_with_three_digits(tmp_path: Path) -> None:
    """Others script against these names."""
    assert RunFolder(path=tmp_path).attempt(7).hostfile == tmp_path / "attempts/007/hostfile"
