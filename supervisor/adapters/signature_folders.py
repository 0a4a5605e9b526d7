"""Where signature files of the user's own lie.

A module to itself because a run asks before it starts, when loading what reads the files would
make the command wait.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from supervisor.errors import UsageError

VARIABLE = "SUPERVISE_SIGNATURES"
_DEFAULT = Path("supervise") / "signatures"


def own_folders(given: Sequence[str], environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The user's folders and files, the decisive last: an entry overrides those of its id before.

    First ~/.config/supervise/signatures, where there is one, then $SUPERVISE_SIGNATURES, then
    what was given as --signatures. UsageError for one that is named and missing.
    """
    listed = [name for name in environ.get(VARIABLE, "").split(os.pathsep) if name]
    return (
        *_default(environ),
        *(_existing(name, f"${VARIABLE}") for name in listed),
        *(_existing(name, "--signatures") for name in given),
    )


def _default(environ: Mapping[str, str]) -> Iterator[Path]:
    home = environ.get("HOME", "")
    config = environ.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else "")
    folder = Path(config) / _DEFAULT
    if os.path.isabs(config) and folder.is_dir():
        yield folder


def _existing(name: str, said_in: str) -> Path:
    path = Path(name).absolute()
    if not path.exists():
        raise UsageError(f"{said_in} {name}: no such folder or .yaml file of signatures")
    return path
