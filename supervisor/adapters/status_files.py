"""What other programs read of a run without asking the supervisor: status.json, summary.json,
retired.txt.
"""

import json
import os
from pathlib import Path
from typing import Any

from supervisor.core.actions import RetireHost


async def replace_json(path: Path, document: dict[str, Any]) -> None:
    """Replace a JSON file atomically: a reader sees the old one or the new one."""
    import aiofiles

    fresh = path.with_name(path.name + ".new")
    async with aiofiles.open(fresh, "w") as file:
        await file.write(json.dumps(document, indent=1) + "\n")
    os.replace(fresh, path)


def append_retired(path: Path, action: RetireHost) -> None:
    """One line per host: host, attempt, cause, why; a host that is there stays as it is."""
    known = path.read_text().splitlines() if path.exists() else []
    if any(line.split("\t", 1)[0] == action.host for line in known):
        return
    fields = (action.host, str(action.attempt), action.cause, " ".join(action.why.split()))
    with open(path, "a") as file:
        file.write("\t".join(fields) + "\n")
        file.flush()
        os.fsync(file.fileno())
