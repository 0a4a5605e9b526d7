"""A small GPT that says how it may be split over tensor-parallel ranks."""

import torch
from torch import nn
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel
from torch.nn import functional

from supervisor.examples.options import HEAD_SIZE


class Attention(nn.Module):
    """Causal self-attention over as many heads as this rank has."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, dim) to the same."""
        query, key, value = (
            project(x).unflatten(-1, (-1, HEAD_SIZE)).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention and feed-forward, each normalized before and added after."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = Attention(dim)
        self.feed_norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, dim) to the same."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(functional.gelu(self.up(self.feed_norm(x))))  # type: ignore[no-any-return]


class Gpt(nn.Module):
    """Tokens in, logits of the next token out."""

    def __init__(self, *, vocabulary: int, length: int, layers: int, dim: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(batch, length) to (batch, length, vocabulary)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))  # type: ignore[no-any-return]

    def tp_plan(self) -> dict[str, ParallelStyle]:
        """Split heads and the feed-forward's middle; what is small is on every rank."""
        split = {"query", "key", "value", "up"}
        joined = {"out", "down"}
        plan: dict[str, ParallelStyle] = {}
        for name, _ in self.blocks.named_modules():
            last = name.rpartition(".")[2]
            if last in split:
                plan[f"blocks.{name}"] = ColwiseParallel()
            elif last in joined:
                plan[f"blocks.{name}"] = RowwiseParallel()
        return plan
