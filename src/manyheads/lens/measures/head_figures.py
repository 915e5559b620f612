"""Figures of the heads on one input: entropy, idle heads and duplicate heads."""

from collections.abc import Callable, Sequence

from manyheads.lens.measures.idle_heads import Head, HeadStatistics
from manyheads.lens.panels import Cell, Figure, Heat, Table
from manyheads.nn.recording.trace import LayerId

SHOWN = 12  # rows of the table


def head_figures(
    heads: Sequence[Head], stats: HeadStatistics, judge: Callable[[Head], str], limit: float
) -> list[Figure]:
    """Plot the entropy of every head, and list idle and duplicate heads.

    `judge` returns why a head is idle, or "". Maps of duplicate heads differ by at most `limit`.
    """
    if not heads:
        return []
    idle = {(head.layer_id, head.number): judge(head) for head in heads}
    idle = {head: words for head, words in idle.items() if words}
    duplicates = [
        each
        for each in stats.duplicates()
        if each.distance <= limit and not {(each.layer_id, n) for n in each.numbers} & idle.keys()
    ]
    summary = (
        f"{len(idle) or 'none'} of {len(heads)} heads {'is' if len(idle) == 1 else 'are'} idle and "
        f"{len(duplicates) or 'no'} pair{'' if len(duplicates) == 1 else 's'} alike on this input"
    )
    figures = [
        Figure(
            "heads",
            "entropy of each head's attention as a share of the maximum, mean over queries: "
            f"0 = one token, 1 = spread evenly; {summary} (one input is not enough to judge: "
            "`manyheads doctor` measures several)",
            _entropies(heads),
        )
    ]
    rows: list[list[Cell]] = [
        [f"{layer_id}, head {number}", words] for (layer_id, number), words in idle.items()
    ]
    rows += [[str(each), f"maps differ by {each.distance:.2g} of 1"] for each in duplicates]
    if rows:
        rest = f"; {len(rows) - SHOWN} more are left out" if len(rows) > SHOWN else ""
        legend = f"heads whose attention does not depend on their input, and duplicates{rest}"
        table = Table("Idle and duplicate heads", ["head", "behaviour"], rows[:SHOWN])
        figures.append(Figure("heads", legend, table))
    return figures


def _entropies(heads: Sequence[Head]) -> Heat:
    layer_ids: dict[LayerId, list[float | None]] = {}
    for head in heads:
        layer_ids.setdefault(head.layer_id, []).append(round(head.entropy, 4))
    most = max(map(len, layer_ids.values()))
    return Heat(
        "Entropy of heads",
        "head",
        "",
        [row + [None] * (most - len(row)) for row in layer_ids.values()],
        rows=list(map(str, layer_ids)),
        columns=[str(number + 1) for number in range(most)],
        scale=[0.0, 1.0],
    )
