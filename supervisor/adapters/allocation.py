"""Which hosts we have, how long, and who says so.

Explicit wins: `--virtual-hosts` and `--hostfile` name the hosts, and the scheduler, if we are in
a job, still gives the deadline. Else PBS, then Slurm, then this machine. How each is read stands
in hostfile.py and schedulers/; which hosts hold ranks stands in split.py.
"""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from supervisor.adapters import hostfile as hostfiles
from supervisor.adapters.hostlist import MAX_HOSTS
from supervisor.adapters.schedulers import Grant, Job, none, pbs, slurm, slurm_no_kill
from supervisor.core.notice import JobState
from supervisor.core.value import value
from supervisor.errors import UsageError
from supervisor.wire import canonical_host


class Scheduler(Protocol):
    """What every module of schedulers/ answers."""

    def find(self, environ: Mapping[str, str]) -> Grant | None: ...

    def deadline(self, job_id: str, environ: Mapping[str, str]) -> float | None: ...

    def state(self, job_id: str, environ: Mapping[str, str]) -> JobState: ...

    def requeue(self, job_id: str, environ: Mapping[str, str]) -> str: ...


SCHEDULERS: Mapping[str, Scheduler] = {"pbs": pbs, "slurm": slurm, "none": none}  # in this order
_VARIABLES = {"pbs": "PBS_NODEFILE", "slurm": "SLURM_JOB_NODELIST"}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@value
class Allocation:
    """The hosts of a run before any is used."""

    hosts: tuple[str, ...]  # as spelled, unique by canonical name, in order
    source: str  # where they come from, in words
    deadline: float | None
    job: Job | None
    virtual: bool
    this_machine: bool  # all ranks will be on this machine
    ranks_per_host: int | None  # None: the source does not say, or not the same for all
    lost: tuple[str, ...] = ()  # canonical names of hosts that are not in the job any more
    notes: tuple[str, ...] = ()  # what the user ought to know, one line each


def find_allocation(
    *,
    hostfile: Path | None,
    virtual_hosts: int | None,
    scheduler: str,
    environ: Mapping[str, str],
) -> Allocation:
    """The hosts to run on; UsageError when what names them is wrong or stale."""
    explicit = _explicit(hostfile, virtual_hosts)
    if explicit is None:
        name, grant = _granted(scheduler, environ)
        return _allocation(grant, name, grant, environ, virtual=False)
    try:
        name, grant = _granted(scheduler, environ)
    except UsageError as error:  # the hosts are named anyway: only the deadline is missing
        notes = (f"deadline unknown: {error}",)
        return _allocation(explicit, "none", None, environ, virtual_hosts is not None, notes)
    return _allocation(explicit, name, grant, environ, virtual_hosts is not None)


def advice_on_spares(allocation: Allocation, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What keeps spares from being of use here, one line each."""
    job_id = allocation.job.job_id if allocation.job else None
    if allocation.virtual or job_id is None or job_id != environ.get("SLURM_JOB_ID"):
        return ()
    return slurm_no_kill.advice(job_id, environ)


def _explicit(hostfile: Path | None, virtual_hosts: int | None) -> Grant | None:
    if hostfile is not None and virtual_hosts is not None:
        raise UsageError("--hostfile and --virtual-hosts exclude each other: give one of them")
    if hostfile is not None:
        hosts, ranks = hostfiles.read(hostfile)
        return Grant(hosts=hosts, source=f"hostfile {hostfile}", ranks_per_host=ranks)
    if virtual_hosts is None:
        return None
    if not 1 <= virtual_hosts <= MAX_HOSTS:
        raise UsageError(
            f"--virtual-hosts {virtual_hosts}: must be at least 1, at most {MAX_HOSTS}"
        )
    names = tuple(f"vhost{number}" for number in range(1, virtual_hosts + 1))
    return Grant(hosts=names, source=f"--virtual-hosts {virtual_hosts}")


def _granted(scheduler: str, environ: Mapping[str, str]) -> tuple[str, Grant]:
    wanted = SCHEDULERS if scheduler == "auto" else {scheduler: SCHEDULERS[scheduler]}
    for name, module in wanted.items():
        if grant := module.find(environ):
            return name, grant
    raise UsageError(
        f"--scheduler {scheduler}: {_VARIABLES[scheduler]} is not set;"
        f" run inside a {scheduler} job, or leave --scheduler out"
    )


def _allocation(
    named: Grant,
    scheduler: str,
    grant: Grant | None,
    environ: Mapping[str, str],
    virtual: bool,
    notes: tuple[str, ...] = (),
) -> Allocation:
    job = _job(scheduler, grant)
    deadline = SCHEDULERS[scheduler].deadline(job.job_id, environ) if job else None
    if job and deadline is None:
        notes += (f"deadline unknown: {scheduler} does not tell when job {job.job_id} ends",)
    if grant and grant is not named and scheduler != "none" and not virtual:
        notes += _strangers(named, grant)
    lost = () if virtual or grant is None else tuple(map(canonical_host, grant.lost))
    hosts = tuple(host for host in _unique(named.hosts) if canonical_host(host) not in lost)
    if len(hosts) < len(_unique(named.hosts)):
        notes += (f"no longer in the job, and not used: {_shown(grant.lost if grant else ())}",)
    return Allocation(
        hosts=hosts,
        lost=lost,
        source=named.source,
        deadline=deadline,
        job=job,
        virtual=virtual,
        this_machine=not virtual and _is_this_machine(named.hosts),
        ranks_per_host=named.ranks_per_host,
        notes=notes,
    )


def _job(scheduler: str, grant: Grant | None) -> Job | None:
    if grant is None or grant.job_id is None:
        return None
    return Job(scheduler=scheduler, job_id=grant.job_id, start=grant.start)


def _strangers(named: Grant, grant: Grant) -> tuple[str, ...]:
    granted = {canonical_host(host) for host in grant.hosts}
    strangers = [host for host in named.hosts if canonical_host(host) not in granted]
    if not strangers:
        return ()
    return (f"{named.source}: not in {grant.source}: {_shown(strangers)}",)


def _shown(hosts: Sequence[str]) -> str:
    return ", ".join(hosts[:5]) + (", ..." if len(hosts) > 5 else "")


def _unique(hosts: tuple[str, ...]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for host in hosts:
        first.setdefault(canonical_host(host), host)
    return tuple(first.values())


def _is_this_machine(hosts: tuple[str, ...]) -> bool:
    here = {canonical_host(socket.gethostname()), *_LOOPBACK}
    return all(canonical_host(host) in here for host in hosts)
