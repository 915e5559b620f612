"""A bad beginning, named before the first step or within the first tenth of the steps.

Before: data in which nothing can be learned, and steps that are too large for the initial weights.
After: a loss that does not fall, or that rises again to stay.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from torch import nn

from manyheads.data.checks.dependence import Sides, dependence
from manyheads.data.checks.leakage import contains, plain
from manyheads.doctor import curves
from manyheads.doctor.finding import SHOWN, Findings, cut, finding, rounded
from manyheads.doctor.text_leakage import GIVEN
from manyheads.doctor.weights import LARGE_STEP, usual_size
from manyheads.project.base_recipe import Recipe
from manyheads.train.history import History
from manyheads.train.model_tensors import tensors
from manyheads.train.schedule import learning_rate

ENOUGH = 50  # examples, of fewer nothing is said
# Standard deviations above shuffled examples. Shipped recipes: above 30; shuffled: below 3.
RELATED = 4.0
CONSTANT = 0.95
PART = 10  # of the steps, after which the loss is judged
BINS = 10  # means over that part
FELL = 0.02  # of the first loss; shipped recipes lose at least 12%
ROSE = 0.15  # of the first loss, with trained weights; that of ko-en rose by 12% at its full rate


def in_data(sides: Sides) -> Findings:
    """Find a side that is the same for all, targets in their sources, and unrelated sides."""
    count = len(sides.contents[0])
    if count < ENOUGH:
        return
    for name, contents in zip(sides.names, sides.contents, strict=True):
        ((content, times),) = Counter(contents).most_common(1)
        if times >= CONSTANT * count:
            shown = [f"{times} of {count}: {content!r:.90}"] if isinstance(content, str) else []
            yield finding("constant", *shown, share=100 * times / count, side=name)
            return
    pairs = [(str(one), str(other)) for one, other in zip(*sides.contents, strict=True)]
    pairs = pairs if isinstance(sides.contents[0][0], str) else []
    within = [pair for pair in pairs if contains(*pair)]
    equal = [(one, other) for one, other in pairs if plain(one) == plain(other)]
    given = [f"{cut(one)!r} has {cut(other, 40)!r}" for one, other in (*within, *equal)]
    if len(within) >= GIVEN * count or len(equal) >= CONSTANT * count:
        yield finding("target-in-source", *given[:SHOWN], share=100 * len(given) / count)
        return
    above = dependence(*sides.features)
    if above < RELATED:
        yield finding(
            "unrelated",
            f"{count} training examples are {max(above, 0):.1f} standard deviations more related "
            f"than shuffled ones; {RELATED:g} are little",
            *(f"{cut(one, 50)} → {cut(other, 50)}" for one, other in pairs[:SHOWN]),
        )


def in_rate(model: nn.Module, recipe: Recipe) -> Findings:
    """Find steps that are too large for the initial weights.

    Filters in a model with batch norm do not count, as most have one behind them: it takes their
    size away, and large steps make them grow until a step is small (Arora et al. 2019, section 2).
    """
    rescaled = any(isinstance(each, nn.BatchNorm2d) for each in model.modules())
    matrices = [
        each
        for each in tensors(model).values()
        if each.ndim >= 2 and not (rescaled and each.ndim == 4) and each.any()
    ]
    if not matrices or recipe.train.freeze:
        return
    step = recipe.train.learning_rate / usual_size(matrices)
    if step > LARGE_STEP:
        yield finding(
            "learning-rate-high:before",
            f"a step of the optimizer will move a weight by up to {100 * step:.0f}% of its initial "
            f"size; above {100 * LARGE_STEP:.0f}% a model forgets faster than it learns",
            settings={"train.learning_rate": rounded(recipe.train.learning_rate * 0.05 / step)},
        )


def in_losses(losses: Sequence[float], recipe: Recipe, *, started: bool) -> Findings:
    """Find, in the losses of the first tenth of the steps, that they do not fall.

    A run that `started` from trained weights may begin at its lowest, and rise while its learning
    rate does: it must not lose them.
    """
    if len(losses) < BINS:
        return
    parts = np.array_split(np.array(losses), BINS)
    ends = np.cumsum([len(part) for part in parts])
    means = [float(part.mean()) for part in parts]
    first, last = means[0], min(means[-2:])
    noise = float(np.std(np.diff(means))) / 2
    fell = first - last
    if fell < (-max(ROSE * abs(first), noise) if started else FELL * abs(first)):
        yield finding(
            "no-fall",
            f"loss {first:.4g} in the first {len(parts[0])} steps, {means[-1]:.4g} in the "
            f"{len(parts[-1])} up to step {len(losses):,}",
            step=len(losses),
        )
        return
    if started:  # what it has learned does not show in these losses, so no share of it is lost
        return
    lines = [
        {"step": int(end), "loss": mean, "learning_rate": learning_rate(int(end), recipe.train)}
        for end, mean in zip(ends, means, strict=True)
    ]
    yield from curves.diverged(History(training=lines), recipe)
