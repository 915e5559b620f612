"""The loss curve of a run with its findings on it."""

from pathlib import Path

from manyheads.doctor.diagnose import Diagnosis
from manyheads.errors import UsageError
from manyheads.lens.plot.charts import Mark, draw_curve
from manyheads.train.history import read_history


def plot_run(found: Diagnosis, path: Path) -> None:
    """Draw the training loss and, where it was measured, the validation loss."""
    history = read_history(found.path / "metrics.jsonl")
    if not history.training:
        raise UsageError(f"{found.path} has no metrics: there is no training curve to draw.")
    draw_curve(
        history.steps.tolist(),
        history.losses.tolist(),
        [(int(v["step"]), v["val_loss"]) for v in history.validations if "val_loss" in v],
        [Mark(f.step, f.kind, f.severity) for f in found.findings if f.step is not None],
        path,
        title=found.path.resolve().name,
    )
