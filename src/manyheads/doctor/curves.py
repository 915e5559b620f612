"""What the curves of a run show: its learning rate, its length, and overfitting.

Thresholds are shares of the fall: what the loss lost from its first line to its lowest. The curves
of the five shipped models are far on the healthy side of each; see docs/doctor.md.
"""

import numpy as np

from manyheads.doctor.finding import Finding, Findings, finding, rounded
from manyheads.generation.output_monitor import SIGNS
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import Recipe
from manyheads.train.history import History, Line
from manyheads.train.training_task import lower_is_better

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


def judged(history: History, recipe: Recipe, *, started: bool, finished: bool) -> list[Finding]:
    """Apply the rules about curves; one that `started` from trained weights may fall little."""
    rules = [non_finite, diverged, spikes, overfitting]
    if not started:
        rules += [too_slow, *([too_short] if finished else [])]
    return [each for rule in rules for each in rule(history, recipe)]


def non_finite(history: History, recipe: Recipe) -> Findings:
    """Find a loss that is infinite or not a number."""
    if history.non_finite is None:
        return
    evidence = [f"step {history.non_finite:,}: the loss or its gradient is not a finite number"]
    if history.training:
        last = history.training[-1]
        evidence.append(f"before, at step {int(last['step']):,}, the loss was {last['loss']:.4g}")
    yield finding("non-finite", *evidence, settings=slower(recipe, 10), step=history.non_finite)


def diverged(history: History, recipe: Recipe) -> Findings:
    """Find a loss that rose again to stay."""
    if len(history) < LINES:
        return
    smooth = _smooth(history.losses)
    lowest = int(smooth.argmin())
    fall, rise = smooth[0] - smooth[lowest], smooth[-1] - smooth[lowest]
    upwards = rise > 0 and (fall <= 0 or rise > LOST * fall)
    if not upwards or rise < NOISE * _noise(history.losses):
        return
    best, last = history.training[lowest], history.training[-1]
    yield finding(
        "diverged",
        f"loss {smooth[lowest]:.4g} at step {int(best['step']):,}, {smooth[-1]:.4g} at "
        f"step {int(last['step']):,}",
        f"learning rate {best['learning_rate']:.2g} there",
        settings=slower(recipe, 3),
        step=int(best["step"]),
    )


def spikes(history: History, recipe: Recipe) -> Findings:
    """Find jumps of the loss."""
    if len(history) < LINES:
        return
    losses, steps = history.losses, history.steps
    fall = losses[0] - _smooth(losses).min()
    restart = recipe.train.restart
    quiet = range(restart.step, restart.step + 2 * recipe.train.warmup + 1) if restart else range(0)
    usual, jumps = NOISE * _noise(losses), []
    for index in range(3, len(losses)):
        jump = losses[index] - np.median(losses[index - 3 : index])
        if fall > 0 and jump > max(JUMP * fall, usual) and steps[index] not in quiet:
            jumps.append((jump, index))
    if not jumps:
        return
    largest, index = max(jumps)
    yield finding(
        "spikes",
        f"{len(jumps)} of {len(losses)} lines; the largest jump is {largest:.3g} to "
        f"{losses[index]:.4g} at step {steps[index]:,}, {100 * largest / fall:.0f}% of all that "
        "was learned",
        severity="warning" if len(jumps) > 1 or largest > LARGE_JUMP * fall else "note",
        settings=slower(recipe, 2),
        step=int(steps[index]),
    )


def too_slow(history: History, recipe: Recipe) -> Findings:
    """Find a loss that falls along a straight line, far from its end: the rate is too low.

    The way is measured in learning rates rather than in steps, so that a schedule that ends at 0
    does not look like a loss that has come to rest.
    """
    distance = history.distance
    if len(history) < LINES or distance[-1] <= distance[0]:
        return
    way = (distance - distance[0]) / (distance[-1] - distance[0])
    losses, smooth = history.losses, _smooth(history.losses)
    fall = smooth[0] - smooth[-1]
    last_quarter = np.interp(0.75, way, smooth) - smooth[-1]
    if smooth[-1] < LEFT * smooth[0] or last_quarter < max(STILL * fall, _noticeable(losses)):
        return
    first = smooth[0] - np.interp(1 / 3, way, smooth)
    last = np.interp(2 / 3, way, smooth) - smooth[-1]
    if STRAIGHT * first < last < first / STRAIGHT:
        yield finding(
            "learning-rate-low:curve",
            f"loss {losses[0]:.4g} at step {history.steps[0]:,}, {losses[-1]:.4g} at step "
            f"{history.steps[-1]:,}",
            f"it fell by {first:.3g} in the first third of the way, by {last:.3g} in the last",
            settings={"train.learning_rate": rounded(5 * recipe.train.learning_rate)},
            step=int(history.steps[-1]),
        )


