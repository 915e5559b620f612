"""Predictors: raw text or images in, answers out, in order and whatever the company."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import manyheads
from manyheads.asks.search_options import changed
from manyheads.asks.translate_request import TranslateRequest
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.models.transformer import Transformer
from manyheads.models.vit import Vit
from manyheads.predict.image_inputs import ImageInput
from manyheads.predict.stream import stream
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.translate.predictor import Translator
from tests.made import CLASSES, half, numbers


@pytest.fixture(scope="module")
def translate(translator: Path) -> Translator:
    found = manyheads.load(translator)
    assert isinstance(found, Translator)
    return found


@pytest.fixture(scope="module")
def classify(classifier: Path) -> Classifier:
    found = manyheads.load(str(classifier))
    assert isinstance(found, Classifier)
    return found


# --- Texts --------------------------------------------------------------------------------------


def test_the_model_is_a_torch_module(translate: Translator, classify: Classifier) -> None:
    """In evaluation mode, to take apart and to build on."""
    assert isinstance(translate.model, Transformer)
    assert isinstance(classify.model, Vit)
    for model in (translate.model, classify.model):
        assert isinstance(model, nn.Module)
        assert not model.training


def test_text_in_text_out(translate: Translator) -> None:
    """One for one, several for several; the translator has learned a little."""
    assert translate("nine") == "neun"
    assert translate(["nine", "three"]) == ["neun", "drei"]
    assert translate([]) == []


def test_lists_keep_their_order_and_their_gaps(translate: Translator) -> None:
    """Sentences are sorted by length on the way; empty ones stay empty."""
    texts = ["", "one two three four five", "six", "  ", "seven eight", "six"]
    found = translate(texts)
    assert [found[0], found[3]] == ["", ""]
    assert found == [translate(text) for text in texts]


@pytest.mark.parametrize("beams", [1, 4])
def test_one_by_one_or_64_together(translate: Translator, beams: int) -> None:
    """The same texts, and scores within 1e-4: what a sentence becomes is its own affair."""
    texts, _ = numbers(64, seed=7)
    together = [best for (best,) in translate.translate(texts, beams=beams)]
    alone = [translate.translate([text], beams=beams)[0][0] for text in texts]
    assert [each.text for each in together] == [each.text for each in alone]
    scores = [each.score for each in together]
    assert scores == pytest.approx([each.score for each in alone], abs=1e-4)
    assert len({each.text for each in together}) > 20  # or this would say little


def test_a_stream_is_answered_in_order(translate: Translator) -> None:
    """Any number of lines, some at a time, none held back at the end."""
    texts, _ = numbers(10, seed=3)
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for text in texts:
            taken.append(text)
            yield text

    found = stream(translate.answer, TranslateRequest(texts=()), lines(), 4)
    assert next(found).translation == translate(texts[0])
    assert len(taken) == 4
    assert [each.translation for each in found] == translate(texts[1:])


def test_n_best(translate: Translator) -> None:
    """In order of score, the first as without."""
    (found,) = translate.translate(["one two"], n_best=3)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert len({each.text for each in found}) == 3
    assert found[0].text == translate("one two")


@pytest.mark.parametrize(("beams", "n_best"), [(0, 1), (4, 0), (-1, 1)])
def test_no_beams_no_answers(translate: Translator, beams: int, n_best: int) -> None:
    """Says what was given and what is allowed."""
    with pytest.raises(UsageError, match=rf"beams is {beams} and n_best {n_best}.*at least 1"):
        translate.translate(["one"], beams=beams, n_best=n_best)


def test_options_are_checked(translate: Translator) -> None:
    """The recipe's table with changes; mistakes are answered like those of a recipe."""
    assert changed(translate.decode) == translate.decode
    found = changed(translate.decode, beams=2, no_repeat_ngram=3)
    assert found == replace(translate.decode, beams=2, no_repeat_ngram=3)
    with pytest.raises(UsageError, match=r"'temprature': did you mean 'temperature'"):
        changed(translate.decode, temprature=0.5)
    with pytest.raises(
        UsageError, match=r"`beams` = 0: input should be greater than or equal to 1"
    ):
        changed(translate.decode, beams=0)
    with pytest.raises(UsageError, match="sampling is off: set sample = true"):
        changed(translate.decode, temperature=0.5)


def test_options_of_a_call(translate: Translator) -> None:
    """Prefixes are texts; beams replace those of the options."""
    (found,) = translate.translate(["one two"], prefixes=["acht"])
    assert found[0].text.startswith("acht")
    options = replace(translate.decode, beams=3)
    (narrow,) = translate.translate(["one two"], options=options, beams=1)
    assert narrow == translate.translate(["one two"], beams=1)[0]


@pytest.mark.filterwarnings("ignore:text")  # notes
def test_any_text_is_answered(translate: Translator) -> None:
    """Other scripts, emoji, control characters: bytes stand in for what was never seen."""
    texts = ["한국어 🙂", "\t", "a\x00b", "\u2028", "<s></s>", "▁", "x" * 300]
    assert len(translate(texts)) == len(texts)


