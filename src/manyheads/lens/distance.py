"""How far heads look: mean attention distance (Dosovitskiy et al. 2021, section 4.5, figure 7)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.lens.panels import Curve, Figure, Lines
from manyheads.lens.reading import Attention
from manyheads.lens.receptive import receptive_field
from manyheads.lens.states import LayerState
from manyheads.nn.attention import AttentionRecord
from manyheads.nn.places import Places
from manyheads.nn.trace import record

Points = Float[Tensor, "token axis"]


def centres(places: Places) -> Float[Tensor, "token 2"]:
    """The middle of each token on the grid, row by row, in pixels of the model's input."""
    rows, columns = (
        torch.tensor(axis.centres(), dtype=torch.float64) for axis in (places.rows, places.columns)
    )
    return torch.cartesian_prod(rows, columns)


def attention_distance(
    weights: Float[Tensor, "*image head query key"], queries: Points, keys: Points
) -> Float[Tensor, " head"]:
    """Mean distance that each head looks, weighted by attention.

    Args:
        weights: of tokens with and without a place; those in front that have none are left out,
            and what the others give each other is made to sum to 1.
        queries: where the last queries stand.
        keys: where the last keys stand.
    """
    among = weights[..., -len(queries) :, -len(keys) :].double()
    among = among / among.sum(dim=-1, keepdim=True).clamp_min(1e-30)
    far = torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")
    return (among * far).sum(dim=-1).mean(dim=-1).reshape(-1, weights.shape[-3]).mean(dim=0)


@torch.inference_mode()
def distances_by_layer(model: nn.Module, pictures: Tensor) -> list[list[float]]:
    """The mean attention distance of each encoder layer's heads, in pixels, over pictures."""
    model.eval()
    with record() as trace:
        model(pictures)
    found = []
    for each in trace:
        if isinstance(each, AttentionRecord) and each.site.stack == "encoder":
            assert each.tokens is not None
            where = centres(each.tokens)
            found.append(attention_distance(each.whole.cpu(), where, where).tolist())
    return found


def head_distances(found: Attention) -> Float[Tensor, " head"]:
    """The same for one recorded attention over its own tokens, read piece by piece.

    In pixels of the model's input, or in tokens of a text.
    """
    if found.places is None or found.key_places is None:
        queries, keys = (torch.arange(n, dtype=torch.float64)[:, None] for n in found.shape)
        extra, extra_keys = 0, 0
    else:
        queries, keys = centres(found.places), centres(found.key_places)
        extra, extra_keys = len(found.places.extra), len(found.key_places.extra)
    total, count = torch.zeros(found.heads, dtype=torch.float64), 0
    for piece in found.pieces():
        rows, columns = piece.queries >= extra, piece.keys >= extra_keys
        if rows.any() and columns.any():
            where = queries[piece.queries[rows] - extra], keys[piece.keys[columns] - extra_keys]
            placed = piece.weights[:, rows][:, :, columns]
            total += len(where[0]) * attention_distance(placed, *where)
            count += len(where[0])
    return total / max(count, 1)


def distance_figures(found: Sequence[Attention], layers: Sequence[LayerState]) -> list[Figure]:
    """Show how far each layer's heads look; of pictures, beside how far convolutions see.

    Args:
        found: the recorded attentions.
        layers: what every layer answered, in order.
    """
    if any(each.places is not None for each in layers):
        return _of_picture(found, layers)
    figures = []
    for stack in dict.fromkeys(each.site.stack for each in found):
        own = [each for each in found if each.site.stack == stack and each.site.kind == "self"]
        if own:
            curves = _heads([(each.site.layer + 1, head_distances(each)) for each in own])
            lines = Lines(f"How far the {stack}'s heads look", "layer", "tokens", curves)
            legend = (
                "mean distance between a token and those it attends to, weighted by attention, in "
                "tokens, over this input"
            )
            figures.append(Figure("distance", legend, lines))
    return figures


def _of_picture(found: Sequence[Attention], layers: Sequence[LayerState]) -> list[Figure]:
    depth = {
        (each.stack, each.layer): place
        for place, each in enumerate((each for each in layers if each.layer), 1)
    }
    own = [
        (depth[each.site.stack, each.site.layer + 1], each)
        for each in found
        if (each.site.stack, each.site.layer + 1) in depth
    ]
    curves = _heads([(place, head_distances(each)) for place, each in own])
    fields = [
        (place, float(each.places.rows.field))
        for place, each in own
        if each.places is not None and each.places.rows.field > each.places.rows.step
    ]
    if fields:
        curves.append(Curve("a token is embedded from", *map(list, zip(*fields, strict=True))))
    reaches = [
        (float(depth[each.stack, each.layer]), float(each.places.rows.field))
        for each in layers
        if each.layer and each.is_map and each.places is not None
    ]
    if reaches:
        x, y = zip(*reaches, strict=True)
        curves.append(Curve("its convolutions: receptive field", [*x], [*y]))
    elif own:
        numbers = range(1, len(depth) + 1)
        name = "3 x 3 convolutions: receptive field"
        curves.append(
            Curve(name, [float(n) for n in numbers], [float(receptive_field(n)) for n in numbers])
        )
    if not curves:
        return []
    legend = (
        "pixels of the model's input. A head's distance is from the middle of a patch to those of "
        "the patches it attends to, weighted by attention (ViT paper, figure 7), over this "
        "picture; a field is a width, from edge to edge, and says what can be seen, not what is "
        "used"
    )
    if not own:
        legend = (
            "pixels of the model's input, from edge to edge; what can be seen, not what is used"
        )
    title = "How far layers look" if own else "How far layers see"
    return [Figure("distance", legend, Lines(title, "layer", "pixels", curves))]


def _heads(found: Sequence[tuple[int, Float[Tensor, " head"]]]) -> list[Curve]:
    if not found:
        return []
    layers = [float(layer) for layer, _ in found]
    picked = {
        "farthest head": [heads.max() for _, heads in found],
        "mean of heads": [heads.mean() for _, heads in found],
        "nearest head": [heads.min() for _, heads in found],
    }
    if all(len(heads) == 1 for _, heads in found):
        picked = {"head": picked["mean of heads"]}
    return [
        Curve(name, layers, [round(value.item(), 2) for value in values])
        for name, values in picked.items()
    ]
