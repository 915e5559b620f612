"""Attention masks as recorded (Vaswani et al. 2017, 3.2.3; atlas T13)."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from manyheads.lens.described_figures import figure
from manyheads.lens.panels import Figure
from manyheads.lens.trace.grids import Crop, grid_view
from manyheads.nn.recording.attention_record import ALL, AttentionRecord, take
from manyheads.nn.recording.trace import Trace

MOST = 64  # shown tokens of a text


def mask_figures(
    trace: Trace, labels: dict[str, tuple[Sequence[str], Sequence[str]]]
) -> list[Figure]:
    """Draw the mask of every kind of attention that masks keys; layers of one kind share it.

    `labels` are those of queries and keys by kind, such as "decoder self".
    """
    figures: dict[str, Figure] = {}
    for record in trace:
        if not isinstance(record, AttentionRecord) or record.mask is None:
            continue
        kind = f"{record.layer_id.stack} {record.layer_id.kind}"
        rows, columns = labels.get(kind, ((), ()))
        allowed = _of(record, 0)
        if kind in figures or allowed.all() or allowed.shape != (len(rows), len(columns)):
            continue
        cut = f"; the first {MOST} tokens" if max(allowed.shape) > MOST else ""
        facts: dict[str, Any] = {"kind": kind, "stack": record.layer_id.stack, "cut": cut}
        facts |= {"allowed": int(allowed.sum()), "pairs": allowed.numel()}
        figures[kind] = _figure("mask", facts, allowed, rows, columns)
    return list(figures.values())


def window_mask_figures(trace: Trace) -> list[Figure]:
    """Draw the mask of a shifted window with parts from opposite sides (Liu et al. 2021, 3.2).

    It is taken from the first layer with shifted windows: the others have the same pattern.
    """
    for record in trace:
        if not isinstance(record, AttentionRecord) or record.mask is None:
            continue
        if record.partition is None or record.query_grid is None:
            continue
        tokens = record.partition.token_index()
        hidden = torch.stack([(~_of(record, window)).sum() for window in range(len(tokens))])
        window = int(hidden.argmax())
        allowed = _of(record, window)
        if not hidden[window] or len(allowed) > MOST:
            continue
        names = grid_view(record.query_grid, Crop(0, 0, 1, 1)).labels
        named = [names[token] if token >= 0 else "padding" for token in tokens[window].tolist()]
        facts = {"window": window + 1, "windows": len(tokens), "site": record.layer_id}
        return [_figure("window-mask", facts, allowed, named, named)]
    return []


def _figure(
    name: str, facts: dict[str, Any], allowed: Tensor, rows: Sequence[str], columns: Sequence[str]
) -> Figure:
    shown = allowed[:MOST, :MOST].float().tolist()
    return figure(name, facts, values=shown, rows=[*rows[:MOST]], columns=[*columns[:MOST]])


def _of(record: AttentionRecord, row: int) -> Bool[Tensor, "query key"]:
    """Return the mask of one row of the batch, of its first head."""
    mask = take(record.mask, slice(row, row + 1), ALL)
    assert mask is not None
    return mask[0, 0].expand(record.shape[2:]).cpu()
