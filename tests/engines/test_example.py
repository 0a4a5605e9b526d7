"""The example trains, dies, resumes, and its losses are those of an undisturbed training."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
SECONDS = 140

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]


def train(world_size: int, *options: str | Path, **environment: str) -> list[int]:
    """Exit codes of all ranks; world size 0 is one process without any launcher."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    command = [sys.executable, "-m", "supervisor.examples.fsdp_tp", *map(str, options)]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SUPERVISE_")}
    ranks = []
    for rank in range(max(world_size, 1)):
        place = {**meeting, "WORLD_SIZE": str(world_size), "LOCAL_WORLD_SIZE": str(world_size)}
        place |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        full = {**clean, "PYTHONPATH": str(REPO), **(place if world_size else {}), **environment}
        ranks.append(subprocess.Popen(command, cwd=REPO, env=full, stderr=subprocess.PIPE))
    try:
        for process in ranks:
            process.communicate(timeout=SECONDS)
    finally:
        for process in ranks:
            process.kill()
    return [process.returncode for process in ranks]


def losses(path: Path) -> dict[int, float]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines}


def test_training_that_lost_a_rank_goes_on_where_it_was(tmp_path: Path) -> None:
    """Model, optimizer, generators and data position: one that is off by a bit bends the curve."""
    common = ("--train-iters", "16", "--save-interval", "4")
    calm, torn, resumed = (tmp_path / name for name in ("calm", "torn", "resumed"))
    saved = ("--ckpt-dir", tmp_path / "checkpoints")
    strike = ("--fault", "sigkill", "--fault-rank", "1", "--fault-step", "10")

    assert train(2, *common, "--loss-file", calm) == [0, 0]
    first, second = train(2, *common, *saved, "--loss-file", torn, *strike)
    assert train(2, *common, *saved, "--loss-file", resumed) == [0, 0]

    expected = losses(calm)
    assert (True, -signal.SIGKILL) == (first != 0, second)
    assert {step: expected[step] for step in range(1, 10)} == losses(torn)
    assert {step: expected[step] for step in range(9, 17)} == losses(resumed)
    assert expected[16] < expected[1] - 1


def test_tensor_parallel_training_goes_on_where_it_was(tmp_path: Path) -> None:
    """Two data-parallel groups of two tensor-parallel ranks, resumed as a supervisor would."""
    common = ("--tp", "2", "--train-iters", "8", "--save-interval", "4", "--layers", "1")
    calm, resumed = tmp_path / "calm", tmp_path / "resumed"
    folder = tmp_path / "checkpoints"

    assert train(4, *common, "--ckpt-dir", folder, "--loss-file", calm) == [0] * 4
    choice = {"SUPERVISE_RESUME_FROM": str(folder / "step-00000004"), "SUPERVISE_ATTEMPT": "2"}
    codes = train(4, *common, "--ckpt-dir", folder, "--loss-file", resumed, **choice)

    expected = losses(calm)
    assert [0] * 4 == codes
    assert {step: expected[step] for step in range(5, 9)} == losses(resumed)


def test_one_process_without_a_launcher_trains_and_resumes(tmp_path: Path) -> None:
    curve = tmp_path / "losses"
    options = ("--save-interval", "4", "--ckpt-dir", tmp_path / "c", "--loss-file", curve)

    assert train(0, "--train-iters", "4", *options) == [0]
    assert train(0, "--train-iters", "6", *options) == [0]

    assert [1, 2, 3, 4, 5, 6] == [
        json.loads(line)["step"] for line in curve.read_text().splitlines()
    ]


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        (("--tp", "3"), {}, "fsdp_tp: 4 heads cannot be split over --tp 3"),
        (("--dim", "40"), {}, "fsdp_tp: --dim 40 is not a multiple of the head size 16"),
        (("--save-interval", "0"), {}, "fsdp_tp: --save-interval must be at least 1"),
        ((), {"RANK": "1"}, "fsdp_tp: WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT not set"),
    ],
)
def test_mistakes_are_one_line(
    options: tuple[str, ...], environment: dict[str, str], message: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "supervisor.examples.fsdp_tp", *options],
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO), **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert 2 == ended.returncode
    assert [message] == [line[: len(message)] for line in ended.stderr.splitlines()]
