"""Every story in this folder, told to the core and compared with what it answered before."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from transcript import tell

STORIES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_core_answers_as_written(path: Path, update: bool) -> None:
    """Each story says at its top why it is subtle."""
    written = path.read_text()
    told = tell(written)
    if update:
        path.write_text(told)

    assert written == told or update


def test_the_stories_are_here() -> None:
    """An empty folder would pass every comparison."""
    assert len(STORIES) >= 24
