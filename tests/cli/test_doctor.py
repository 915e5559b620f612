"""manyheads doctor: what people and scripts read of it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.made import CLASSIFY, half, write_recipe


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run with validation images that are also trained on."""
    for number in range(60):
        name = ("left", "right")[number % 2]
        path = tmp_path / "halves" / name / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        half(number % 2, number % 6).save(path)
    (tmp_path / "begun").mkdir()
    write_recipe(tmp_path / "begun" / "recipe.toml", CLASSIFY, tmp_path)
    return tmp_path / "begun"


def test_a_healthy_model(call: Call) -> None:
    """A shipped one by name: exit code 0, and what was looked at."""
    code, out, err = call("doctor", "digits")
    assert (code, err) == (0, "")
    assert "(classify, 1,200 steps), nothing found" in out.splitlines()[0]
    assert "in what could be looked at" not in out
    assert "looked at: heads: 16 in 4 attentions" in out


def test_a_curve_is_a_png(call: Call, tmp_path: Path) -> None:
    """Said before the work, not after it; nothing is written under another name."""
    code, _, err = call("doctor", "digits", "--plot", tmp_path / "curve.txt")
    assert code == 2
    assert "ends in .png" in err
    assert not list(tmp_path.iterdir())


def test_findings(call: Call, begun: Path) -> None:
    """Exit code 1 with errors; evidence and remedy; what could not be looked at."""
    code, out, err = call("doctor", begun)
    assert (code, err) == (1, "")
    assert "step 0 of 40, unfinished), 1 error" in out.splitlines()[0]
    assert "the validation measures memory. [seen-before]" in " ".join(out.split())
    assert "not looked at: weights: none are stored yet" in out


def test_as_json(call: Call, begun: Path) -> None:
    """One document on one line, for scripts; the exit code is the same."""
    code, out, _ = call("doctor", begun, "--json")
    assert code == 1
    found = json.loads(out)
    assert (found["task"], found["finished"], found["errors"]) == ("classify", False, 1)
    assert found["findings"][0]["kind"] == "seen-before"
    assert found["findings"][0]["severity"] == "error"


def test_settings_for_the_command_line(call: Call, classifier: Path, tmp_path: Path) -> None:
    """As `manyheads train` takes them, in quotes where a shell needs them."""
    own = shutil.copytree(classifier, tmp_path / "own")
    lines = [
        {"step": 2 * n, "epoch": 0, "loss": 1 / n, "learning_rate": 1e-2, "val_accuracy": 90 - n}
        for n in range(1, 21)
    ]
    text = "".join(
        json.dumps({k: v for k, v in line.items() if k != "val_accuracy"})
        + "\n"
        + json.dumps({k: line[k] for k in ("step", "val_accuracy")})
        + "\n"
        for line in lines
    )
    (own / "metrics.jsonl").write_text(text)
    code, out, _ = call("doctor", own)
    assert code == 0
    assert "[overfitting]" in out
    assert "train.early_stop='{ metric = \"val_accuracy\", patience = 3 }'" in " ".join(out.split())


def test_the_curve(call: Call, classifier: Path, begun: Path, tmp_path: Path) -> None:
    """A PNG; not of a run without metrics."""
    pytest.importorskip("matplotlib")
    code, _, err = call("doctor", classifier, "--plot", tmp_path / "curve.png")
    assert (code, err) == (0, f"manyheads: wrote {tmp_path / 'curve.png'}\n")
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    code, _, err = call("doctor", begun, "--plot", tmp_path / "none.png")
    assert code == 2
    assert "no metrics: there is no training curve" in err


def test_no_run(call: Call, tmp_path: Path) -> None:
    """The call was wrong, or the folder is."""
    assert call("doctor", "nothing").code == 2
    assert call("doctor", tmp_path).code == 1
