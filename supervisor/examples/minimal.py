"""The shortest training loop that can be supervised, resumed and sharded.

python -m supervisor.examples.minimal CHECKPOINT_DIR
supervise --checkpoint-dir CHECKPOINT_DIR -- python -m supervisor.examples.minimal CHECKPOINT_DIR
"""

import sys

import torch
from torch import nn

from supervisor import agent


def main() -> None:
    """Fit y = sin(x) for a hundred steps, saving every tenth."""
    rank = agent.setup_torch(seed=1)
    device = agent.get_torch_device()
    model = agent.wrap_model(nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    checkpointer = agent.Checkpointer(sys.argv[1], model, optimizer)
    for step in range(checkpointer.resume() + 1, 101):
        x = torch.rand(128, 1, device=device) * 6 - 3
        loss = nn.functional.mse_loss(model(x), torch.sin(x))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        agent.step(step)
        if step % 10 == 0:
            checkpointer.save(step)
            if rank == 0:
                print(f"step={step} loss={loss.item():.6f}", flush=True)
    agent.cleanup()


if __name__ == "__main__":
    main()
