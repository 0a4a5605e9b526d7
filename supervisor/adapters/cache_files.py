"""Small files in the user's cache folder. Owns their place and integrity, not what they mean.

A cache may be missing, unwritable or damaged at any time: reading then answers None and writing
does nothing.
"""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

_DIGEST = 32
_FOLDER = "supervise-hpc"


def cache_folder() -> Path:
    """Where this user's caches live."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root) / _FOLDER


def read_cache(name: str) -> bytes | None:
    """The content last written under this name, if it is whole."""
    try:
        data = (cache_folder() / name).read_bytes()
    except (OSError, ValueError):
        return None
    digest, content = data[:_DIGEST], data[_DIGEST:]
    return content if hashlib.sha256(content).digest() == digest else None


def write_cache(name: str, content: bytes) -> None:
    """Replace the content under this name atomically, or silently do nothing."""
    folder = cache_folder()
    with contextlib.suppress(OSError, ValueError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(temporary, folder / name)
