"""The supervisor's choice of the checkpoint an attempt resumes from.

Owns the scan, the choice and the setting aside. What a checkpoint folder is stands in
supervisor.checkpoint_folder; writing one is the agent's.

Newest first, by number. A folder without its marker, or one that this package did not write, is
passed over and left as it is. A finished one of ours is checked: the manifest and every size
always, checksums for as long as the budget lasts, so that the newest is checked deepest. A
damaged one is set aside by renaming and the one before is looked at. One that cannot be read from
here is passed over without renaming: a sick mount on this machine proves nothing about it.
"""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from supervisor.checkpoint_folder import (
    DamagedError,
    by_step,
    check,
    is_complete,
    is_ours,
    is_unfinished,
    set_aside,
)
from supervisor.errors import PlatformError


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The checkpoint to resume from; `set_aside` says in words what was rejected on the way."""

    step: int | None = None
    path: str = ""
    set_aside: tuple[str, ...] = ()


def choose_checkpoint(folder: Path, budget_seconds: float = 20.0) -> Chosen:
    """The newest complete and verified checkpoint under a folder, setting damaged ones aside."""
    until = time.monotonic() + budget_seconds
    rejected: list[str] = []
    for step, candidate in _candidates(folder):
        if not _eligible(candidate):
            continue
        why = _why_not(candidate, step, until)
        if why is None:
            return Chosen(step=step, path=str(candidate), set_aside=tuple(rejected))
        rejected.append(f"{candidate.name}: {why}")
    return Chosen(set_aside=tuple(rejected))


def clear_unfinished(folder: Path) -> tuple[str, ...]:
    """Remove what writes and removals that never ended left behind.

    Only for a moment when no attempt is alive: a living one may be writing there.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir() if is_unfinished(entry.name))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise _unreadable(folder, error) from None
    for name in names:
        shutil.rmtree(folder / name, ignore_errors=True)
    return tuple(names)


def _candidates(folder: Path) -> list[tuple[int, Path]]:
    try:
        return by_step(folder)
    except OSError as error:
        raise _unreadable(folder, error) from None


def _eligible(candidate: Path) -> bool:
    try:
        return is_complete(candidate) and is_ours(candidate)
    except OSError:
        return True  # the check that follows meets the same error and says so


def _why_not(candidate: Path, step: int, until: float) -> str | None:
    """None for a good one; else why it is not taken, with a damaged one renamed."""
    try:
        if check(candidate, until=until).step != step:
            raise DamagedError("its manifest names another step")
    except DamagedError as error:
        return f"{error}; {_renamed(candidate)}"
    except OSError as error:
        return f"cannot be read here ({error.strerror}), left alone"
    return None


def _renamed(candidate: Path) -> str:
    try:
        return f"set aside as {set_aside(candidate).name}"
    except OSError as error:
        return f"could not be renamed ({error.strerror})"


def _unreadable(folder: Path, error: OSError) -> PlatformError:
    return PlatformError(
        f"checkpoint folder {folder} cannot be read: {error.strerror}; "
        "check the path and its permissions, or choose another with --checkpoint-dir"
    )
