"""T9, T14: how many heads of each kind of attention can go without retraining."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.data.batching.batches import pad
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import counted, judged, resampled, surely
from manyheads.labs.shipped_models import greedy, network, pairs, translator
from manyheads.lens.panels import Cell
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.nn.editing.edits import edit

KINDS = (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))
NAMES = tuple(f"{stack} {kind}" for stack, kind in KINDS)
HALF = 0.5  # of the whole model's score
# BLEU with a fifth of the heads of each kind in NAMES, Michel et al. 2019, section 5 and figure 4.
PUBLISHED = "about 30 / about 30 / breaks down"
Head = tuple[str, int, str, int]


@contextmanager
def without(heads: Iterable[Head]) -> Iterator[None]:
    """Take heads out: their outputs are zero."""
    with edit() as changes:
        for head in heads:
            changes.head(*head).zero()
        yield


def training_tokens(name: str, count: int, root: str | None) -> tuple[Tensor, Tensor]:
    """Encode training sentences and their references: (row, token) each, with start and end.

    Args:
        name: of a shipped translator.
        count: training sentences.
        root: of the data.
    """
    both, tokenizers = pairs(name, "train", count, root), translator(name).tokenizers
    config = network(name).config
    sources = tokenizers.source.encode([source for source, _ in both])
    targets = tokenizers.target.encode([target for _, target in both])
    source = pad([[*each, config.end] for each in sources], config.pad)
    return source, pad([[config.start, *each, config.end] for each in targets], config.pad)


def loss_without(name: str, count: int, root: str | None) -> Callable[[Iterable[Head]], float]:
    """Return what measures the loss of `training_tokens`, nats a token, without some heads."""
    (source, target), model = training_tokens(name, count, root), network(name)

    @torch.no_grad()
    def loss(heads: Iterable[Head]) -> float:
        with without(heads):
            logits = model(source, target[:, :-1]).flatten(0, 1)
        wanted = target[:, 1:].flatten()
        return float(F.cross_entropy(logits, wanted, ignore_index=model.config.pad))

    return loss


def measure(name: str, size: Size, root: str | None) -> Measured:
    """Measure chrF of validation sentences without the least important heads of each kind."""
    config = network(name).config
    both = pairs(name, "valid", size.sentences, root)

    def score(heads: list[Head]) -> list[float]:
        with without(heads):
            answers = [text for text, _ in greedy(name, [source for source, _ in both])]
        chrf = TEXT_METRICS["chrf"].statistics(answers, [reference for _, reference in both])
        return [round(chrf.value(row), 2) for row in chrf.rows]

    found: Measured = {"heads": {}, "order": {}, "scores": {}}
    whole, loss = score([]), loss_without(name, size.ordered, root)
    for (stack, kind), title in zip(KINDS, NAMES, strict=True):
        layers = range(1, getattr(config, f"{stack}_layers") + 1)
        heads = [(stack, n, kind, h) for n in layers for h in range(1, config.heads + 1)]
        order = sorted(heads, key=lambda head: loss([head]))
        found["heads"][title] = len(heads)
        found["order"][title] = [f"layer {n} head {h}" for _, n, _, h in order]
        found["scores"][title] = {"0": whole} | {
            str(percent): score(order[: len(order) * percent // 100]) for percent in size.percent
        }
    return found


def rows(measured: dict[str, Measured], percent: int) -> list[list[Cell]]:
    """Judge each model: is most self-attention dispensable, and cross-attention not?"""
    table: list[list[Cell]] = []
    for name, of in measured.items():
        left = {title: of["scores"][title][str(percent)] for title in NAMES}
        whole, cross = of["scores"][NAMES[0]]["0"], left[NAMES[2]]
        selves = [left[title] for title in NAMES[:2]]
        most = [surely(resampled((each, None), (cross, None))) > 0 for each in selves]
        enough = [(resampled((each, whole)).low or 0) > HALF for each in selves]
        cells = [resampled((each, None)) for each in (whole, *left.values())]
        table.append([name, PUBLISHED, *cells, judged(all(most), all(most) and all(enough))])
    return table


def conclude(table: list[list[Cell]], percent: int) -> str:
    """Count the verdicts."""
    parts = [
        f"{row[0]} {', '.join(f'{cell.mean:.0f}' for cell in row[2:-1])}"  # type: ignore[union-attr]
        for row in table
    ]
    return (
        f"That {percent}% of the self-attention heads can go and as many of cross-attention "
        f"cannot, without retraining, {counted([str(row[-1]) for row in table])} of {len(table)} "
        "translators (chrF of the whole model, then without these heads of the encoder, of the "
        f"decoder, of cross-attention: {'; '.join(parts)})."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Measure each model."""
    measured = bench.measured("{}", size.models, measure, size, bench.root)
    most = max(size.percent)
    curves = {
        name: {
            title: {int(n): resampled((scores, None)) for n, scores in of["scores"][title].items()}
            for title in NAMES
        }
        for name, of in measured.items()
    }
    table = rows(measured, most)
    return conclude(table, most), {"verdicts": table, "curves": curves, "most": most}
