"""PBS (OpenPBS, PBS Professional): hosts from $PBS_NODEFILE, the deadline from qstat.

The node file is enough: inside a job PATH is often minimal and holds no qstat, so qstat is asked
for the deadline only. The file has one line per MPI rank, hence hosts are its unique lines in
order and their counts are the ranks per host. A job's environment that was carried elsewhere
(ssh, a saved shell, tmux) is an error that says so: taking this machine instead, without a word,
would run a training of 4,096 ranks on a login host.
"""

import re
import socket
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from supervisor.adapters.schedulers import Grant, ask, same_for_all
from supervisor.errors import UsageError
from supervisor.wire import canonical_host

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
