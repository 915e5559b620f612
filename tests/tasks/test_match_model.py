"""A matcher's folder, whole: called, asked for classes in words, measured, damaged, resumed."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jsonschema import validate
from PIL import Image

import manyheads
from manyheads.asks.classify_request import ClassifyAnswer, ClassifyRequest
from manyheads.errors import FolderError, RecipeError, UsageError
from manyheads.fit.run_training import train
from manyheads.project.base_recipe import read_recipe
from manyheads.tasks.match.predictor import Matcher
from tests import squares
from tests.made import CLASSIFY, run, write_recipe
from tests.train.toy import Unplugged

FEW = ("train.steps=12", "train.validate_every=12", "train.save_every=5", "train.warmup=2")
COLOURS = tuple(squares.COLOURS)


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    """Look, don't touch."""
    found = manyheads.load(squares.trained("match"))
    assert isinstance(found, Matcher)
    return found


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A copy to write to."""
    return shutil.copytree(squares.trained("match"), tmp_path / "own")


# --- Called -------------------------------------------------------------------------------------


def test_cosines_of_images_and_texts(matcher: Matcher) -> None:
    """The highest of each row is the image's own text, in either language."""
    images = [squares.square(number, 9) for number in range(12)]
    for language in ("en", "ko"):
        cosines = matcher(images, [squares.texts(number)[language][0] for number in range(12)])
        assert cosines.shape == (12, 12)
        assert np.abs(cosines).max() <= 1 + 1e-5
        assert cosines.argmax(axis=1).tolist() == [*range(12)]


def test_vectors_are_unit_vectors(matcher: Matcher) -> None:
    """Float32, and none of nothing."""
    images = matcher.embed_images([squares.square(0), np.asarray(squares.square(1))])
    texts = matcher.embed_texts(["red left", "", "눈🙂" * 99])
    for vectors, count in ((images, 2), (texts, 3)):
        assert vectors.shape == (count, matcher.dim)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert matcher.embed_images([]).shape == matcher.embed_texts([]).shape == (0, matcher.dim)
    assert matcher([], []).shape == (0, 0)


@pytest.mark.parametrize("size", [(1, 1), (30_000, 1), (1, 30_000)])
def test_images_of_any_shape(matcher: Matcher, size: tuple[int, int]) -> None:
    assert np.isfinite(matcher.embed_images([Image.new("RGB", size)])).all()


def test_one_alone_is_refused(matcher: Matcher) -> None:
    """A text would be read letter by letter."""
    one: Any = squares.square(0)
    with pytest.raises(UsageError, match="give a list, also for one alone"):
        matcher.embed_images(one)
    word: Any = "red"
    with pytest.raises(UsageError, match="give a list of texts"):
        matcher.embed_texts(word)


def test_another_image_size() -> None:
    larger = manyheads.load(squares.trained("match"), image_size=(16, 24))
    assert isinstance(larger, Matcher)
    assert larger.embed_images([squares.square(0)]).shape == (1, larger.dim)


# --- Classes in words ---------------------------------------------------------------------------


def answered(model: Any, **request: Any) -> list[dict[str, Any]]:
    """Answer; check each answer against the schema, also after JSON."""
    answers: list[ClassifyAnswer] = model.answer(ClassifyRequest(**request))
    sent = [json.loads(json.dumps(each.to_json())) for each in answers]
    for each, received in zip(answers, sent, strict=True):
        validate(received, ClassifyAnswer.model_json_schema())
        assert ClassifyAnswer.model_validate_json(json.dumps(received)) == each
    return sent


def test_classes_in_words(matcher: Matcher, tmp_path: Path) -> None:
    """Without training; the answer is a classifier's, whatever it was asked in."""
    paths = squares.write_files(tmp_path, 12)
    labels = tuple(f"{colour} left" for colour in COLOURS)
    found = answered(matcher, images=paths[::3], labels=labels, top=2)
    assert [each["classes"][0]["label"] for each in found] == [*labels]
    assert all(len(each["classes"]) == 2 for each in found)
    (four,) = answered(matcher, images=paths[:1], labels=labels)
    assert len(four["classes"]) == 4
    assert sum(each["probability"] for each in four["classes"]) == pytest.approx(1)


