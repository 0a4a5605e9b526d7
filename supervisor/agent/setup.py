"""Joins this process to the others: place, device, process group, seed; and leaves again.

Order matters. The device is chosen before the group is made, because a group made first binds to
device 0 of every rank, and FSDP2's first all-gather on Intel GPUs then hangs. The group gets a
timeout, so that a dead peer ends in an error rather than in silence.
"""

import os
import random
import sys
import threading
from datetime import timedelta

import torch
import torch.distributed as dist

from supervisor import wire
from supervisor.agent import progress
from supervisor.agent.place import Place, read_place
from supervisor.errors import PlatformError

_DEFAULT_TIMEOUT = 600.0  # seconds; covers a first step that compiles on some ranks only
_LEAVE_TIMEOUT = 30.0  # a dead peer can hold destroy_process_group for ever

# One group serves tensors on the accelerator and, through gloo, those on the host. An Intel group
# bound to a device loses its host half (pytorch 171938), so it gets none here.
_BACKENDS = {"cuda": "cpu:gloo,cuda:nccl", "xpu": "xccl", "mps": "gloo", "cpu": "gloo"}


def setup_torch(
    backend: str | None = None,
    timeout: timedelta | float = _DEFAULT_TIMEOUT,
    seed: int | None = None,
) -> int:
    """Choose the device, join the process group, seed. Returns the rank.

    The seed is the same on all ranks, so that they build the same model. Without a launcher this
    is a world of one.
    """
    progress.phase(wire.RankPhase.INIT)
    place = read_place(os.environ)
    progress.register_stacks(place.rank)
    device = _choose_device(place)
    if not dist.is_initialized():
        _join(place, device, backend, timeout)
    if seed is not None:
        _seed_all(seed)
    return place.rank


def cleanup() -> None:
    """Leave the process group. Waits for a bounded time only, and never raises for a dead peer.

    Tells the supervisor that this rank's training has ended well, unless it is called while an
    exception is on its way: what goes wrong in the exit itself then fails nothing any more.
    """
    progress.phase(wire.RankPhase.EXIT)
    if _is_well(sys.exc_info()[1]):
        progress.done(read_place(os.environ).rank)
    if not dist.is_initialized():
        return
    leaving = threading.Thread(target=_leave, name="leave-group", daemon=True)
    leaving.start()
    leaving.join(_LEAVE_TIMEOUT)


def _is_well(raised: BaseException | None) -> bool:
    return raised is None or (isinstance(raised, SystemExit) and not raised.code)


def get_torch_device_type() -> str:
    """cuda, xpu, mps or cpu."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return "cpu" if accelerator is None else accelerator.type


def get_torch_device() -> torch.device:
    """The device of this rank."""
    kind = get_torch_device_type()
    if kind in {"cpu", "mps"}:
        return torch.device(kind)
    return torch.device(kind, _device_index(read_place(os.environ)))


def _choose_device(place: Place) -> torch.device:
    device = get_torch_device()
    if device.index is not None:
        torch.accelerator.set_device_index(device.index)
    elif device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        # torch takes every core on every rank; n ranks on a host then fight over all of them
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        torch.set_num_threads(max(1, cores // place.local_world_size))
    return device


def _device_index(place: Place) -> int:
    """A launcher that shows each rank only its own device calls it 0 on every rank."""
    return place.local_rank % torch.accelerator.device_count()


def _join(
    place: Place, device: torch.device, backend: str | None, timeout: timedelta | float
) -> None:
    limit = timeout if isinstance(timeout, timedelta) else timedelta(seconds=timeout)
    chosen = backend or _BACKENDS.get(device.type, "gloo")
    alone = dist.HashStore() if not place.launched else None  # type: ignore[attr-defined]
    try:
        dist.init_process_group(
            chosen,
            store=alone,
            rank=place.rank,
            world_size=place.world_size,
            timeout=limit,
            device_id=device if device.type == "xpu" and chosen == "xccl" else None,
        )
    except (RuntimeError, ValueError) as error:
        raise PlatformError(_joining_failed(place, chosen, error)) from error


def _joining_failed(place: Place, backend: str, error: Exception) -> str:
    where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
    return (
        f"rank {place.rank} of {place.world_size} could not join the {backend} group"
        + (f" at {where}" if place.launched else "")
        + f": {error}"
    )


def _leave() -> None:
    try:
        dist.destroy_process_group()
    except (RuntimeError, ValueError, AssertionError) as error:
        print(f"leaving the process group: {error}", file=sys.stderr)  # noqa: T201


def _seed_all(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))
