"""The run folder: where each file of a run lives, and the lock that keeps a second supervisor out.

RUN_DIR/  journal.jsonl  status.json  lock  summary.json  retired.txt
          attempts/001/  launch.json  hostfile  spool/  exit.json
                         launcher.log  ranks/00000.log ...  stacks/
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from supervisor.core.value import value
from supervisor.errors import PlatformError, UsageError


@value
class AttemptFolder:
    """The files of one attempt."""

    path: Path

    @property
    def spool(self) -> Path:
        return self.path / "spool"

    @property
    def ranks(self) -> Path:
        return self.path / "ranks"

    @property
    def stacks(self) -> Path:
        return self.path / "stacks"

    @property
    def done(self) -> Path:
        return self.path / "done"

    @property
    def hostfile(self) -> Path:
        return self.path / "hostfile"

    @property
    def launch(self) -> Path:
        return self.path / "launch.json"

    @property
    def keeper(self) -> Path:
        return self.path / "keeper.json"

    @property
    def exit(self) -> Path:
        return self.path / "exit.json"

    @property
    def launcher_log(self) -> Path:
        return self.path / "launcher.log"

    def create(self) -> None:
        """Make the folders that are written to as the attempt goes on."""
        for folder in (self.spool, self.ranks, self.stacks):
            folder.mkdir(parents=True, exist_ok=True)


@value
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def status(self) -> Path:
        return self.path / "status.json"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def retired(self) -> Path:
        return self.path / "retired.txt"

    def attempt(self, number: int) -> AttemptFolder:
        """The folder of an attempt, made or not."""
        return AttemptFolder(path=self.path / "attempts" / f"{number:03d}")


def open_run_folder(path: Path) -> RunFolder:
    """Make the folder, readable by its owner only, and be sure that files can be written there."""
    folder = RunFolder(path=path.absolute())
    try:
        folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        trial = folder.path / f".writable.{os.getpid()}"
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise PlatformError(
            f"cannot write the run folder {folder.path}: {error.strerror}; "
            "choose another with --run-dir"
        ) from error
    return folder


def _lock(descriptor: int) -> None:
    """Keepers look whether the lock is held by taking it for microseconds: try for a moment."""
    deadline = time.monotonic() + 0.5
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


@contextmanager
def locked(folder: RunFolder) -> Iterator[None]:
    """Hold the run's lock; the kernel lets go of it when the process dies, however it dies."""
    descriptor = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        raise UsageError(
            f"another supervisor (pid {holder}) holds the run folder {folder.path}; "
            "stop it first, or choose another folder with --run-dir"
        ) from error
    finally:
        os.close(descriptor)
