"""Figures of the heads on one input: entropy, idle heads and duplicate heads."""

from torch import nn

from manyheads.lens.described_figures import figure, filled
from manyheads.lens.measures.idle_heads import ALIKE, HeadStatistics, judged
from manyheads.lens.panels import Cell, Figure
from manyheads.nn.recording.trace import LayerId, Trace

SHOWN = 12  # rows of the table


def head_figures(model: nn.Module, trace: Trace) -> list[Figure]:
    """Plot the entropy of every head of a recorded pass, and list idle and duplicate heads."""
    stats = HeadStatistics()
    stats.add(trace)
    heads = stats.heads(model)
    if not heads:
        return []
    idle = {head: words for head in heads if (words := judged(head))}
    known = {(head.layer_id, head.number) for head in idle}
    duplicates = [
        each
        for each in stats.duplicates()
        if each.distance <= ALIKE and known.isdisjoint((each.layer_id, n) for n in each.numbers)
    ]
    summary = (
        f"{len(idle) or 'none'} of {len(heads)} heads {'is' if len(idle) == 1 else 'are'} idle and "
        f"{len(duplicates) or 'no'} pair{'' if len(duplicates) == 1 else 's'} alike on this input"
    )
    layers: dict[LayerId, list[float | None]] = {}
    for head in heads:
        layers.setdefault(head.layer_id, []).append(round(head.entropy, 4))
    entropies = filled([*layers.values()])
    figures = [figure("entropy", {"summary": summary}, rows=[*map(str, layers)], **entropies)]
    rows: list[list[Cell]] = [[str(head), words] for head, words in idle.items()]
    rows += [[str(each), f"maps differ by {each.distance:.2g} of 1"] for each in duplicates]
    if rows:
        rest = f"; {len(rows) - SHOWN} more are left out" if len(rows) > SHOWN else ""
        figures.append(figure("idle-heads", {"rest": rest}, rows=rows[:SHOWN]))
    return figures
