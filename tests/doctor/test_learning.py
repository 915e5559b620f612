"""What losses say about learning, on numbers that are made."""

from pathlib import Path

import pytest

from manyheads.doctor.learned import by_heart, nothing_learned
from manyheads.doctor.run_batches import Learned
from manyheads.doctor.run_inspection import RunInspection
from manyheads.doctor.weights import Weights
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import read_recipe
from tests.doctor.runs import CLASSIFIER, write_data
from tests.made import write_recipe

SOUND = Weights(moved=1.0, step=0.05)


@pytest.mark.parametrize(
    ("learned", "weights", "kind"),
    [
        (Learned(0.10, 0.12, 0.69, 0.69), SOUND, ""),
        (Learned(0.60, 0.62, 0.69, 0.69), SOUND, ""),  # something
        (Learned(0.68, 0.70, 0.69, 0.69), SOUND, "nothing-learned"),
        (Learned(2.50, 2.40, 0.69, 0.69), Weights(30.0, 4.0), "learning-rate-high"),
        (Learned(0.69, 0.69, 0.69, 0.69), Weights(0.01, 0.0005), "learning-rate-low"),
        (Learned(0.69, 0.69, 0.69, 0.69), Weights(0.01, 0.03), "too-short"),  # a few steps
        (Learned(0.01, 3.00, 0.69, 0.69), SOUND, "by-heart"),
        (Learned(0.01, 0.60, 0.69, 0.69), SOUND, ""),  # overfitting, if it was better before
    ],
)
def test_what_was_learned(learned: Learned, weights: Weights, kind: str, tmp_path: Path) -> None:
    """Nothing, all by heart, or something; and why."""
    write_data(tmp_path, CLASSIFIER)
    (tmp_path / "run").mkdir()
    write_recipe(tmp_path / "run" / "recipe.toml", CLASSIFIER, tmp_path)
    run = RunInspection(str(tmp_path / "run"))
    samples = pipeline_of(run.recipe).samples(run.recipe, run)
    found = list(nothing_learned(learned, samples, run.recipe, weights, 7))
    found += by_heart(learned, samples, run.recipe, 7)
    assert [(each.kind, each.step) for each in found] == ([(kind, 7)] if kind else [])
    for each in found:  # what it suggests can be changed so
        read_recipe(run.path / "recipe.toml", [f"{k}={v}" for k, v in each.settings.items()])
