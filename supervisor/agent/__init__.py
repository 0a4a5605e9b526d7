"""The library for training scripts: `from supervisor import agent`.

Names are loaded when they are first used, so that importing this costs nothing and torch is only
loaded by the names that need it. The supervisor's own parts are never loaded here. A script that
runs without the supervisor, or without any launcher, uses the same calls.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supervisor.agent.checkpoint import Checkpointer
    from supervisor.agent.exchange import CheckpointError
    from supervisor.agent.parallel import data_shard, make_mesh, wrap_model
    from supervisor.agent.place import get_local_rank, get_rank, get_world_size
    from supervisor.agent.progress import phase, register_stacks, step
    from supervisor.agent.setup import (
        cleanup,
        get_torch_device,
        get_torch_device_type,
        setup_torch,
    )

# Loaded when they are first named, as the names below are: `agent.history.StopWatch`.
_MODULES = {"checkpoint"}

_HOMES = {
    "CheckpointError": "exchange",
    "Checkpointer": "checkpoint",
    "cleanup": "setup",
    "data_shard": "parallel",
    "get_local_rank": "place",
    "get_rank": "place",
    "get_torch_device": "setup",
    "get_torch_device_type": "setup",
    "get_world_size": "place",
    "make_mesh": "parallel",
    "phase": "progress",
    "register_stacks": "progress",
    "setup_torch": "setup",
    "step": "progress",
    "wrap_model": "parallel",
}

__all__ = [
    "CheckpointError",
    "Checkpointer",
    "cleanup",
    "data_shard",
    "get_local_rank",
    "get_rank",
    "get_torch_device",
    "get_torch_device_type",
    "get_world_size",
    "make_mesh",
    "phase",
    "register_stacks",
    "setup_torch",
    "step",
    "wrap_model",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
