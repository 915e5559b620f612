"""What the curves of a run show: its learning rate, its length, and overfitting.

Thresholds are shares of the fall: what the loss lost from its first line to its lowest. The curves
of the five shipped models are far on the healthy side of each; see docs/doctor.md.
"""

import numpy as np

from manyheads.app.doctor.finding import Finding, rounded
from manyheads.app.recipe import ClassifyRecipe, Recipe, TranslateRecipe
from manyheads.tasks.watch import SIGNS
from manyheads.train.history import History, Line
from manyheads.train.task import lower_is_better

LINES = 8  # of fewer, a curve has no shape

# Of the fall. The largest jump of a shipped model, at the largest rate it learned well with, is 5%.
JUMP = 0.10
LARGE_JUMP = 0.30
# Of the fall, at the end: a quarter of what was learned is lost again. Shipped models: below 1%.
LOST = 0.25
# Jumps and losses this many times as large as the usual step between two lines are no noise; of
# normal noise, a difference of two lines exceeds six times its median once in 20,000.
NOISE = 6.0
# Of the fall, in the last quarter: a straight line has 25%, shipped models 2% of their steps and
# up to 11% of their way in learning rates.
STILL = 0.18
LEFT = 0.5  # of the loss: who has lost half of it learns at a useful rate. Shipped models: 28%
# The fall in the last third of the way against that in the first: 1 is a straight line; below this
# the curve flattens, above its inverse a plateau came first.
STRAIGHT = 0.5
# Of the best value. Two neighbouring validations of a converged run differ by less than 2%.
WORSE = 0.05
SCORE_POINTS = 1.0  # of a percentage or BLEU, below which nothing is said however small the best is
# At or above this a score on real data is rare, and a leak common.
TOO_GOOD = dict.fromkeys(("accuracy", "exact", "f1", "map"), 99.95) | {"bleu": 95.0, "chrf": 97.0}
MANY = 200  # validation examples; of fewer, all right is no miracle


def non_finite(history: History, recipe: Recipe) -> list[Finding]:
    """Say where the loss became impossible."""
    if history.non_finite is None:
        return []
    evidence = [f"step {history.non_finite:,}: the loss or its gradient is not a finite number"]
    if history.training:
        last = history.training[-1]
        evidence.append(f"before, at step {int(last['step']):,}, the loss was {last['loss']:.4g}")
    return [
        Finding(
            kind="non-finite",
            severity="error",
            what="Training broke down: the loss became infinite or not a number.",
            evidence=tuple(evidence),
            remedy="Learn more slowly, limit the gradient, and train anew with another --out.",
            settings=slower(recipe, 10),
            step=history.non_finite,
        )
    ]


def diverged(history: History, recipe: Recipe) -> list[Finding]:
    """Say if the loss rose again to stay."""
    if len(history) < LINES:
        return []
    smooth = _smooth(history.losses)
    lowest = int(smooth.argmin())
    fall, rise = smooth[0] - smooth[lowest], smooth[-1] - smooth[lowest]
    upwards = rise > 0 and (fall <= 0 or rise > LOST * fall)
    if not upwards or rise < NOISE * _noise(history.losses):
        return []
    best, last = history.training[lowest], history.training[-1]
    return [
        Finding(
            kind="diverged",
            severity="error",
            what="The loss fell and then rose again to stay: the learning rate is too high.",
            evidence=(
                f"loss {smooth[lowest]:.4g} at step {int(best['step']):,}, {smooth[-1]:.4g} at "
                f"step {int(last['step']):,}",
                f"learning rate {best['learning_rate']:.2g} there",
            ),
            remedy="Learn more slowly, or warm up for longer.",
            settings=slower(recipe, 3),
            step=int(best["step"]),
        )
    ]


def spikes(history: History, recipe: Recipe) -> list[Finding]:
    """Say if the loss jumped up now and then."""
    if len(history) < LINES:
        return []
    losses, steps = history.losses, history.steps
    fall = losses[0] - _smooth(losses).min()
    restart = recipe.train.restart
    quiet = range(restart.step, restart.step + 2 * recipe.train.warmup + 1) if restart else range(0)
    usual, found = NOISE * _noise(losses), []
    for index in range(3, len(losses)):
        jump = losses[index] - np.median(losses[index - 3 : index])
        if fall > 0 and jump > max(JUMP * fall, usual) and steps[index] not in quiet:
            found.append((jump, index))
    if not found:
        return []
    largest, index = max(found)
    serious = len(found) > 1 or largest > LARGE_JUMP * fall
    return [
        Finding(
            kind="spikes",
            severity="warning" if serious else "note",
            what="The loss jumps up in between: the learning rate is at its limit or beyond.",
            evidence=(
                f"{len(found)} of {len(losses)} lines; the largest jump is {largest:.3g} to "
                f"{losses[index]:.4g} at step {steps[index]:,}, {100 * largest / fall:.0f}% of all "
                "that was learned",
            ),
            remedy="Learn more slowly, or warm up for longer. If it is one batch each time, look "
            "at its examples with `manyheads check-data`.",
            settings=slower(recipe, 2),
            step=int(steps[index]),
        )
    ]


