"""Tokens as points in a plane: principal components of their vectors (Pearson 1901)."""

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from manyheads.lens.described_figures import figure
from manyheads.lens.labels import label
from manyheads.lens.panels import Cell, Figure
from manyheads.lens.rounding import rounded
from manyheads.lens.trace.states import LayerState, Lookup

POINTS = 256
FEWEST = 3  # tokens: two lie on a line
NEAREST = 5
LOOKED_UP = 24  # different tokens whose neighbours are searched


def principal(x: Float[Tensor, "token dim"]) -> tuple[Float[Tensor, "token 2"], Float[Tensor, "2"]]:
    """Project on the two directions in which tokens differ most.

    The largest component of each direction is positive, so the same input gives the same plane.

    Returns:
        The points, and the share of the variance that each direction explains.
    """
    centred = x.double() - x.double().mean(dim=0)
    u, s, v = torch.linalg.svd(centred, full_matrices=False)
    points = F.pad((u * s)[:, :2], (0, max(2 - len(s), 0)))
    signs = v[:2].gather(1, v[:2].abs().argmax(dim=1, keepdim=True))[:, 0].sign()
    points[:, : len(signs)] *= signs
    shares = F.pad((s**2)[:2], (0, max(2 - len(s), 0))) / (s**2).sum().clamp_min(1e-30)
    return points, shares


def plane_figures(
    layers: Sequence[LayerState], names: Mapping[str, Sequence[str]], groups: Sequence[str] = ()
) -> list[Figure]:
    """Plot the tokens of each stack before its first layer and after its last.

    `names` are the tokens of each stack; layers over other tokens are left out. `groups` colours
    the tokens of a single stack.
    """
    figures = []
    for stack, tokens in names.items():
        found = [e for e in layers if e.stack == stack and e.x.ndim == 3]
        found = [each for each in found if each.x.shape[1] == len(tokens)]
        if len(tokens) < FEWEST or not found:
            continue
        figures += [_plane(each, tokens, groups) for each in dict.fromkeys((found[0], found[-1]))]
    return figures


def _plane(state: LayerState, tokens: Sequence[str], groups: Sequence[str]) -> Figure:
    points, shares = principal(state.x[0].float().cpu())
    step = -(-len(tokens) // POINTS)
    cut = "" if step == 1 else f"; one in {step} tokens is shown"
    where = "before the first layer" if state.layer == 0 else f"after {state.name}"
    facts = {"stack": state.stack, "where": where, "count": len(tokens), "cut": cut}
    return figure(
        "plane",
        facts | {"first": shares[0], "second": shares[1], "both": shares.sum()},
        names=list(tokens[::step]),
        points=rounded(points[::step]),
        groups=list(groups[::step]),
    )


def neighbour_figure(lookup: Lookup, piece: Callable[[int], str], what: str) -> Figure:
    """List the id of each token, and its nearest neighbours in the embedding table."""
    found = list(dict.fromkeys(lookup.tokens[0].tolist()))
    cut = f"; the first {LOOKED_UP} different tokens" if len(found) > LOOKED_UP else ""
    found = found[:LOOKED_UP]
    table = F.normalize(lookup.table.float().cpu(), dim=1)
    alike = table[found] @ table.T
    alike[range(len(found)), found] = -2.0  # itself
    best = alike.topk(min(NEAREST, len(table) - 1), dim=1)
    rows: list[list[Cell]] = []
    for token, near, values in zip(found, best.indices, best.values, strict=True):
        nearest = [f"{label(piece(n))} {v:.2f}" for n, v in zip(near.tolist(), values, strict=True)]
        rows.append([label(piece(token)), str(token), ", ".join(nearest)])
    return figure("neighbours", {"what": what, "vocabulary": len(table), "cut": cut}, rows=rows)
