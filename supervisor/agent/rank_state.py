"""What one rank alone has and must find again: its random generators and the user's extras.

Everything becomes plain values and tensors, so that reading it back runs no code out of the file.
"""

import io
import pickle
import random
import sys
from collections.abc import Mapping
from typing import Any, Protocol

import torch

from supervisor.agent.setup import get_torch_device_type


class Stateful(Protocol):
    """Anything with a state to keep: a learning rate schedule, a data loader."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any: ...


Extras = Mapping[str, Stateful]


def pack(extra: Extras) -> bytes:
    """The generators and extras of this rank; ValueError when they could not be read back."""
    states = {name: one.state_dict() for name, one in extra.items()}
    content = _dump({"random": _generators(), "extra": states})
    try:
        _load(content)
    except pickle.UnpicklingError:
        raise ValueError(_not_plain(states)) from None
    return content


def unpack(content: bytes, extra: Extras, *, own: bool) -> None:
    """Put extras back, and the generators if they were this rank's own."""
    state = _load(content)
    if missing := sorted(set(extra) - set(state["extra"])):
        raise ValueError(f"the checkpoint has no extra {', '.join(missing)}")
    for name, one in extra.items():
        one.load_state_dict(state["extra"][name])
    if own:
        _restore_generators(state["random"])


def reseed(step: int, rank: int) -> None:
    """Give the rank of a differently sized world generators of its own."""
    seed = hash((step, rank)) & 0xFFFFFFFF
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _generators() -> dict[str, Any]:
    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if (device := get_torch_device_type()) != "cpu":
        state[device] = torch.get_device_module(device).get_rng_state()
    if "numpy" in sys.modules:
        name, keys, *rest = sys.modules["numpy"].random.get_state()
        state["numpy"] = (name, keys.tolist(), *rest)
    return state


def _restore_generators(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if (device := get_torch_device_type()) != "cpu" and device in state:
        torch.get_device_module(device).set_rng_state(state[device])
    if "numpy" in state and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(state["numpy"])


def _dump(state: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def _load(content: bytes) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return state


def _not_plain(states: dict[str, Any]) -> str:
    for name, state in states.items():
        try:
            _load(_dump(state))
        except pickle.UnpicklingError:
            return (
                f"extra {name!r} holds something that could not be read back: "
                "its state_dict() may hold numbers, strings, tensors, lists and dicts of these"
            )
    return "the state of the random generators could not be read back"
