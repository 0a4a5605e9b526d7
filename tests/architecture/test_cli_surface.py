"""The command line that scripts rely on: a change here is a change of the contract."""

from dataclasses import fields

from supervisor.cli.options import SUBCOMMANDS, build
from supervisor.cli.run import Options
from supervisor.errors import ExitCode, InvalidTransition, PlatformError, UsageError

FLAGS = """
-h --help --version
--nodes --spare-nodes --min-nodes --ppn --hostfile --virtual-hosts --launcher
--launcher-args --cpu-bind --scheduler
--preflight --probe-script --idle-timeout --startup-timeout --grace --signal-before --requeue
--max-relaunches --walltime
--checkpoint-dir --run-dir --rank-logs --console --signatures --no-shim --dry-run --json -q -v
"""


def test_options_are_these_and_no_others() -> None:
    actions = build()._actions

    assert {flag for action in actions for flag in action.option_strings} == set(FLAGS.split())
    assert [action for action in actions if not action.option_strings] == []


def test_choices_are_these() -> None:
    choices = {action.dest: tuple(action.choices) for action in build()._actions if action.choices}

    assert choices == {
        "scheduler": ("auto", "none", "pbs", "slurm"),
        "console": ("all", "first", "none"),
    }


def test_every_option_reaches_the_run() -> None:
    parsed = {action.dest for action in build()._actions} - {"help", "version"}

    assert {field.name for field in fields(Options)} == parsed | {"command"}


def test_subcommands_are_these() -> None:
    assert set(SUBCOMMANDS) == {"status", "explain", "replay", "signatures"}


def test_exit_codes_are_these() -> None:
    """Job scripts and systemd units act on the numbers."""
    assert {code.name: int(code) for code in ExitCode} == {
        "SUCCEEDED": 0,
        "USAGE": 2,
        "PLATFORM": 3,
        "BUG": 70,
        "REQUEUE": 75,
        "NO_PROGRESS": 93,
        "HANG": 124,
        "INTERRUPTED": 130,
        "TERMINATED": 143,
    }


def test_errors_end_with_the_code_of_whose_fault_they_are() -> None:
    codes = [error.exit_code for error in (UsageError, PlatformError, InvalidTransition)]

    assert codes == [ExitCode.USAGE, ExitCode.PLATFORM, ExitCode.BUG]
