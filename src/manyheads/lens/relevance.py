"""Relevance: how much each input token has to do with one score, as attention tells it.

Source: Chefer, Gur & Wolf 2021, "Generic Attention-model Explainability for Interpreting Bi-modal
and Encoder-Decoder Transformers", section 3. Every attention, weighed by the gradient of the score
(equation 5), passes relevance on, and the residual connection keeps what was there. So what was
recorded is enough, whatever the model.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.lens.gradients import Weighed
from manyheads.nn.places import Axis, Places


def relevance(
    layers: Sequence[Weighed], start: Float[Tensor, " token"]
) -> Float[Tensor, " token_below"]:
    """Follow the rule of self-attention, R = R + A R (equation 6), for one row of R.

    The row is that of the tokens that the score is read from, so it is multiplied from the top down
    as rollout is. What the row begins with, the identity in R, is left out of the result, as it is
    in equation 8: it knows nothing of the score.

    Where tokens are merged on the way (Swin, CvT, CoAtNet), or keys are fewer than queries (CvT),
    the paper has no rule. There a merged token's relevance goes in equal parts to the tokens whose
    centres are nearest to its own, and that of a class token that is not there yet ends.

    Args:
        layers: self-attentions, the lowest first.
        start: how much of each token above the last layer the score is read from.
    """
    share, own = start, start
    above: Places | None = None
    for layer in reversed(layers):
        if above is not None and layer.places is not None:
            share, own = (spread(x, above, layer.places) for x in (share, own))
        share = share + _to_queries(layer, layer.from_queries(share))
        above = layer.places
    return share - own


def relevance_for_pool(layers: Sequence[Weighed], pool: Weighed) -> Float[Tensor, " token"]:
    """The same where a learned query of a pool asks the tokens, as a decoder asks an encoder.

    That is equation 10 with a single query that nothing has changed: A R', where R' is normalised
    by equations 8 and 9. Pools of this kind stand above layers whose tokens stay the same.
    """
    return _through(layers, pool.from_queries(torch.ones(1)))


def relevance_of_source(
    layers: Sequence[Weighed], start: Float[Tensor, " target"]
) -> Float[Tensor, " source"]:
    """Follow an encoder-decoder: the relevance of source tokens to target tokens.

    Equations 6 to 10 with s the target and q the source; equation 11 does not change anything here,
    because the source never asks the target. A recurrent encoder or decoder passes on what no
    attention tells; then this is the cross-attention alone, weighed by the gradient.

    Args:
        layers: every attention of the model in the order in which they ran.
        start: how much of each target token above the last layer the score is read from.
    """
    encoder = [each for each in layers if each.site.stack == "encoder"]
    shape = next(each.attention.shape for each in layers if _crosses(each))
    # Of equation 10 all but the source's factor, the last one, which is the same in every layer.
    target, both = torch.eye(shape[0]), torch.zeros(shape)
    for layer in layers:
        if layer.site.stack == "encoder":
            continue
        weights = layer.whole()
        if _crosses(layer):
            both = both + _normalised(target).T @ weights
        else:
            both = both + weights @ both  # equation 7
            target = target + weights @ target  # equation 6
    return _through(encoder, start @ both)


def read_from(last: Weighed) -> Float[Tensor, " token"]:
    """Say which tokens a score is read from: in equal parts those whose last answers it needs."""
    asked = last.asked()
    return torch.full_like(asked, 1 / len(asked)) if asked.sum() == 0 else asked / asked.sum()


def spread(
    x: Float[Tensor, " token"], coarse: Places, fine: Places
) -> Float[Tensor, " finer_token"]:
    """Hand what tokens have to the finer tokens that they were made of, in equal parts."""
    if coarse == fine:
        return x
    named = dict(zip(coarse.extra, x.tolist(), strict=False))
    extra = x.new_tensor([named.get(name, 0.0) for name in fine.extra])
    grid = x[len(coarse.extra) :].view(coarse.grid)
    rows, columns = _made_of(coarse.rows, fine.rows), _made_of(coarse.columns, fine.columns)
    return torch.cat((extra, (rows.T @ grid @ columns).flatten()))


def _made_of(coarse: Axis, fine: Axis) -> Float[Tensor, "coarse fine"]:
    """Share every token of an axis among the finer ones that are nearest to it; rows sum to 1."""
    places = [torch.tensor(axis.centres()) for axis in (coarse, fine)]
    apart = (places[0][:, None] - places[1]).abs()
    members = torch.zeros_like(apart)
    members[apart.argmin(dim=0), torch.arange(fine.count)] = 1
    # A token that is nobody's nearest was made of what is nearest to it.
    lonely = members.sum(dim=1) == 0
    members[lonely, apart.argmin(dim=1)[lonely]] = 1
    return members / members.sum(dim=1, keepdim=True)


def _through(layers: Sequence[Weighed], asked: Float[Tensor, " token"]) -> Float[Tensor, " token"]:
    """Multiply a row with R of self-attentions, normalised: a row at a time, so long texts may."""
    sums = torch.ones_like(asked)
    for layer in layers:
        sums = sums + layer.from_keys(sums)
    return relevance(layers, _divided(asked, sums - 1)) + asked


def _to_queries(layer: Weighed, x: Float[Tensor, " key"]) -> Float[Tensor, " query"]:
    """Hand what keys have to the tokens; usually they are the same."""
    places, keys = layer.places, layer.attention.key_places
    return x if places is None or keys is None else spread(x, keys, places)


def _crosses(layer: Weighed) -> bool:
    return layer.site.kind.startswith("cross")


def _normalised(r: Float[Tensor, "token token"]) -> Float[Tensor, "token token"]:
    """Let what each token got from others sum to 1, and itself count as much (equations 8, 9)."""
    eye = torch.eye(len(r))
    got = r - eye
    return _divided(got, got.sum(dim=-1, keepdim=True)) + eye


def _divided(x: Tensor, by: Tensor) -> Tensor:
    """Divide; nothing out of nothing is nothing."""
    return torch.where(by > 0, x / by.clamp_min(torch.finfo(by.dtype).tiny), 0.0)
