"""Files that survive a power cut: written whole, synced, and only then given their names.

torch syncs its metadata file before Python has handed the bytes to the kernel, and no folder ever.
"""

import os
import shutil
from pathlib import Path

from supervisor.checkpoint_folder import FileSum, sum_of


def sync_file(path: Path) -> None:
    """Have the bytes of a file on disk before returning."""
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on disk before returning."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file so that it is either absent or whole, also after a power cut."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def sync_and_sum(path: Path) -> FileSum:
    """Have a file on disk, and know its size and checksum as the kernel has it."""
    sync_file(path)
    found = sum_of(path)
    if found is None:
        raise AssertionError("without a deadline there is always a sum")
    return found


def remove_folder(path: Path) -> None:
    """Remove a folder; one that is half removed never looks like a checkpoint."""
    trash = path.with_name(f"{path.name}.trash")
    shutil.rmtree(trash, ignore_errors=True)
    try:
        path.rename(trash)
    except FileNotFoundError:
        return
    shutil.rmtree(trash, ignore_errors=True)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
