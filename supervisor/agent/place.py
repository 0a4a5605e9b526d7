"""Where this process stands among the ranks, read from the environment. Standard library only.

torchrun's names are the ones every launcher's variables are translated to (the shim does it under
the supervisor). They count only as a complete set: a rank without a world size is how four
processes come to train four models that each believe they are alone.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from supervisor import wire
from supervisor.errors import UsageError

_TRIPLE = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
_MASTER = ("MASTER_ADDR", "MASTER_PORT")

# A launcher that set one of these above 1 started several ranks, whatever RANK says.
_FOREIGN_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """This process among the ranks."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    launched: bool = False  # a launcher said so; False: alone, by nobody's word


def read_place(environment: Mapping[str, str]) -> Place:
    """The place the environment states, or UsageError that shows what was seen."""
    if not any(name in environment for name in _TRIPLE):
        _refuse_untranslated(environment)
        return Place()
    wanted = _TRIPLE if environment.get("WORLD_SIZE") == "1" else (*_TRIPLE, *_MASTER)
    if missing := [name for name in wanted if not environment.get(name)]:
        raise UsageError(
            f"{', '.join(missing)} not set, with {_seen(environment)}: start all ranks with one "
            "launcher (supervise, torchrun), or unset these to run one process"
        )
    return _checked(environment)


def attempt_number() -> int:
    """The attempt this process belongs to; 0 without a supervisor."""
    text = os.environ.get(wire.ATTEMPT, "")
    return int(text) if text.isdigit() else 0


def get_rank() -> int:
    """Index of this process among all ranks."""
    return read_place(os.environ).rank


def get_world_size() -> int:
    """Number of ranks."""
    return read_place(os.environ).world_size


def get_local_rank() -> int:
    """Index of this process among the ranks of its host."""
    return read_place(os.environ).local_rank


def _checked(environment: Mapping[str, str]) -> Place:
    rank, world_size, local_rank = (_number(environment, name) for name in _TRIPLE)
    local_world_size = (
        _number(environment, "LOCAL_WORLD_SIZE")
        if environment.get("LOCAL_WORLD_SIZE")
        else min(world_size, local_rank + 1)
    )
    if rank >= world_size or local_rank >= local_world_size:
        raise UsageError(
            f"rank outside its world, with {_seen(environment)}: "
            "the launcher's variables contradict each other"
        )
    return Place(
        rank=rank,
        world_size=world_size,
        local_rank=local_rank,
        local_world_size=local_world_size,
        launched=all(environment.get(name) for name in _MASTER),
    )


def _refuse_untranslated(environment: Mapping[str, str]) -> None:
    for name in _FOREIGN_SIZES:
        if environment.get(name, "1") not in {"", "0", "1"}:
            raise UsageError(
                f"{name}={environment[name]} says there are several ranks, but RANK, WORLD_SIZE "
                "and LOCAL_RANK are not set: start it under supervise or torchrun"
            )


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not text.isdigit():
        raise UsageError(f"{name}={text!r} is not a number from 0 up")
    return int(text)


def _seen(environment: Mapping[str, str]) -> str:
    names = (*_TRIPLE, "LOCAL_WORLD_SIZE", *_MASTER)
    return ", ".join(f"{name}={environment[name]}" for name in names if name in environment)