def test_probabilities_by_hand(
    matcher: Matcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A softmax over the scaled cosines to the mean of each class's templates, made unit again."""
    model: Any = matcher.model
    # A scale of 2: with the learned one, the first class has all of the probability.
    parameters = {**model._parameters, "log_scale": torch.nn.Parameter(torch.tensor(2.0).log())}
    monkeypatch.setattr(model, "_parameters", parameters)
    (path,) = squares.write_files(tmp_path, 1)
    templates = ("{} left", "{} 오른쪽", "위 {}")
    (found,) = answered(matcher, images=[path], labels=("red", "blue"), templates=templates)
    written = [[each.replace("{}", name) for each in templates] for name in ("red", "blue")]
    means = np.stack([matcher.embed_texts(each).mean(axis=0) for each in written])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    assert lengths.max() < 0.9  # templates that mean different things
    scores = 2 * (matcher.embed_images([path]) @ (means / lengths).T)[0]
    expected = np.exp(scores) / np.exp(scores).sum()
    told = {each["label"]: each["probability"] for each in found["classes"]}
    assert told == {
        name: pytest.approx(p, abs=1e-5) for name, p in zip(("red", "blue"), expected, strict=True)
    }


def test_what_cannot_be_read_is_told_in_its_place(matcher: Matcher, tmp_path: Path) -> None:
    (path,) = squares.write_files(tmp_path, 1)
    (tmp_path / "bad.png").write_bytes(b"x")
    images = [tmp_path / "bad.png", path, tmp_path / "none.png"]
    bad, good, none = answered(matcher, images=images, labels=COLOURS)
    assert bad.keys() == none.keys() == {"path", "error"}
    assert good.keys() == {"path", "classes"}
    assert answered(matcher, images=[], labels=COLOURS) == []


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "`labels` is empty: .* classifies by words, so give two classes or more"),
        ({"labels": ("cat",)}, "`labels` is cat: .* give two classes or more"),
        ({"labels": ("cat", "dog", "cat")}, "`labels` is cat, dog, cat: .* each once"),
        ({"labels": ("cat", "")}, "none of them empty"),
        ({"labels": ("cat", " ")}, "none of them empty"),
        ({"labels": ("a", "b"), "templates": ("a photo",)}, "`templates` has 'a photo': write {}"),
    ],
)
def test_wrong_classes_are_refused(
    matcher: Matcher, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        matcher.answer(ClassifyRequest(images=(), **request_))


def test_a_classifier_has_classes_of_its_own(classifier: Path) -> None:
    model = manyheads.load(classifier)
    for given in ({"labels": ("a", "b")}, {"templates": ("{}",)}):
        with pytest.raises(UsageError, match="has classes of its own: leave out `labels` and"):
            model.answer(ClassifyRequest(images=(), **given))


# --- Measured -----------------------------------------------------------------------------------


def test_recall_both_ways(own: Path) -> None:
    """Over all texts, and by language; logged in the folder."""
    line = manyheads.evaluate(own)
    ways = [f"{way}_{k}" for way in ("text_to_image", "image_to_text") for k in (1, 10)]
    each = [f"text_to_image_{k}_{code}" for code in ("en", "ko") for k in (1, 10)]
    assert [*line["all"]] == [*ways, *each]
    assert line["value"] == 100.0
    assert (line["images"], line["texts"], line["searched"]) == (12, 36, 12)
    assert "manyheads index" in (own / "README.md").read_text()


def test_recall_among_more_images(own: Path) -> None:
    """The texts have images there too, so these alone are searched; of them each counts."""
    file = squares.root() / "squares.parquet"
    line = manyheads.evaluate(own, among=f"{file}[split=train]")
    assert (line["images"], line["searched"]) == (12, 12)
    assert line["among"] == f"{file}[split=train]"
    whole = manyheads.evaluate(own, among=str(file))
    assert (whole["images"], whole["searched"]) == (12, 36)
    assert whole["value"] == 100.0


def test_what_only_others_are_measured_by_is_refused(matcher: Matcher, translator: Path) -> None:
    with pytest.raises(UsageError, match="does not classify images"):
        manyheads.evaluate(matcher, mirrored=True)
    with pytest.raises(UsageError, match="does not translate: other metrics"):
        manyheads.evaluate(matcher, timing=True)
    for other in (translator, squares.trained("caption")):
        with pytest.raises(UsageError, match=r"does not match images and texts.*leave out `among`"):
            manyheads.evaluate(other, among="x.parquet")


def test_there_is_nothing_to_look_at(matcher: Matcher, tmp_path: Path) -> None:
    (path,) = squares.write_files(tmp_path, 1)
    with pytest.raises(UsageError, match="there is nothing to look at in 'match'"):
        manyheads.look(matcher, str(path))


# --- Trained and damaged ------------------------------------------------------------------------


def test_a_resumed_run_is_the_same(tmp_path: Path) -> None:
    """Texts, augmentation and dropout go on as they would, also where batches have parts."""
    settings = (
        *(*FEW, "train.batch_size=5", "train.part_size=2", "augment.shift=1"),
        *("model.dropout=0.1", "train.precision=bf16"),
    )
    recipe = squares.recipe("match")
    run(recipe, tmp_path / "whole", *settings)
    for step in (4, 8):
        with pytest.raises(manyheads.errors.InterruptedRunError):
            train(
                read_recipe(recipe, settings),
                out=tmp_path / "cut",
                resume=step > 4,
                observer=Unplugged(step),
            )
    run(recipe, tmp_path / "cut", *settings, resume=True)
    for name in ("recipe.toml", "model.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_other_texts_may_ask_than_are_learned(tmp_path: Path) -> None:
    """[data.queries]: one text an image, in one language; metrics are those of its languages."""
    text = squares.recipe("match").read_text()
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text.replace("[image]", '[data.queries]\nen = "name_en"\n\n[image]'))
    line = run(recipe, tmp_path / "out", *FEW)
    assert line["texts"] == 12
    assert not [name for name in line["all"] if name.endswith("_en")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["train.label_smoothing=0.1"], "label_smoothing is 0.1, but a matcher learns from pairs"),
        (["augment.cutmix=0.5"], "mixup and cutmix mix classes"),
        (["train.loss=hinge"], "train.loss"),
        (["model.embedding=0"], "embedding is 0"),
        (["model.encoder=tagger-gru", "model.image="], "model.encoder is 'tagger-gru'"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: list[str], message: str) -> None:
    with pytest.raises((RecipeError, UsageError), match=message):
        read_recipe(squares.recipe("match"), changes)


def test_a_missing_file_is_named(own: Path) -> None:
    (own / "tokenizer.model").unlink()
    with pytest.raises(FolderError, match=r"tokenizer\.model is missing"):
        manyheads.load(own)


def test_a_classifier_starts_from_the_image_tower(tmp_path: Path) -> None:
    """With a head of its own: what the tower has learned is a start for other classes."""
    start = squares.trained("match")
    (tmp_path / "halves" / "left").mkdir(parents=True)
    (tmp_path / "halves" / "right").mkdir()
    for number in range(24):
        name = squares.NAMES[number % 12][1]
        if name != "top":
            squares.square(number, number).save(tmp_path / "halves" / name / f"{number}.png")
    text = CLASSIFY.replace('mode = "L"', "").replace("height = 4\nwidth = 6", "")
    text = text.replace("[image]", f'[start]\nmodel = "{start}"\n\n[image]')
    text = text.replace("patch = 2\ndim = 8\nlayers = 1", "patch = 4\ndim = 16\nlayers = 1")
    text = text.replace("ffn_dim = 16\ndropout = 0.1", "ffn_dim = 32")
    recipe = write_recipe(tmp_path / "recipe.toml", text, tmp_path)
    line = run(recipe, tmp_path / "out", "data.hold_out=4", "train.steps=30")
    assert line["metric"] == "accuracy"
    told = json.loads((tmp_path / "out" / "start.json").read_text())
    assert "head.weight" not in told["encoder"]["tensors"]
    assert any(name.startswith("encoder.blocks.0") for name in told["encoder"]["tensors"])
