"""Random tokens that can be learned: a chain in which most tokens have one usual successor.

A batch depends on seed, step and share only, so a training that resumes at any step, on any host,
reads what an undisturbed one would have read.
"""

import torch

VOCABULARY = 64
_USUAL = 0.9  # how often a token is followed by its usual successor


def batch(*, seed: int, step: int, share: int, size: int, length: int) -> torch.Tensor:
    """(size, length + 1) tokens: the inputs, and shifted by one the targets."""
    chain = torch.randperm(VOCABULARY, generator=_generator(seed))
    source = _generator(seed, step + 1, share + 1)
    tokens = torch.randint(VOCABULARY, (size, length + 1), generator=source)
    usual = torch.rand((size, length + 1), generator=source) < _USUAL
    for place in range(1, length + 1):
        after = chain[tokens[:, place - 1]]
        tokens[:, place] = torch.where(usual[:, place], after, tokens[:, place])
    return tokens


def _generator(*numbers: int) -> torch.Generator:
    """One that other numbers cannot collide with by adding up to the same."""
    seed = 0
    for number in numbers:
        seed = (seed * 1_000_003 + number) % (1 << 62)
    return torch.Generator().manual_seed(seed)
