"""What is said at the end of a run about the weights that are kept."""

import json
from pathlib import Path

import pytest

from manyheads.fit.observer import how_it_ended
from manyheads.train.train_config import EarlyStop

STOP = EarlyStop(metric="val_loss", patience=2)
LINES = [{"step": 10 * n, "val_loss": loss} for n, loss in enumerate([3.0, 2.0, 2.5, 2.0], 1)]


@pytest.mark.parametrize(
    ("lines", "rule", "steps", "said"),
    [
        (LINES, None, 40, []),
        (LINES[:2], STOP, 20, []),  # the last are the best
        (LINES, STOP, 40, ["kept the weights of step 20: val_loss 2.00, the best"]),
        (
            LINES,
            STOP,
            90,
            [
                "stopped at step 40 of 90: 2 validations were no better",
                "kept the weights of step 20: val_loss 2.00, the best",
            ],
        ),
        (
            [{"step": 0, "val_loss": 2.5}, *LINES[:2]],
            STOP,
            20,
            ["val_loss: 2.50 before training, 2.00 after step 20"],
        ),
    ],
)
def test_how_it_ended(
    lines: list[dict[str, float]],
    rule: EarlyStop | None,
    steps: int,
    said: list[str],
    tmp_path: Path,
) -> None:
    """Of weights that are not the last, from where; whether the run was stopped early."""
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert how_it_ended(tmp_path, rule, steps) == said
