"""Relevance of each input token for one score, computed from attention.

Source: Chefer, Gur & Wolf 2021, "Generic Attention-model Explainability for Interpreting Bi-modal
and Encoder-Decoder Transformers", section 3. Every attention, weighed by the gradient of the score
(equation 5), passes relevance on, and the residual connection keeps it. Only recorded attentions
are needed, so it works for every model.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.lens.attribution.gradients import GradientWeightedAttention
from manyheads.nn.recording.token_grid import Axis, TokenGrid

Layers = Sequence[GradientWeightedAttention]  # the lowest first


def relevance(layers: Layers, start: Float[Tensor, " token"]) -> Float[Tensor, " token_below"]:
    """Follow the rule of self-attention, R = R + A R (equation 6), for one row of R.

    The row is that of the tokens that the score is computed from, so it is multiplied from the top
    down as in rollout. The identity that R starts with is left out of the result, as in equation 8:
    it does not depend on the score.

    Where tokens are merged on the way (Swin, CvT, CoAtNet), or keys are fewer than queries (CvT),
    the paper has no rule. There a merged token's relevance is divided equally among the tokens
    whose centres are nearest to its own; that of a class token that does not exist yet is dropped.

    Args:
        layers: self-attentions, the lowest first.
        start: the share of each token above the last layer in the score.
    """
    share, own = start, start
    above: TokenGrid | None = None
    for layer in reversed(layers):
        grid, keys = layer.attention.query_grid, layer.attention.key_grid
        if above is not None and grid is not None:
            share, own = (onto_grid(x, above, grid) for x in (share, own))
        passed = layer.from_queries(share)
        share = share + (passed if grid is None or keys is None else onto_grid(passed, keys, grid))
        above = grid
    return share - own


def relevance_for_pool(layers: Layers, pool: GradientWeightedAttention) -> Float[Tensor, " token"]:
    """Follow a pool whose learned query attends to the tokens, as a decoder to an encoder.

    That is equation 10 with a single query that no layer has changed: A R', where R' is normalised
    by equations 8 and 9. The layers below a pool must all have the same tokens.
    """
    return _through(layers, pool.from_queries(torch.ones(1)))


def relevance_of_source(
    layers: Layers, start: Float[Tensor, " target"]
) -> Float[Tensor, " source"]:
    """Follow an encoder-decoder: the relevance of source tokens to target tokens.

    `start` is the share of each target token above the last layer in the score. Equations 6 to 10
    with s the target and q the source; equation 11 does not change anything here, because the
    source never attends to the target. What a recurrent encoder or decoder passes on is not
    attention; then this is the cross-attention alone, weighed by the gradient.
    """
    encoder = [each for each in layers if each.attention.layer_id.stack == "encoder"]
    shape = next(each.attention.shape for each in layers if _crosses(each))
    # Of equation 10 all but the source's factor, the last one, which is the same in every layer.
    target, both = torch.eye(shape[0]), torch.zeros(shape)
    for layer in layers:
        if layer.attention.layer_id.stack == "encoder":
            continue
        weights = layer.whole()
        if _crosses(layer):
            both = both + _normalised(target).T @ weights
        else:
            both = both + weights @ both  # equation 7
            target = target + weights @ target  # equation 6
    return _through(encoder, start @ both)


def read_from(last: GradientWeightedAttention) -> Float[Tensor, " token"]:
    """Divide 1 equally among the tokens whose last outputs the score depends on."""
    asked = torch.zeros(last.attention.shape[0])
    told = last.gradient.abs().amax(dim=(1, 3)).cpu() > 0  # row query
    for cut in last.attention.cuts():
        asked[cut.queries] = told[cut.row, cut.rows].float()
    return torch.full_like(asked, 1 / len(asked)) if asked.sum() == 0 else asked / asked.sum()


def onto_grid(
    x: Float[Tensor, " token"], coarse: TokenGrid, fine: TokenGrid
) -> Float[Tensor, " finer_token"]:
    """Divide the values of tokens equally among the finer tokens that they were merged from."""
    if coarse == fine:
        return x
    named = dict(zip(coarse.extra, x.tolist(), strict=False))
    extra = x.new_tensor([named.get(name, 0.0) for name in fine.extra])
    laid = x[len(coarse.extra) :].view(coarse.shape)
    rows, columns = _made_of(coarse.rows, fine.rows), _made_of(coarse.columns, fine.columns)
    return torch.cat((extra, (rows.T @ laid @ columns).flatten()))


def _made_of(coarse: Axis, fine: Axis) -> Float[Tensor, "coarse fine"]:
    """Share every token of an axis among the finer ones that are nearest to it; rows sum to 1."""
    centres = [torch.tensor(axis.centres()) for axis in (coarse, fine)]
    apart = (centres[0][:, None] - centres[1]).abs()
    members = torch.zeros_like(apart)
    members[apart.argmin(dim=0), torch.arange(fine.count)] = 1
    # A token that is nearest to no finer one gets the one nearest to it.
    lonely = members.sum(dim=1) == 0
    members[lonely, apart.argmin(dim=1)[lonely]] = 1
    return members / members.sum(dim=1, keepdim=True)


def _through(layers: Layers, asked: Float[Tensor, " token"]) -> Float[Tensor, " token"]:
    """Multiply a row with the normalised R of self-attentions, without forming R."""
    sums = torch.ones_like(asked)
    for layer in layers:
        sums = sums + layer.from_keys(sums)
    return relevance(layers, _divided(asked, sums - 1)) + asked


def _crosses(layer: GradientWeightedAttention) -> bool:
    return layer.attention.layer_id.kind.startswith("cross")


def _normalised(r: Float[Tensor, "token token"]) -> Float[Tensor, "token token"]:
    """Scale what each token got from others to sum to 1, and add the identity (equations 8, 9)."""
    eye = torch.eye(len(r))
    got = r - eye
    return _divided(got, got.sum(dim=-1, keepdim=True)) + eye


def _divided(x: Tensor, by: Tensor) -> Tensor:
    """Divide; where the divisor is 0 the result is 0."""
    return torch.where(by > 0, x / by.clamp_min(torch.finfo(by.dtype).tiny), 0.0)
