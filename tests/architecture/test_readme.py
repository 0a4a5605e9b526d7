"""Commands the README shows are commands that exist."""

import importlib.util
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from supervisor.cli.options import SUBCOMMANDS
from supervisor.cli.parser import parse

REPO = Path(__file__).parents[2]


def _commands(text: str) -> Iterator[list[str]]:
    """The command lines of its shell blocks, continued lines joined."""
    for block in re.findall(r"^```(?:sh|bash|console|shell)\n(.*?)^```", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            yield shlex.split(line.removeprefix("$ "), comments=True)


def _shown() -> list[list[str]]:
    return [
        words for path in REPO.glob("README.md") for words in _commands(path.read_text()) if words
    ]


def test_supervise_lines_of_the_readme_are_understood() -> None:
    for words in _shown():
        if words[0] == "supervise" and words[1] not in {*SUBCOMMANDS, "--help", "--version"}:
            assert parse(words[1:])[1]


def test_modules_the_readme_runs_exist() -> None:
    named = [
        after
        for words in _shown()
        for word, after in pairwise(words)
        if word == "-m" and after.startswith("supervisor")
    ]

    assert [name for name in named if importlib.util.find_spec(name) is None] == []


def test_files_the_readme_runs_exist() -> None:
    named = [words[0] for words in _shown() if words[0].startswith((".ci/", "./", "deploy/"))]

    assert [name for name in named if not (REPO / name).exists()] == []


def test_commands_are_found_in_shell_blocks() -> None:
    text = "a\n```sh\n$ supervise \\\n  -- true  # why\nls\n```\n```text\nno\n```\n"

    assert list(_commands(text)) == [["supervise", "--", "true"], ["ls"]]
