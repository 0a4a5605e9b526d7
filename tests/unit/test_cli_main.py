"""The command line as a user meets it: one line and an exit code for every mistake."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import supervisor
from supervisor.cli import beside
from supervisor.errors import PlatformError

if TYPE_CHECKING:
    from tests.conftest import Supervise


def _one_line(stderr: str) -> str:
    assert "Traceback" not in stderr
    lines = stderr.splitlines()
    assert len(lines) == 1, stderr
    assert lines[0].startswith("supervise: error: ")
    return lines[0]


def test_version_and_help_answer_on_stdout(supervise: "Supervise") -> None:
    version, helped = supervise("--version"), supervise("--help")

    assert (version.exit_code, version.stdout) == (0, f"supervise {supervisor.__version__}\n")
    assert (helped.exit_code, helped.stderr) == (0, "")
    assert helped.stdout.startswith("usage: supervise [options] -- COMMAND ...")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("python train.py", "write `supervise -- python train.py`"),
        ("--virtual-hosts 2 --spare-nodes 2 -- true", "at least one must stay active"),
        ("--virtual-hosts 4 --nodes 3 --spare-nodes 2 -- true", "3 active + 2 spare hosts"),
        ("--virtual-hosts 2 --min-nodes 3 -- true", "--min-nodes 3: more than the 2 active"),
        ("--virtual-hosts 2 --hostfile x -- true", "exclude each other"),
        ("--hostfile missing -- true", "hostfile missing cannot be read: No such file"),
        ("--scheduler pbs -- true", "PBS_NODEFILE is not set"),
        ("--signatures missing -- true", "--signatures missing: no such folder"),
        ("--json -- true", "--json belongs to --dry-run"),
        ("-- no-such-program", "'no-such-program' is no program"),
        ("-- ./absent", "'./absent' is no program"),
        ("status", "no run under ./runs: name its folder"),
        ("status missing", "missing: no such run folder"),
        ("status a b", "'b' is not understood"),
    ],
)
def test_mistake_of_a_user_is_one_line_and_exit_code_2(
    supervise: "Supervise", line: str, words: str
) -> None:
    ended = supervise(*line.split())

    assert ended.exit_code == 2
    assert words in _one_line(ended.stderr)
    assert not ended.run_dir.exists()


def test_run_folder_that_cannot_be_made_is_the_platforms(supervise: "Supervise") -> None:
    (supervise.folder / "file").touch()

    ended = supervise("-q", "--run-dir", "file/run", "--virtual-hosts", "1", "--", "true")

    assert ended.exit_code == 3
    assert f"cannot write the run folder {supervise.folder}/file/run" in _one_line(ended.stderr)


def test_reader_that_leaves_early_meets_no_traceback(
    tmp_path: Path, clean_environ: dict[str, str]
) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with subprocess.Popen(
        [sys.executable, "-m", "supervisor.cli", "--help"],
        cwd=tmp_path,
        env=clean_environ,
        stdout=write_end,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(write_end)
        _, stderr = process.communicate(timeout=15)

    assert stderr == b""


@pytest.mark.parametrize("name", ["supervisor-4.2.5.dist-info", "supervisor-4.2.5-py3.11.egg-info"])
def test_other_distribution_beside_is_refused_with_a_remedy(tmp_path: Path, name: str) -> None:
    """The process control system `supervisor` installs into the same package folder."""
    (tmp_path / name).mkdir()

    with pytest.raises(PlatformError, match=re.escape(str(tmp_path))) as caught:
        beside.refuse([str(tmp_path / "missing"), str(tmp_path)])

    assert "pip uninstall supervisor" in str(caught.value)


@pytest.mark.parametrize("name", ["supervise_hpc-0.1.0.dist-info", "supervisor_x-1.dist-info"])
def test_distributions_of_other_names_are_no_trouble(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    beside.refuse([str(tmp_path)])


def test_run_beside_the_other_distribution_does_not_start(supervise: "Supervise") -> None:
    (supervise.folder / "supervisor-4.2.5.dist-info").mkdir()
    path = f"{supervise.environ['PYTHONPATH']}{os.pathsep}{supervise.folder}"

    ended = supervise("--", "true", env={"PYTHONPATH": path})

    assert ended.exit_code == 3
    assert "supervisord" in _one_line(ended.stderr)
