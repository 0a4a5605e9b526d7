"""Our words and the command's are told apart, and every slip is answered with the right line."""

import argparse

import pytest

from supervisor.cli.options import FLAGS, build
from supervisor.cli.parser import parse
from supervisor.cli.values import duration, whole
from supervisor.core.settings import Settings
from supervisor.errors import ExitCode, UsageError


def _said(line: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    return str(caught.value)


def test_everything_after_the_first_separator_is_the_commands() -> None:
    """Launchers that guessed have eaten `--timeout`, `-n` and `--retries` of the training."""
    line = "--nodes 2 -- python train.py --timeout 30 -n 2 --nodes 9 --help -- x"

    options, command = parse(line.split())

    assert tuple(line.split()[3:]) == command
    assert options.nodes == 2


def test_words_of_the_command_are_untouched() -> None:
    words = ["--", "sh", "-c", "echo  'a b'\n", "", "--", "\udcff"]

    assert parse(words)[1] == tuple(words[1:])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "no command: write `supervise -- python train.py`"),
        ("--", "no command: write `supervise -- python train.py`"),
        ("--nodes=2 -q", "no command: write `supervise --nodes=2 -q -- python train.py`"),
        (
            "--spare-nodes 2 python train.py --lr 3",
            "no command: write `supervise --spare-nodes 2 -- python train.py --lr 3`",
        ),
        ("-qv t.py -- -x", "no command: write `supervise -qv -- t.py -- -x`"),
        ("t.py --help", "no command: write `supervise -- t.py --help`"),
        ("--spare-node 2 -- true", "unknown option --spare-node: did you mean --spare-nodes?"),
        (
            "--lr 3 --nodes 2 -- python t.py",
            "unknown option --lr: is it the command's? "
            "Then write `supervise --nodes 2 -- python t.py --lr 3`",
        ),
        ("--bogus t.py", "unknown option --bogus; see `supervise --help`"),
    ],
)
def test_wrong_line_is_answered_with_the_right_one(line: str, expected: str) -> None:
    assert _said(line) == expected


@pytest.mark.parametrize("flag", ["--node", "--spare", "--virtual", "--dry", "--idle", "--max"])
def test_options_cannot_be_abbreviated(flag: str) -> None:
    assert "unknown option" in _said(f"{flag} 2 -- true")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--nodes 0 -- true", "--nodes: 0: must be at least 1"),
        ("--nodes -3 -- true", "--nodes: -3: must be at least 1"),
        ("--nodes two -- true", "--nodes: 'two' is no whole number"),
        ("--nodes 2.5 -- true", "--nodes: '2.5' is no whole number"),
        ("--nodes -- true", "--nodes: expected one argument"),
        ("--spare-nodes most -- true", "--spare-nodes: 'most' is no whole number"),
        ("--spare-nodes -1 -- true", "--spare-nodes: -1: must be at least 0"),
        ("--idle-timeout 5x -- true", "--idle-timeout: '5x' is no duration"),
        ("--idle-timeout 0 -- true", "--idle-timeout: 0: must be more than 0"),
        ("--max-relaunches -1 -- true", "--max-relaunches: -1: must be at least 0"),
        ("--console some -- true", "--console: invalid choice: 'some'"),
        ("--scheduler lsf -- true", "--scheduler: invalid choice: 'lsf'"),
        ("--preflight=yes -- true", "--preflight: ignored explicit argument 'yes'"),
    ],
)
def test_wrong_value_names_its_option(line: str, words: str) -> None:
    assert words in _said(line)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("1.5s", 1.5),
        ("30m", 1800),
        ("2h", 7200),
        ("1d", 86400),
        ("30:00", 1800),
        ("1:30:00", 5400),
        ("100:00:00", 360_000),
        ("0", 0),
    ],
)
def test_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "-5", "5 m", "1:2", "1:2:3:4", "1e3", "nan", "inf", "5M"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no duration"):
        duration(text)


@pytest.mark.parametrize("text", ["", "1_000", "\u0663", "9" * 5000])
def test_number_is_plain_digits(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no whole number"):
        whole(0)(text)


def test_defaults_are_those_of_the_settings() -> None:
    options, settings = parse(["--", "true"])[0], Settings(ranks_per_host=1)

    for name in ("idle_timeout", "startup_timeout", "grace", "max_relaunches", "preflight"):
        assert getattr(settings, name) == getattr(options, name)


def test_help_explains_every_option_and_every_exit_code() -> None:
    text = build().format_help()

    assert all(keywords["help"] for keywords in FLAGS.values())
    codes = text[text.index("exit codes:") :].replace(",", " ").split()
    assert all(str(int(code)) in codes for code in ExitCode)
