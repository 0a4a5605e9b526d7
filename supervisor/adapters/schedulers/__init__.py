"""What a batch system grants, and how its programs are asked.

One module a scheduler, each with the same two functions: `find(environ)` answers with the Grant of
the job we are in, or None when we are in none; `deadline(job_id, environ)` answers when that job
ends, or None when nobody can say. The environment comes as a value, and only `ask` starts anything.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping

from supervisor.core.value import value

ASK_SECONDS = 5.0  # qstat and squeue hang for minutes when their server is overloaded


@value
class Grant:
    """What the scheduler granted to the job we are in."""

    hosts: tuple[str, ...]  # as the scheduler spells them, one entry a host
    source: str  # where that was read, in words
    job_id: str | None = None
    ranks_per_host: int | None = None  # None: it says nothing, or not the same for all


def ask(argv: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """A scheduler program's output; None when it is absent, fails, or takes too long."""
    program = shutil.which(argv[0], path=environ.get("PATH"))
    if program is None:
        return None
    try:
        process = subprocess.Popen(
            (program, *argv[1:]),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    return _answer(process)


def _answer(process: subprocess.Popen[bytes]) -> str | None:
    with process:
        try:
            output, _ = process.communicate(timeout=ASK_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.returncode is None:  # its session too: wrappers leave sleeping children
                os.killpg(process.pid, signal.SIGKILL)
    return output.decode(errors="replace") if process.returncode == 0 else None


def same_for_all(numbers: tuple[int, ...]) -> int | None:
    """The number all hosts share, if they do."""
    return numbers[0] if len(set(numbers)) == 1 else None
