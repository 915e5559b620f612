"""Runs that go on longer than their recipe said, or are validated and logged otherwise."""

from pathlib import Path

import pytest

from manyheads import load
from manyheads.errors import InterruptedRunError, RecipeError
from manyheads.files import sha256
from manyheads.fit.run_training import train
from manyheads.project.base_recipe import read_recipe
from manyheads.train.checkpoint import newest
from tests.fit.test_run import CtrlC, Said
from tests.made import CLASSIFY, read_jsonl, run, write_halves, write_recipe

SHORT = ("train.steps=4", "train.warmup=2", "train.log_every=1", "train.validate_every=2")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A recipe with its data."""
    write_halves(tmp_path)
    return write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)


@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt"])
def test_a_longer_run_is_the_long_run(images: Path, tmp_path: Path, schedule: str) -> None:
    """Where the rate does not depend on the length: bit by bit, also after a kill between."""
    ways = (*SHORT, f"train.schedule={schedule}")
    long = (*ways, "train.steps=9")
    run(images, tmp_path / "at once", *long)
    run(images, tmp_path / "longer", *ways)
    with pytest.raises(InterruptedRunError):
        train(read_recipe(images, long), out=tmp_path / "longer", resume=True, observer=CtrlC(7))
    run(images, tmp_path / "longer", *long, resume=True)
    one, two = (sha256(tmp_path / each / "model.safetensors") for each in ("at once", "longer"))
    assert one == two
    assert load(tmp_path / "longer").folder.recipe.train.steps == 9
    rates = [
        [
            each["learning_rate"]
            for each in read_jsonl(tmp_path / name / "metrics.jsonl")
            if "loss" in each
        ]
        for name in ("at once", "longer")
    ]
    assert rates[0] == rates[1]


def test_a_cosine_is_drawn_anew_over_the_new_length(images: Path, tmp_path: Path) -> None:
    """And it is said, with the rates before and after: 0 at step 4, then that of a run of 8."""
    said = Said()
    run(images, tmp_path / "out", *SHORT)
    longer = read_recipe(images, [*SHORT, "train.steps=8"])
    train(longer, out=tmp_path / "out", resume=True, observer=said)
    lines = [each for each in read_jsonl(tmp_path / "out" / "metrics.jsonl") if "loss" in each]
    assert [each["step"] for each in lines] == list(range(1, 9))
    assert lines[3]["learning_rate"] == 0
    assert lines[4]["learning_rate"] == pytest.approx(0.005)  # half of the cosine of 2..8
    (told,) = [each for each in said.lines if "resuming with changes" in each]
    assert "- train.steps = 4\n+ train.steps = 8" in told
    assert "is drawn anew: learning rate 0 at step 4, 0.005 at the next" in told


def test_a_restart_may_be_asked_for(images: Path, tmp_path: Path) -> None:
    """With a warm-up, from the step on that the run has reached; not in its past."""
    run(images, tmp_path / "out", *SHORT)
    longer = [*SHORT, "train.steps=8"]
    with pytest.raises(RecipeError, match=r"has made 4 steps: let it restart at step 4 or later"):
        run(images, tmp_path / "out", *longer, "train.restart={step = 3}", resume=True)
    run(images, tmp_path / "out", *longer, "train.restart={step = 4}", resume=True)
    lines = [each for each in read_jsonl(tmp_path / "out" / "metrics.jsonl") if "loss" in each]
    assert [each["learning_rate"] for each in lines[3:6]] == [0, 0.005, 0.01]  # of two steps


def test_other_changes_are_refused(images: Path, tmp_path: Path) -> None:
    """With the list of what may change; and nothing was touched."""
    out = tmp_path / "out"
    run(images, out, *SHORT)
    before = sha256(out / "recipe.toml")
    with pytest.raises(RecipeError) as caught:
        run(images, out, *SHORT, "train.steps=8", "train.batch_size=4", resume=True)
    for each in ("+ train.batch_size = 4", "may change train.steps, train.restart", "`out`"):
        assert each in str(caught.value)
    with pytest.raises(RecipeError, match=r"train.steps is 3, but .* has made 4 steps"):
        run(images, out, *SHORT, "train.steps=3", resume=True)
    assert sha256(out / "recipe.toml") == before


def test_early_stopping_goes_by_another_rule(images: Path, tmp_path: Path) -> None:
    """A run that was stopped stays so until its rule is another; another metric begins anew."""
    out, said = tmp_path / "out", Said()
    rule = "train.early_stop={{metric = '{}', patience = {}}}".format
    never = ("train.learning_rate=1e-12", *SHORT, "train.steps=40")
    run(images, out, *never, rule("val_loss", 1))
    stopped = newest(out / "state")
    assert stopped is not None
    assert stopped.stopped
    longer = [*never, "train.steps=50"]
    train(read_recipe(images, [*longer, rule("val_loss", 1)]), out=out, resume=True, observer=said)
    assert newest(out / "state") == stopped
    assert "early stopping has ended this run" in "\n".join(said.lines)
    run(images, out, *longer, rule("val_accuracy", 2), resume=True)
    again = newest(out / "state")
    assert again is not None
    assert again.metric == "val_accuracy"
    assert again.step > stopped.step
    run(images, out, *longer, "train.early_stop=", resume=True)
    last = newest(out / "state")
    assert last is not None
    assert last.step == 50
