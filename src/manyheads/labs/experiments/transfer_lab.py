"""V9: pre-train on many images, fine-tune on few at another resolution, positions interpolated."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import torch
from torch import Tensor

from manyheads.data.images.image_set import ImageSet
from manyheads.labs import cifar_sample as sample
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import BySize, leader, mean, more, over
from manyheads.labs.lab_training import fresh, learn
from manyheads.models.resize import resize
from manyheads.models.sized_tables import POSITIONS
from manyheads.models.vit import VitConfig
from manyheads.train.model_tensors import tensors as weights

SMALL, LARGE = 24, 32  # pixels before and after
SCRATCH, TUNED, FRESH = "from scratch", "fine-tuned", "fine-tuned, positions anew"
LAYERED, PROBE = "fine-tuned, layer-wise rates", "frozen, linear head"
SAME = "fine-tuned at 24 pixels"
ARMS = (SCRATCH, TUNED, FRESH, LAYERED, PROBE, SAME)
RATES = {PROBE: 1e-2, SCRATCH: 2e-3}  # the others are fine-tuned with less
TUNING = 5e-4


def classes(images: ImageSet, first: int, last: int) -> ImageSet:
    """Select the images of some classes, renumbered from 0."""
    chosen = images.select(np.flatnonzero((images.labels >= first) & (images.labels < last)))
    return replace(chosen, labels=chosen.labels - first, classes=images.classes[first:last])


def config(side: int, count: int, size: Size) -> VitConfig:
    """A ViT for images of this side, with this number of classes."""
    small = sample.small_vit(size.dim, size.layers, 4)
    return replace(small, height=side, width=side, classes=count)


@lru_cache(maxsize=1)
def pretrained(size: Size, root: str | None, seed: int) -> tuple[dict[str, Tensor], float]:
    """Pre-train on the first classes at the smaller size; return weights and accuracy."""
    train, valid = (classes(each, 0, size.first) for each in sample.cifar(root, size.hold_out))
    train, valid = sample.some(train, size.images, seed), sample.some(valid, size.valid, 0)
    how = sample.training(size.pretraining, size.batch_size)
    smaller = replace(sample.COLOURS, height=SMALL, width=SMALL)
    model = fresh(config(SMALL, size.first, size), seed)
    learn(model, sample.classifying(train, valid, how, seed=seed, preprocessing=smaller))
    right = sample.accuracy(model, *sample.tensors(valid, smaller))
    return {name: tensor.clone() for name, tensor in weights(model).items()}, right


def fitted(
    known: Mapping[str, Tensor], arm: str, own: Mapping[str, Tensor], size: Size
) -> dict[str, Tensor]:
    """The pre-trained weights for an arm: without the head, with its kind of positions."""
    side = SMALL if arm == SAME else LARGE
    _, state = resize(config(SMALL, size.first, size), known, (side, side))
    taken = {name: tensor for name, tensor in state.items() if not name.startswith("head")}
    if arm == FRESH:
        taken[POSITIONS] = own[POSITIONS].clone()
    return taken


def tune(arm: str, labels: int, size: Size, root: str | None, seed: int) -> Measured:
    """Fine-tune on a few images of the other classes."""
    train, valid = (classes(each, size.first, 10) for each in sample.cifar(root, size.hold_out))
    train, valid = sample.some(train, labels, seed), sample.some(valid, size.valid, 0)
    side = SMALL if arm == SAME else LARGE
    seen = replace(sample.COLOURS, height=side, width=side)
    how = sample.training(size.steps, min(size.batch_size, labels), rate=RATES.get(arm, TUNING))
    if arm == LAYERED:
        how = replace(how, layer_decay=0.75, learning_rate=2 * TUNING)
    if arm == PROBE:
        how = replace(how, freeze=("!head",))
    model = fresh(config(side, 10 - size.first, size), seed)
    own = weights(model)
    before = 0.0
    if arm != SCRATCH:
        known, before = pretrained(size, root, seed)
        with torch.no_grad():
            for name, tensor in fitted(known, arm, own, size).items():
                own[name].copy_(tensor)
    learned = learn(model, sample.classifying(train, valid, how, seed=seed, preprocessing=seen))
    return {
        "accuracy": sample.accuracy(model, *sample.tensors(valid, seen)),
        "loss": learned.loss,
        "before": before,
    }


def conclude(trials: BySize, size: Size) -> str:
    """Compare with training from scratch at few and many labels, and the ways of fine-tuning."""
    few, many = (pick(trials[SCRATCH]) for pick in (min, max))

    def percent(arm: str, labels: int) -> str:
        return f"{mean(trials[arm][labels], 'accuracy')}%"

    def word(a: str, b: str, labels: int) -> str:
        return more(trials[a][labels], trials[b][labels], "accuracy")

    best = leader({arm: trials[arm][few] for arm in ARMS if arm != SCRATCH}, "accuracy")
    return (
        f"With {few} labelled pictures a ViT with {size.pretraining:,} updates of pre-training and "
        f"{size.steps:,} of fine-tuning is right {word(TUNED, SCRATCH, few)} often than one from "
        f"scratch with {size.steps:,} updates ({percent(TUNED, few)} against "
        f"{percent(SCRATCH, few)}), with {many:,} {word(TUNED, SCRATCH, many)} "
        f"({percent(TUNED, many)} against {percent(SCRATCH, many)}); interpolated positions are "
        f"right {word(TUNED, FRESH, few)} often than positions learned anew ({percent(FRESH, few)})"
        f", the larger pictures {word(TUNED, SAME, few)} often than the small ones "
        f"({percent(SAME, few)}); best with {few} is {best}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Pre-train with each seed, then fine-tune every arm."""
    trials: dict[str, dict[int, list[Measured]]] = {
        arm: {labels: [] for labels in size.labels} for arm in ARMS
    }
    for seed in bench.seeds:  # one pre-trained model at a time
        for arm in ARMS:
            for labels in size.labels:
                name = f"{arm}, {labels} pictures, seed {seed}"
                once = bench.trial(name, partial(tune, arm, labels, size, bench.root, seed))
                trials[arm][labels].append(once)
    before = over(trials[TUNED][size.labels[0]], "before")
    return conclude(trials, size), {"measured": trials, "before": before, "new": 10 - size.first}
