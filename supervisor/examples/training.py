"""The example's training loop."""

import json
import os
import time
from dataclasses import dataclass
from typing import IO

import torch
import torch.distributed as dist
from torch.nn import functional

from supervisor import agent
from supervisor.errors import UsageError
from supervisor.examples.faults import chatter, strike
from supervisor.examples.gpt import Gpt
from supervisor.examples.options import Options
from supervisor.examples.tokens import VOCABULARY, batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What a step works on."""

    options: Options
    rank: int
    share: int  # of the data
    device: torch.device
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer


def train(options: Options) -> None:
    """Train to the end, from the chosen checkpoint on."""
    training = _build(options)
    checkpointer = _checkpointer(training)
    done = checkpointer.resume() if checkpointer else 0
    if training.rank == 0 and done:
        print(f"resumed from step {done}", flush=True)
    agent.phase("compile")
    with _open_losses(training) as losses:
        for step in range(done + 1, options.train_iters + 1):
            _step(training, step, losses)
            if checkpointer and step % options.save_interval == 0:
                checkpointer.save(step)
    agent.cleanup()


def _build(options: Options) -> Training:
    rank = agent.setup_torch(seed=options.seed)
    if options.chatter:
        chatter(rank)
    mesh = agent.make_mesh(options.tp)
    model = agent.wrap_model(
        Gpt(
            vocabulary=VOCABULARY,
            length=options.seq_len,
            layers=options.layers,
            dim=options.dim,
        ),
        tp=options.tp,
        mesh=mesh,
    )
    return Training(
        options=options,
        rank=rank,
        share=agent.data_shard(mesh)[0],
        device=agent.get_torch_device(),
        model=model,
        # with tp, blocks and root lie on different meshes, which fused updates cannot mix
        optimizer=torch.optim.AdamW(model.parameters(), lr=options.lr, foreach=False),
    )


def _checkpointer(training: Training) -> agent.Checkpointer | None:
    if training.options.ckpt_dir is None:
        return None
    return agent.Checkpointer(training.options.ckpt_dir, training.model, training.optimizer)


def _step(training: Training, step: int, losses: IO[str]) -> None:
    began = time.perf_counter()
    options = training.options
    if options.fault and options.fault.strikes(training.rank, step):
        strike(options.fault, training.rank)
    loss = _mean(_update(training, step))
    time.sleep(options.step_time)
    agent.step(step)
    if training.rank == 0:
        took = time.perf_counter() - began
        print(f"step={step} loss={loss!r} dt={took:.4f}", flush=True)
        losses.write(json.dumps({"step": step, "loss": loss}) + "\n")
        losses.flush()


def _update(training: Training, step: int) -> torch.Tensor:
    options = training.options
    tokens = batch(
        seed=options.seed,
        step=step,
        share=training.share,
        size=options.batch_size,
        length=options.seq_len,
    ).to(training.device)
    logits = training.model(tokens[:, :-1])
    loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
    training.optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    training.optimizer.step()
    return loss.detach()


def _mean(loss: torch.Tensor) -> float:
    """Over all ranks, in the widest float the device has."""
    total = loss.to(torch.float32 if loss.device.type == "mps" else torch.float64)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def _open_losses(training: Training) -> IO[str]:
    path = training.options.loss_file
    if training.rank != 0 or path is None:
        return open(os.devnull, "w")
    try:
        return path.open("a")
    except OSError as error:
        raise UsageError(f"--loss-file {path}: {error.strerror}") from None
