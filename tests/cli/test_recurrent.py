"""A recurrent translator goes through the same commands: train, evaluate, translate, look."""

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from manyheads.predict.load import load
from manyheads.tasks.translate.predictor import Translator
from tests.cli.conftest import Call
from tests.made import TRANSLATE, image_size, numbers, run, write_numbers, write_recipe

HEAD, _, REST = TRANSLATE.partition("[model]")
_, _, TRAIN = REST.partition("[train]")


@cache
def base() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="manyheads-tests-")


@cache
def trained(preset: str) -> Path:
    """A folder with a small recurrent translator: look, don't touch."""
    root = Path(base().name) / preset
    write_numbers(root, train=120)
    model = f'[model]\npreset = "{preset}"\ndim = 16\nhidden_size = 32\ndropout = 0.0\n\n'
    recipe = write_recipe(root / "recipe.toml", f"{HEAD}{model}[train]{TRAIN}", root)
    run(recipe, root / "model", "train.steps=60", "train.validate_every=60")
    return root / "model"


def test_it_answers_through_the_same_door() -> None:
    """T18: the trainer, the folder and the searches know no model; alone is as in company."""
    translator = load(trained("seq2seq-lstm-attention"))
    assert isinstance(translator, Translator)
    sources, _ = numbers(12, seed=5)
    outputs = translator(sources)
    assert len(set(outputs)) > 1  # it heard something
    assert [translator(source) for source in sources] == outputs


def test_look_shows_the_alignment_map_and_the_gates(call: Call, tmp_path: Path) -> None:
    """T2, T4: where each output word looked, and what was let in, kept and let out."""
    folder = trained("seq2seq-lstm-attention")
    code, out, err = call("look", folder, "three four", "--out", tmp_path / "map.png")
    assert code == 0, err
    assert (
        "decoder layer 1, attention from the step that predicts each output word to the source"
        in out
    )
    for layer in ("encoder layer 1 forward", "encoder layer 1 backward", "decoder layer 1 forward"):
        assert f"{layer}, gates as each token is read" in out
    assert "input forget output" in " ".join(out.split())
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(call("look", folder, "three four", "--json").out)
    (alignment,) = found["maps"]
    assert alignment["rows"] == found["output"]
    assert alignment["columns"] == found["source"]
    assert [gates["gates"] for gates in found["gates"]] == [["input", "forget", "output"]] * 3


def test_look_without_attention_draws_the_gates(call: Call, tmp_path: Path) -> None:
    """T2, T3: one vector has no map, so the image is that of the gates and of all measures."""
    folder = trained("seq2seq-gru")
    code, out, err = call("look", folder, "three four", "--out", "gates.png")
    assert code == 0, err
    assert "attention from" not in out
    assert "decoder layer 1 forward, gates as each token is read" in out
    assert min(image_size(tmp_path / "gates.png")) > 600
    found = json.loads(call("look", folder, "three four", "--json").out)
    assert found["maps"] == []
    gates = [each for each in found["figures"] if each["group"] == "gates"]
    assert [each["columns"] for each in gates] == [["reset", "update"]] * len(found["gates"])


@pytest.mark.parametrize("preset", ["seq2seq-lstm-attention", "seq2seq-gru"])
def test_shapes(call: Call, preset: str) -> None:
    """T21: the walk of shapes through any model."""
    code, out, err = call("look", trained(preset), "three four", "--shapes")
    assert code == 0, err
    for part in ("RecurrentStack", "StateDecoder", "decoder.attention.combine"):
        assert part in out


def test_a_damaged_folder_is_refused(call: Call, tmp_path: Path) -> None:
    """The folder of a recurrent model is checked like any other."""
    folder = shutil.copytree(trained("seq2seq-gru"), tmp_path / "own")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x00")
    code, _, err = call("translate", "--model", folder, "one")
    assert code == 1
    assert "is not the file that was written with this model" in err