def too_short(history: History, recipe: Recipe) -> Findings:
    """Find a finished run whose loss was still falling steeply."""
    if len(history) < LINES:
        return
    losses, steps, smooth = history.losses, history.steps, _smooth(history.losses)
    last_quarter = np.interp(0.75 * steps[-1], steps, smooth) - smooth[-1]
    fall = smooth[0] - smooth[-1]
    if last_quarter >= max(STILL * fall, _noticeable(losses)):
        yield finding(
            "too-short:curve",
            f"loss {losses[-1]:.4g} at step {steps[-1]:,}: {100 * last_quarter / fall:.0f}% of "
            "its fall came in the last quarter of the steps",
            settings={"train.steps": 2 * recipe.train.steps},
            step=int(steps[-1]),
        )


def overfitting(history: History, recipe: Recipe) -> Findings:
    """Find a validation that became worse while the training loss went on falling."""
    names = [name for name in measured(history) if name != "val_perplexity"]  # it is the loss
    rule = recipe.train.early_stop
    if rule and not lower_is_better(rule.metric):  # by which the weights are chosen
        names = [name for name in names if lower_is_better(name) or name == rule.metric]
    judged = {name: _worse(history, name) for name in names}
    worse = {name: found for name, found in judged.items() if found}
    scores = [name for name in worse if not lower_is_better(name)]
    if not worse:
        return
    name = (scores or [*worse])[0]
    best, last = worse[name]
    step, losses = int(best["step"]), [_loss_at(history, line) for line in (best, last)]
    course = (
        f"{name} {best[name]:.4g} at step {step:,}, {last[name]:.4g} at step "
        f"{int(last['step']):,}; meanwhile the training loss fell from {losses[0]:.4g} to "
        f"{losses[1]:.4g}"
    )
    if not scores and not all(map(lower_is_better, judged)):  # the loss only
        smoother = {} if recipe.train.label_smoothing else {"train.label_smoothing": 0.1}
        yield finding("overconfident", course, settings=smoother, step=step)
        return
    settings = more_dropout(recipe, 0.1) | pipeline_of(recipe).against_overfitting(recipe)
    if rule:
        kept = f"early_stop kept the weights of the best {rule.metric}"
        yield finding("overfitting", course, kept, severity="note", settings=settings, step=step)
        return
    kept = "the weights that are kept are the last ones, not the best"
    settings = {"train.early_stop": {"metric": name, "patience": 3}} | settings
    yield finding("overfitting", course, kept, settings=settings, step=step)


def too_good(history: History, examples: int) -> Findings:
    """Find a validation that is too good to be expected."""
    if not history.validations or examples < MANY:
        return
    first, last = history.validations[0], history.validations[-1]
    for name, bar in TOO_GOOD.items():
        value = last.get(f"val_{name}", 0.0)
        if value >= bar:
            yield finding(
                "too-good",
                f"val_{name} {value:.2f} on {examples:,} examples at step {int(last['step']):,}; "
                f"{first.get(f'val_{name}', value):.2f} at step {int(first['step']):,} already",
                step=int(last["step"]),
            )
            return


def slower(recipe: Recipe, times: float) -> dict[str, object]:
    """Return settings for a lower rate, a longer warm-up, and a limit of the gradient."""
    clip: dict[str, object] = {} if recipe.train.clip else {"train.clip": 1.0}
    rate = rounded(recipe.train.learning_rate / times)
    return {"train.learning_rate": rate, "train.warmup": longer_warmup(recipe)} | clip


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


def measured(history: History) -> list[str]:
    """Name what validations measured, without signs of trouble in outputs."""
    names = dict.fromkeys(name for line in history.validations for name in line)
    signs = {f"val_{name}" for name in SIGNS}
    return [name for name in names if name.startswith("val_") and name not in signs]


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
    return float(np.interp(line["step"], history.steps, _smooth(history.losses)))


def more_dropout(recipe: Recipe, more: float) -> dict[str, object]:
    """Return the setting that raises dropout, if the model has any; at most to 0.5."""
    dropout = getattr(recipe.config(), "dropout", None)
    return {} if dropout is None else {"model.dropout": rounded(min(dropout + more, 0.5))}
