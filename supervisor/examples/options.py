"""The example's command line. Loads no torch, so that a mistake is told at once."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from supervisor.errors import UsageError
from supervisor.examples.faults import ALL_RANKS, Fault, FaultKind

HEAD_SIZE = 16  # of the model's attention heads


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


def parse(arguments: list[str]) -> Options:
    """Options that fit together, or UsageError."""
    parsed = _parser().parse_args(arguments)
    for name in ("train_iters", "save_interval", "batch_size", "seq_len", "layers", "dim", "tp"):
        if getattr(parsed, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1")
    _check_heads(parsed.dim, parsed.tp)
    values = vars(parsed)
    fault = _fault(*(values.pop(f"fault_{one}") for one in ("kind", "rank", "step", "attempt")))
    return Options(fault=fault, **values)


def _check_heads(dim: int, tp: int) -> None:
    heads, rest = divmod(dim, HEAD_SIZE)
    if rest:
        raise UsageError(f"--dim {dim} is not a multiple of the head size {HEAD_SIZE}")
    if heads % tp:
        raise UsageError(f"{heads} heads cannot be split over --tp {tp}")


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
