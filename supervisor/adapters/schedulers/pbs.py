"""PBS (OpenPBS, PBS Professional): hosts from $PBS_NODEFILE, the deadline from qstat.

The node file is enough: inside a job PATH is often minimal and holds no qstat, so qstat is asked
for the deadline only. The file has one line per MPI rank, hence hosts are its unique lines in
order and their counts are the ranks per host. A job's environment that was carried elsewhere
(ssh, a saved shell, tmux) is an error that says so: taking this machine instead, without a word,
would run a training of 4,096 ranks on a login host.

While a job is ended its state stays R for walltime and qdel alike; only the substate tells more
(src/include/job.h of OpenPBS), and mostly it says running still: then the deadline must decide.
qrerun is for operators at many sites; it is asked all the same, and what it answers is passed on.
"""

import re
import socket
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from supervisor.adapters.schedulers import Grant, ask, demand, same_for_all
from supervisor.core.notice import JobState
from supervisor.errors import UsageError
from supervisor.wire import canonical_host

_RERUN = range(60, 64)  # substates of a job on its way back to the queue
_BEING_DELETED = (54, 59, 91)
_ESCAPE = "or pass --hostfile FILE or --scheduler none"


def find(environ: Mapping[str, str]) -> Grant | None:
    """The job this process runs in, by $PBS_NODEFILE; UsageError when the variables are stale."""
    job_id = environ.get("PBS_JOBID") or None
    path = environ.get("PBS_NODEFILE")
    if not path:
        if job_id is None:
            return None
        raise UsageError(f"PBS_JOBID is {job_id} but PBS_NODEFILE is not set: set it, {_ESCAPE}")
    lines = _lines(Path(path), job_id)
    _refuse_stale(lines, path, job_id)
    counts = Counter(canonical_host(line) for line in lines)
    hosts = {canonical_host(line): line for line in reversed(lines)}
    return Grant(
        hosts=tuple(hosts[name] for name in counts),
        source=f"PBS_NODEFILE of {_job(job_id)}",
        job_id=job_id,
        ranks_per_host=same_for_all(tuple(counts.values())),
        start=_start(environ),
    )


def deadline(job_id: str, environ: Mapping[str, str]) -> float | None:
    """When the walltime of a job ends, by qstat: its start time plus its limit."""
    text = ask(("qstat", "-f", job_id), environ)
    if text is None:
        return None
    started, limit = _field(text, "stime"), _field(text, "Resource_List.walltime")
    if started is None or limit is None or not re.fullmatch(r"\d+(:\d+){0,3}", limit):
        return None
    try:
        begin = time.mktime(time.strptime(started, "%a %b %d %H:%M:%S %Y"))
    except (ValueError, OverflowError):
        return None
    return begin + _seconds(limit)


def state(job_id: str, environ: Mapping[str, str]) -> JobState:
    """What becomes of the job."""
    text = ask(("qstat", "-f", job_id), environ) or ""
    letter, substate = _field(text, "job_state"), _field(text, "substate") or ""
    number = int(substate) if re.fullmatch(r"[0-9]{1,3}", substate) else None
    if "preempt" in (_field(text, "comment") or "").lower():
        return JobState.PREEMPTED
    if letter == "Q" or number in _RERUN:
        return JobState.REQUEUED
    if number in _BEING_DELETED:
        return JobState.CANCELLED
    return JobState.RUNNING if letter == "R" else JobState.UNKNOWN


def requeue(job_id: str, environ: Mapping[str, str]) -> str:
    """Have the job queued again, which ends it here; answers why not."""
    text = ask(("qstat", "-f", job_id), environ) or ""
    if _field(text, "Rerunable") == "False":
        return f"job {job_id} may not be run again: submit it with qsub -r y"
    return demand(("qrerun", job_id), environ).refused


def _start(environ: Mapping[str, str]) -> str:
    """PBS gives each start of a job another cookie, which is nobody else's business."""
    return f"{zlib.crc32(environ.get('PBS_JOBCOOKIE', '').encode()):08x}"


def _lines(path: Path, job_id: str | None) -> list[str]:
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise UsageError(
            f"PBS_NODEFILE names {path}, which cannot be read ({error.strerror}): are the variables"
            f" of {_job(job_id)} stale? Unset PBS_NODEFILE and PBS_JOBID, {_ESCAPE}"
        ) from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise UsageError(f"PBS_NODEFILE names {path}, which is empty: {_ESCAPE[3:]}")
    return lines


def _refuse_stale(lines: list[str], path: str, job_id: str | None) -> None:
    here = socket.gethostname()
    names = {canonical_host(line) for line in lines}
    if canonical_host(here) in names or any(_is_address(name) for name in names):
        return
    raise UsageError(
        f"this host, {here}, is not among the {len(names)} hosts of {_job(job_id)} in {path}:"
        f" stale variables? Unset PBS_NODEFILE and PBS_JOBID, {_ESCAPE}"
    )


def _is_address(name: str) -> bool:
    return ":" in name or name.replace(".", "").isdigit()


def _job(job_id: str | None) -> str:
    return f"PBS job {job_id}" if job_id else "a PBS job without PBS_JOBID"


def _field(text: str, name: str) -> str | None:
    found = re.search(rf"^\s*{re.escape(name)} = (.+?)\s*$", text, re.MULTILINE)
    return found[1] if found else None


def _seconds(limit: str) -> float:
    total = 0.0
    for part, unit in zip(reversed(limit.split(":")), (1, 60, 3600, 86400), strict=False):
        total += int(part) * unit
    return total
