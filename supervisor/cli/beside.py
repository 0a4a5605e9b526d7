"""Refuses to run beside the other distribution that installs into the folder `supervisor`.

That one, named `supervisor`, is the process control system of the same name. Both own
supervisor/__init__.py: whichever was installed last has overwritten files of the other.
"""

import os
import sys
from contextlib import suppress

from supervisor.errors import PlatformError

# Looked up by file name: importlib.metadata takes 30 ms to import, a third of our whole start.
_PREFIX = "supervisor-"
_SUFFIXES = (".dist-info", ".egg-info", ".egg")


def refuse(path: list[str] | None = None) -> None:
    """Raise PlatformError when the other distribution is on the import path."""
    for folder in sys.path if path is None else path:
        with suppress(OSError):
            for name in os.listdir(folder or "."):
                if name.lower().startswith(_PREFIX) and name.endswith(_SUFFIXES):
                    raise PlatformError(
                        f"the distribution `supervisor` (supervisord) is installed in {folder}"
                        " and owns the same package folder as supervise-hpc: use a virtual"
                        " environment without it, or `pip uninstall supervisor` and then"
                        " `pip install --force-reinstall supervise-hpc`"
                    )
