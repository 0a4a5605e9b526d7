"""The whole path with a real training: FSDP2 on gloo under a real launcher loses a rank or a host
and finishes.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Ended, Supervise

pytestmark = [pytest.mark.engine, pytest.mark.torch, pytest.mark.timeout(240)]

EXAMPLE = ["--", sys.executable, "-m", "supervisor.examples.fsdp_tp", "--train-iters", "60"]
EXAMPLE += ["--save-interval", "10", "--ckpt-dir", "ckpt"]


@pytest.fixture(params=["local", "mpich"])
def launcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def train(supervise: Supervise, launcher: str, name: str, *fault: str) -> Ended:
    """Two active virtual hosts and a spare, one rank each; its own folders per name."""
    words = ["--launcher", launcher, "--virtual-hosts", "3", "--spare-nodes", "1"]
    words += ["--checkpoint-dir", f"ckpt-{name}", "--run-dir", f"run-{name}", "--grace", "5"]
    example = [f"ckpt-{name}" if word == "ckpt" else word for word in EXAMPLE]
    return supervise(*words, *example, "--loss-file", f"loss-{name}.jsonl", *fault, timeout=200)


def losses(folder: Path, name: str) -> list[tuple[int, float]]:
    lines = (folder / f"loss-{name}.jsonl").read_text().splitlines()
    return [(entry["step"], entry["loss"]) for entry in map(json.loads, lines)]


def test_training_loses_a_rank_then_a_host_and_the_loss_curve_does_not_notice(
    supervise: Supervise, launcher: str
) -> None:
    """From each resume point on, every loss equals that of an undisturbed run, bit for bit."""
    undisturbed = train(supervise, launcher, "whole")
    expected = dict(losses(supervise.folder, "whole"))
    kill = ["--fault", "sigkill", "--fault-rank", "1", "--fault-step", "30"]
    killed = train(supervise, launcher, "killed", *kill)
    lose = ["--fault", "host", "--fault-rank", "1", "--fault-step", "30"]
    lost = train(supervise, launcher, "lost", *lose)

    for ended in (undisturbed, killed, lost):
        assert ended.exit_code == 0, ended.stderr
    assert sorted(expected) == list(range(1, 61))
    assert expected[60] < expected[1]
    for name in ("killed", "lost"):
        curve = losses(supervise.folder, name)
        resumed = [step for (before, _), (step, _) in pairwise(curve) if step <= before]
        assert resumed in ([21], [31])
        assert {step: expected[step] for step, _ in curve} == dict(curve)
    assert (lost.run_dir / "retired.txt").read_text().startswith("vhost2\t1\tnode_lost\t")
    assert not (killed.run_dir / "retired.txt").exists()
