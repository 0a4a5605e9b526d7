"""No batch system: the allocation is this machine, for as long as it runs."""

import socket
from collections.abc import Mapping

from supervisor.adapters.schedulers import Grant
from supervisor.core.notice import JobState


def find(environ: Mapping[str, str]) -> Grant:
    """This machine by its own name."""
    return Grant(hosts=(socket.gethostname(),), source="this machine")


def deadline(job_id: str, environ: Mapping[str, str]) -> float | None:
    """A machine of one's own has none."""
    return None


def state(job_id: str, environ: Mapping[str, str]) -> JobState:
    """There is no job."""
    return JobState.UNKNOWN


def requeue(job_id: str, environ: Mapping[str, str]) -> str:
    """There is no queue."""
    return "there is no scheduler"
