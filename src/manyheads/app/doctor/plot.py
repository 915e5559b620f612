"""The loss curve of a run with its findings on it."""

from pathlib import Path

from manyheads.app.doctor.diagnose import Diagnosis
from manyheads.errors import UsageError
from manyheads.lens.curve import Mark, draw_curve
from manyheads.train.history import read_history


def plot_run(found: Diagnosis, path: Path) -> None:
    """Draw the training loss and, where it was measured, the validation loss.

    Raises:
        UsageError: there is no curve to draw.
        MissingExtraError: matplotlib is not installed.
    """
    history = read_history(found.path / "metrics.jsonl")
    if not history.training:
        raise UsageError(f"{found.path} has no metrics to draw: leave --plot out.")
    validated = [line for line in history.validations if "val_loss" in line]
    draw_curve(
        history.steps.tolist(),
        history.losses.tolist(),
        [(int(line["step"]), line["val_loss"]) for line in validated],
        [
            Mark(each.step, each.kind, each.severity)
            for each in found.findings
            if each.step is not None
        ],
        path,
        title=found.path.resolve().name,
    )