def too_slow(history: History, recipe: Recipe) -> list[Finding]:
    """Say if the loss falls along a straight line and is far from its end: a rate that is too low.

    The way is measured in learning rates rather than in steps, so that a schedule that ends at 0
    does not look like a loss that has come to rest.
    """
    way = _way(history)
    if way is None:
        return []
    losses, smooth = history.losses, _smooth(history.losses)
    fall = smooth[0] - smooth[-1]
    last_quarter = np.interp(0.75, way, smooth) - smooth[-1]
    if smooth[-1] < LEFT * smooth[0] or last_quarter < max(STILL * fall, _noticeable(losses)):
        return []
    first = smooth[0] - np.interp(1 / 3, way, smooth)
    last = np.interp(2 / 3, way, smooth) - smooth[-1]
    if not STRAIGHT * first < last < first / STRAIGHT:
        return []
    return [
        Finding(
            kind="learning-rate-low",
            severity="warning",
            what="The loss falls along a straight line to the end: the learning rate is too low.",
            evidence=(
                f"loss {losses[0]:.4g} at step {history.steps[0]:,}, {losses[-1]:.4g} at step "
                f"{history.steps[-1]:,}",
                f"it fell by {first:.3g} in the first third of the way, by {last:.3g} in the last",
            ),
            remedy="Learn faster; a good rate makes the curve steep first and flat later.",
            settings={"train.learning_rate": rounded(5 * recipe.train.learning_rate)},
            step=int(history.steps[-1]),
        )
    ]


def too_short(history: History, recipe: Recipe) -> list[Finding]:
    """Say if the loss of a finished run was still falling steeply."""
    if len(history) < LINES:
        return []
    losses, steps, smooth = history.losses, history.steps, _smooth(history.losses)
    last_quarter = np.interp(0.75 * steps[-1], steps, smooth) - smooth[-1]
    fall = smooth[0] - smooth[-1]
    if last_quarter < max(STILL * fall, _noticeable(losses)):
        return []
    return [
        Finding(
            kind="too-short",
            severity="warning",
            what="The loss was still falling steeply when training ended.",
            evidence=(
                f"loss {losses[-1]:.4g} at step {steps[-1]:,}: {100 * last_quarter / fall:.0f}% of "
                "its fall came in the last quarter of the steps",
            ),
            remedy="Train longer.",
            settings={"train.steps": 2 * recipe.train.steps},
            step=int(steps[-1]),
        )
    ]


def overfitting(history: History, recipe: Recipe) -> list[Finding]:
    """Say if the validation became worse while the training loss went on falling."""
    judged = {name: _worse(history, name) for name in _measured(history)}
    losses = {name: found for name, found in judged.items() if found and lower_is_better(name)}
    scores = {name: found for name, found in judged.items() if found and not lower_is_better(name)}
    has_scores = any(not lower_is_better(name) for name in judged)
    if scores or (losses and not has_scores):
        name, (best, last) = next(iter((scores or losses).items()))
        kept = (
            f"early_stop kept the weights of the best {recipe.train.early_stop.metric}"
            if recipe.train.early_stop
            else "the weights that are kept are the last ones, not the best"
        )
        return [
            Finding(
                kind="overfitting",
                severity="note" if recipe.train.early_stop else "warning",
                what="The validation becomes worse while the training loss goes on falling.",
                evidence=(_course(history, name, best, last), kept),
                remedy="Stop at the best validation, and make learning by heart harder: more "
                "data, more dropout, a smaller model.",
                settings=_against_overfitting(recipe, name),
                step=int(best["step"]),
            )
        ]
    if losses:
        name, (best, last) = next(iter(losses.items()))
        return [
            Finding(
                kind="overconfident",
                severity="note",
                what="The validation loss rises while the score does not fall: the model becomes "
                "surer than it is right.",
                evidence=(_course(history, name, best, last),),
                remedy="The answers are as good as before, their probabilities are not.",
                settings={"train.label_smoothing": 0.1} if not recipe.train.label_smoothing else {},
                step=int(best["step"]),
            )
        ]
    return []


