"""What a batch system grants, and how its programs are asked.

One module a scheduler, each with the same functions: `find(environ)` answers with the Grant of the
job we are in, or None when we are in none; `deadline(job_id, environ)` with when that job ends, or
None when nobody can say; `state(job_id, environ)` with what becomes of it; `requeue(job_id,
environ)` has it queued again, or says why not. The environment comes as a value, and only `ask` and
`demand` start anything.
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
    start: str = "0"  # tells one start of a job that is queued again from the next
    lost: tuple[str, ...] = ()  # of the hosts, those the scheduler has taken out of the job since


@value
class Job:
    """A job of a scheduler's, as it is asked for."""

    scheduler: str
    job_id: str
    start: str = "0"

    @property
    def allocation(self) -> str:
        """What names this job's hosts and time, and no other's."""
        return f"{self.scheduler} {self.job_id} start {self.start}"


@value
class Answer:
    """What a scheduler's program printed, if it came to that."""

    output: str = ""
    refused: str = ""  # why there is no answer; empty: there is


def ask(argv: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """A scheduler program's output; None when it is absent, fails, or takes too long."""
    answer = demand(argv, environ)
    return None if answer.refused else answer.output


def demand(argv: tuple[str, ...], environ: Mapping[str, str]) -> Answer:
    """What a scheduler's program answers, or why it does not, in its own last words."""
    program = shutil.which(argv[0], path=environ.get("PATH"))
    if program is None:
        return Answer(refused=f"there is no {argv[0]} on PATH")
    try:
        process = subprocess.Popen(
            (program, *argv[1:]),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Answer(refused=f"{argv[0]}: {error.strerror}")
    return _answer(process, argv[0])


def _answer(process: subprocess.Popen[bytes], name: str) -> Answer:
    with process:
        try:
            output, errors = process.communicate(timeout=ASK_SECONDS)
        except subprocess.TimeoutExpired:
            return Answer(refused=f"{name} gave no answer within {ASK_SECONDS:.0f} s")
        finally:
            if process.returncode is None:  # its session too: wrappers leave sleeping children
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode == 0:
        return Answer(output=output.decode(errors="replace"))
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    said = lines[-1][:300] if lines else f"{name} left with exit code {process.returncode}"
    return Answer(refused=said)


def same_for_all(numbers: tuple[int, ...]) -> int | None:
    """The number all hosts share, if they do."""
    return numbers[0] if len(set(numbers)) == 1 else None
