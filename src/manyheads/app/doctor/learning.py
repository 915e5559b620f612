"""What a model has made of its data: nothing, everything by heart, one answer for all.

A loss is compared with that of the best answer that knows nothing of the input: the entropy of what
is asked about. A translator is compared with itself reading the wrong sentences.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from manyheads.app.doctor.curves import longer_warmup
from manyheads.app.doctor.finding import Finding, cut, rounded
from manyheads.app.doctor.samples import (
    LineSamples,
    PairSamples,
    PictureSamples,
    Samples,
    mean_loss,
    predictions,
)
from manyheads.app.doctor.weights import HARDLY, LARGE_STEP, Weights, not_far
from manyheads.app.recipe import Recipe, TranslateRecipe

# Of the loss of the best answer that knows nothing of the input: what is closer has learned
# nothing, but for noise and a few easy examples.
NOTHING = 0.95
HALF = 0.5  # of the same: a training loss below this was learned well
# Nats a token that the right source gains over a wrong one: 5% of perplexity. Shipped translators
# gain 3.4 to 7.1.
SOURCE_GAIN = 0.05
HEART_GAIN = 0.5
# An answer that is given this often, where it is right much more rarely, is the only one known.
ONE_ANSWER = 0.95
RARER = 0.8
# Standard deviation over examples, as a share of the features' size. The digits: 1.0.
FLAT = 1e-3
COLLAPSE = {"one-answer", "flat-features", "same-output"}


class Learned(NamedTuple):
    """Losses on a sample of training and of validation data, and what they are compared with."""

    train: float
    valid: float
    # What not knowing the input costs: another input's loss, or the entropy of the answers.
    blind_train: float
    blind_valid: float

    @property
    def gains(self) -> tuple[float, float]:
        """What the input gains, in nats, in training and in validation data."""
        return self.blind_train - self.train, self.blind_valid - self.valid


def measure(model: nn.Module, samples: Samples) -> Learned | None:
    """Measure losses; None where there is nothing to compare with."""
    if isinstance(samples, PairSamples):
        blind = [mean_loss(model, task) for task in samples.mismatched]
    else:
        entropies = [_entropy(model, task) for task in (samples.train, samples.valid)]
        if entropies[0] is None or entropies[1] is None:
            return None
        blind = [each for each in entropies if each is not None]
    return Learned(mean_loss(model, samples.train), mean_loss(model, samples.valid), *blind)


def _entropy(model: nn.Module, task: object) -> float | None:
    """Return the entropy of the right answers, in nats."""
    found = predictions(model, task)  # type: ignore[arg-type]
    if found is None:
        return None
    _, counts = found[1].unique(return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * shares.log()).sum())


def nothing_learned(
    learned: Learned, samples: Samples, recipe: Recipe, weights: Weights | None, step: int
) -> list[Finding]:
    """Say if the answers do not depend on the input, in training data neither."""
    if isinstance(samples, PairSamples):
        ignored = max(learned.gains) < SOURCE_GAIN
    else:
        ignored = 0 < NOTHING * learned.blind_train <= learned.train
    if not ignored:
        return []
    compared = _compared(learned, samples)
    if weights is not None and weights.step > LARGE_STEP:
        return [too_fast(compared, recipe, weights, step)]
    if weights is not None and weights.moved < HARDLY:
        return [not_far(recipe, weights, step, compared)]
    return [
        Finding(
            kind="nothing-learned",
            severity="error",
            what="The model does not look at its input: its answers are as good without it.",
            evidence=(compared, *(f"training example: {each}" for each in _examples(samples))),
            remedy="Do these belong together? If labels or sides were mixed up, repair the data "
            "(`manyheads check-data`). If they are right, train longer, and try a third and three "
            "times of train.learning_rate.",
            step=step,
        )
    ]


def collapsed_by_rate(
    found: list[Finding], recipe: Recipe, weights: Weights | None, step: int
) -> list[Finding]:
    """Say if the learning rate is why a model has one answer for all."""
    collapsed = [each for each in found if each.kind in COLLAPSE]
    if not collapsed or weights is None or weights.step <= LARGE_STEP:
        return []
    return [too_fast(collapsed[0].evidence[0], recipe, weights, step)]


def too_fast(evidence: str, recipe: Recipe, weights: Weights, step: int) -> Finding:
    """Say that steps were too large, and which would not be."""
    rate = recipe.train.learning_rate * LARGE_STEP / (10 * weights.step)
    return Finding(
        kind="learning-rate-high",
        severity="error",
        what="The learning rate is far too high: nothing was learned, or nothing is left of it.",
        evidence=(
            evidence,
            f"a step of the optimizer moves a weight by up to {100 * weights.step:.0f}% of its "
            "initial size: it forgets faster than it learns",
        ),
        remedy="Weights that large do not recover: train anew with another --out.",
        settings=gentler(recipe) | {"train.learning_rate": rounded(rate)},
        step=step,
    )


def gentler(recipe: Recipe) -> dict[str, object]:
    """Settings with which a run that collapsed may not."""
    return {
        "train.learning_rate": rounded(recipe.train.learning_rate / 3),
        "train.warmup": longer_warmup(recipe),
    }


def by_heart(learned: Learned, samples: Samples, recipe: Recipe, step: int) -> list[Finding]:
    """Say if the training data are known by heart, and the validation data not at all."""
    seen, new = learned.gains
    if isinstance(samples, PairSamples):
        known = seen >= HEART_GAIN and new < SOURCE_GAIN
    else:
        known = learned.train <= HALF * learned.blind_train and (
            learned.valid >= learned.blind_valid > 0
        )
    if not known:
        return []
    settings: dict[str, object] = {}
    dropout = getattr(recipe.config(), "dropout", None)
    if dropout is not None:
        settings["model.dropout"] = rounded(min(dropout + 0.2, 0.5))
    if isinstance(recipe, TranslateRecipe):
        settings["tokenizer.sampling"] = max(recipe.tokenizer.sampling, 0.1)
    return [
        Finding(
            kind="by-heart",
            severity="error",
            what="The training data are known by heart, and nothing of it helps with the "
            "validation data.",
            evidence=(
                _compared(learned, samples),
                *(f"training example: {each}" for each in _examples(samples)),
            ),
            remedy="Look at the examples: wrong labels can only be learned by heart. If they are "
            "right, the splits are of different kinds, or there is far too little data.",
            settings=settings,
            step=step,
        )
    ]


def one_answer(
    answers: tuple[Tensor, Tensor], samples: Samples, recipe: Recipe, step: int
) -> list[Finding]:
    """Say if a model of classes or tokens always says the same."""
    said, right = answers[0].argmax(dim=1), answers[1]
    values, counts = said.unique(return_counts=True)
    answer = int(values[counts.argmax()])
    share = float(counts.max()) / len(said)
    deserved = float((right == answer).float().mean())
    if share < ONE_ANSWER or deserved > RARER or len(right) < 2:
        return []
    name = _class_name(samples, answer)
    return [
        Finding(
            kind="one-answer",
            severity="error",
            what="Collapse: nearly everything gets the same answer.",
            evidence=(
                f"{name} is {100 * share:.0f}% of {len(said):,} answers to validation data, and "
                f"right for {100 * deserved:.0f}%",
            ),
            remedy="Learn more slowly with a longer warm-up"
            + (
                "; where one class is most of the data, weigh the classes."
                if isinstance(samples, PictureSamples)
                else "."
            ),
            settings=gentler(recipe)
            | ({"train.class_weights": "balanced"} if isinstance(samples, PictureSamples) else {}),
            step=step,
        )
    ]


def flat_features(model: nn.Module, samples: Samples, step: int) -> list[Finding]:
    """Say if what the last layer reads is the same for every input."""
    if not isinstance(samples, PictureSamples):
        return []
    seen: list[Tensor] = []
    layers = [part for part in model.modules() if isinstance(part, nn.Linear)]
    handles = [
        layer.register_forward_pre_hook(lambda _, given: seen.append(given[0])) for layer in layers
    ]
    try:
        with torch.inference_mode():
            for batch in samples.valid.load(0, samples.valid.plan(0)[:1]):
                samples.valid.loss(model, batch)
    finally:
        for handle in handles:
            handle.remove()
    if not seen or seen[-1].ndim != 2 or len(seen[-1]) < 2:
        return []
    features = seen[-1].float()
    size = float(features.square().mean().sqrt())
    spread = float(features.std(dim=0).square().mean().sqrt())
    if size > 0 and spread > FLAT * size:
        return []
    return [
        Finding(
            kind="flat-features",
            severity="error",
            what="Collapse: what the last layer reads is the same for every input.",
            evidence=(
                f"over {len(features)} validation pictures the features vary by {spread:.2g}, "
                f"their size is {size:.2g}",
            ),
            remedy="Somewhere all paths are closed (dead ReLUs, exploded weights): train anew, "
            "more slowly.",
            step=step,
        )
    ]


def _compared(learned: Learned, samples: Samples) -> str:
    without = (
        "with the source of another pair"
        if isinstance(samples, PairSamples)
        else "of the best answer that knows no input"
    )
    return (
        f"loss on {samples.sizes[0]} training examples {learned.train:.3g}, {without} "
        f"{learned.blind_train:.3g}; on {samples.sizes[1]} of validation {learned.valid:.3g}, "
        f"{learned.blind_valid:.3g}"
    )


def _examples(samples: Samples) -> list[str]:
    """Show a few training examples with their answers."""
    if isinstance(samples, PairSamples):
        few = samples.few[0]
        return [f"{cut(s, 50)} → {cut(t, 50)}" for s, t in list(few.pairs())[:3]]
    if isinstance(samples, PictureSamples):
        images = samples.few[0]
        return [
            f"{images.names[i]} is {images.classes[int(images.labels[i])]}"
            for i in range(min(3, len(images)))
            if not images.multi_label
        ]
    assert isinstance(samples, LineSamples)
    return [cut(line) for line in samples.lines[0].lines[:3]]


def _class_name(samples: Samples, number: int) -> str:
    if isinstance(samples, PictureSamples):
        return repr(samples.few[1].classes[number])
    if isinstance(samples, LineSamples) and samples.classes:
        return repr(samples.classes[number])
    return f"token {number}"
