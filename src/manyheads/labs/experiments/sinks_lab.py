"""T14, T6: much attention rests on idle tokens, and little is written from them."""

import torch
from torch import Tensor

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import counted, judged, resampled, surely
from manyheads.labs.shipped_models import network, translated
from manyheads.lens.cause.contributions import attention_modules, weights_by_norm
from manyheads.lens.panels import Cell, number
from manyheads.nn.editing.edits import recorded
from manyheads.nn.editing.seam import PATTERN
from manyheads.nn.recording.trace import LayerId, record

# The end of the source is the last key; the start of the translation is the first.
KINDS = {"encoder self": -1, "decoder cross": -1, "decoder self": 0}
HALF = 50.0  # Clark et al. 2019: more than half of layers 6 to 10 of BERT


def idle_shares(weights: Tensor, norms: Tensor, idle: int) -> tuple[Tensor, Tensor, float]:
    """Shares of one key in a map: of weights, of norms of what is written (Kobayashi 2020), equal.

    Args:
        weights: (head, query, key).
        norms: of what is written from each key, likewise.
        idle: the key.

    Returns:
        Two shares in percent for each head, and the share of uniform weights; the means of queries
        that see more than one key.
    """
    seen = (weights > 0).any(dim=0).sum(dim=-1)
    rows = seen > 1
    by_norm = norms[:, :, idle] / norms.sum(dim=-1).clamp_min(1e-12)
    shares = [100 * each[:, rows].mean(dim=-1) for each in (weights[:, :, idle], by_norm)]
    return shares[0], shares[1], float((100 / seen[rows]).mean())


@torch.no_grad()
def measure(name: str, size: Size, root: str | None) -> Measured:
    """Measure every attention of a model on its own translations."""
    model = network(name)
    parts = attention_modules(model)
    found: Measured = {}
    for source, target in translated(name, size.sentences, root):
        with record(states=True) as trace:
            model(source, target[:, :-1])
        for site, part in parts.items():
            kind = f"{site.stack} {site.kind}"
            weights = recorded(trace, LayerId(site.stack, site.layer, f"{site.kind} {PATTERN}"))
            norms = weights_by_norm(trace, part)
            weight, norm, uniform = idle_shares(weights[0], norms[0], KINDS[kind])
            layer = found.setdefault(kind, {}).setdefault(
                str(site.layer + 1), {"weight": [], "norm": [], "uniform": [], "heads": []}
            )
            means = {"weight": float(weight.mean()), "norm": float(norm.mean()), "uniform": uniform}
            for key, value in means.items():
                layer[key].append(round(value, 3))
            layer["heads"].append(weight)
    for layers in found.values():
        for layer in layers.values():
            layer["heads"] = [round(x, 2) for x in torch.stack(layer["heads"]).mean(0).tolist()]
    return found


def rows(measured: dict[str, Measured]) -> list[list[Cell]]:
    """Judge each kind of attention of each model, at its layer with the largest share.

    The layer is chosen on every second sentence, and measured on the others. "Less than half by
    norm" was "less by norm" before the first numbers were seen.
    """
    table: list[list[Cell]] = []
    for name, kinds in measured.items():
        for kind in KINDS:
            layers = kinds[kind]
            layer = max(layers, key=lambda n, of=layers: sum(of[n]["weight"][::2]))  # type: ignore[misc]
            weight, norm, uniform = (layers[layer][k][1::2] for k in ("weight", "norm", "uniform"))
            share, by_norm = resampled((weight, None)), resampled((norm, None))
            sink = surely(resampled((weight, None), (uniform, None))) > 0
            idle = surely(resampled((norm, None), (weight, None))) < 0
            little = (share.low or 0) > HALF and (by_norm.high or 0) < HALF
            verdict = judged(sink and idle, sink and idle and little)
            cells: list[Cell] = [share, by_norm, resampled((uniform, None)).mean]
            table.append([name, kind, int(layer), f"> {HALF:g}", *cells, verdict])
    return table


def conclude(table: list[list[Cell]]) -> str:
    """Count the verdicts, and name the largest share."""
    most = max(table, key=lambda row: row[4].mean)  # type: ignore[union-attr]
    share, norm, uniform = most[4:7]
    return (
        "That more than half of the weight rests on an idle token, and less than half by norm, "
        f"{counted([str(row[-1]) for row in table])} of {len(table)} kinds of attention in "
        f"{len({row[0] for row in table})} translators; the largest share is that of {most[0]}, "
        f"{most[1]} layer {most[2]}: {share}% of the weight, {norm}% by norm, and uniform weights "
        f"would give {number(uniform)}%."  # type: ignore[arg-type]
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Measure each model."""
    measured = bench.measured("{}", size.models, measure, size, bench.root)
    table = rows(measured)
    curves = {
        f"{name}, {what}": {
            int(layer): resampled((layers[what], None))
            for layer, layers in kinds["encoder self"].items()
        }
        for name, kinds in measured.items()
        for what in ("weight", "norm")
    }
    heads = {
        name: {
            "values": [layer["heads"] for kind in KINDS for layer in kinds[kind].values()],
            "rows": [f"{kind} {layer}" for kind in KINDS for layer in kinds[kind]],
        }
        for name, kinds in measured.items()
    }
    return conclude(table), {"verdicts": table, "curves": curves, "heads": heads}
