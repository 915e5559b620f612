"""Direct contributions: what each head, layer and source token writes into a difference of logits.

The residual stream is a sum of what the layers added to it, and the logits are linear in it, if the
statistics of each LayerNorm are frozen. So the difference of two logits is a sum of parts, plus
a term of biases. Indirect effects, through later layers, are no part of it: see `patching.py`.
Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from manyheads.errors import UsageError
from manyheads.lens.cause.patching import head_sites
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.editing.edits import edit, recorded
from manyheads.nn.editing.seam import HEAD, PATTERN, STATE, ActivationRecord
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import LayerId, Trace, record

POOL = "pool"  # reads the stack; its map is frozen
Weights = Float[Tensor, "row head query key"]


class _FrozenNorms(TorchFunctionMode):
    """Lets no gradient flow through the statistics of LayerNorm."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not F.layer_norm:
            return func(*args, **(kwargs or {}))
        return _layer_norm(*args, **(kwargs or {}))


def _layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    centred = x - x.mean(dim=axes, keepdim=True)
    normed = centred * (centred.square().mean(dim=axes, keepdim=True) + eps).rsqrt().detach()
    normed = normed if weight is None else normed * weight
    return normed if bias is None else normed + bias


@dataclass(frozen=True, eq=False)
class Contributions:
    """Parts of a difference of logits; all of them sum to `total`."""

    total: float
    heads: dict[LayerId, Float[Tensor, " head"]]
    parts: dict[LayerId, float]  # what enters the stack, and each feed-forward
    rest: float  # biases, shifts of norms, and whatever is not linear behind the stack
    # Of heads, by the key that the value comes from, summed over queries.
    sources: dict[LayerId, Float[Tensor, "head key"]]


def contributions(run: Callable[[], Float[Tensor, ""]]) -> Contributions:
    """Divide the score of one pass, such as a difference of two logits.

    Args:
        run: runs the model on one input, without a search, and returns the score.

    Raises:
        UsageError: nothing that adds to a residual stream leads to the score, or the model ran
            more than once.
    """
    with torch.no_grad(), record(states=True) as seen:
        run()
    kept = [each.layer_id for each in seen if isinstance(each, ActivationRecord)]
    blocks = {each.stack for each in kept if each.kind.startswith("added")}

    def adds(site: LayerId) -> bool:
        if site.kind == STATE:
            return site.layer < 0 or site.stack not in blocks
        return site.kind == "added feedforward" or site.kind.endswith(f" {HEAD}")

    chosen = [each for each in dict.fromkeys(kept) if each.stack != POOL and adds(each)]
    leaves: dict[LayerId, Tensor] = {}

    def leaf(site: LayerId) -> Callable[[Tensor], Tensor]:
        def cut(x: Tensor) -> Tensor:
            if site in leaves:
                raise UsageError(
                    f"{site} ran twice: contributions are those of one pass, which reads all "
                    "tokens at once. Run the model once, and not step by step."
                )
            leaves[site] = x.detach().requires_grad_()
            return leaves[site]

        return cut

    with torch.enable_grad(), _FrozenNorms(), edit() as changes:
        for site in chosen:
            changes.at(site).apply(leaf(site))
        for site in head_sites(seen):
            if site.stack == POOL:
                pattern = LayerId(site.stack, site.layer, site.kind.replace(HEAD, PATTERN))
                changes.at(pattern).apply(lambda weights: weights.detach())
        total = run()
        found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    paired = zip(leaves, found, strict=True)
    gradients = {s: g for s, g in paired if g is not None and bool(g.any())}
    if not gradients:
        raise UsageError("No head or layer that an edit can name leads to this score.")
    heads, parts, sources = {}, {}, {}
    for site, gradient in gradients.items():
        products = leaves[site].detach() * gradient
        if site.kind.endswith(f" {HEAD}"):
            heads[site] = products.sum(dim=(0, 2, 3))
            found_sources = _by_source(seen, site, gradient)
            if found_sources is not None:
                sources[site] = found_sources
        else:
            parts[site] = float(products.sum())
    score = float(total.detach())
    rest = score - sum(parts.values()) - sum(float(each.sum()) for each in heads.values())
    return Contributions(score, heads, parts, rest, sources)


def _by_source(seen: Trace, site: LayerId, gradient: Tensor) -> Tensor | None:
    """Divide what heads wrote by the keys: weight times value, along the gradient."""
    own = LayerId(site.stack, site.layer, site.kind.removesuffix(f" {HEAD}"))
    maps = [r for r in seen if isinstance(r, AttentionRecord) and r.layer_id == own]
    if len(maps) != 1 or maps[0].partition is not None:
        return None
    v = recorded(seen, LayerId(own.stack, own.layer, f"{own.kind} v"))
    return (maps[0].weights() * (gradient @ v.transpose(-2, -1))).sum(dim=(0, 2))


def weights_by_norm(trace: Trace, attention: MultiHeadAttention) -> Weights:
    """Weigh each key by the length of what is written from it: ||weight x value x W_O||.

    A key may have a large weight and a short value. Rows do not sum to 1. Source: Kobayashi et
    al. 2020, "Attention is Not Only a Weight".

    Args:
        trace: one pass, recorded with `record(states=True)`.
        attention: the module, which has the output projection.
    """
    own = attention.layer_id
    v = recorded(trace, LayerId(own.stack, own.layer, f"{own.kind} v"))
    size = v.shape[-1]
    projection = attention.out.weight.detach().unflatten(1, (-1, size))  # (dim, head, size)
    written = torch.einsum("rhks,dhs->rhkd", v.float(), projection.float()).norm(dim=-1)
    weights = recorded(trace, LayerId(own.stack, own.layer, f"{own.kind} {PATTERN}"))
    return weights * written[:, :, None]


def attention_modules(model: nn.Module) -> dict[LayerId, MultiHeadAttention]:
    """Find the attentions of a model by their layers."""
    found = (each for each in model.modules() if isinstance(each, MultiHeadAttention))
    return {each.layer_id: each for each in found}
