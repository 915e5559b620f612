"""Similarity of layers: linear centred kernel alignment (CKA) of their vectors."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from manyheads.lens.described_figures import figure
from manyheads.lens.panels import Figure
from manyheads.lens.rounding import rounded
from manyheads.lens.trace.states import LayerState

FEWEST = 4  # examples needed for an unbiased estimate
MOST = 400  # compared tokens: of more, every second, third, ...


def cka_matrix(layers: Sequence[Tensor]) -> list[list[float]]:
    """Return the linear CKA of every two layers' vectors (example, ...) (Kornblith et al. 2019).

    1 if they are equal up to rotation and scale, 0 if they are unrelated. The estimate is without
    the bias that makes few examples in many dimensions look similar: HSIC by Song et al. 2012, as
    in Nguyen et al. 2021, "Do Wide and Deep Networks Learn the Same Things?", equation 3. Written
    as an inner product of matrices that are centred without their diagonals (Szekely & Rizzo 2014,
    definition 2), so between -1 and 1. At least 4 examples.
    """
    grams = [_centred_gram(each) for each in layers]
    return [
        [((a * b).sum() / (a.norm() * b.norm()).clamp_min(1e-30)).item() for b in grams]
        for a in grams
    ]


def cka_figures(layers: Sequence[LayerState]) -> list[Figure]:
    """Compare the layers of each stack for a text; all layers on one grid for an image."""
    images = any(each.grid is not None or each.is_map for each in layers)
    groups: dict[str, list[tuple[LayerState, Tensor]]] = {}
    for state, x in on_one_grid(layers) if images else [(each, each.x[0]) for each in layers]:
        owner = "the model's" if images else f"the {state.stack}'s"
        groups.setdefault(owner, []).append((state, x))
    figures = []
    for owner, found in groups.items():
        # A decoder that reads one token at a time cannot be compared with layers over all tokens.
        tokens = {len(x) for _, x in found}
        if len(found) < 2 or len(tokens) > 1 or min(tokens) < FEWEST:
            continue
        count = tokens.pop()
        step = -(-count // MOST)
        what = "places, finer grids averaged to the coarsest" if images else "tokens"
        facts = {"owner": owner, "count": -(-count // step), "what": what}
        names = [s.name if images else s.name.removeprefix(f"{s.stack} ") for s, _ in found]
        values = cka_matrix([x[::step] for _, x in found])
        table = rounded(torch.tensor(values, dtype=torch.float64))
        figures.append(figure("cka", facts, values=table, rows=names, columns=names))
    return figures


def on_one_grid(
    layers: Sequence[LayerState],
) -> list[tuple[LayerState, Float[Tensor, "place dim"]]]:
    """Pool feature maps and token grids to the smallest grid; drop tokens without a position."""
    maps = []
    for state in layers:
        x = state.x[0].float().cpu()
        if x.ndim == 3:
            maps.append((state, x))
        elif state.grid is not None:
            patches = x[len(state.grid.extra) :]
            if len(patches) == state.grid.shape[0] * state.grid.shape[1]:
                maps.append((state, patches.T.unflatten(1, state.grid.shape)))
    if not maps:
        return []
    rows, columns = (min(x.shape[side] for _, x in maps) for side in (1, 2))
    return [(state, F.adaptive_avg_pool2d(x, (rows, columns)).flatten(1).T) for state, x in maps]


def _centred_gram(x: Tensor) -> Float[Tensor, "example example"]:
    """Return the inner products of examples, centred beside the diagonal, which is 0."""
    flat = x.flatten(1).double()
    flat = flat - flat.mean(dim=0)
    gram = flat @ flat.T
    count = len(gram)
    gram = gram - gram.diagonal().diag()
    sums = gram.sum(dim=0) / (count - 2)
    total = gram.sum() / ((count - 1) * (count - 2))
    centred = gram - sums[:, None] - sums + total
    return centred - centred.diagonal().diag()
