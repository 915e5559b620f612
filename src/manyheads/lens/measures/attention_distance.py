"""Mean attention distance of heads (Dosovitskiy et al. 2021, section 4.5, figure 7)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.lens.described_figures import figure
from manyheads.lens.measures.receptive_field import receptive_field
from manyheads.lens.panels import Curve, Figure
from manyheads.lens.trace.attention_reader import Attention, examples
from manyheads.lens.trace.states import LayerState
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import record

Points = Float[Tensor, "token axis"]


def centres(grid: TokenGrid) -> Float[Tensor, "token 2"]:
    """Return the centre of each token on the grid, row by row, in pixels of the model's input."""
    axes = (torch.tensor(axis.centres(), dtype=torch.float64) for axis in (grid.rows, grid.columns))
    return torch.cartesian_prod(*axes)


def attention_distance(
    weights: Float[Tensor, "*image head query key"], queries: Points, keys: Points
) -> Float[Tensor, " head"]:
    """Mean distance between queries and keys of each head, weighted by attention.

    Queries and keys are the positions of the last tokens: leading tokens without a position (class
    token) are left out, and the rest is normalised to sum to 1.
    """
    among = weights[..., -len(queries) :, -len(keys) :].double()
    among = among / among.sum(dim=-1, keepdim=True).clamp_min(1e-30)
    far = torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")
    return (among * far).sum(dim=-1).mean(dim=-1).reshape(-1, weights.shape[-3]).mean(dim=0)


@torch.inference_mode()
def distances_by_layer(model: nn.Module, images: Tensor) -> list[list[float]]:
    """Mean attention distance of the heads of each encoder layer, in pixels, over images."""
    model.eval()
    with record() as trace:
        model(images)
    return [
        torch.stack([head_distances(Attention(each, n)) for n in range(examples(each))])
        .mean(dim=0)
        .tolist()
        for each in trace
        if isinstance(each, AttentionRecord) and each.layer_id.stack == "encoder"
    ]


def head_distances(attention: Attention) -> Float[Tensor, " head"]:
    """Mean attention distance of one recorded self-attention, computed piece by piece.

    In pixels of the model's input, or in tokens of a text.
    """
    if attention.query_grid is None or attention.key_grid is None:
        queries, keys = (torch.arange(n, dtype=torch.float64)[:, None] for n in attention.shape)
        extra, extra_keys = 0, 0
    else:
        queries, keys = centres(attention.query_grid), centres(attention.key_grid)
        extra, extra_keys = len(attention.query_grid.extra), len(attention.key_grid.extra)
    total, count = torch.zeros(attention.heads, dtype=torch.float64), 0
    for piece in attention.pieces():
        rows, columns = piece.queries >= extra, piece.keys >= extra_keys
        if rows.any() and columns.any():
            where = queries[piece.queries[rows] - extra], keys[piece.keys[columns] - extra_keys]
            placed = piece.weights[:, rows][:, :, columns]
            total += len(where[0]) * attention_distance(placed, *where)
            count += len(where[0])
    return total / max(count, 1)


def distance_figures(attentions: Sequence[Attention], layers: Sequence[LayerState]) -> list[Figure]:
    """Plot the attention distance by layer; for images with the receptive field of convolutions."""
    if any(each.grid is not None for each in layers):
        return _of_image(attentions, layers)
    own = [each for each in attentions if each.layer_id.kind == "self"]
    figures = []
    for stack in dict.fromkeys(each.layer_id.stack for each in own):
        found = [each for each in own if each.layer_id.stack == stack]
        curves = _heads([(each.layer_id.layer + 1, head_distances(each)) for each in found])
        figures.append(figure("text-distance", {"stack": stack}, curves=curves))
    return figures


def _of_image(attentions: Sequence[Attention], layers: Sequence[LayerState]) -> list[Figure]:
    depth = {
        (each.stack, each.layer): place
        for place, each in enumerate((each for each in layers if each.layer), 1)
    }
    sites = [((each.layer_id.stack, each.layer_id.layer + 1), each) for each in attentions]
    own = [(depth[site], each) for site, each in sites if site in depth]
    curves = _heads([(place, head_distances(each)) for place, each in own])
    fields = [
        (place, float(each.query_grid.rows.receptive_field))
        for place, each in own
        if each.query_grid is not None
        and each.query_grid.rows.receptive_field > each.query_grid.rows.stride
    ]
    if fields:
        curves.append(Curve("a token is embedded from", *map(list, zip(*fields, strict=True))))
    reaches = [
        (float(depth[each.stack, each.layer]), float(each.grid.rows.receptive_field))
        for each in layers
        if each.layer and each.is_map and each.grid is not None
    ]
    if reaches:
        x, y = zip(*reaches, strict=True)
        curves.append(Curve("its convolutions: receptive field", [*x], [*y]))
    elif own:
        seen = [receptive_field(layers) for layers in range(1, len(depth) + 1)]
        curves.append(Curve.over("3 x 3 convolutions: receptive field", seen, 1))
    if not curves:
        return []
    return [figure("image-distance" if own else "receptive-field", curves=curves)]


def _heads(distances: Sequence[tuple[int, Float[Tensor, " head"]]]) -> list[Curve]:
    if not distances:
        return []
    layers = [float(layer) for layer, _ in distances]
    picked = {
        "farthest head": [heads.max() for _, heads in distances],
        "mean of heads": [heads.mean() for _, heads in distances],
        "nearest head": [heads.min() for _, heads in distances],
    }
    if all(len(heads) == 1 for _, heads in distances):
        picked = {"head": picked["mean of heads"]}
    return [
        Curve(name, layers, [round(value.item(), 2) for value in values])
        for name, values in picked.items()
    ]
