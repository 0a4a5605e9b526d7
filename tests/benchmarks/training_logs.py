"""Logs for the benchmarks: a training that runs well, and one in whose end all ranks complain.

Written by rule, so that two runs of a benchmark read the same bytes.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

HITS = (
    "srun: error: Node failure on nid200403",
    "[rank13]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
    "gpu-c-9 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
)
COMPLAINTS = (
    "[rank{rank}]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection"
    " closed by peer [10.0.3.{small}]:{port}",
    "gpu-{host}:{port}:{many} [{local}] NCCL WARN [Proxy] NET/IB: Got completion from peer"
    " 10.1.2.{small}<{port}> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
    "[rank{rank}]:[E321 02:07:14.1{port} ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum={many}, OpType=ALLREDUCE, NumelIn=1,"
    " NumelOut=1, Timeout(ms)=600000) ran for 600{local}00 milliseconds before timing out.",
    "x{host}: rank {rank} died from signal 15",
)


def calm() -> Iterator[str]:
    """About what a training prints: steps, library chatter, warnings, bars, one hit in 1e5."""
    number = 0
    while True:
        number += 1
        rank = number % 1024
        if number % 100_000 == 0:
            yield HITS[number // 100_000 % len(HITS)] + "\n"
        elif number % 7 == 0:
            yield f"gpu-{rank}:4711:4733 [{rank % 8}] NCCL INFO Channel {number % 32}/0 : 0 -> 1\n"
        elif number % 13 == 0:
            yield f'  File "/opt/env/lib/python3.11/torch/x.py", line {number % 999}, in f\n'
        elif number % 31 == 0:
            yield f"\rTrain: {number % 100}%|###     | {number % 400}/400 [00:05<09:10, 1.5it/s]\n"
        else:
            yield f"[2026-01-01 10:00:00][I] step={number} loss=2.4100 lr=2.1e-04 dt=0.80s mfu=41\n"


def storm() -> Iterator[str]:
    """The same with three lines in ten a complaint of a rank or its launcher."""
    for number, line in enumerate(calm()):
        if number % 10 not in (1, 4, 7):
            yield line
            continue
        dice = number * 2654435761 % 2**32  # spread evenly, the same each time
        text = COMPLAINTS[(dice >> 7) % len(COMPLAINTS)]
        yield (
            text.format(
                rank=dice % 4096,
                host=dice % 512,
                local=dice % 8,
                small=(dice >> 8) % 250,
                port=(dice >> 5) % 60_000,
                many=(dice >> 3) % 90_000,
            )
            + "\n"
        )


def write_log(path: Path, lines: Iterator[str], size: int) -> None:
    """A log of this size in bytes."""
    written = 0
    with path.open("w") as file:
        while written < size:
            written += file.write("".join(islice(lines, 5000)))
