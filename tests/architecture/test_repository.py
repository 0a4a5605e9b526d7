"""What lies in the repository: few names at the top, no path of anyone's machine, clean tools."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
TOP = {
    "pyproject.toml",
    "supervisor",
    "signatures",
    "tests",
    "deploy",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
}
# Homes of people and of build machines; samples of logs say /home/user or /home/demo.
MACHINE = re.compile(rb"/(?:root|work|Users)/|/home/(?!(?:user|demo)\b)\w+/")


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True, timeout=60
    ).stdout
    return [Path(name) for name in listed.decode().split("\0") if name]


def test_top_level_holds_only_what_belongs_there() -> None:
    names = {path.parts[0] for path in _tracked()}

    assert {name for name in names if not name.startswith(".")} - TOP == set()


def test_no_file_names_a_path_of_a_machine() -> None:
    found = [
        f"{path}: {hit[0].decode()}"
        for path in _tracked()
        if (REPO / path).is_file() and (hit := MACHINE.search((REPO / path).read_bytes()))
    ]

    assert found == []


def test_source_is_ascii() -> None:
    """Logs and terminals of clusters mangle the rest; data of tests may hold what it likes."""
    odd = [
        str(path)
        for path in _tracked()
        if path.parts[0] == "supervisor" and path.suffix == ".py" and (REPO / path).exists()
        if not (REPO / path).read_bytes().isascii()
    ]

    assert odd == []


@pytest.mark.parametrize(
    "words",
    [
        ("ruff", "check"),
        ("ruff", "format", "--check"),
        # A cache of its own: one that two runs write at once makes mypy overlook whole modules.
        ("mypy", "--cache-dir", ".mypy_cache/tests"),
    ],
    ids=["ruff-check", "ruff-format", "mypy"],
)
@pytest.mark.timeout(120)  # mypy without a cache reads the types of torch first
def test_tool_has_nothing_to_say(words: tuple[str, ...]) -> None:
    program, *arguments = words
    ended = subprocess.run(
        [Path(sys.executable).parent / program, *arguments],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=110,
    )

    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr
