"""Step and phase through a real slot, from a real process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from supervisor import wire

REPO = Path(__file__).parents[2]


def run(program: str, **environment: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )


def make_slot(folder: Path) -> Path:
    path = folder / "slot"
    wire.create_slot(str(path))
    return path


def read(path: Path) -> tuple[int | None, str]:
    state = wire.read(wire.open_slot(str(path), writable=False))
    assert state is not None
    return state.step, state.phase


def test_import_loads_neither_torch_nor_the_supervisors_parts() -> None:
    """Environments load from a shared file system: ten thousand ranks feel each module."""
    program = "import sys; from supervisor import agent; agent.step(1); print(*sys.modules)"

    loaded = set(run(program).stdout.split())

    unwanted = {"torch", "numpy", "structlog", "yaml", "supervisor.core", "supervisor.adapters"}
    assert (set(), True) == (loaded & unwanted, "supervisor.agent.progress" in loaded)


def test_step_and_phase_reach_the_slot(tmp_path: Path) -> None:
    slot = make_slot(tmp_path)

    run("from supervisor import agent; agent.phase('eval'); agent.step(12)", SUPERVISE_SLOT=slot)
    after_step = read(slot)
    run("from supervisor import agent; agent.phase('eval')", SUPERVISE_SLOT=slot)

    assert ((12, "step"), (None, "eval")) == (after_step, read(slot))


def test_phase_of_a_block_gives_way_to_the_one_before(tmp_path: Path) -> None:
    slot = make_slot(tmp_path)
    program = """
from supervisor import agent, wire
from supervisor.agent import progress
agent.step(7)
with progress.during(wire.RankPhase.CHECKPOINT):
    print(progress._slot.phase == wire.PHASES.index('checkpoint'))
"""

    printed = run(program, SUPERVISE_SLOT=slot).stdout

    assert ("True\n", (7, "step")) == (printed, read(slot))


@pytest.mark.parametrize("number", ["'x'", "None", "-5", "1 << 70", "float('inf')", "float('nan')"])
def test_nonsense_is_no_step_and_no_error(tmp_path: Path, number: str) -> None:
    """A mistake in a call that only informs must not end a training."""
    slot = make_slot(tmp_path)
    program = f"from supervisor import agent; agent.step(3); agent.step({number}); agent.phase(8)"

    ended = run(program, SUPERVISE_SLOT=slot)

    assert (0, "", (3, "step")) == (ended.returncode, ended.stderr, read(slot))


@pytest.mark.parametrize("content", [None, b"", b"short"])
def test_slot_that_is_none_changes_nothing(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "slot"
    if content is not None:
        path.write_bytes(content)

    ended = run("from supervisor import agent; agent.step(3)", SUPERVISE_SLOT=path)

    assert (0, "") == (ended.returncode, ended.stderr)


def test_requests_of_the_supervisor_survive_the_agents_stores(tmp_path: Path) -> None:
    slot = make_slot(tmp_path)
    memory = wire.open_slot(str(slot), writable=True)
    wire.ask(memory, wire.Request.CHECKPOINT, 5)

    run("from supervisor import agent; agent.step(3); agent.phase('exit')", SUPERVISE_SLOT=slot)

    assert (wire.Request.CHECKPOINT, 5) == wire.asked(memory)


def test_stacks_are_written_on_request_to_the_ranks_own_file(tmp_path: Path) -> None:
    slot = make_slot(tmp_path)
    program = """
import time
from supervisor import agent
agent.register_stacks(7)
agent.step(1)
def lost_in_here():
    while True:
        time.sleep(60)
lost_in_here()
"""
    places = {"SUPERVISE_SLOT": str(slot), "SUPERVISE_RUN_DIR": str(tmp_path)}
    training = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=REPO,
        env={**os.environ, **places, "SUPERVISE_ATTEMPT": "2"},
    )
    try:
        stacks = _stacks_after_request(training, slot, tmp_path / "attempts/002/stacks/00007.txt")
    finally:
        training.kill()
        training.wait()

    assert "lost_in_here" in stacks


def _stacks_after_request(training: subprocess.Popen[bytes], slot: Path, file: Path) -> str:
    memory = wire.open_slot(str(slot), writable=False)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        state = wire.read(memory)
        if state and state.step == 1:
            assert (wire.SLOT_FLAG_STACKS, training.pid) == (state.flags, state.pid)
            training.send_signal(signal.SIGUSR1)
        if file.exists() and "lost_in_here" in (text := file.read_text()):
            return text
        time.sleep(0.02)
    return ""
