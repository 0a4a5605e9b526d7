"""A test run that is told to end leaves nothing behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.timeout(60)]
TESTS = """
import time, pathlib, pytest

@pytest.fixture(scope="session")
def cluster():
    pathlib.Path("up").touch()
    yield
    pathlib.Path("up").unlink()

def test_that_takes_long(cluster):
    time.sleep(40)
"""


def test_run_that_is_terminated_takes_down_its_fixtures(
    tmp_path: Path, wait_until: Callable[[Callable[[], object]], None]
) -> None:
    (tmp_path / "test_long.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "engines.conftest"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until((tmp_path / "up").exists)
        process.send_signal(signal.SIGTERM)
        assert 143 == process.wait(20)
    finally:
        process.kill()
    assert not (tmp_path / "up").exists()
