"""A program for test_agent_ranks: ranks that save while something goes wrong with one of them.

agent_ranks.py SCENARIO CHECKPOINT_DIR
"""

import errno
import os
import signal
import sys
from typing import Any

import torch

from supervisor import agent
from supervisor.errors import SupervisorError

TIMEOUT = 5.0  # seconds; a rank that says nothing for so long is given up


def main(scenario: str, folder: str) -> int:
    rank = agent.setup_torch(seed=1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))
    early = torch.optim.SGD(model.parameters(), lr=0.1)
    model = agent.wrap_model(model)
    if scenario == "stale":
        return refused(lambda: early.step())
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    agent.Checkpointer(folder, model, optimizer).save(1)
    checkpointer = agent.Checkpointer(folder, model, optimizer, timeout=TIMEOUT)
    if rank == 1:
        sys.addaudithook(FAULTS[scenario])
    failed = refused(lambda: checkpointer.save(2))
    if scenario == "full":
        checkpointer.save(3)
        agent.cleanup()
    return failed


def refused(call: Any) -> int:
    try:
        call()
    except SupervisorError as error:
        print(f"refused: {error}", flush=True)
        return int(error.exit_code)
    print("not refused", flush=True)
    return 0


def writes_shard(event: str, arguments: tuple[Any, ...]) -> bool:
    return event == "open" and "step-00000002" in str(arguments[0]) and "__1_" in str(arguments[0])


def full(event: str, arguments: tuple[Any, ...]) -> None:
    if writes_shard(event, arguments):
        raise OSError(errno.ENOSPC, "No space left on device")


def killed(event: str, arguments: tuple[Any, ...]) -> None:
    if writes_shard(event, arguments):
        os.kill(os.getpid(), signal.SIGKILL)


def stopped(event: str, arguments: tuple[Any, ...]) -> None:
    if writes_shard(event, arguments):
        os.kill(os.getpid(), signal.SIGSTOP)


FAULTS = {"full": full, "killed": killed, "stopped": stopped}

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
