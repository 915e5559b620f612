"""Early stopping: which validation has the weights to keep, and when to end the run."""

import math

from manyheads.errors import TrainingError
from manyheads.train.checkpoint import Progress
from manyheads.train.train_config import EarlyStop
from manyheads.train.training_task import lower_is_better


def still_stopped(progress: Progress, rule: EarlyStop | None) -> bool:
    """Tell whether a run that was stopped early stays so by a rule that may have changed."""
    if rule is None or progress.metric not in ("", rule.metric):
        return False
    return progress.stale >= rule.patience


def improved(progress: Progress, metrics: dict[str, float], rule: EarlyStop | None) -> bool:
    """Note a validation in the progress; say whether the weights are now the ones to keep.

    Without a rule, the last weights always are.

    Raises:
        TrainingError: the rule names a metric that validation does not measure.
    """
    if rule is None:
        return True
    if rule.metric not in metrics:
        raise TrainingError(
            f"train.early_stop.metric is {rule.metric!r}, but validation measures "
            f"{', '.join(metrics)}."
        )
    if progress.metric not in ("", rule.metric):  # of a resumed run: no comparable values
        progress.best, progress.stale = None, 0
    progress.metric = rule.metric
    value, best = metrics[rule.metric], progress.best
    better = best is None or (value < best if lower_is_better(rule.metric) else value > best)
    if better:
        progress.best = value if math.isfinite(value) else None  # which any number beats
    progress.stale = 0 if better else progress.stale + 1
    progress.stopped = progress.stale >= rule.patience
    return better
