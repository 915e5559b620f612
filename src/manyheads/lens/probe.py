"""What can be read off a layer by a line: linear probes by depth (Alain & Bengio 2017)."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.lens.panels import Curve, Figure, Lines
from manyheads.lens.states import outputs, pooled


def probe(
    known: Float[Tensor, "example dim"],
    labels: Int[Tensor, " example"],
    asked: Float[Tensor, "other dim"],
    right: Int[Tensor, " other"],
    *,
    ridge: float = 1e-2,
) -> float:
    """Accuracy in percent of a linear classifier on frozen vectors, fitted by least squares.

    Args:
        known: vectors to fit on.
        labels: their classes.
        asked: vectors to measure on.
        right: their classes.
        ridge: what large coefficients cost, an example.
    """
    mean, std = known.double().mean(dim=0), known.double().std(dim=0).clamp_min(1e-6)
    x, y = (F.pad((each.double() - mean) / std, (0, 1), value=1.0) for each in (known, asked))
    wanted = F.one_hot(labels).double()
    eye = ridge * len(x) * torch.eye(x.shape[1], dtype=torch.float64)
    weights = torch.linalg.solve(x.T @ x + eye, x.T @ wanted)
    return 100 * ((y @ weights).argmax(dim=1) == right).double().mean().item()


def vectors(
    model: nn.Module, batches: Sequence[Float[Tensor, "..."]]
) -> dict[str, Float[Tensor, "example dim"]]:
    """The vector of each example in every layer, the mean over its tokens, by the layer's name."""
    found: dict[str, list[Tensor]] = {}
    for batch in batches:
        for state in outputs(model, batch):
            name = state.name if state.layer else f"{state.name} ({state.stack})"
            found.setdefault(name, []).append(pooled(state.x.float()).cpu())
    return {name: torch.cat(parts) for name, parts in found.items()}


def probe_figure(
    model: nn.Module,
    known: Sequence[Float[Tensor, "..."]],
    labels: Int[Tensor, " example"],
    asked: Sequence[Float[Tensor, "..."]],
    right: Int[Tensor, " other"],
) -> Figure:
    """Probe every layer of a model of pictures, from what goes into the first on.

    Args:
        model: takes a batch at a time.
        known: batches of preprocessed pictures to fit on.
        labels: their classes.
        asked: batches to measure on.
        right: their classes.
    """
    fitted, measured = vectors(model, known), vectors(model, asked)
    scores = [probe(fitted[name], labels, measured[name], right) for name in fitted]
    depth = [float(layer) for layer in range(len(scores))]
    curve = Curve("probe", depth, [round(score, 2) for score in scores])
    return Figure(
        "layers",
        "accuracy of a least-squares classifier on the mean vector of each layer "
        f"({', '.join(fitted)}), fitted on {len(labels)} examples and measured on {len(right)} "
        "others",
        Lines("What a linear probe reads", "layer", "right, %", [curve]),
    )
