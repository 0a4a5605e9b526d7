"""Checkpoints of the training state: saved so that what is chosen later is always whole.

    checkpointer = Checkpointer(folder, model, optimizer)
    for step in range(checkpointer.resume() + 1, last + 1):
        ...
        checkpointer.save(step)

All ranks call both. There is no collective on the training group in either: a rank that dies or
fails makes every rank raise CheckpointError for the same call, within a time limit, and leaves the
checkpoints before as they were. After a resume by the same number of ranks the training continues
bit by bit; by another number the state is resharded and the random generators start anew.

Owns what users call. One save is supervisor.agent.saving, the choice supervisor.agent.choice.
"""

import contextlib
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException

from supervisor import wire
from supervisor.agent import progress
from supervisor.agent.choice import Share, choose_verified
from supervisor.agent.exchange import CheckpointError, Exchange, describe
from supervisor.agent.rank_state import Extras, reseed, unpack
from supervisor.agent.saving import Save
from supervisor.agent.shards import load_shards
from supervisor.errors import UsageError

_TIMEOUT = 600.0  # seconds any rank may take for its part of one round


class Checkpointer:
    """Saves and resumes model, optimizer, random generators and extras under one folder."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        extra: Extras | None = None,
        keep: int = 3,
        timeout: float = _TIMEOUT,
    ) -> None:
        if keep < 1:
            raise UsageError(f"keep={keep}: at least one checkpoint must be kept")
        _check_optimizer(model, optimizer)
        self._folder = Path(folder).absolute()
        self._model, self._optimizer = model, optimizer
        self._extra = dict(extra or {})
        self._keep, self._timeout = keep, timeout

    def save(self, step: int) -> None:
        """Save the state after this many steps. All ranks call it with the same step."""
        what = f"checkpoint of step {step} in {self._folder} was not saved"
        with progress.during(wire.RankPhase.CHECKPOINT), _one_error(what):
            save = Save(Exchange(self._timeout), self._folder, step, self._keep)
            save.run(self._model, self._optimizer, self._extra)

    def resume(self) -> int:
        """Load the chosen checkpoint. Returns its step, 0 when there is none."""
        what = f"cannot resume from a checkpoint in {self._folder}"
        with progress.during(wire.RankPhase.LOAD), _one_error(what):
            exchange = Exchange(self._timeout)
            share = choose_verified(exchange, self._folder)
            if share is None:
                return 0
            exchange.round("load", lambda: self._load(exchange, share), lambda parts: parts)
            return share.manifest.step

    def _load(self, exchange: Exchange, share: Share) -> None:
        own = share.manifest.world_size == exchange.world_size
        content = load_shards(
            share.folder, self._model, self._optimizer, exchange.rank if own else 0
        )
        unpack(content, self._extra, own=own)
        if not own:
            reseed(share.manifest.step, exchange.rank)


def _check_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    own = {id(parameter) for parameter in model.parameters()}
    held = (parameter for group in optimizer.param_groups for parameter in group["params"])
    if any(id(parameter) not in own for parameter in held):
        raise UsageError(
            "the optimizer holds parameters that are not the model's: "
            "build it from model.parameters() after wrap_model()"
        )


@contextlib.contextmanager
def _one_error(what: str) -> Iterator[None]:
    """Whatever goes wrong on the way becomes one exception with one clear line.

    torch's CheckpointException is a BaseException, which `except Exception` would let through.
    """
    foreign = (OSError, RuntimeError, ValueError, KeyError, pickle.PickleError)
    try:
        yield
    except (CheckpointError, *foreign, CheckpointException) as error:
        raise CheckpointError(f"{what}: {describe(error)}") from error
