"""T14: which measure names the source token that a step of a translation depends on most."""

import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import counted, judged, resampled, surely
from manyheads.labs.shipped_models import network, translated, translator
from manyheads.lens.attribution.gradients import weighed
from manyheads.lens.attribution.relevance import relevance_of_source
from manyheads.lens.cause.contributions import attention_modules
from manyheads.lens.panels import Cell
from manyheads.nn.editing.edits import edit, recorded
from manyheads.nn.editing.seam import PATTERN, STATE
from manyheads.nn.recording.trace import LayerId, record

REPLACED = ("a comma", "a similar token")
ATTENTION, NORMS, ROLLOUT = "attention", "by norm", "attention x rollout"  # of a layer each
RELEVANCE, INTEGRATED, DIAGONAL = "relevance", "integrated gradients", "diagonal"
RANDOM = "random"
MEASURES = (ATTENTION, NORMS, ROLLOUT, RELEVANCE, INTEGRATED, DIAGONAL, RANDOM)
# Spearman's correlation with blanking tokens out, in the last layer: Abnar & Zuidema 2020, table 1.
PUBLISHED = "rollout 0.71, raw 0.29"
POINTS = 8  # of integrated gradients, from zero to the input of the encoder


def replacements(name: str) -> tuple[int, Tensor]:
    """Return the comma, and for every token the one with the most similar embedding."""
    table = F.normalize(network(name).embedding.weight.detach().float(), dim=-1)
    near = torch.cat([(part @ table.T).topk(2).indices[:, 1] for part in table.split(1000)])
    source = translator(name).tokenizers.source
    return next(token for token in source.encode(["a, b"])[0] if "," in source.piece(token)), near


def effects(name: str, source: Tensor, read: Tensor, own: Tensor, other: Tensor) -> Tensor:
    """Loss of each step's log-probability if each source token is replaced: (step, token)."""
    count = source.shape[1] - 1  # not the end
    rows = source.repeat(1 + count, 1)
    rows[range(1, 1 + count), range(count)] = other[:count]
    with torch.no_grad():
        logits = network(name)(rows, read.expand(len(rows), -1))[:, : len(own)]
        chosen = logits.log_softmax(dim=-1)[:, range(len(own)), own]
    return (chosen[0] - chosen[1:]).T


def measures(name: str, source: Tensor, read: Tensor, own: Tensor) -> dict[str, Tensor]:
    """Every measure of the source tokens, (step, token); those of layers with their number."""
    model = network(name)
    parts = attention_modules(model)
    steps, found = range(len(own)), dict[str, Tensor]()
    with record(states=True, gradients=True) as trace:
        scores = model(source, read)[0].log_softmax(dim=-1)[steps, own]
    maps = {
        site: recorded(trace, LayerId(site.stack, site.layer, f"{site.kind} {PATTERN}"))[0].detach()
        for site in parts
    }
    follow = torch.eye(source.shape[1])
    for site, weights in maps.items():
        if site.stack == "encoder":  # layers come in their order
            follow = (weights.mean(dim=0) + torch.eye(len(follow))) / 2 @ follow
    for site, weights in maps.items():
        if site.kind != "cross":
            continue
        v = recorded(trace, LayerId(site.stack, site.layer, "cross v"))[0].detach()
        out = parts[site].out.weight.detach().T.unflatten(0, (len(v), -1))
        written = torch.einsum("hqk,hks,hsd->qkd", weights, v, out).norm(dim=-1)
        attention = weights.mean(dim=0)
        for kind, x in ((ATTENTION, attention), (NORMS, written), (ROLLOUT, attention @ follow)):
            found[f"{kind} {site.layer + 1}"] = x[: len(own)]
    starts = torch.eye(read.shape[1])
    shares = [relevance_of_source(weighed(trace, scores[n]), starts[n]) for n in steps]
    found[RELEVANCE] = torch.stack(shares)
    found[INTEGRATED] = integrated(name, source, read, own)
    places = torch.arange(source.shape[1]) / (source.shape[1] - 1)
    found[DIAGONAL] = -(torch.arange(len(own))[:, None] / len(own) - places).abs()
    return {kind: x[:, :-1] for kind, x in found.items()}


