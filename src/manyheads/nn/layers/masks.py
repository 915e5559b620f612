"""The one mask language of Manyheads.

A mask is boolean, True means "may attend", and it broadcasts to (batch, head, query, key). Masks
are combined with `&`. A query that may attend to nothing gets zeros.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from manyheads.errors import UsageError


def check_mask(mask: Tensor | None) -> None:
    """Refuse numbers as a mask: the fused kernel would add them to the scores.

    Raises:
        UsageError: the mask is not boolean.
    """
    if mask is not None and mask.dtype != torch.bool:
        raise UsageError(
            f"The mask holds {mask.dtype} of shape {tuple(mask.shape)}, but a mask is boolean, "
            "True where a query may attend: `mask == 0` converts one that is 0 there and -inf "
            "elsewhere. What is added to the scores is the bias; keys and values of another "
            "sequence go into `cross_attend(x, project(source))`."
        )


def check_bias(bias: Tensor | None) -> None:
    """Refuse a mask as a bias: added to the scores, it would hide nothing.

    Raises:
        UsageError: the bias is boolean.
    """
    if bias is not None and bias.dtype == torch.bool:
        raise UsageError("The bias is boolean, but it is added to the scores: give it as the mask.")


def padding_mask(tokens: Int[Tensor, "batch key"], pad: int) -> Bool[Tensor, "batch 1 1 key"]:
    """Let every query see the keys that are not padding."""
    return (tokens != pad)[:, None, None, :]


def causal_mask(
    length: int, device: torch.device | None = None, *, past: int = 0
) -> Bool[Tensor, "1 1 {length} {past}+{length}"]:
    """Let position t see positions 0..t: masked self-attention in Vaswani et al. 2017, 3.2.3.

    The queries are the last `length` positions, behind `past` others.
    """
    keys = torch.arange(past + length, device=device)
    queries = torch.arange(past, past + length, device=device)
    return (keys <= queries[:, None])[None, None]
