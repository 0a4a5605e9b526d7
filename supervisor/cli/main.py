"""The entry of `supervise`: picks what was asked for, and turns errors into one line and a code."""

import os
import sys

from supervisor.cli import parser
from supervisor.errors import ExitCode, SupervisorError


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says and answer with the exit code."""
    try:
        code = _answer(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader left: `supervise --help | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _answer(words: list[str]) -> int:
    try:
        return _dispatch(words)
    except SupervisorError as error:
        print(f"supervise: error: {error}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except SystemExit as leave:  # argparse's own, after --help and --version
        return leave.code if isinstance(leave.code, int) else 0


def _dispatch(words: list[str]) -> int:
    """Each subcommand is imported when asked for: `--help` needs none of them."""
    match words:
        case ["status", *rest]:
            from supervisor.cli import status

            return status.main(rest)
        case ["replay", *rest]:
            from supervisor.cli import replay

            return replay.main(rest)
        case ["signatures", *rest]:
            from supervisor.cli import signatures

            return signatures.main(rest)
        case _:
            return _run(words)


def _run(words: list[str]) -> int:
    namespace, command = parser.parse(words)
    from supervisor.cli import beside, run

    beside.refuse()
    return run.main(run.Options(command=command, **vars(namespace)))
