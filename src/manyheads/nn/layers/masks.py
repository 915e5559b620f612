"""The one mask language of Manyheads.

A mask is boolean, True means "may attend", and it broadcasts to (batch, head, query, key). Masks
are combined with `&`. A query that may attend to nothing gets zeros.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(tokens: Int[Tensor, "batch key"], pad: int) -> Bool[Tensor, "batch 1 1 key"]:
    """Let every query see the keys that are not padding."""
    return (tokens != pad)[:, None, None, :]


def causal_mask(
    length: int, device: torch.device | None = None
) -> Bool[Tensor, "1 1 {length} {length}"]:
    """Let position t see positions 0..t: masked self-attention in Vaswani et al. 2017, 3.2.3."""
    everything = torch.ones(length, length, dtype=torch.bool, device=device)
    return everything.tril()[None, None]
