"""The slot file of one rank, from the shim's side: made, read, removed.

A training does not depend on it: where no file can be made, the rank runs without a slot.
"""

import mmap
import os
from collections.abc import Mapping
from contextlib import suppress

from supervisor import wire


class RankSlot:
    """A slot and what was last read from it."""

    def __init__(self, name: str) -> None:
        self.path = ""
        self.step: int | None = None
        self.phase: str | None = None
        self.is_done = False
        self._memory: mmap.mmap | None = None
        self._noted = ""
        for folder in ("/dev/shm", os.environ.get("TMPDIR", "/tmp")):
            with suppress(OSError):
                path = os.path.join(folder, name)
                wire.create_slot(path)
                self._memory, self.path = wire.open_slot(path, writable=False), path
                return

    def look(self) -> None:
        """Read step and phase; nothing is known before the agent has introduced itself."""
        state = wire.read(self._memory) if self._memory is not None else None
        if state is not None and state.pid:
            self.step, self.phase = state.step, state.phase
            self.is_done = bool(state.flags & wire.SLOT_FLAG_DONE)

    def note(self, orphans: Mapping[int, int]) -> None:
        """Write beside the slot which processes the shim has adopted, and when each started: once
        it is killed, nothing else tells whose they were.
        """
        noted = "".join(f"{pid} {began}\n" for pid, began in orphans.items())
        if noted == self._noted or not self.path:
            return
        with suppress(OSError):
            with open(f"{self.path}{wire.ADOPTED}~", "w") as file:
                file.write(noted)
            os.replace(f"{self.path}{wire.ADOPTED}~", f"{self.path}{wire.ADOPTED}")
            self._noted = noted

    def remove(self) -> None:
        for path in (self.path, f"{self.path}{wire.ADOPTED}") if self.path else ():
            with suppress(OSError):
                os.unlink(path)


def slot_name(rank: int) -> str:
    """Unlike that of any other rank, attempt, run and user on this host."""
    run_id = os.environ.get(wire.RUN_ID, "").replace("/", "_")[:100]
    return f"supervise-{os.getuid()}-{run_id}-{os.environ.get(wire.ATTEMPT, '0')}-{rank}"