def integrated(name: str, source: Tensor, read: Tensor, own: Tensor) -> Tensor:
    """Integrate the gradients of each step's log-probability along the encoder's input."""
    way = ((torch.arange(POINTS) + 0.5) / POINTS)[:, None, None]
    with edit() as changes, record(states=True, gradients=True) as trace:
        changes.state("encoder", 0).apply(lambda x: x * way)
        logits = network(name)(source.expand(POINTS, -1), read.expand(POINTS, -1))
    x = recorded(trace, LayerId("encoder", -1, STATE))
    scores = logits.log_softmax(dim=-1)[:, range(len(own)), own].sum(dim=0)
    whole = x[-1] / way[-1]
    return torch.stack(
        [
            (torch.autograd.grad(score, x, retain_graph=True)[0].mean(dim=0) * whole).sum(dim=-1)
            for score in scores
        ]
    ).detach()


def measure(name: str, size: Size, root: str | None) -> Measured:
    """Count the steps whose most important token each measure names, for each replacement."""
    comma, near = replacements(name)
    hits: Measured = {replaced: {RANDOM: []} for replaced in REPLACED}
    counts: Measured = {replaced: [] for replaced in REPLACED}
    for source, target in translated(name, size.sentences, root):
        own, read = target[0, 1:-1], target[:, :-1]
        if source.shape[1] < 3:
            continue  # one token
        named = measures(name, source, read, own)
        others = (torch.full_like(source[0], comma), near[source[0]])
        for replaced, other in zip(REPLACED, others, strict=True):
            lost, cause = effects(name, source, read, own, other).max(dim=-1)
            clear = lost > size.nats
            counts[replaced].append(int(clear.sum()))
            hits[replaced][RANDOM].append(round(int(clear.sum()) / (source.shape[1] - 1), 3))
            for kind, x in named.items():
                right = (x.argmax(dim=-1) == cause) & clear
                hits[replaced].setdefault(kind, []).append(int(right.sum()))
    return {"hits": hits, "steps": counts}


def chosen(of: Measured) -> dict[str, str]:
    """Name each measure and its key: for those of layers the layer that is right most often.

    It is chosen on every second sentence, with commas; the others are measured.
    """
    hits = of["hits"][REPLACED[0]]
    found = {}
    for kind in MEASURES:
        keys = [key for key in hits if key == kind or key.removeprefix(f"{kind} ").isdigit()]
        found[kind] = max(keys, key=lambda key: sum(hits[key][::2]))
    return found


def shares(of: Measured, replaced: str) -> dict[str, tuple[list[float], list[float]]]:
    """Hits in percent, and steps, of each measure and each second sentence."""
    return {
        kind: ([100.0 * n for n in of["hits"][replaced][key][1::2]], of["steps"][replaced][1::2])
        for kind, key in chosen(of).items()
    }


def rows(measured: dict[str, Measured]) -> list[list[Cell]]:
    """Judge each replacement in each model: does rollout name the cause more often?"""
    table: list[list[Cell]] = []
    for name, of in measured.items():
        for replaced in REPLACED:
            of_all = shares(of, replaced)
            best = surely(resampled(of_all[ROLLOUT], of_all[ATTENTION])) > 0
            cells = [resampled(each) for each in of_all.values()]
            table.append([name, replaced, PUBLISHED, *cells, judged(best)])
    return table


def conclude(table: list[list[Cell]]) -> str:
    """Count the verdicts, and name the best measure of each model and replacement."""
    parts = []
    for row in table:
        mean = {name: cell.mean for name, cell in zip(MEASURES, row[3:-1], strict=True)}  # type: ignore[union-attr]
        best = max(mean, key=lambda name, of=mean: of[name])  # type: ignore[misc]
        parts.append(f"{best} in {row[0]} with {row[1]} ({mean[best]:.0f}% of the steps)")
    return (
        "That attention rolled out through the encoder names the source token a step depends on "
        f"more often than cross-attention alone {counted([str(row[-1]) for row in table])} of "
        f"{len(table)} comparisons; most often right is {'; '.join(parts)}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Measure each model."""
    measured = bench.measured("{}", size.models, measure, size, bench.root)
    table = rows(measured)
    bars = {
        name: {kind: resampled(each) for kind, each in shares(of, REPLACED[0]).items()}
        for name, of in measured.items()
    }
    return conclude(table), {"verdicts": table, "bars": bars}
