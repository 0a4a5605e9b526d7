"""Which files a pattern covers: what glob says of a whole tree, one folder at a time."""

import glob
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.adapters.log_pattern import LogPattern, Positions

NAMES = ("a", "a.log", "b.log", ".hidden.log")
PATTERNS = (
    "*.log",
    "a/*.log",
    "*/a.log",
    "**/*.log",
    "**",
    "a/**/b.log",
    "**/a/*.log",
    "*/**/a/[ab].log",
    "**/**/a.log",
    ".*",
    "a/a/a",
    "?/b.log",
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three floors of folders a, b and .h, with the same files in each."""
    root = tmp_path_factory.mktemp("tree")
    for depth in range(4):
        for folders in itertools.product(("f", "a", ".h"), repeat=depth):
            folder = root.joinpath(*folders)
            folder.mkdir(exist_ok=True)
            for name in NAMES[1:] + (("a",) if depth == 3 else ()):
                (folder / name).touch()
    return root


def covered(pattern: LogPattern, folder: str, positions: Positions) -> Iterator[str]:
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from covered(pattern, entry.path, pattern.inside(positions, entry.name))
        elif pattern.covers(positions, entry.name):
            yield entry.path


@pytest.mark.parametrize("text", PATTERNS)
def test_a_pattern_covers_the_files_that_glob_finds(tree: Path, text: str) -> None:
    """The option's value is a pattern as the shell and glob know it."""
    pattern = LogPattern(str(tree / text))
    found = glob.glob(str(tree / text), recursive=True)
    expected = {path for path in found if not os.path.isdir(path)}

    assert expected == set(covered(pattern, pattern.base, pattern.begin))


def test_folders_that_lead_nowhere_have_no_position(tree: Path) -> None:
    """So that they are neither watched nor read."""
    pattern = LogPattern(str(tree / "a/*/x*.log"))

    assert not pattern.inside(pattern.inside(pattern.begin, "f"), "xyz")
    assert not pattern.may_hold_files(pattern.begin)


def test_the_base_is_the_deepest_folder_that_is_there(tree: Path) -> None:
    """The command may make its log folder only later."""
    pattern = LogPattern(str(tree / "later/deeper/*.log"))
    later = pattern.inside(pattern.begin, "later")

    assert str(tree) == pattern.base
    assert pattern.covers(pattern.inside(later, "deeper"), "x.log")
    assert not pattern.inside(pattern.begin, "other")


def test_two_stars_follow_no_links(tree: Path) -> None:
    """A link to a folder above would be a tree without end."""
    pattern = LogPattern(str(tree / "**/*.log"))

    assert not pattern.inside(pattern.begin, "a", is_link=True)
