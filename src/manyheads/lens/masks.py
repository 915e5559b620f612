"""Which query may attend to which key, as recorded (Vaswani et al. 2017, 3.2.3; atlas T13)."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from manyheads.lens.grids import Crop, grid_view
from manyheads.lens.panels import Figure, Heat
from manyheads.nn.attention import AttentionRecord
from manyheads.nn.trace import Trace

MOST = 64  # tokens of a text that are shown
COLOURED = "coloured: the query (row) may attend to the key (column)"


def mask_figures(
    trace: Trace, labels: dict[str, tuple[Sequence[str], Sequence[str]]]
) -> list[Figure]:
    """Draw a mask of every kind that hides something; layers of one kind share theirs.

    Args:
        trace: one pass of a model over a text.
        labels: of queries and keys by kind, such as "decoder self".
    """
    figures: dict[str, Figure] = {}
    for record in trace:
        if not isinstance(record, AttentionRecord) or record.mask is None:
            continue
        kind = f"{record.site.stack} {record.site.kind}"
        rows, columns = labels.get(kind, ((), ()))
        allowed = _of(record, 0)
        if kind in figures or allowed.all() or allowed.shape != (len(rows), len(columns)):
            continue
        cut = f"; the first {MOST} tokens" if max(allowed.shape) > MOST else ""
        shown = allowed[:MOST, :MOST].float()
        figures[kind] = Figure(
            "mask",
            f"{COLOURED}; {int(allowed.sum())} of "
            f"{allowed.numel()} pairs may, the same in all {record.site.stack} layers{cut}",
            Heat(
                f"The mask of the {kind}-attention",
                "key",
                "query",
                shown.tolist(),
                list(rows[:MOST]),
                list(columns[:MOST]),
                scale=[0.0, 1.0],
            ),
        )
    return list(figures.values())


def window_mask_figures(trace: Trace) -> list[Figure]:
    """Draw the mask of one window that holds parts from opposite sides (Liu et al. 2021, 3.2).

    That of the first layer which has one: the others have the same pattern.
    """
    for record in trace:
        if not isinstance(record, AttentionRecord) or record.mask is None:
            continue
        if record.windows is None or record.tokens is None:
            continue
        tokens = record.windows.places()
        hidden = torch.stack([(~_of(record, window)).sum() for window in range(len(tokens))])
        window = int(hidden.argmax())
        allowed = _of(record, window)
        if not hidden[window] or len(allowed) > MOST:
            continue
        names = grid_view(record.tokens, Crop(0, 0, 1, 1)).labels
        named = [names[token] if token >= 0 else "padding" for token in tokens[window].tolist()]
        legend = (
            f"window {window + 1} of {len(tokens)} in {record.site}, the one with most to hide; "
            f"{COLOURED}. Parts that the shift "
            "brought together from opposite sides of the picture, and padding, are hidden"
        )
        shades = allowed.float().tolist()
        title = "The mask of a window"
        heat = Heat(title, "key", "query", shades, named, named, scale=[0.0, 1.0])
        return [Figure("mask", legend, heat)]
    return []


def _of(record: AttentionRecord, row: int) -> Bool[Tensor, "query key"]:
    """The mask of one row of the batch; that of the first head stands for all."""
    assert record.mask is not None
    shape = (len(record.q), 1, record.q.shape[2], record.k.shape[2])
    mask: Tensor = record.mask.expand(shape) if record.mask.ndim < 4 else record.mask
    return mask[:, :1].expand(shape)[row, 0].cpu()
