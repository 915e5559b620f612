"""What is said and drawn while a run trains: bad beginnings, the time left, the page."""

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.doctor.beginning import in_losses, in_rate
from manyheads.errors import NonFiniteLossError
from manyheads.files import sha256
from manyheads.fit.observer import PrintObserver
from manyheads.fit.pace import UPDATES, Pace
from manyheads.fit.run_training import train
from manyheads.fit.training_watch import TrainingWatch
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import Recipe, read_recipe
from manyheads.project.paths import shipped
from manyheads.train.history import read_history
from manyheads.train.train_config import TrainConfig
from tests.fit.test_run import Said
from tests.made import CLASSIFY, TRANSLATE, numbers, run, write_halves, write_lines, write_recipe

SHORT = ("train.steps=20", "train.validate_every=10", "train.log_every=5")


def translator(
    root: Path, change: Callable[[list[str], list[str]], tuple[list[str], list[str]]]
) -> Path:
    """A recipe with its data, whose training pairs are changed."""
    for split, count in (("train", 200), ("valid", 20)):
        source, target = numbers(count, seed=count)
        if split == "train":
            source, target = change(source, target)
        write_lines(root / "numbers" / f"{split}.en", source)
        write_lines(root / "numbers" / f"{split}.de", target)
    return write_recipe(root / "numbers.toml", TRANSLATE, root)


def said(recipe: Path, out: Path, *changes: str) -> str:
    """What a short run says until its end, or until its loss is not finite."""
    observer = Said()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            train(read_recipe(recipe, [*SHORT, *changes]), out=out, observer=observer)
        except NonFiniteLossError as error:
            observer.say(str(error))
    return "\n".join(observer.lines)


# --- Bad beginnings -----------------------------------------------------------------------------


def shuffled(source: list[str], target: list[str]) -> tuple[list[str], list[str]]:
    order = np.random.default_rng(1).permutation(len(target))
    return source, [target[number] for number in order]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda source, target: (source, target), ""),
        (shuffled, "unrelated"),
        (lambda source, _: (source, source), "target-in-source"),
        (lambda source, _: (source, ["eins"] * len(source)), "constant"),
        (lambda source, target: (["one two"] * len(source), target), "constant"),
    ],
)
def test_pairs_that_teach_nothing(
    change: Callable[[list[str], list[str]], tuple[list[str], list[str]]], kind: str, tmp_path: Path
) -> None:
    """Named before the first step, with examples; sound pairs get no word."""
    recipe = translator(tmp_path, change)
    text = said(recipe, tmp_path / "out")
    assert re.findall(r"(?:error|warning): .*\[([a-z-]+)\]", text) == ([kind] if kind else [])
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert ('class="error"' in page or 'class="warning"' in page) == bool(kind)


@pytest.mark.parametrize("planted", [False, True])
def test_images_with_shuffled_labels(planted: bool, tmp_path: Path) -> None:
    """Named before the first step."""
    write_halves(tmp_path, count=100)
    folders = sorted((tmp_path / "halves").iterdir())
    if planted:
        images = [path for folder in folders for path in sorted(folder.iterdir())]
        for number, path in enumerate(np.random.default_rng(3).permutation(np.array(images))):
            path.rename(folders[number % len(folders)] / f"{number}x{path.suffix}")
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    assert ("[unrelated]" in said(recipe, tmp_path / "out")) == planted


def test_a_rate_that_is_far_too_high(tmp_path: Path) -> None:
    """Named before the first step, with a rate to try, which is one of the usual size."""
    recipe = translator(tmp_path, lambda source, target: (source, target))
    text = said(recipe, tmp_path / "out", "train.learning_rate=0.3")
    rate = re.search(r"\[learning-rate-high\](?:.*\n)+?.*Try: train.learning_rate=(\S+)", text)
    assert rate is not None
    assert 3e-3 < float(rate[1]) < 3e-2


