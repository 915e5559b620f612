"""The Python API as its users write it: public names alone, from data to a look inside."""

from pathlib import Path
from typing import Any

import pytest
import torch

import manyheads
from manyheads.errors import UsageError
from manyheads.extend import Recipe
from manyheads.nn import MultiHeadAttention
from manyheads.train import TrainConfig, fit
from tests.made import CLASSES, CLASSIFY, TRANSLATE, half, write_halves, write_numbers, write_recipe

FEW = ("train.steps=4", "train.validate_every=4")


@pytest.fixture
def sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe with its data, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_numbers(tmp_path, train=40)
    return write_recipe(tmp_path / "numbers.toml", TRANSLATE, tmp_path)


def test_a_translator_from_training_to_looking(
    sentences: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each step takes what the one before gave; progress is told on stderr."""
    line = manyheads.train(sentences, "train.steps=4")
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading numbers/train" in err
    assert "step 4: val_bleu" in err
    folder = Path("runs/numbers")  # as on the command line
    measured = manyheads.evaluate(folder)
    assert (measured["all"], measured["sha256"]) == (line["all"], line["sha256"])
    assert manyheads.evaluate(folder, split="test", final=True)["final"] is True
    translator: Any = manyheads.load(folder)
    assert isinstance(translator("one two"), str)
    assert [len(best) for best in translator.translate(["one", "two"])] == [1, 1]
    look = manyheads.look(translator, "one two")
    assert look.answer == translator("one two")
    with manyheads.record() as trace:
        translator("one two")
    assert {record.layer_id.stack for record in trace} >= {"encoder", "decoder"}


def test_a_classifier_from_training_to_looking(tmp_path: Path) -> None:
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    line = manyheads.train(str(recipe), *FEW, out=tmp_path / "out")
    assert line["images"] == 8
    assert manyheads.evaluate(tmp_path / "out", data=str(tmp_path / "halves"))["images"] == 40
    classifier: Any = manyheads.load(tmp_path / "out")
    assert classifier(half(0, 1)) in CLASSES
    image = tmp_path / "halves" / "left" / "000.png"
    assert manyheads.look(classifier, image).answer == classifier(image)
    with manyheads.record() as trace:
        classifier(image)
    assert [str(record.layer_id) for record in trace] == ["encoder layer 1 self"]


def test_a_run_is_gone_on_with(sentences: Path) -> None:
    """Once more it is refused, with resume=True it is finished already."""
    first = manyheads.train(sentences, *FEW)
    with pytest.raises(manyheads.ManyheadsError, match="is not empty"):
        manyheads.train(sentences, *FEW)
    again = manyheads.train(sentences, *FEW, resume=True)
    assert {**again, "date": ""} == {**first, "date": ""}


def test_a_recipe_that_was_read_is_trained_as_it_is(sentences: Path, tmp_path: Path) -> None:
    """Such as that of another model; it has no file that a folder could be named after."""
    manyheads.train(sentences, *FEW)
    recipe: Recipe = manyheads.load("runs/numbers").folder.recipe
    for out, changes in ((None, ()), (tmp_path / "again", ("seed=2",))):
        with pytest.raises(manyheads.ManyheadsError, match="out=FOLDER, and takes no changes"):
            manyheads.train(recipe, *changes, out=out)
    manyheads.train(recipe, out=tmp_path / "again")
    weights = [path / "model.safetensors" for path in (Path("runs/numbers"), tmp_path / "again")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threads": "2"}, "`threads` = '2': input should be a valid integer"),
        ({"threads": 1.5}, "`threads` = 1.5: input should be a valid integer"),
        ({"threads": True}, "`threads` = True: input should be a valid integer"),
        ({"threads": 0}, "`threads` = 0: input should be greater than or equal to 1"),
        ({"device": 3}, "`device` = 3: input should be a valid string"),
        ({"engine": None}, "`engine` = None: input should be a valid string"),
        ({"image_size": "x"}, "`image_size` = 'x': give one number of pixels or two"),
        ({"image_size": (1, 2, 3)}, r"`image_size` = \(1, 2, 3\): give one number"),
        ({"image_size": 0}, "`image_size` = 0: give one number of pixels"),
    ],
)
def test_arguments_of_load(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        manyheads.load("digits", **wrong)


def test_arguments_of_look_and_evaluate(classifier: Path) -> None:
    """They load with the same options; of a model that is loaded they are refused."""
    for verb in (manyheads.look, manyheads.evaluate):
        given: Any = ("x.png",) if verb is manyheads.look else ()
        with pytest.raises(UsageError, match="no device 'cpuu'"):
            verb(classifier, *given, device="cpuu")
        with pytest.raises(UsageError, match="model is loaded: give `device` when you load it"):
            verb(manyheads.load(classifier), *given, device="cpu")
        with pytest.raises(UsageError, match="`model` is None: give the name"):
            verb(None, *given)  # type: ignore[arg-type]
    image = classifier.parent / "halves" / "left" / "000.png"
    assert manyheads.look(classifier, image, device="cpu", threads=1).answer in CLASSES
    wrong: Any = None
    with pytest.raises(UsageError, match="What was given is None: give a text, the path"):
        manyheads.look(classifier, wrong)
    with pytest.raises(UsageError, match="`split` = 3: input should be a valid string"):
        manyheads.evaluate(classifier, split=3)  # type: ignore[arg-type]


def test_arguments_of_train(tmp_path: Path) -> None:
    wrong: Any
    for given, wrong, message in (
        (({},), {}, r"{} is no recipe: give a name, a path, or a recipe"),
        (("digits", ["seed=2"]), {}, r"\['seed=2'\] is no change: give texts"),
        (("digits",), {"out": 3}, "`out` is 3: give the path of a folder"),
    ):
        with pytest.raises(UsageError, match=message):
            manyheads.train(*given, **{"out": tmp_path / "out", **wrong})
    assert not (tmp_path / "out").exists()


def test_parts_are_used_without_recipes() -> None:
    """A model from its preset, a part by itself, and the loop's own names."""
    assert "classify" in manyheads.preset("vit-ti").tasks
    model = manyheads.build("cct-2/3x2")
    assert sum(each.numel() for each in model.parameters()) > 200_000
    assert MultiHeadAttention(8, 2)(torch.zeros(1, 3, 8)).shape == (1, 3, 8)
    assert callable(fit)
    assert TrainConfig(steps=3).steps == 3
