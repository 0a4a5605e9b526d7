"""What others read of a run: status.json from the state, summary.json from the journal."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from supervisor import __version__
from supervisor.core.accounting import Attempt, account
from supervisor.core.actions import Finish
from supervisor.core.events import Event
from supervisor.core.hosts import retired_hosts
from supervisor.core.machine import State
from supervisor.core.verdict import Verdict


def status_of(state: State, at: float) -> dict[str, Any]:
    """The fields of status.json; others script against their names."""
    ledger, digest = state.ledger, state.watch.digest
    return {
        "version": __version__,
        "run_id": state.run_id,
        "phase": state.phase.value,
        "attempt": state.attempt,
        "step": digest.step if digest else None,
        "hosts": {
            "active": list(ledger.active),
            "spare": list(ledger.spares),
            "suspect": list(ledger.suspects),
            "retired": list(retired_hosts(ledger)),
        },
        "deadline": state.deadline,
        "last_verdict": _verdict(state.verdict),
        "updated_at": at,
    }


def summary_of(events: Sequence[Event], finish: Finish) -> dict[str, Any]:
    """The fields of summary.json: how the run ended, each attempt with its verdict, the cost."""
    figures = account(events)
    costs = asdict(figures)
    for told_elsewhere in ("attempts", "outcome", "exit_code"):
        costs.pop(told_elsewhere)
    return {
        "version": __version__,
        "outcome": finish.outcome.value,
        "exit_code": finish.exit_code,
        "message": finish.message,
        "attempts": [_attempt(attempt) for attempt in figures.attempts],
        "accounting": costs,
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return asdict(attempt) | {"verdict": _verdict(attempt.verdict)}


def _verdict(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {
        "cause": verdict.cause.value,
        "blame": list(verdict.blame),
        "confidence": verdict.confidence.value,
        "why": verdict.why,
        "lines": [asdict(quote) for quote in verdict.lines],
        "set_aside": [asdict(quote) for quote in verdict.set_aside],
    }