def too_good(history: History, examples: int) -> list[Finding]:
    """Say if the validation is so good that one should ask why."""
    if not history.validations or examples < MANY:
        return []
    last = history.validations[-1]
    perfect = {
        name: last[f"val_{name}"]
        for name, bar in TOO_GOOD.items()
        if last.get(f"val_{name}", 0.0) >= bar
    }
    if not perfect:
        return []
    name, value = next(iter(perfect.items()))
    first = history.validations[0]
    return [
        Finding(
            kind="too-good",
            severity="note",
            what="The validation is suspiciously perfect.",
            evidence=(
                f"val_{name} {value:.2f} on {examples:,} examples at step {int(last['step']):,}; "
                f"{first.get(f'val_{name}', value):.2f} at step {int(first['step']):,} already",
            ),
            remedy="Right for an easy task. If it is not one, ask what tells the answer: copies of "
            "training examples (other findings here say so), files, order, or a mark in the data.",
            step=int(last["step"]),
        )
    ]


def slower(recipe: Recipe, times: float) -> dict[str, object]:
    """Settings that learn more slowly, begin more gently, and limit the gradient."""
    train = recipe.train
    settings: dict[str, object] = {
        "train.learning_rate": rounded(train.learning_rate / times),
        "train.warmup": longer_warmup(recipe),
    }
    return settings if train.clip else settings | {"train.clip": 1.0}


def longer_warmup(recipe: Recipe) -> int:
    """Double the warm-up; at least a twentieth of the run, at most a quarter."""
    train = recipe.train
    return min(max(2 * train.warmup, train.steps // 20), max(train.steps // 4, 1))


def _smooth(losses: np.ndarray) -> np.ndarray:
    """Take the median of three neighbours, so that one line decides nothing; of two at the ends."""
    padded = np.concatenate([[np.nan], losses, [np.nan]])
    return np.nanmedian(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)


def _noise(losses: np.ndarray) -> float:
    """Return the usual step between two lines, that of a falling curve in it."""
    return float(np.median(np.abs(np.diff(losses)))) if len(losses) > 1 else 0.0


def _noticeable(losses: np.ndarray) -> float:
    """Return a difference that is no noise, of losses whose noise smoothing has halved."""
    return NOISE * _noise(losses) / 2


def _way(history: History) -> np.ndarray | None:
    """Return how far each line is on the way from the first, 0..1; None if that is no way."""
    distance = history.distance
    if len(history) < LINES or distance[-1] <= distance[0]:
        return None
    return (distance - distance[0]) / (distance[-1] - distance[0])


def _measured(history: History) -> list[str]:
    """Name what validations measured, without signs in outputs and what says the same twice."""
    names = dict.fromkeys(name for line in history.validations for name in line)
    left_out = {f"val_{name}" for name in (*SIGNS, "perplexity")}
    return [name for name in names if name.startswith("val_") and name not in left_out]


def _worse(history: History, name: str) -> tuple[Line, Line] | None:
    """Return the best and the last validation, if the two last are clearly worse than the best."""
    lines = [line for line in history.validations if name in line]
    if len(lines) < 3:
        return None
    sign = 1 if lower_is_better(name) else -1
    best = min(lines, key=lambda line: sign * line[name])
    bar = WORSE * abs(best[name])
    if not lower_is_better(name):
        bar = max(bar, SCORE_POINTS)
    later = [sign * (line[name] - best[name]) for line in lines if line["step"] > best["step"]]
    if len(later) < 2 or later[-1] <= bar or later[-2] <= bar / 2:
        return None
    if not _loss_at(history, lines[-1]) < _loss_at(history, best):
        return None  # both became worse: that is no overfitting
    return best, lines[-1]


def _loss_at(history: History, line: Line) -> float:
    """Return the training loss around a validation."""
    return float(np.interp(line["step"], history.steps, _smooth(history.losses)))


def _course(history: History, name: str, best: Line, last: Line) -> str:
    return (
        f"{name} {best[name]:.4g} at step {int(best['step']):,}, {last[name]:.4g} at step "
        f"{int(last['step']):,}; meanwhile the training loss fell from "
        f"{_loss_at(history, best):.4g} to {_loss_at(history, last):.4g}"
    )


def _against_overfitting(recipe: Recipe, metric: str) -> dict[str, object]:
    dropout = getattr(recipe.config(), "dropout", None)
    settings: dict[str, object] = {}
    if recipe.train.early_stop is None:
        settings["train.early_stop"] = {"metric": metric, "patience": 3}
    if dropout is not None:
        settings["model.dropout"] = rounded(min(dropout + 0.1, 0.5))
    if isinstance(recipe, TranslateRecipe):
        settings["train.r_drop"] = max(recipe.train.r_drop, 5.0)
    elif isinstance(recipe, ClassifyRecipe):
        settings["train.weight_decay"] = max(recipe.train.weight_decay, 0.05)
        if recipe.augment.policy == "none":
            settings["augment.policy"] = "trivial"
    return settings
