"""Unfriendly users and places: each of these once ended in silence, a wrong answer or a trace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Supervise

pytestmark = [pytest.mark.engine, pytest.mark.timeout(60)]


def shell(supervise: Supervise, script: str) -> "subprocess.CompletedProcess[str]":
    """Run a shell line in the test's folder; `supervise` stands for the command line."""
    program = f"{sys.executable} -m supervisor.cli --launcher local"
    return subprocess.run(
        ["sh", "-c", script.replace("supervise", program)],
        cwd=supervise.folder,
        env=supervise.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=40,
    )


@pytest.mark.parametrize("closing", ["2>&-", ">&-", ">&- 2>&-", "2>/dev/full", ">/dev/full"])
def test_a_closed_or_full_terminal_stops_nothing(supervise: Supervise, closing: str) -> None:
    """The command runs and its success is the exit code, though nobody can be told."""
    ended = shell(supervise, f"supervise --run-dir run -- sh -c 'echo said; touch ran' {closing}")

    assert (ended.returncode, (supervise.folder / "ran").exists()) == (0, True), ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_reader_that_leaves_stops_nothing(supervise: Supervise) -> None:
    """`supervise ... 2>&1 | head -c 1` once answered 0 without having run the command."""
    shell(supervise, "supervise --run-dir run -- sh -c 'echo said; touch ran' 2>&1 | head -c 1")

    assert (supervise.folder / "ran").exists()


def test_a_silent_command_is_ended_after_the_idle_timeout(supervise: Supervise) -> None:
    """No agent, no step, no word: the promise of --idle-timeout still holds."""
    words = ["--launcher", "local", "--idle-timeout", "2", "--max-relaunches", "0", "--grace", "1"]
    ended = supervise(*words, "--", "sh", "-c", "echo hello; sleep 100", timeout=40)

    assert ended.exit_code == 124, ended.stderr


def test_the_walltime_ends_a_running_attempt(supervise: Supervise) -> None:
    """In time for its grace, with the exit code of a walltime."""
    words = ["--launcher", "local", "--walltime", "3", "--grace", "1"]
    ended = supervise(*words, "--", "sleep", "100", timeout=30)

    assert ended.exit_code == 143, ended.stderr
    assert "deadline" in ended.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "other", [["--", "echo", "other"], ["--ppn", "2", "--", "sleep", "100"]], ids=["command", "ppn"]
)
def test_a_run_is_not_taken_over_by_another(supervise: Supervise, other: list[str]) -> None:
    """Another command on the folder of a run that lives must not be mixed up with it."""
    words = ["--launcher", "local", "--run-dir", "run"]
    first = supervise.start(*words, "--", "sleep", "100")
    keeper = first.run_dir / "attempts/001/keeper.json"
    while not keeper.exists():
        assert first.process.poll() is None, first.stderr
    first.kill()
    ended = supervise(*words, *other)

    assert ended.exit_code == 2, ended.stderr
    assert "holds another run" in ended.stderr


def test_a_working_directory_that_is_gone_is_told(supervise: Supervise, tmp_path: Path) -> None:
    """One line, no trace."""
    ended = shell(supervise, "mkdir gone && cd gone && rmdir ../gone && supervise -- true")

    assert ended.returncode == 3
    assert "Traceback" not in ended.stderr


def test_no_slot_is_left_in_shared_memory(supervise: Supervise) -> None:
    """A shim that is killed cannot remove its slot; the reap does."""
    words = ["--launcher", "local", "--max-relaunches", "0"]
    kill_the_shim = "kill -9 $(ps -o ppid= -p $$)"
    ended = supervise(*words, "--", "sh", "-c", kill_the_shim, timeout=40)
    run_id = next(
        line.split('"run_id":"')[1].split('"')[0]
        for line in (ended.run_dir / "journal.jsonl").read_text().splitlines()
    )

    assert [name for name in os.listdir("/dev/shm") if run_id in name] == []


def test_status_tells_how_a_run_ended_or_that_nobody_holds_it(supervise: Supervise) -> None:
    """`finished` alone hides success from failure, and a dead supervisor writes no status."""
    ended = supervise("--launcher", "local", "--run-dir", "done", "--", "sh", "-c", "exit 0")
    first = supervise.start("--launcher", "local", "--run-dir", "left", "--", "sleep", "100")
    while not (first.run_dir / "status.json").exists():
        assert first.process.poll() is None, first.stderr
    held = supervise("status", "left").stdout
    first.kill()

    assert ended.exit_code == 0
    assert "succeeded, exit code 0" in supervise("status", "done").stdout
    assert "no supervisor" not in held
    assert "no supervisor holds this run" in supervise("status", "left").stdout
