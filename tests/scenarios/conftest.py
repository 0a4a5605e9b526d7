"""The switch that writes down anew what the core answers to every story."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update: commit the difference only if you understand it."""
    parser.addoption("--update", action="store_true", help="write the transcripts anew")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether to write instead of compare."""
    return bool(request.config.getoption("--update", default=False))
