"""Virtual hosts for tests, and waiting for a condition with a deadline."""

import fcntl
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from supervisor import linux, virtual_host

HOSTS = ("vhost1", "vhost2", "vhost3")


def pytest_configure() -> None:
    """Tests that are ended by SIGTERM, as `timeout` does, take down the Slurm they started."""
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("ended by SIGTERM", returncode=143))


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRun:
    """A run folder with three virtual hosts, and a lock held as a supervisor holds it."""

    run_id: str
    run_dir: Path
    hosts: tuple[str, ...] = HOSTS

    def on(self, host: str) -> list[int]:
        """What lives on a host, its daemon included."""
        return linux.processes_with({"SUPERVISE_RUN_ID": self.run_id, "SUPERVISE_HOST": host})


@pytest.fixture
def wait_until() -> Callable[[Callable[[], object]], None]:
    """Poll a condition; fail when it has not come true after a generous deadline."""

    def wait(condition: Callable[[], object], seconds: float = 15.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true"
            time.sleep(0.01)

    return wait


@pytest.fixture
def virtual(tmp_path: Path) -> Iterator[VirtualRun]:
    """Three virtual hosts that are up; nothing of them is left afterwards."""
    run = VirtualRun(run_id=f"test-{uuid4().hex}", run_dir=tmp_path / "run folder")
    run.run_dir.mkdir()
    with open(run.run_dir / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        virtual_host.start_virtual_hosts(run.run_dir, HOSTS, {"SUPERVISE_RUN_ID": run.run_id})
        yield run
        for host in HOSTS:
            virtual_host.kill_virtual_host(run.run_id, host)
