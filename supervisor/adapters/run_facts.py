"""What a run folder knows of its newest attempt beside its logs, for whoever explains these."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """None and () where the folder does not say."""

    exit_code: int | None = None
    hosts: tuple[str, ...] = ()
    ranks: int | None = None


def facts_of(folder: Path) -> RunFacts:
    """The launcher's exit code, the active hosts in rank order, the number of ranks that spoke."""
    attempts = sorted((folder / "attempts").glob("[0-9]*"), key=lambda path: int(path.name))
    if not attempts:
        return RunFacts()
    ended, status = _object(attempts[-1] / "exit.json"), _object(folder / "status.json")
    code, active = ended.get("exit_code"), (status.get("hosts") or {}).get("active")
    ranks = [int(log.stem) for log in (attempts[-1] / "ranks").glob("[0-9]*.log")]
    return RunFacts(
        exit_code=code if isinstance(code, int) else None,
        hosts=tuple(map(str, active)) if isinstance(active, list) else (),
        ranks=max(ranks, default=-1) + 1 or None,
    )


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
