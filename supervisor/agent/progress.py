"""This rank's word on its progress: step and phase, stored in the slot the supervisor reads.

A store is a few bytes into shared memory: no system call, nothing to wait for, nothing that can
fail the training. Without a slot, and with arguments that make no sense, these calls do nothing.
Owns also the file that the stacks of this process go to when somebody asks by SIGUSR1. The slot's
layout is supervisor.wire's.
"""

import contextlib
import faulthandler
import mmap
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import IO, SupportsIndex, SupportsInt

from supervisor import wire
from supervisor.agent.place import attempt_number

_INDEX: dict[str, int] = {str(one): index for index, one in enumerate(wire.PHASES)}
_STEP = _INDEX[wire.RankPhase.STEP]
_MOST = (1 << 63) - 1  # the slot's step is a signed 64-bit number


class _Slot:
    """The slot, and what was last stored in it."""

    __slots__ = ("memory", "phase", "step")

    def __init__(self, memory: mmap.mmap) -> None:
        self.memory = memory
        self.phase = _INDEX[wire.RankPhase.LAUNCH]
        self.step = wire.NO_STEP
        wire.introduce(memory, 0)


def _open_slot() -> _Slot | None:
    try:
        return _Slot(wire.open_slot(os.environ[wire.SLOT], writable=True))
    except (KeyError, OSError, ValueError):
        return None


_slot = _open_slot()
_stacks: IO[bytes] | None = None  # kept open: the signal may come when no file can be opened


def step(number: SupportsInt | SupportsIndex) -> None:
    """State that this many optimizer updates are done. The only sign of progress there is."""
    if _slot is None:
        return
    try:
        value = int(number)
    except (TypeError, ValueError, OverflowError):
        return
    if 0 <= value <= _MOST:
        _slot.step, _slot.phase = value, _STEP
        wire.store(_slot.memory, value, _STEP)


def phase(name: str) -> None:
    """State what this rank is doing now, so that the right time limit applies."""
    index = _INDEX.get(name) if isinstance(name, str) else None
    if _slot is not None and index is not None:
        _slot.phase = index
        wire.store(_slot.memory, _slot.step, index)


def done(rank: int) -> None:
    """State that this rank's training has ended well: a crash or a hang in its exit is no failure
    any more. Without a slot, the same in a file of the run folder.
    """
    phase(wire.RankPhase.EXIT)
    if _slot is not None:
        if os.environ.get(wire.WORLD_SIZE) == os.environ.get("WORLD_SIZE"):  # else we share it
            wire.mark_done(_slot.memory)
        return
    path = _attempt_file("done", f"{rank:05d}")
    with contextlib.suppress(OSError):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


@contextlib.contextmanager
def during(name: wire.RankPhase) -> Iterator[None]:
    """State a phase for the time of a block, and the one before it afterwards."""
    before = wire.RankPhase.LAUNCH if _slot is None else wire.PHASES[_slot.phase]
    phase(name)
    try:
        yield
    finally:
        phase(before)


def register_stacks(rank: int) -> None:
    """Write the stacks of all threads to this rank's file of the run folder on SIGUSR1."""
    global _stacks
    path = _attempt_file("stacks", f"{rank:05d}.txt")
    if path is None or _stacks is not None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _stacks = path.open("ab", buffering=0)
        faulthandler.register(signal.SIGUSR1, file=_stacks, all_threads=True, chain=False)
    except (OSError, RuntimeError, AttributeError):
        return  # a run folder that cannot be written is the supervisor's to report
    if _slot is not None:
        wire.introduce(_slot.memory, wire.SLOT_FLAG_STACKS)


def _attempt_file(folder: str, name: str) -> Path | None:
    run_dir, attempt = os.environ.get(wire.RUN_DIR), attempt_number()
    if not run_dir or not attempt:
        return None
    return Path(run_dir) / "attempts" / f"{attempt:03d}" / folder / name
