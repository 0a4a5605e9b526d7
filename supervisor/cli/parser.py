"""How the words of a run's command line are told apart: options, `--`, the command.

What stands after the first `--` belongs to the command, whatever it looks like. Without it there
is no guessing: launchers that guess have eaten their users' own `--time` and `-n`. The error
shows the line as it should have been.
"""

import argparse
import re
import shlex
from typing import NoReturn

from supervisor.cli.options import BARE, FLAGS, VALUED, build
from supervisor.errors import UsageError

SEPARATOR = "--"


def parse(words: list[str]) -> tuple[argparse.Namespace, tuple[str, ...]]:
    """The options and the command; UsageError shows the line as it should have been."""
    end = words.index(SEPARATOR) if SEPARATOR in words else len(words)
    ours, command = words[:end], words[end + 1 :]
    known = _count_ours(ours)
    if known < len(ours):
        _refuse_foreign(words, end, known)
    options = parse_with(build(), ours)
    if not command:
        raise UsageError(f"no command: write `{_line(ours, ['python', 'train.py'])}`")
    return options, tuple(command)


def parse_with(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """What argparse makes of the words, its complaints as ours."""
    try:
        options, rest = parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise UsageError(f"{error}; see `{parser.prog} --help`") from error
    if rest:
        raise UsageError(f"{rest[0]!r} is not understood; see `{parser.prog} --help`")
    return options


def _count_ours(words: list[str]) -> int:
    """How many of the words, from the first, are options of ours and their values."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in VALUED:
            at += 2
        elif word in BARE or word.split("=", 1)[0] in FLAGS or re.fullmatch("-[qv]+", word):
            at += 1
        else:
            return at
    return len(words)


def _refuse_foreign(words: list[str], end: int, known: int) -> NoReturn:
    """Words before `--` that are not ours are the command's, or a slip of the pen."""
    word, ours, command = words[known], words[:known], words[end + 1 :]
    if not word.startswith("-"):
        raise UsageError(f"no command: write `{_line(ours, words[known:])}`")
    if word.startswith("--") and (like := _like(word.split("=", 1)[0])):
        raise UsageError(f"unknown option {word}: did you mean {like}?")
    if not command:
        raise UsageError(f"unknown option {word}; see `supervise --help`")
    moved = known + 1
    while moved < end and words[moved].split("=", 1)[0] not in FLAGS:
        moved += 1
    line = _line([*ours, *words[moved:end]], [*command, *words[known:moved]])
    raise UsageError(f"unknown option {word}: is it the command's? Then write `{line}`")


def _like(flag: str) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(flag, FLAGS, n=1, cutoff=0.8)), None)


def _line(ours: list[str], command: list[str]) -> str:
    return shlex.join(["supervise", *ours, SEPARATOR, *command])