@pytest.mark.parametrize("name", sorted(shipped("pretrained")))
def test_no_alarm_at_the_beginning_of_shipped_models(name: str) -> None:
    """Neither of their rates, thirty times of which are named, nor in their first tenth."""
    folder = shipped("pretrained")[name].parent
    recipe = read_recipe(folder / "recipe.toml", stored=True)
    model = pipeline_of(recipe).build(recipe, recipe.config())
    assert list(in_rate(model, recipe)) == []
    hot = replace(recipe.train, learning_rate=30 * recipe.train.learning_rate)
    (found,) = in_rate(model, recipe.model_copy(update={"train": hot}))
    assert found.kind == "learning-rate-high"
    history = read_history(folder / "metrics.jsonl")
    steps = np.arange(1, recipe.train.steps // 10 + 1)
    losses = np.interp(steps, history.steps, history.losses)
    started = getattr(recipe, "start", None) is not None
    assert list(in_losses(losses.tolist(), recipe, started=started)) == []


def test_filters_behind_a_batch_norm_may_take_large_steps() -> None:
    """It rescales them; the same rate is far too high for a model without."""
    recipe = read_recipe(shipped("recipes")["cifar10-airbench"])
    assert list(in_rate(pipeline_of(recipe).build(recipe, recipe.config(classes=10)), recipe)) == []
    other = read_recipe(shipped("recipes")["cifar10-cct-4-3x2"])
    hot = other.model_copy(update={"train": recipe.train})
    (found,) = in_rate(pipeline_of(other).build(other, other.config(classes=10)), hot)
    assert found.kind == "learning-rate-high"


def losses_of(kind: str) -> list[float]:
    random = np.random.default_rng(1)
    steps, noise = np.arange(100), random.normal(0, 0.05, 100)
    curve = {
        "": 5 * np.exp(-steps / 40) + 2,
        "no-fall": np.full(100, 5.0),
        "diverged": np.where(steps < 30, 6 - 0.13 * steps, 5.0),
    }[kind]
    return [float(each) for each in curve + noise]


@pytest.mark.parametrize("kind", ["", "no-fall", "diverged"])
def test_losses_of_the_first_tenth(kind: str, tmp_path: Path) -> None:
    """One that falls, one that does not, one that rises again; fine-tuning may begin low."""
    recipe: Recipe = read_recipe(write_recipe(tmp_path / "a.toml", TRANSLATE, tmp_path))
    found = in_losses(losses_of(kind), recipe, started=False)
    assert [each.kind for each in found] == ([kind] if kind else [])
    if kind == "no-fall":
        assert list(in_losses(losses_of(kind), recipe, started=True)) == []
        rising = [5 + 0.02 * step for step in range(100)]
        assert [each.kind for each in in_losses(rising, recipe, started=True)] == ["no-fall"]


# --- The time left ------------------------------------------------------------------------------


def test_the_time_left_by_hand() -> None:
    """100 steps of 2 s, validations of 7 s at 30, 60, 90 and 100, and one after the end."""
    now = 0.0
    pace = Pace(TrainConfig(steps=100, validate_every=30), 2.0, 7.0, lambda: now)
    assert pace.left(0) == 100 * 2 + 5 * 7
    assert pace.left(30) == 70 * 2 + 4 * 7
    assert pace.left(100) == 7
    for _ in range(UPDATES + 1):  # of which the first starts the clock
        now += 3.0
        pace.stepped()
    now += 10.0
    pace.validated()
    assert pace.left(90) == 10 * 3 + 2 * 10
    now += 3.0
    pace.stepped()
    assert pace.step == 3.0  # without the validation


def test_an_estimate_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that is trained is the same, bit by bit."""
    recipe = translator(tmp_path, lambda source, target: (source, target))
    text = said(recipe, tmp_path / "with")
    assert re.search(r"about .* to go: 20 steps of \S+ s, a validation of \S+ s every 10", text)
    assert f"redraws {tmp_path / 'with' / 'index.html'}" in text
    monkeypatch.setattr(TrainingWatch, "estimate", lambda *_: None)
    monkeypatch.setattr(TrainingWatch, "examine", lambda *_: None)
    said(recipe, tmp_path / "without")
    one, two = (sha256(tmp_path / each / "model.safetensors") for each in ("with", "without"))
    assert one == two


def test_lines_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One a line of the log, with loss, rate, speed and time left; and the validations."""
    recipe = translator(tmp_path, lambda source, target: (source, target))
    train(read_recipe(recipe, SHORT), out=tmp_path / "out", observer=PrintObserver())
    err = capsys.readouterr().err
    number = r"loss \d+\.\d+  lr \S+  [\d,]+ tokens/s  \d+ .* left"
    assert re.findall(rf"step (\d+) of 20: {number}", err) == ["5", "10", "15", "20"]
    assert re.findall(r"step (\d+): val_bleu", err) == ["10", "20"]


# --- The page -----------------------------------------------------------------------------------


def test_the_page_of_a_run(tmp_path: Path) -> None:
    """Complete in itself: a curve for the loss and each score, examples with their images."""
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    drawn: list[str] = []

    class Looks(Said):
        def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
            page = tmp_path / "out" / "index.html"
            drawn.append(page.read_text(encoding="utf-8") if page.exists() else "")

    train(read_recipe(recipe, SHORT), out=tmp_path / "out", observer=Looks())
    assert drawn[9] == ""
    assert "Step 10 of 20, about" in drawn[10]  # and a browser loads it again
    assert 'http-equiv="refresh"' in drawn[10]
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "Step 20 of 20, finished" in page
    assert "refresh" not in page
    assert re.findall(r"<figcaption>(\w+ ?\w+)", page) == [
        "training loss",
        "val_accuracy",
        "val_loss",
    ]
    assert page.count('<img src="data:image/png;base64,') == 8
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)


def test_texts_are_escaped_in_the_page(tmp_path: Path) -> None:
    """Sources, outputs and truths are texts of others."""

    def marked(source: list[str], target: list[str]) -> tuple[list[str], list[str]]:
        return source, target

    recipe = translator(tmp_path, marked)
    write_lines(tmp_path / "numbers" / "valid.en", ["<img src=x onerror=alert(1)>"] * 20)
    said(recipe, tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<img src=x" not in page


def test_a_page_that_cannot_be_drawn_stops_nothing(tmp_path: Path) -> None:
    """It is said once, and the model is there."""
    recipe = translator(tmp_path, lambda source, target: (source, target))
    run(recipe, tmp_path / "out", *SHORT)
    (tmp_path / "out" / "index.html").unlink()
    (tmp_path / "out" / "index.html").mkdir()
    observer = Said()
    longer = read_recipe(recipe, [*SHORT, "train.steps=40"])
    line = train(longer, out=tmp_path / "out", resume=True, observer=observer)
    assert line["pairs"] == 20
    assert sum("index.html was not drawn" in each for each in observer.lines) == 1


def test_a_run_that_fails_leaves_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the finding that says why."""
    recipe = translator(tmp_path, lambda source, target: (source, target))
    text = said(recipe, tmp_path / "out", "train.learning_rate=1e30", "train.clip=0")
    assert torch.isfinite(torch.zeros(1)).all()
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "stopped" in page
    assert "not a finite number" in page or "not finite" in text
