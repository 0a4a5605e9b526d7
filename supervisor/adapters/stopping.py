"""Ends a launcher's ranks in the launcher's own way, where a signal to it would be no grace."""

import subprocess
from collections.abc import Sequence

from supervisor.adapters.launchers import EndPlan

_ANSWER_SECONDS = 10.0  # a scheduler under load; the grace goes on meanwhile


def find_step(plan: EndPlan) -> str | None:
    """The step to be ended; None when it does not run, or the scheduler does not say."""
    for line in _said(plan.find).splitlines():
        step, _, name = line.strip().partition(" ")
        if name.strip() == plan.name:
            return step
    return None


def ask(plan: EndPlan, step: str) -> None:
    """Ask all ranks to end."""
    _said((*plan.ask, step))


def force(plan: EndPlan, step: str) -> None:
    """End all ranks now."""
    _said((*plan.force, step))


def _said(argv: Sequence[str]) -> str:
    """What a program of the scheduler's printed. Its exit code is not looked at: scancel 22.05
    calls it an error to signal a step, and has signalled it.
    """
    try:
        answer = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.decode(errors="replace")
