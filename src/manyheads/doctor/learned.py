"""What a model has learned: nothing, everything by heart, one answer for all.

A loss is compared with that of the best answer that does not depend on the input: the entropy of
the right answers. A translator is compared with itself reading the wrong sentences.
"""

import torch
from torch import Tensor, nn

from manyheads.doctor.curves import longer_warmup, more_dropout
from manyheads.doctor.finding import Finding, Findings, finding, rounded
from manyheads.doctor.run_batches import Learned, Predictions, Samples, mean_loss
from manyheads.doctor.weights import HARDLY, LARGE_STEP, Weights, not_far
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import Recipe

# An answer that is given this often, where it is right much more rarely, is the only one known.
ONE_ANSWER = 0.95
RARER = 0.8
# Standard deviation over examples, as a share of the features' size. The digits: 1.0.
FLAT = 1e-3
COLLAPSE = {"one-answer", "flat-features", "same-output"}


def measure(model: nn.Module, samples: Samples) -> Learned | None:
    """Measure losses; None where there is nothing to compare with."""
    blind = samples.blind_losses(model)
    if blind is None:
        return None
    return Learned(mean_loss(model, samples.train), mean_loss(model, samples.valid), *blind)


def nothing_learned(
    learned: Learned, samples: Samples, recipe: Recipe, weights: Weights | None, step: int
) -> Findings:
    """Find answers that do not depend on the input, not even in training data."""
    if not samples.nothing_learned(learned):
        return
    compared = _compared(learned, samples)
    if weights is not None and weights.step > LARGE_STEP:
        yield too_fast(compared, recipe, weights, step)
    elif weights is not None and weights.moved < HARDLY:
        yield not_far(recipe, weights, step, compared)
    else:
        yield finding("nothing-learned", compared, *_training_examples(samples), step=step)


def collapsed_by_rate(
    found: list[Finding], recipe: Recipe, weights: Weights | None, step: int
) -> Findings:
    """Find a learning rate that explains why a model gives one answer to every input."""
    collapsed = [each for each in found if each.kind in COLLAPSE]
    if collapsed and weights is not None and weights.step > LARGE_STEP:
        yield too_fast(collapsed[0].evidence[0], recipe, weights, step)


def too_fast(evidence: str, recipe: Recipe, weights: Weights, step: int) -> Finding:
    """Report steps that were too large, with a learning rate a tenth of the limit."""
    rate = recipe.train.learning_rate * LARGE_STEP / (10 * weights.step)
    return finding(
        "learning-rate-high",
        evidence,
        f"a step of the optimizer moves a weight by up to {100 * weights.step:.0f}% of its "
        "initial size: it forgets faster than it learns",
        settings=gentler(recipe) | {"train.learning_rate": rounded(rate)},
        step=step,
    )


def gentler(recipe: Recipe) -> dict[str, object]:
    """Return settings that make a collapse less likely."""
    rate = rounded(recipe.train.learning_rate / 3)
    return {"train.learning_rate": rate, "train.warmup": longer_warmup(recipe)}


def by_heart(learned: Learned, samples: Samples, recipe: Recipe, step: int) -> Findings:
    """Find training data that are memorised while validation data are not learned at all."""
    if samples.memorised(learned):
        yield finding(
            "by-heart",
            _compared(learned, samples),
            *_training_examples(samples),
            settings=more_dropout(recipe, 0.2) | pipeline_of(recipe).against_memorising(recipe),
            step=step,
        )


def one_answer(answers: Predictions, samples: Samples, recipe: Recipe, step: int) -> Findings:
    """Find a model of classes or tokens whose answer is always the same."""
    given, right = answers[0].argmax(dim=1), answers[1]
    values, counts = given.unique(return_counts=True)
    answer = int(values[counts.argmax()])
    share = float(counts.max()) / len(given)
    deserved = float((right == answer).float().mean())
    if share < ONE_ANSWER or deserved > RARER or len(right) < 2:
        return
    more, settings = samples.remedy
    yield finding(
        "one-answer",
        f"{samples.class_name(answer)} is {100 * share:.0f}% of {len(given):,} answers to "
        f"validation data, and right for {100 * deserved:.0f}%",
        settings=gentler(recipe) | settings,
        step=step,
        more=more,
    )


def flat_features(model: nn.Module, samples: Samples, step: int) -> Findings:
    """Find an input of the last layer that is the same for every example."""
    if not samples.labelled:
        return
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
        return
    features = seen[-1].float()
    size = float(features.square().mean().sqrt())
    spread = float(features.std(dim=0).square().mean().sqrt())
    if size == 0 or not spread > FLAT * size:  # nan is as bad
        yield finding(
            "flat-features",
            f"over {len(features)} validation images the features vary by {spread:.2g}, their "
            f"size is {size:.2g}",
            step=step,
        )


def _training_examples(samples: Samples) -> list[str]:
    return [f"training example: {each}" for each in samples.examples()]


def _compared(learned: Learned, samples: Samples) -> str:
    return (
        f"loss on {samples.sizes[0]} training examples {learned.train:.3g}, {samples.baseline} "
        f"{learned.blind_train:.3g}; on {samples.sizes[1]} of validation {learned.valid:.3g}, "
        f"{learned.blind_valid:.3g}"
    )
