"""A training that was over is a success, whatever its processes do in their exit."""

import json
import sys

import pytest
from conftest import Supervise

pytestmark = [pytest.mark.engine, pytest.mark.timeout(60)]

PROGRAM = """
import os, signal, time
from supervisor.agent import progress
rank = int(os.environ["RANK"])
progress.step(7)
progress.done(rank)
if rank == 1:
    {exit}
"""
CRASH = "os.kill(os.getpid(), signal.SIGSEGV)"
HANG = "time.sleep(600)"


def outcome(supervise: Supervise, *options: str, way: str) -> tuple[int, str, int]:
    program = PROGRAM.format(exit=way)
    line = ["--launcher", "local", "--virtual-hosts", "2", *options, "--grace", "1"]
    ended = supervise(*line, "--", sys.executable, "-c", program)
    summary = json.loads((ended.run_dir / "summary.json").read_text())
    return ended.exit_code, summary["outcome"], len(summary["attempts"])


def test_a_crash_in_the_exit_is_no_failure(supervise: Supervise) -> None:
    assert (0, "succeeded", 1) == outcome(supervise, way=CRASH)


def test_a_hang_in_the_exit_is_ended_and_no_failure(supervise: Supervise) -> None:
    assert (0, "succeeded", 1) == outcome(supervise, "--idle-timeout", "3", way=HANG)


def test_without_shims_the_agents_leave_their_word_in_the_run_folder(supervise: Supervise) -> None:
    assert (0, "succeeded", 1) == outcome(supervise, "--no-shim", way=CRASH)


def test_an_exit_code_after_the_end_is_the_commands_own_word(supervise: Supervise) -> None:
    exit_code, found, _ = outcome(supervise, "--max-relaunches", "0", way="os._exit(3)")

    assert "gave_up" == found
    assert 0 != exit_code
