"""No batch system: the allocation is this machine, for as long as it runs."""

import socket
from collections.abc import Mapping

from supervisor.adapters.schedulers import Grant


def find(environ: Mapping[str, str]) -> Grant:
    """This machine by its own name."""
    return Grant(hosts=(socket.gethostname(),), source="this machine")


def deadline(job_id: str, environ: Mapping[str, str]) -> float | None:
    """A machine of one's own has none."""
    return None
