"""Exceptions by whose fault, and the exit codes that scripts and systemd act on.

    SupervisorError                anything this package raises on purpose
      UsageError          exit 2   settings, files, signatures; the message names the place
      PlatformError       exit 3   the place: no launcher, no scheduler, no writable run folder
      InvalidTransition   exit 70  our own bug; carries the story that led there

A training that fails is data, never an exception.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """How `supervise` ends when the command's own exit code does not decide it."""

    SUCCEEDED = 0
    USAGE = 2  # argparse's own
    PLATFORM = 3
    BUG = 70  # EX_SOFTWARE of sysexits.h
    REQUEUE = 75  # EX_TEMPFAIL: gave up where another allocation may help (spares, time)
    NO_PROGRESS = 93  # same meaning as NVRx gives it: do not start this again
    HANG = 124  # what timeout(1) answers
    INTERRUPTED = 130  # 128 + SIGINT
    TERMINATED = 143  # 128 + SIGTERM, and walltime


class SupervisorError(Exception):
    """Base of everything this package raises on purpose."""

    exit_code = ExitCode.BUG


class UsageError(SupervisorError):
    """The user asked for something that cannot be; the message says what, where, and what to do."""

    exit_code = ExitCode.USAGE


class PlatformError(SupervisorError):
    """The machine lacks something a run needs."""

    exit_code = ExitCode.PLATFORM


class InvalidTransition(SupervisorError):
    """The machine was asked for a move its table does not have."""

    exit_code = ExitCode.BUG
