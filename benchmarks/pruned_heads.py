"""How many encoder heads can go, after equal retraining: the shipped multi30k-en-de.

    python -m benchmarks.pruned_heads --out runs/pruned [--without 12 8 14] [--by gates]

Heads go one by one, each time the one without which the loss of training sentences' references is
lowest, given those that are gone; or in the order in which learned gates close (`head_gates`). Then
the model goes on from its shipped weights, by its own recipe with fewer steps, once whole and once
without the first N heads: their outputs are zero in every forward pass, so that nothing flows back
to them. All are trained equally and none by its score: the last weights count. BLEU of val and
test_2018 together, beam 4, against the whole model retrained, by paired bootstrap. What is in the
folder, order and trainings, is not made again.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.head_gates import closing_order
from manyheads import Translator, load, train
from manyheads.data.text.corpus import read_parallel
from manyheads.labs.experiments.pruning_lab import Head, loss_without, training_tokens, without
from manyheads.labs.shipped_models import network
from manyheads.measure.bootstrap import compare
from manyheads.measure.text_metrics import TEXT_METRICS, Statistics
from manyheads.project.paths import data_root

MODEL = "multi30k-en-de"
SETS = ("val", "test_2018_flickr")


def every_head() -> list[Head]:
    """List the heads of the encoder."""
    config = network(MODEL).config
    layers, heads = range(1, config.encoder_layers + 1), range(1, config.heads + 1)
    return [("encoder", n, "self", h) for n in layers for h in heads]


def by_gates(steps: int, rows: int = 64, most: float = 0.1) -> list[Head]:
    """List all heads in the order in which learned gates close; the trained weights are dropped."""
    source, target = training_tokens(MODEL, steps * rows, None)
    model, no_token = load(MODEL, Translator).model.train(), network(MODEL).config.pad

    def loss(step: int) -> Tensor:
        chosen = slice(step, None, steps)  # from all over the file
        read, written = (
            each[chosen, : int(each[chosen].ne(no_token).sum(dim=1).max())]
            for each in (source, target)
        )
        logits = model(read, written[:, :-1]).flatten(0, 1)
        return F.cross_entropy(logits, written[:, 1:].flatten(), ignore_index=no_token)

    torch.manual_seed(1)
    return closing_order(every_head(), model.parameters(), loss, steps, most)


def by_loss(count: int) -> list[Head]:
    """List all heads in the order in which they go by the loss of some training sentences."""
    loss, left = loss_without(MODEL, count, None), every_head()
    gone: list[Head] = []
    while left:
        losses = {head: loss([*gone, head]) for head in left}
        gone.append(min(losses, key=losses.__getitem__))
        left.remove(gone[-1])
        print(f"{len(gone):2} gone: layer {gone[-1][1]} head {gone[-1][3]}, {losses[gone[-1]]:.4f}")
    return gone


def scored(model: Translator, heads: Sequence[Head]) -> Statistics:
    """Translate both sets without some heads."""
    root = data_root(None)
    corpora = [read_parallel(root / "multi30k" / name, "en", "de") for name in SETS]
    sources = [line for corpus in corpora for line in corpus.source]
    references = [line for corpus in corpora for line in corpus.target]
    with without(heads):
        answers = [best.text for best, *_ in model.translate(sources, beams=4)]
    return TEXT_METRICS["bleu"].statistics(answers, references, "de")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True, help="where the retrained models are")
    parser.add_argument("--without", type=int, nargs="+", default=[12, 8, 14])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--by", choices=("loss", "gates"), default="loss", help="the order")
    parser.add_argument("--sentences", type=int, default=300, help="for the order by loss")
    parser.add_argument("--gate-steps", type=int, default=400, help="for the order by gates")
    parser.add_argument("--change", nargs="*", default=[], help="of the recipe, for all alike")
    asked = parser.parse_args()
    kept = asked.out / "order.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        gates = asked.by == "gates"
        order = by_gates(asked.gate_steps) if gates else by_loss(asked.sentences)
        kept.write_text(json.dumps(order), encoding="utf-8")
    order = json.loads(kept.read_text(encoding="utf-8"))
    changes = [
        *(f"start.{part}={MODEL}" for part in ("encoder", "decoder")),
        f"train.steps={asked.steps}",
        f"train.validate_every={asked.steps}",
        f"train.warmup={asked.steps // 10}",
        "train.learning_rate=1e-3",
        "train.restart=",
        "train.early_stop=",
        "train.ema=0.98",
        *asked.change,
    ]
    whole: Statistics | None = None
    print("gone   as shipped   retrained   against the whole, retrained")
    for count in (0, *asked.without):
        gone, out = order[:count], asked.out / str(count)
        before = scored(load(MODEL, Translator), gone)
        if not (out / "evaluations.jsonl").exists():
            with without(gone):
                train(MODEL, *changes, out=out, resume=out.exists())
        after = scored(load(out, Translator), gone)
        whole = whole or after
        found = compare(whole, after)
        change = found.difference
        print(
            f"{count:4} {before.value(before.rows.sum(axis=0)):12.2f} {found.b.value:11.2f}   "
            f"{change.value:+.2f} ({change.low:+.2f} to {change.high:+.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
