"""How a run goes on that its folder already holds: taken over, or continued in another allocation.

Owns what must be the same as before. In the same allocation, all: the attempt may still run. In the
next one, after a requeue or for a new job, other hosts are as good; then the old allocation must be
over, for two attempts must never write the same checkpoints.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace

from supervisor.adapters import clock
from supervisor.adapters.allocation import SCHEDULERS
from supervisor.adapters.run_folder import RunFolder
from supervisor.adapters.run_spec import RunSpec
from supervisor.core import events as ev
from supervisor.core.machine import Phase, State
from supervisor.core.notice import JobState
from supervisor.core.policy import can_go_on
from supervisor.errors import PlatformError, UsageError


def continued(spec: RunSpec, first: ev.Event, state: State) -> RunSpec:
    """A run goes on as it began; a folder that holds another run is not this one's."""
    if not isinstance(first, ev.RunStarted):
        raise PlatformError(f"the journal in {spec.run_dir} does not begin with the run's start")
    differences = _differences(spec, first, state)
    if differences:
        raise UsageError(
            f"the run folder {spec.run_dir} holds another run ({'; '.join(differences)}); "
            "give the same command again, or choose another folder with --run-dir"
        )
    return replace(spec, settings=first.settings, run_id=first.run_id)


def next_event(
    spec: RunSpec, state: State, folder: RunFolder, environ: Mapping[str, str] = os.environ
) -> ev.SupervisorReturned | ev.AllocationGranted:
    """The event with which this supervisor goes on; UsageError when the run has ended for good, or
    may still run in another allocation.
    """
    if state.phase is Phase.FINISHED and folder.summary.exists() and not _is_open(state):
        raise UsageError(
            f"the run in {folder.path} has ended; to go on from its checkpoints, keep "
            "--checkpoint-dir and choose another folder with --run-dir"
        )
    if not _is_elsewhere(spec, state):
        return ev.SupervisorReturned(at=clock.now())
    if not _is_open(state):
        _refuse_running(spec, state, environ)
    return ev.AllocationGranted(
        at=clock.now(),
        active=spec.active,
        spares=spec.spares,
        deadline=spec.deadline,
        allocation=spec.allocation,
    )


def _differences(spec: RunSpec, first: ev.RunStarted, state: State) -> list[str]:
    then = tuple(host for host in state.allotted if host not in spec.lost)
    now = (*spec.active, *spec.spares)
    if spec.lost and set(then) <= set(now):
        now = then  # with --nodes, others stand in for hosts that were lost meanwhile
    hosts = ("hosts", " ".join(then), " ".join(now))
    compared = (
        ("command", shlex.join(first.command) or "unknown", shlex.join(spec.command)),
        *(() if _is_elsewhere(spec, state) else (hosts,)),
        ("ranks per host", first.settings.ranks_per_host, spec.settings.ranks_per_host),
    )
    return [f"{what}: {before} then, {now} now" for what, before, now in compared if before != now]


def _is_open(state: State) -> bool:
    """Whether the run has finished in a way that leaves it open for another allocation."""
    finish = state.finish
    return finish is not None and can_go_on(finish.outcome, finish.exit_code)


def _is_elsewhere(spec: RunSpec, state: State) -> bool:
    """Whether the allocation that the run was in is not this one, or counts as over."""
    finished = state.phase is Phase.FINISHED and _is_open(state)
    known = bool(state.allocation and spec.allocation)
    return finished or (known and state.allocation != spec.allocation)


def _refuse_running(spec: RunSpec, state: State, environ: Mapping[str, str]) -> None:
    scheduler, job_id = state.allocation.split(" ")[:2]
    if spec.job is None or spec.job.job_id == job_id or scheduler not in SCHEDULERS:
        return
    if SCHEDULERS[scheduler].state(job_id, environ) is JobState.RUNNING:
        raise UsageError(
            f"the run in {spec.run_dir} may still be running in {scheduler} job {job_id}: "
            "end that job first, or choose another folder with --run-dir"
        )
