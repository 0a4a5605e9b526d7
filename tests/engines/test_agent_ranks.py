"""Two real ranks, one of which fails in the middle of a save."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.adapters.checkpoints import choose_checkpoint

REPO = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("agent_ranks.py")
SECONDS = 90

pytestmark = [pytest.mark.torch, pytest.mark.timeout(120)]


def start(scenario: str, folder: Path) -> list[subprocess.Popen[str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    return [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), scenario, str(folder)],
            cwd=REPO,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("SUPERVISE_")},
                **places,
                "PYTHONPATH": str(REPO),
                "MASTER_PORT": str(port),
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]


def ends(ranks: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Exit code and output of each."""
    try:
        outputs = [process.communicate(timeout=SECONDS)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    return [(process.returncode, output) for process, output in zip(ranks, outputs, strict=True)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_rank_killed_in_the_middle_of_a_save_ends_the_others_in_time(tmp_path: Path) -> None:
    """A collective would hold them until the supervisor noticed; here each knows whom it lost."""
    (first, said), (second, _) = ends(start("killed", tmp_path))

    assert (3, -signal.SIGKILL) == (first, second)
    assert "checkpoint of step 2" in said
    assert "rank 1 said nothing for 5 s" in said
    assert (1, ["step-00000001"]) == (choose_checkpoint(tmp_path).step, names(tmp_path))


def test_rank_stopped_in_the_middle_of_a_save_ends_the_others_in_time(tmp_path: Path) -> None:
    """A stopped process keeps its connections: nothing but time tells."""
    first, second = start("stopped", tmp_path)
    try:
        said, _ = first.communicate(timeout=SECONDS)
    finally:
        first.kill()
        second.kill()
        second.communicate()

    assert (3, True) == (first.returncode, "rank 1 said nothing for 5 s" in said)
    assert choose_checkpoint(tmp_path).step == 1


def test_full_disk_on_one_rank_fails_the_save_on_all_and_the_next_one_works(
    tmp_path: Path,
) -> None:
    answers = ends(start("full", tmp_path))

    assert [3, 3] == [exit_code for exit_code, _ in answers]
    assert all("No space left on device" in said for _, said in answers)
    assert "rank 1 on " in answers[0][1]
    assert ["step-00000001", "step-00000003"] == names(tmp_path)


def test_optimizer_built_before_wrapping_is_refused_at_its_first_step(tmp_path: Path) -> None:
    """torch says nothing, and the model never learns."""
    answers = ends(start("stale", tmp_path))

    assert [2, 2] == [exit_code for exit_code, _ in answers]
    assert all("built before wrap_model()" in said for _, said in answers)
