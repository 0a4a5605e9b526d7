"""The entry of `supervise`: picks what was asked for, and turns errors into one line and a code."""

import gc
import os
import sys
import traceback
from typing import TextIO

from supervisor.cli import parser
from supervisor.errors import ExitCode, SupervisorError

# Python looks for garbage each 700 objects: all that imports make stays, and looking took 8 % of
# the start. Little garbage is made afterwards.
_GARBAGE_OBJECTS = 50_000


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says and answer with the exit code."""
    gc.set_threshold(_GARBAGE_OBJECTS)
    _open_closed_streams()
    try:
        return _answer(list(sys.argv[1:] if argv is None else argv))
    except BrokenPipeError:  # the reader left: `supervise --help | head -1`
        return 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)


def _flush(stream: TextIO) -> None:
    """What a full disk or a reader that left does not take must not become Python's exit code."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_closed_streams() -> None:
    """`supervise >&-`: whatever is opened next would become the console."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _answer(words: list[str]) -> int:
    try:
        return _dispatch(words)
    except SupervisorError as error:
        print(f"supervise: error: {error}", file=sys.stderr)
        return int(error.exit_code)
    except BrokenPipeError:
        raise
    except OSError as error:  # a working directory that is gone, a name no file can have
        print(f"supervise: error: {error}", file=sys.stderr)
        return int(ExitCode.PLATFORM)
    except Exception:  # noqa: BLE001  # the one top: a bug must not pass for the command's code
        traceback.print_exc()
        return int(ExitCode.BUG)
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
        case ["explain", *rest]:
            from supervisor.cli import explain

            return explain.main(rest)
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
