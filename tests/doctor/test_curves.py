"""Rules about curves, on curves that are made: what each must see, and what it must not."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from manyheads.doctor import curves
from manyheads.doctor.finding import Findings
from manyheads.project.base_recipe import Recipe, read_recipe
from manyheads.project.paths import shipped
from manyheads.train.history import History, Line, read_history
from tests.made import CLASSIFY, TRANSLATE, write_recipe

STEPS = 40
NOISE = 0.02 * np.random.default_rng(0).standard_normal(STEPS)


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return read_recipe(write_recipe(tmp_path / "r.toml", TRANSLATE, tmp_path), ["train.clip=0"])


@pytest.fixture
def images(tmp_path: Path) -> Recipe:
    return read_recipe(write_recipe(tmp_path / "p.toml", CLASSIFY, tmp_path))


def history(
    losses: np.ndarray, validations: list[Line] | None = None, *, rate: float = 0.1
) -> History:
    """A line each ten steps, at a constant learning rate."""
    lines = [
        {"step": 10 * n, "loss": float(loss), "learning_rate": 0.1}
        for n, loss in enumerate(losses, 1)
    ]
    return History(lines, validations or [])


X = np.linspace(0, 1, STEPS)
HEALTHY = 1 + 5 * np.exp(-8 * X) + NOISE
EVERY: list[Callable[[History, Recipe], Findings]] = [
    curves.non_finite,
    curves.diverged,
    curves.spikes,
    curves.too_slow,
    curves.too_short,
    curves.overfitting,
]


def kinds(found: History, recipe: Recipe) -> set[str]:
    return {finding.kind for rule in EVERY for finding in rule(found, recipe)}


@pytest.mark.parametrize("factor", [1, 1000])
def test_a_healthy_curve(factor: float, recipe: Recipe) -> None:
    """Whatever its unit."""
    assert kinds(history(HEALTHY * factor), recipe) == set()


@pytest.mark.parametrize("name", sorted(shipped("pretrained")))
def test_shipped_models(name: str) -> None:
    """Real curves of good models: nothing is wrong with any."""
    folder = shipped("pretrained")[name].parent
    found = kinds(read_history(folder / "metrics.jsonl"), read_recipe(folder / "recipe.toml"))
    assert found == set()


def test_few_lines_and_none(recipe: Recipe) -> None:
    """Have no shape."""
    for losses in (HEALTHY[:0], HEALTHY[:1], np.array([1, 5, 1, 9.0])):
        assert kinds(history(losses), recipe) == set()


def test_a_loss_that_is_no_number(recipe: Recipe) -> None:
    """Its step, the loss before, a tenth of the rate, and a limit to the gradient."""
    (found,) = curves.non_finite(History(history(HEALTHY).training, [], 401), recipe)
    assert (found.kind, found.severity, found.step) == ("non-finite", "error", 401)
    assert "at step 400, the loss was 1.032" in found.evidence[1]
    assert found.settings == {"train.learning_rate": 1e-3, "train.warmup": 15, "train.clip": 1.0}


def test_divergence(recipe: Recipe) -> None:
    """Half of what was learned is lost from the middle on."""
    losses = HEALTHY + 2.5 * np.clip(2 * X - 1, 0, 1)
    (found,) = curves.diverged(history(losses), recipe)
    assert found.kind == "diverged"
    assert found.step is not None
    assert 150 < found.step < 260
    assert "at step 400" in found.evidence[0]


@pytest.mark.parametrize(
    ("height", "count", "severity"),
    [(0.2, 0, ""), (1.0, 1, "note"), (1.0, 3, "warning"), (3.0, 1, "warning")],
)
def test_spikes(height: float, count: int, severity: str, recipe: Recipe) -> None:
    """Small ones are noise, one is worth a look, several or a large one are too many."""
    losses = HEALTHY.copy()
    losses[20 : 20 + 5 * max(count, 1) : 5] += height
    found = list(curves.spikes(history(losses), recipe))
    assert [each.severity for each in found] == ([severity] if severity else [])
    if found:
        assert f"{count} of 40 lines" in found[0].evidence[0]
        assert found[0].step in (210, 260, 310)


def test_a_warm_restart_is_no_spike(tmp_path: Path) -> None:
    """There the rate rises on purpose."""
    path = write_recipe(tmp_path / "r.toml", TRANSLATE, tmp_path)
    restarted = read_recipe(path, ["train.steps=400", "train.restart={step = 200, scale = 1.0}"])
    losses = HEALTHY.copy()
    losses[20:22] += 1.5
    assert list(curves.spikes(history(losses), read_recipe(path)))
    assert list(curves.spikes(history(losses), restarted)) == []


def test_a_rate_that_is_too_low(recipe: Recipe) -> None:
    """A straight line, in learning rates: also where the schedule bends it."""
    straight = history(6 - X + NOISE)
    (found,) = curves.too_slow(straight, recipe)
    assert (found.kind, found.settings) == ("learning-rate-low", {"train.learning_rate": 0.05})
    rates = 0.1 * (1 + np.cos(math.pi * X)) / 2
    way = np.cumsum(rates) / rates.sum()
    bent = [
        line | {"loss": float(6 - done), "learning_rate": float(rate)}
        for line, done, rate in zip(straight.training, way, rates, strict=True)
    ]
    assert list(curves.too_slow(History(bent), recipe))


@pytest.mark.parametrize(
    "losses",
    [
        6 - 5.5 * X,  # straight, but nearly done
        6 - X**6,  # a plateau first
        4 + 2 * np.exp(-3 * X),  # flattens
        6 - 0.01 * X + NOISE,  # not falling at all, but for noise
    ],
)
def test_not_too_low(losses: np.ndarray, recipe: Recipe) -> None:
    assert list(curves.too_slow(history(losses), recipe)) == []


def test_stopped_in_the_midst(recipe: Recipe) -> None:
    """Still steep at the end: twice as long."""
    (found,) = curves.too_short(history(6 - 5 * X**2), recipe)
    assert (found.kind, found.settings) == ("too-short", {"train.steps": 120})
    assert "43% of its fall" in found.evidence[0]  # nearly 1 - (3/4)^2


def course(name: str, values: list[float]) -> list[Line]:
    places = np.linspace(0, 400, len(values) + 1)[1:]
    return [{"step": int(step), name: value} for step, value in zip(places, values, strict=True)]


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("val_bleu", [10, 30, 28, 25], "overfitting"),
        ("val_bleu", [10, 30, 30.5, 30.1], ""),
        ("val_bleu", [10, 30, 31, 25], ""),  # one bad validation may be chance
        ("val_bleu", [0.1, 0.3, 0.2, 0.1], ""),  # all next to nothing
        ("val_loss", [3, 2, 2.2, 2.5], "overfitting"),
        ("val_loss", [3, 2, 2.01, 2.02], ""),
        ("val_repeated", [20, 3, 5, 9], ""),  # a sign in outputs, judged elsewhere
        ("val_perplexity", [20, 3, 5, 9], ""),  # says the same as the loss
    ],
)
def test_overfitting(name: str, values: list[float], kind: str, recipe: Recipe) -> None:
    """Two validations in a row clearly below the best, while the training loss falls."""
    found = list(curves.overfitting(history(HEALTHY, course(name, values)), recipe))
    assert [each.kind for each in found] == ([kind] if kind else [])
    if found:
        assert found[0].step == 200
        assert found[0].settings["train.early_stop"] == {"metric": name, "patience": 3}
        assert found[0].settings["model.dropout"] == 0.2
        assert "training loss fell from" in found[0].evidence[0]


@pytest.mark.parametrize(("metric", "kinds"), [("val_chrf", []), ("val_bleu", ["overfitting"])])
def test_the_score_that_chooses_the_weights(metric: str, kinds: list[str], tmp_path: Path) -> None:
    """No overfitting while the score of train.early_stop still rises, whatever others do."""
    bleu, chrf = course("val_bleu", [10, 30, 28, 25]), course("val_chrf", [20, 40, 43, 44])
    lines = [one | other for one, other in zip(bleu, chrf, strict=True)]
    changes = [f"train.early_stop.metric={metric}", "evaluate.metrics=['bleu', 'chrf']"]
    path = write_recipe(tmp_path / "r.toml", TRANSLATE, tmp_path)
    found = curves.overfitting(history(HEALTHY, lines), read_recipe(path, changes))
    assert [each.kind for each in found] == kinds


def test_both_worse_is_no_overfitting(recipe: Recipe) -> None:
    """Then training itself went wrong."""
    lines = course("val_bleu", [10, 30, 28, 25])
    assert list(curves.overfitting(history(HEALTHY[::-1].copy(), lines), recipe)) == []


def test_surer_than_right(images: Recipe) -> None:
    """The loss rises, the accuracy does not fall: smooth the labels."""
    lines = course("val_loss", [3, 2, 2.2, 2.5])
    for line, accuracy in zip(lines, (50, 60, 61, 61.5), strict=True):
        line["val_accuracy"] = accuracy
    (found,) = curves.overfitting(history(HEALTHY, lines), images)
    assert (found.kind, found.severity) == ("overconfident", "note")
    assert found.settings == {"train.label_smoothing": 0.1}


def test_suspiciously_perfect() -> None:
    """On many examples only."""
    perfect = history(HEALTHY, course("val_accuracy", [100.0, 100.0]))
    assert [each.kind for each in curves.too_good(perfect, 500)] == ["too-good"]
    assert list(curves.too_good(perfect, 50)) == []
    assert list(curves.too_good(history(HEALTHY, course("val_accuracy", [99.0, 99.7])), 500)) == []


def test_settings_are_recipe_keys(tmp_path: Path, recipe: Recipe, images: Recipe) -> None:
    """All that is advised can be written into the recipe as it stands."""
    import tomli_w

    lines = course("val_accuracy", [10, 30, 28, 25])
    for given, text in ((recipe, TRANSLATE), (images, CLASSIFY)):
        path = write_recipe(tmp_path / "new.toml", text, tmp_path)
        settings = dict(next(curves.overfitting(history(HEALTHY, lines), given)).settings)
        settings |= curves.slower(given, 10)
        if text is TRANSLATE:
            settings["train.early_stop"] = {"metric": "val_bleu", "patience": 3}
        changes = []
        for key, value in settings.items():
            written = tomli_w.dumps({"x": value} if not isinstance(value, dict) else {"x": 0})
            text_value = written.partition("= ")[2].strip()
            if isinstance(value, dict):
                text_value = (
                    "{ " + ", ".join(tomli_w.dumps({k: v}).strip() for k, v in value.items()) + " }"
                )
            changes.append(f"{key}={text_value}")
        assert read_recipe(path, changes)
