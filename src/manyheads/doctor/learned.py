"""What a model has learned: nothing, everything by heart, one answer for all.

A loss is compared with that of the best answer that does not depend on the input: the entropy of
the right answers. A translator is compared with itself reading the wrong sentences.
"""

from contextlib import ExitStack

import torch
from torch import Tensor, nn

from manyheads.doctor.curves import longer_warmup, more_dropout
from manyheads.doctor.finding import Finding, Findings, finding, rounded
from manyheads.doctor.run_batches import Behaviour, Examined, Learned, Samples, mean_loss
from manyheads.doctor.weights import HARDLY, LARGE_STEP, Weights, not_far
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import Recipe

# An answer that is given this often, where it is right much more rarely, is the only one known.
ONE_ANSWER = 0.95
RARER = 0.8
# Standard deviation over examples, as a share of the features' size. The digits: 1.0.
FLAT = 1e-3
COLLAPSE = {"one-answer", "flat-features", "same-output"}


def from_losses(seen: Behaviour) -> Examined:
    """Compare losses with those without the input, if they can be had."""
    model, samples, run, weights = seen
    if (blind := samples.blind_losses(model)) is None:
        return Examined([])
    learned = Learned(mean_loss(model, samples.train), mean_loss(model, samples.valid), *blind)
    recipe, step = run.recipe, run.history.last_step
    nothing = nothing_learned(learned, samples, recipe, weights, step)
    return Examined([*nothing, *by_heart(learned, samples, recipe, step)])


def from_answers(seen: Behaviour) -> Examined:
    """Find a model of classes or tokens whose answer is always the same."""
    model, samples, run, _ = seen
    if (answers := samples.predictions(model, samples.valid)) is None:
        return Examined([])
    given, right = answers[0].argmax(dim=1), answers[1]
    values, counts = given.unique(return_counts=True)
    answer = int(values[counts.argmax()])
    share = float(counts.max()) / len(given)
    deserved = float((right == answer).float().mean())
    examined = Examined([], [f"answers: {len(given):,} to validation data"])
    if share < ONE_ANSWER or deserved > RARER or len(right) < 2:
        return examined
    more, settings = samples.remedy
    found = finding(
        "one-answer",
        f"{samples.class_name(answer)} is {100 * share:.0f}% of {len(given):,} answers to "
        f"validation data, and right for {100 * deserved:.0f}%",
        settings=gentler(run.recipe) | settings,
        step=run.history.last_step,
        more=more,
    )
    return examined._replace(findings=[found])


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
    findings: list[Finding], recipe: Recipe, weights: Weights | None, step: int
) -> Findings:
    """Find a learning rate that explains why a model gives one answer to every input."""
    collapsed = [each for each in findings if each.kind in COLLAPSE]
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
        evidence = _compared(learned, samples), *_training_examples(samples)
        settings = more_dropout(recipe, 0.2) | pipeline_of(recipe).against_memorising(recipe)
        yield finding("by-heart", *evidence, settings=settings, step=step)


def from_features(behaviour: Behaviour) -> Examined:
    """Find an input of the last layer that is the same for every example."""
    model, samples, run, _ = behaviour
    if not samples.labelled:
        return Examined([])
    seen: list[Tensor] = []
    layers = [part for part in model.modules() if isinstance(part, nn.Linear)]
    with ExitStack() as hooks, torch.inference_mode():
        for layer in layers:
            hook = layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
            hooks.enter_context(hook)
        for batch in samples.valid.load(0, samples.valid.plan(0)[:1]):
            samples.valid.loss(model, batch)
    if not seen or seen[-1].ndim != 2 or len(seen[-1]) < 2:
        return Examined([])
    features = seen[-1].float()
    size = float(features.square().mean().sqrt())
    spread = float(features.std(dim=0).square().mean().sqrt())
    if size > 0 and spread > FLAT * size:  # nan is as bad
        return Examined([])
    evidence = (
        f"over {len(features)} validation images the features vary by {spread:.2g}, their size is "
        f"{size:.2g}"
    )
    return Examined([finding("flat-features", evidence, step=run.history.last_step)])


def _training_examples(samples: Samples) -> list[str]:
    return [f"training example: {each}" for each in samples.examples()]


def _compared(learned: Learned, samples: Samples) -> str:
    return (
        f"loss on {samples.sizes[0]} training examples {learned.train:.3g}, {samples.baseline} "
        f"{learned.blind_train:.3g}; on {samples.sizes[1]} of validation {learned.valid:.3g}, "
        f"{learned.blind_valid:.3g}"
    )
