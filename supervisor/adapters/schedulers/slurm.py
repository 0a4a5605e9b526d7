"""Slurm: hosts from the job's environment, the deadline from squeue, the state from scontrol.

`scontrol show hostnames` writes the host list out where there is one, our own expander elsewhere
(containers seldom hold Slurm's programs). No check that this host is in the list: `salloc` leaves
the user's shell on the login host, and that is a right way to work.

A job that is being ended is COMPLETING, whatever ended it; the reason stands in other fields
(22.05.8): Reason=TimeLimit or NodeDown; PreemptTime where a preempted job is cancelled; Restarts
higher than ours where it is queued again; and for scancel in none of them.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from supervisor.adapters.hostlist import MAX_HOSTS, expand
from supervisor.adapters.schedulers import Grant, ask, demand, same_for_all
from supervisor.core.notice import JobState
from supervisor.errors import UsageError

# SLURM_NODELIST is the older name; some sites' wrappers set only that one.
_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")


def find(environ: Mapping[str, str]) -> Grant | None:
    """The job this process runs in, by its environment."""
    name = next((name for name in _LISTS if environ.get(name)), None)
    if name is None:
        return None
    job_id = environ.get("SLURM_JOB_ID") or None
    hosts = _hosts(name, environ)
    return Grant(
        hosts=hosts,
        source=f"{name} of Slurm job {job_id}" if job_id else name,
        job_id=job_id,
        ranks_per_host=_ranks_per_host(environ),
        start=_restarts(environ),
        lost=_lost(job_id, hosts, environ) if job_id else (),
    )


def deadline(job_id: str, environ: Mapping[str, str]) -> float | None:
    """When the job's time limit ends, by squeue; by the environment (Slurm 23.02) without it."""
    # A site's SLURM_TIME_FORMAT may print "in 2 hours"; the standard one is ISO 8601, local time.
    text = ask(
        ("squeue", "-h", "-j", job_id, "-o", "%e"), {**environ, "SLURM_TIME_FORMAT": "standard"}
    )
    try:
        return datetime.fromisoformat((text or "").strip()).astimezone().timestamp()
    except (ValueError, OverflowError):  # "N/A" and "NOT_SET" where there is no limit
        end = environ.get("SLURM_JOB_END_TIME", "")
        return float(end) if text is None and end.isascii() and end.isdigit() else None


def state(job_id: str, environ: Mapping[str, str]) -> JobState:
    """What becomes of the job."""
    text = ask(("scontrol", "show", "job", "--oneliner", job_id), environ)
    fields = dict(word.split("=", 1) for word in (text or "").split() if "=" in word)
    ours = environ.get("SLURM_JOB_ID") == job_id
    found = _states(fields, _restarts(environ) if ours else None)
    return next(found, JobState.UNKNOWN)


def requeue(job_id: str, environ: Mapping[str, str]) -> str:
    """Have the job queued again, which ends it at once; answers why not."""
    return demand(("scontrol", "requeue", job_id), environ).refused


def _states(fields: Mapping[str, str], restarts: str | None) -> Iterator[JobState]:
    """All that holds, what tells most first."""
    job, reason = fields.get("JobState", ""), fields.get("Reason", "")
    if reason == "TimeLimit" or job == "TIMEOUT":
        yield JobState.TIMED_OUT
    if reason == "NodeDown" or job == "NODE_FAIL":
        yield JobState.LOST_HOST
    if restarts is not None and fields.get("Restarts", restarts) != restarts:
        yield JobState.REQUEUED
    if job == "PREEMPTED" or fields.get("PreemptTime", "None") not in ("None", "N/A"):
        yield JobState.PREEMPTED
    if job in ("CANCELLED", "COMPLETING"):
        yield JobState.CANCELLED
    if job in ("RUNNING", "SUSPENDED", "STOPPED"):
        yield JobState.RUNNING


def _restarts(environ: Mapping[str, str]) -> str:
    return environ.get("SLURM_RESTART_COUNT") or "0"


def _hosts(name: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    text = environ[name].strip()
    if text in ("(null)", "None assigned"):
        raise UsageError(f"{name} is {text}: the job has no hosts yet")
    answer = ask(("scontrol", "show", "hostnames", text), environ)
    hosts = tuple((answer or "").split())
    if hosts and len(hosts) <= MAX_HOSTS:
        return hosts
    try:
        return expand(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def _lost(job_id: str, hosts: tuple[str, ...], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Those that went down in a --no-kill job: its environment still names them, squeue does not.

    An answer without any host of ours tells nothing.
    """
    text = (ask(("squeue", "-h", "-j", job_id, "-o", "%N"), environ) or "").strip()
    try:
        there = set(expand(text)) if text else set()
    except UsageError:
        return ()
    return tuple(host for host in hosts if host not in there) if there & set(hosts) else ()


def _ranks_per_host(environ: Mapping[str, str]) -> int | None:
    wanted = environ.get("SLURM_NTASKS_PER_NODE", "")
    if re.fullmatch(r"[1-9][0-9]{0,5}", wanted):
        return int(wanted)
    counts = environ.get("SLURM_TASKS_PER_NODE", "")  # "2(x6)", "4", "4(x2),3"
    if not re.fullmatch(r"[1-9][0-9]{0,5}(\(x\d+\))?(,[1-9][0-9]{0,5}(\(x\d+\))?)*", counts):
        return None
    return same_for_all(tuple(int(item.split("(")[0]) for item in counts.split(",")))
