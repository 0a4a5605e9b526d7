"""Trains a small GPT with FSDP2 and tensor parallelism on any device, and fails on demand.

python -m supervisor.examples.fsdp_tp --train-iters 60 --save-interval 10 --ckpt-dir DIR

With the same number of ranks the loss of each step is the same number to the last bit on CPU,
however often the training was interrupted and resumed.
"""

import os

# Ranks that share a laptop's cores are fastest with one thread each, and sums keep their order.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import torch
import torch.distributed as dist
from torch.nn import functional

from supervisor import agent
from supervisor.errors import SupervisorError, UsageError
from supervisor.examples.faults import ALL_RANKS, Fault, FaultKind, chatter, strike
from supervisor.examples.gpt import HEAD_DIM, Gpt
from supervisor.examples.tokens import VOCABULARY, batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line asks for."""

    train_iters: int
    save_interval: int
    ckpt_dir: Path | None
    loss_file: Path | None
    batch_size: int
    seq_len: int
    layers: int
    dim: int
    tp: int
    lr: float
    seed: int
    step_time: float
    chatter: bool
    fault: Fault | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What a step works on."""

    options: Options
    rank: int
    share: int  # of the data
    device: torch.device
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer


def main() -> int:
    """Train; a mistake of the user's is one line, not a traceback."""
    try:
        _train(_parse(sys.argv[1:]))
    except SupervisorError as error:
        print(f"fsdp_tp: {error}", file=sys.stderr, flush=True)
        return int(error.exit_code)
    return 0


def _train(options: Options) -> None:
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
    if (options.dim // HEAD_DIM) % options.tp:
        raise UsageError(f"{options.dim // HEAD_DIM} heads cannot be split over --tp {options.tp}")
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


def _parse(arguments: list[str]) -> Options:
    parsed = _parser().parse_args(arguments)
    for name in ("train_iters", "save_interval", "batch_size", "seq_len", "layers", "dim", "tp"):
        if getattr(parsed, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1")
    values = vars(parsed)
    fault = _fault(*(values.pop(f"fault_{one}") for one in ("kind", "rank", "step", "attempt")))
    return Options(fault=fault, **values)


def _fault(kind: str | None, rank: int, step: int, attempt: int) -> Fault | None:
    if kind is None:
        return None
    return Fault(kind=FaultKind(kind), rank=rank, step=step, attempt=attempt)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fsdp_tp", description="Train a small GPT; fail on demand."
    )
    add = parser.add_argument
    add("--train-iters", type=int, default=60, help="steps in all (default: %(default)s)")
    add("--save-interval", type=int, default=10, help="steps between checkpoints")
    add("--ckpt-dir", type=Path, help="where checkpoints go; without it none are saved")
    add("--loss-file", type=Path, help="append a line of JSON with step and loss for each step")
    add("--batch-size", type=int, default=8, help="sequences a step and data-parallel rank")
    add("--seq-len", type=int, default=32)
    add("--layers", type=int, default=2)
    add("--dim", type=int, default=64)
    add("--tp", type=int, default=1, help="tensor-parallel ranks that share one model")
    add("--lr", type=float, default=3e-3)
    add("--seed", type=int, default=1)
    add("--step-time", type=float, default=0.0, help="seconds to add to each step")
    add("--chatter", action="store_true", help="print a line every 0.2 s from a thread")
    add("--fault", dest="fault_kind", choices=[str(kind) for kind in FaultKind])
    add("--fault-rank", type=int, default=0, help=f"{ALL_RANKS} for all ranks")
    add("--fault-step", type=int, default=1, help="fail at the beginning of this step")
    add("--fault-attempt", type=int, default=1, help="fail in this attempt only")
    return parser


if __name__ == "__main__":
    sys.exit(main())
