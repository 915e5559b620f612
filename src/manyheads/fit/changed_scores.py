"""What became of the scores of a model that was continued: before the first step, and after."""

from pathlib import Path

from manyheads.generation.output_monitor import SIGNS
from manyheads.train.early_stop import is_better
from manyheads.train.history import read_history
from manyheads.train.train_config import EarlyStop


def changes_of_scores(out: Path, rule: EarlyStop | None) -> list[str]:
    """Compare the validation before the first step with that of the weights that are kept.

    Args:
        out: the run folder.
        rule: which weights those are; None: the last.

    Returns:
        A line for each score; none if there was no validation before the first step.
    """
    scored = read_history(out / "metrics.jsonl").validations
    if not scored or scored[0]["step"] != 0:
        return []
    before, after = scored[0], scored[-1]
    if rule is not None:
        after = before
        for line in scored:
            if is_better(line[rule.metric], after[rule.metric], rule.metric):
                after = line
    where = f"after step {after['step']:,}" if after["step"] else "still, as no step was better"
    return [
        f"{key}: {before[key]:.2f} before training, {after[key]:.2f} {where}"
        for key in before
        if key.startswith("val_") and key.removeprefix("val_") not in SIGNS and key in after
    ]