# --- Images -----------------------------------------------------------------------------------


def test_an_image_by_path_or_as_it_is(classify: Classifier, tmp_path: Path) -> None:
    """Path, string, or Pillow image; one or several."""
    image = half(1, 5)
    image.save(tmp_path / "half.png")
    label = classify(image)
    assert label in CLASSES
    assert classify(tmp_path / "half.png") == classify(str(tmp_path / "half.png")) == label
    both: list[ImageInput] = [image, tmp_path / "half.png"]
    assert classify(both) == [label, label]
    assert classify([]) == []


def test_probabilities(classify: Classifier) -> None:
    """Largest first, summing to 1 over all classes; `top` cuts the list."""
    (guesses,) = classify.classify([half(0, 3)])
    assert {guess.label for guess in guesses} == set(CLASSES)
    assert sum(guess.probability for guess in guesses) == pytest.approx(1)
    assert guesses[0].probability >= guesses[1].probability
    assert len(classify.classify([half(0, 3)], top=1)[0]) == 1


def test_images_one_by_one_or_64_together(classify: Classifier) -> None:
    """The same probabilities within 1e-5."""
    images = [half(index % 2, index) for index in range(64)]
    together = [guesses[0].probability for guesses in classify.classify(images)]
    alone = [classify.classify([image])[0][0].probability for image in images]
    assert together == pytest.approx(alone, abs=1e-5)
    assert len(set(together)) > 30


def test_preprocessing_is_that_of_training(classify: Classifier) -> None:
    """A large colour image is brought to what the model has learned from."""
    large = Image.new("RGB", (60, 50), (77, 77, 77))
    assert torch.equal(classify.pixels(large), torch.full((1, 4, 6), 77, dtype=torch.uint8))
    small = half(1, 4)
    assert torch.equal(classify.pixels(small)[0], torch.from_numpy(np.asarray(small).copy()))


def test_unreadable_images(classify: Classifier, tmp_path: Path) -> None:
    """Missing, or no image: named."""
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(DataError, match=r"text\.png"):
        classify(tmp_path / "text.png")
    with pytest.raises(NotFoundError, match=r"none\.png"):
        classify((half(0, 1), tmp_path / "none.png"))


# --- Names --------------------------------------------------------------------------------------


def test_an_unknown_model() -> None:
    """By name or by path, it is the same question."""
    with pytest.raises(NotFoundError, match="no model 'date-en-kp'"):
        manyheads.load("date-en-kp")


# --- Input of a wrong kind ----------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, 5, b"nine", {"nine": 9}, {"nine"}, [1], ["nine", None]])
def test_a_translator_reads_texts_only(translate: Translator, given: Any) -> None:
    """The keys of a dict would be translated, and a set has no order."""
    with pytest.raises(UsageError, match="text"):
        translate(given)
    with pytest.raises(UsageError, match="text"):
        translate.translate(given)


def test_one_text_is_not_read_letter_by_letter(translate: Translator) -> None:
    """A text is a sequence of texts to Python."""
    with pytest.raises(UsageError, match="give a list of texts"):
        translate.translate("nine")  # type: ignore[arg-type]
    assert translate(("nine", "three")) == ["neun", "drei"]


@pytest.mark.parametrize("given", [None, 5, b"png", {"image": 1}, [None], [b"png"]])
def test_a_classifier_reads_images_only(classify: Classifier, given: Any) -> None:
    """Paths, Pillow images and arrays."""
    with pytest.raises(UsageError, match="image"):
        classify(given)
    with pytest.raises(UsageError, match="image"):
        classify.classify(given)


def test_one_path_is_not_read_letter_by_letter(classify: Classifier) -> None:
    """A path is a sequence of paths to Python."""
    with pytest.raises(UsageError, match="give a list"):
        classify.classify("cat.png")  # type: ignore[arg-type]
    assert classify((half(0, seed=1),)) == ["left"]


def test_an_opened_image_can_be_looked_at(
    translate: Translator, classify: Classifier, tmp_path: Path
) -> None:
    """The same answer as from its file; a model of texts refuses it."""
    image = half(0, seed=1)
    image.save(tmp_path / "left.png")
    from_file = manyheads.look(classify, tmp_path / "left.png").to_json()
    found = manyheads.look(classify, image)
    assert found.answer == "left"
    assert found.title.endswith(": The image  →  left")
    assert found.to_json() | {"path": ""} == from_file | {"path": ""}
    with pytest.raises(UsageError, match="reads texts, and was given an image"):
        manyheads.look(translate, image)


@pytest.mark.parametrize("given", [None, 5, b"nine", ["nine"]])
def test_looking_needs_a_text_or_an_image(translate: Translator, given: Any) -> None:
    """None was read as a word."""
    with pytest.raises(UsageError, match="give a text, the path of an image"):
        manyheads.look(translate, given)
