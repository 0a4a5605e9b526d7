"""Spreads a model over the ranks: FSDP2 per block, tensor parallelism by the model's own plan, DDP.

Theory. FSDP2 shards each unit's parameters over the data-parallel ranks. The units are the model's
repeated blocks, found by structure rather than by name: the outermost containers (ModuleList,
Sequential, ModuleDict) with two or more composite children of one class that hold a twentieth of
all parameters. Everything else is the root's, which is wrapped last. Tensor parallelism comes
before FSDP, and its ranks are neighbours, because they talk at every layer.

An optimizer built before wrapping holds parameters the model no longer has; torch says nothing and
the model never learns. The first step of such an optimizer raises here instead.
"""

import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.optim.optimizer import register_optimizer_step_pre_hook

from supervisor.agent.setup import get_torch_device, get_torch_device_type
from supervisor.errors import UsageError

Parallelism = Literal["fsdp", "ddp", "none"]

_DATA, _TENSOR = "data", "tensor"
_UNIT_SHARE = 0.05  # a container with less than this of all parameters is not worth its collectives
_CONTAINERS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)

_replaced: list[weakref.ref[nn.Parameter]] = []


def wrap_model(
    model: nn.Module,
    parallelism: Parallelism = "fsdp",
    tp: int = 1,
    mesh: DeviceMesh | None = None,
    *,
    param_dtype: torch.dtype | None = None,
    reduce_dtype: torch.dtype = torch.float32,
    reshard_after_forward: bool = True,
) -> nn.Module:
    """Move a model to this rank's device and spread it over the ranks. Build the optimizer after.

    param_dtype is the dtype of computation under FSDP: bfloat16 on accelerators and the model's own
    on CPU unless given. One process without an accelerator gets the model back as it is.
    """
    _check(model, parallelism, tp)
    model = model.to(get_torch_device())
    if not dist.is_initialized() or parallelism == "none":
        return model
    mesh = mesh or make_mesh(tp)
    if tp > 1:
        _apply_tensor_plan(model, mesh[_TENSOR])
    if parallelism == "ddp":
        return nn.parallel.DistributedDataParallel(model, process_group=mesh[_DATA].get_group())
    if dist.get_world_size() > 1 or get_torch_device_type() != "cpu":
        policy = _precision(param_dtype, reduce_dtype)
        _shard(model, mesh[_DATA], policy, reshard_after_forward)
    return model


def make_mesh(tp: int = 1) -> DeviceMesh:
    """The ranks as (data, tensor); tensor-parallel ranks are neighbours."""
    world_size = dist.get_world_size()
    if tp < 1 or world_size % tp:
        raise UsageError(f"{world_size} ranks cannot be split into groups of tp={tp}")
    return init_device_mesh(
        get_torch_device_type(), (world_size // tp, tp), mesh_dim_names=(_DATA, _TENSOR)
    )


def data_shard(mesh: DeviceMesh) -> tuple[int, int]:
    """(index, count): this rank's share of the data; tensor-parallel peers read the same."""
    return mesh.get_local_rank(_DATA), mesh[_DATA].size()


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """The repeated blocks of a model, in order; empty when it has none."""
    total = sum(parameter.numel() for parameter in model.parameters())
    return list(_blocks(model, total * _UNIT_SHARE))


def _blocks(module: nn.Module, least: float) -> Iterator[nn.Module]:
    children = list(module.children())
    if isinstance(module, _CONTAINERS) and _is_stack(children, least):
        yield from children
        return
    for child in children:
        yield from _blocks(child, least)


def _is_stack(children: list[nn.Module], least: float) -> bool:
    if not children or not all(any(child.children()) for child in children):
        return False
    alike = max(Counter(type(child) for child in children).values())
    size = sum(parameter.numel() for child in children for parameter in child.parameters())
    return alike >= 2 and size >= least


def _check(model: nn.Module, parallelism: str, tp: int) -> None:
    if parallelism not in {"fsdp", "ddp", "none"}:
        raise UsageError(f"parallelism {parallelism!r} is not one of fsdp, ddp, none")
    if tp > 1 and parallelism != "fsdp":
        raise UsageError(f"tp={tp} works with parallelism fsdp only, not {parallelism}")
    if tp > 1 and not hasattr(model, "tp_plan"):
        raise UsageError(
            f"tp={tp} needs a plan: give {type(model).__name__} a method tp_plan() that returns "
            "{module name: ParallelStyle}"
        )
    if tp > 1 and not dist.is_initialized():
        raise UsageError(f"tp={tp} needs a process group: call setup_torch() first")


def _apply_tensor_plan(model: nn.Module, mesh: DeviceMesh) -> None:
    from torch.distributed.tensor.parallel import parallelize_module

    before = list(model.parameters())
    parallelize_module(model, mesh, _plan_of(model))
    _remember(before, model)


def _plan_of(model: Any) -> dict[str, Any]:
    plan: dict[str, Any] = model.tp_plan()
    return plan


def _shard(model: nn.Module, mesh: DeviceMesh, policy: MixedPrecisionPolicy, reshard: bool) -> None:
    blocks = find_blocks(model)
    _refuse_shared(blocks)
    before = list(model.parameters())
    for block in blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    _remember(before, model)


def _precision(param_dtype: torch.dtype | None, reduce_dtype: torch.dtype) -> MixedPrecisionPolicy:
    if param_dtype is None and get_torch_device_type() in {"cuda", "xpu"}:
        param_dtype = torch.bfloat16
    if param_dtype is None:
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=param_dtype, reduce_dtype=reduce_dtype)


def _refuse_shared(blocks: list[nn.Module]) -> None:
    """Two units cannot own one parameter, and torch's own words for it name neither."""
    owner: dict[int, int] = {}
    for index, block in enumerate(blocks):
        for name, parameter in block.named_parameters():
            if owner.setdefault(id(parameter), index) != index:
                raise UsageError(
                    f"{type(block).__name__} {owner[id(parameter)]} and {index} share the "
                    f"parameter {name}: FSDP cannot shard it twice; use parallelism='ddp'"
                )


def _remember(before: list[nn.Parameter], model: nn.Module) -> None:
    """Have the first step of an optimizer that holds a replaced parameter raise."""
    now = {id(parameter) for parameter in model.parameters()}
    if not _replaced:
        register_optimizer_step_pre_hook(_refuse_stale)
    _replaced.extend(weakref.ref(parameter) for parameter in before if id(parameter) not in now)


def _refuse_stale(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
    _replaced[:] = [one for one in _replaced if one() is not None]
    if not _replaced:
        return
    stale = {id(one()) for one in _replaced}
    held = (parameter for group in optimizer.param_groups for parameter in group["params"])
    if any(id(parameter) in stale for parameter in held):
        raise UsageError(
            "this optimizer was built before wrap_model() and holds parameters the model no "
            "longer has: build it from model.parameters() after wrapping"
        )
