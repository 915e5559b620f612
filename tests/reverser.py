"""A tiny Transformer that has learned, in seconds, to spell words of seven letters backwards.

Random weights repeat one token for ever; this one gives outputs of many words and lengths, with
enough doubt left that search has something to decide.
"""

from functools import cache

import torch
from torch import Tensor

from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.train.losses import smoothed_cross_entropy

CONFIG = TransformerConfig(
    vocabulary=10,  # pad, start, end, and the letters 3..9
    dim=32,
    heads=4,
    ffn_dim=64,
    encoder_layers=2,
    decoder_layers=2,
    dropout=0.0,
)
LONGEST = 7


def words(count: int, seed: int) -> list[list[int]]:
    """Random words of 1 to 7 letters."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, LONGEST + 1, (count,), generator=generator).tolist()
    return [torch.randint(3, 10, (length,), generator=generator).tolist() for length in lengths]


def padded(rows: list[list[int]]) -> Tensor:
    """One tensor; short rows end in padding."""
    longest = max(map(len, rows))
    return torch.tensor([row + [CONFIG.pad] * (longest - len(row)) for row in rows])


def batch(sources: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, targets shifted right behind the start token, and targets up to the end token."""
    targets = [source[::-1] for source in sources]
    return (
        padded(sources),
        padded([[CONFIG.start, *target] for target in targets]),
        padded([[*target, CONFIG.end] for target in targets]),
    )


def loss(model: Transformer, sources: list[list[int]]) -> Tensor:
    """Mean cross-entropy per target token."""
    source, shifted, target = batch(sources)
    real = target != CONFIG.pad
    return smoothed_cross_entropy(model(source, shifted)[real], target[real], 0.0) / real.sum()


@cache
def trained(steps: int = 150) -> Transformer:
    """Train from a fixed seed; do not change what you get."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Transformer(CONFIG)
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for step in range(steps):
            optimizer.zero_grad()
            loss(model, words(32, seed=step)).backward()
            optimizer.step()
    return model.eval()
