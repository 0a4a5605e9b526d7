"""Log files that grow, followed by what the kernel tells of them and by looking at them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from growing_logs import Following


@pytest.fixture(params=["watched", "polled"])
def following(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Following]:
    following = Following(tmp_path, watched=request.param == "watched")
    yield following
    following.close()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Following]:
    following = Following(tmp_path, watched=True)
    yield following
    following.close()
