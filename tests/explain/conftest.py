"""How the tests of this folder ask."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from asking import Asking


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str]) -> Asking:
    """Ask `supervise explain` about a log."""
    return Asking(capsys)
