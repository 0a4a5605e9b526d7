"""Whatever a rank leaves behind, however it hides, is ended: one real process a kind."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import supervisor
from supervisor import linux, wire
from supervisor.leftovers import leftovers_of, reap

pytestmark = [pytest.mark.engine, pytest.mark.timeout(60)]

_SLEEP = "import time; time.sleep(300)"
_DEAF = f"import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; {_SLEEP}"
_DETACHED = (
    f"import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); {_SLEEP}"
)
_RENAMED = f"open('/proc/self/comm', 'w').write('kworker'); {_SLEEP}"


_started: "list[subprocess.Popen[bytes]]" = []


@pytest.fixture
def run_id() -> Iterator[str]:
    its = uuid.uuid4().hex[:12]
    yield its
    reap(its, 99, None)
    while _started:
        process = _started.pop()
        process.kill()
        process.wait()


def _start(run_id: str, code: str, attempt: int = 1, **more: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, wire.RUN_ID: run_id, wire.ATTEMPT: str(attempt), **more}
    argv = [sys.executable, "-S", "-I", "-c", code]
    _started.append(subprocess.Popen(argv, env=environment, start_new_session=True))
    return _started[-1]


def _wait_for(run_id: str, count: int) -> list[int]:
    deadline = time.monotonic() + 20
    while len(left := leftovers_of(run_id, 99, None)) != count and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


@pytest.mark.parametrize(
    "code",
    [_SLEEP, _DEAF, _DETACHED, _RENAMED],
    ids=["sleeps", "ignores signals", "detached itself", "renamed itself"],
)
def test_nothing_is_left_of_a_process_that(run_id: str, code: str) -> None:
    process = _start(run_id, code)
    if code == _DETACHED:
        process.wait()
    assert 1 == len(_wait_for(run_id, 1))
    assert (1, []) == reap(run_id, 1, None)
    assert [] == leftovers_of(run_id, 99, None)


def test_a_child_without_our_environment_is_found_by_its_session(run_id: str) -> None:
    code = (
        "import os, time\n"
        "if not os.fork():\n"
        "    os.fork() and os._exit(0)\n"
        "    os.execve('/bin/sleep', ['sleep', '300'], {})\n"
        "os.wait(); time.sleep(300)"
    )
    _start(run_id, code)
    left = _wait_for(run_id, 2)
    assert {"", run_id} == {linux.environment(pid).get(wire.RUN_ID, "") for pid in left}
    assert (2, []) == reap(run_id, 1, None)


def test_a_later_attempt_another_host_and_the_supervision_are_left_alone(run_id: str) -> None:
    later = _start(run_id, _SLEEP, attempt=2)
    elsewhere = _start(run_id, _SLEEP, **{wire.HOST: "other"})
    keeper = _start(run_id, _SLEEP, **{wire.ROLE: "keeper"})
    mine = _start(run_id, _SLEEP, **{wire.HOST: "own"})
    _wait_for(run_id, 3)
    assert (1, []) == reap(run_id, 1, "own")
    assert -signal.SIGKILL == mine.wait()
    assert [None] * 3 == [each.poll() for each in (later, elsewhere, keeper)]


def test_ranks_of_several_slurm_nodes_on_one_machine_are_told_apart(run_id: str) -> None:
    mine = _start(run_id, _SLEEP, SLURMD_NODENAME="node1")
    other = _start(run_id, _SLEEP, SLURMD_NODENAME="node2")
    _wait_for(run_id, 2)
    assert (1, []) == reap(run_id, 1, "node1")
    assert -signal.SIGKILL == mine.wait()
    assert other.poll() is None


def test_a_daemon_without_our_environment_is_found_when_its_shim_was_killed(run_id: str) -> None:
    daemon = "setsid -f env -i sleep 300 >/dev/null 2>&1; exec sleep 300"
    shim = [sys.executable, "-S", "-I", str(Path(supervisor.__file__).with_name("shim.py"))]
    ours = {wire.RUN_ID: run_id, wire.ATTEMPT: "1", wire.LAUNCHER: "local"}
    place = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    process = subprocess.Popen(
        [*shim, "sh", "-c", daemon],
        env={**os.environ, **ours, **place, wire.BEAT_SECONDS: "0.1"},
        stdout=subprocess.DEVNULL,
    )
    _started.append(process)
    note = Path(f"/dev/shm/supervise-{os.getuid()}-{run_id}-1-0{wire.ADOPTED}")
    deadline = time.monotonic() + 20
    while not note.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert 1 == len(_wait_for(run_id, 1))
    assert (1, []) == reap(run_id, 1, None)
    assert not note.exists()
