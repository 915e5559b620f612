"""How alike the layers of a model are: linear centred kernel alignment of their vectors."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from manyheads.lens.panels import Figure, Heat
from manyheads.lens.states import LayerState
from manyheads.lens.view import rounded

FEWEST = 4  # examples, for an unbiased estimate
MOST = 400  # tokens that are compared: of more, every second, third, ...


def cka(x: Float[Tensor, "example ..."], y: Float[Tensor, "example ..."]) -> float:
    """Linear centred kernel alignment of two layers' vectors (Kornblith et al. 2019, equation 4).

    1 if one is the other turned and scaled, 0 if they have nothing in common.

    Args:
        x: of one layer.
        y: the same examples in another layer, of any width.
    """
    return _alignment(*(_gram(each) for each in (x, y)))


def unbiased_cka(x: Float[Tensor, "example ..."], y: Float[Tensor, "example ..."]) -> float:
    """The same without the bias that makes few examples in many dimensions all look alike.

    HSIC by Song et al. 2012, as in Nguyen et al. 2021, "Do Wide and Deep Networks Learn the Same
    Things?", equation 3. Written as an inner product of matrices that are centred without their
    diagonals (Szekely & Rizzo 2014, definition 2), so between -1 and 1. At least 4 examples.
    """
    return _alignment(*(_centred_beside_diagonal(_gram(each)) for each in (x, y)))


def unbiased_likeness(layers: Sequence[Tensor]) -> list[list[float]]:
    """Unbiased CKA of every two layers."""
    grams = [_centred_beside_diagonal(_gram(each)) for each in layers]
    return [[_alignment(a, b) for b in grams] for a in grams]


def likeness_figures(layers: Sequence[LayerState]) -> list[Figure]:
    """Compare the layers of each stack of a text; all layers of a picture, on one grid."""
    pictures = any(each.places is not None or each.is_map for each in layers)
    groups = (
        [("the model's", on_one_grid(layers))]
        if pictures
        else [
            (f"the {stack}'s", [(each, each.x[0]) for each in layers if each.stack == stack])
            for stack in dict.fromkeys(each.stack for each in layers)
        ]
    )
    figures = []
    for whose, found in groups:
        # A decoder that reads one token at a time is no layer over all of them.
        tokens = {len(x) for _, x in found}
        if len(found) < 2 or len(tokens) > 1 or min(tokens) < FEWEST:
            continue
        count = tokens.pop()
        step = -(-count // MOST)
        what = "places, finer grids averaged to the coarsest" if pictures else "tokens"
        legend = (
            "unbiased linear CKA of the vectors of this input in every two layers, over "
            f"{-(-count // step)} {what}; 1: the same but for a turn and a scale, 0: unrelated"
        )
        names = [_short(state, pictures) for state, _ in found]
        values = unbiased_likeness([x[::step] for _, x in found])
        table = rounded(torch.tensor(values, dtype=torch.float64))
        title = f"How alike {whose} layers are (CKA)"
        heat = Heat(title, "layer", "layer", table, names, names, scale=[0.0, 1.0])
        figures.append(Figure("layers", legend, heat))
    return figures


def on_one_grid(
    layers: Sequence[LayerState],
) -> list[tuple[LayerState, Float[Tensor, "place dim"]]]:
    """Average maps and grids of tokens to the smallest of them; tokens that stand nowhere go."""
    maps = []
    for state in layers:
        x = state.x[0].float().cpu()
        if x.ndim == 3:
            maps.append((state, x))
        elif state.places is not None:
            patches = x[len(state.places.extra) :]
            if len(patches) == state.places.grid[0] * state.places.grid[1]:
                maps.append((state, patches.T.unflatten(1, state.places.grid)))
    if not maps:
        return []
    rows, columns = (min(x.shape[side] for _, x in maps) for side in (1, 2))
    return [(state, F.adaptive_avg_pool2d(x, (rows, columns)).flatten(1).T) for state, x in maps]


def _short(state: LayerState, pictures: bool) -> str:
    return state.name if pictures else state.name.removeprefix(f"{state.stack} ")


def _gram(x: Tensor) -> Float[Tensor, "example example"]:
    flat = x.flatten(1).double()
    flat = flat - flat.mean(dim=0)
    return flat @ flat.T


def _centred_beside_diagonal(gram: Tensor) -> Float[Tensor, "example example"]:
    count = len(gram)
    gram = gram - gram.diagonal().diag()
    sums = gram.sum(dim=0) / (count - 2)
    total = gram.sum() / ((count - 1) * (count - 2))
    centred = gram - sums[:, None] - sums + total
    return centred - centred.diagonal().diag()


def _alignment(a: Tensor, b: Tensor) -> float:
    return ((a * b).sum() / (a.norm() * b.norm()).clamp_min(1e-30)).item()
