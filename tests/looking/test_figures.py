"""Figures of every kind of model, of the sentence of a user, and of one word in many."""

import json
import math
from pathlib import Path

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.lens.panels import Figure, Heat, Lines, Table
from manyheads.lens.view.text_view import GateView
from manyheads.looking.figures import figures_of_image, figures_of_text, watched
from manyheads.looking.look_inside import look
from manyheads.looking.word_comparison import _find, compare_word
from manyheads.models.presets import build
from manyheads.predict.load import load
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.translate.look import explain_text
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.reference import reference_figure, score_reference
from tests.small import ALL, Images, inputs, randomise

ATTENDING = {"heads", "distance"}


def groups(figures: list[Figure]) -> set[str]:
    """All of them survive JSON, without numbers that are none."""
    for figure in figures:
        text = json.dumps(figure.to_json(), allow_nan=False)
        assert len(text) < 100_000
        assert figure.legend
        assert figure.panel.title
    return {figure.group for figure in figures}


def figures_of(name: str) -> list[Figure]:
    config = ALL[name]
    model = randomise(build(config)).eval()
    given = [each[:1] for each in inputs(config)]
    with watched(model) as seen:
        model(*given)
    if isinstance(config, Images):
        return figures_of_image(seen)
    sides = ("encoder", "decoder")
    names = {
        stack: [f"{n}" for n in range(each.shape[1])]
        for stack, each in zip(sides, given, strict=False)
    }
    pieces = [str] * len(given)
    return figures_of_text(seen, names=names, outputs=names.get("decoder", ()), pieces=pieces)


@pytest.mark.parametrize("name", ALL)
def test_every_preset_shows_what_it_has(name: str) -> None:
    """Nothing is written by hand for a model, and nothing breaks one."""
    found = groups(figures_of(name))
    if name == "mlp":
        assert not found
    elif name.startswith(("resnet", "vgg", "bit", "airbench")):
        assert found == {"distance", "layers"}
    elif "seq2seq" in name or "lstm" in name or "gru" in name or "rnn" in name:
        assert "embeddings" in found
    else:
        assert "heads" in found or "distance" in found


def test_a_transformer_has_them_all() -> None:
    found = groups(figures_of("transformer-base"))
    assert found == {"mask", "heads", "distance", "layers", "embeddings", "positions"}


def test_windows_and_convolutions() -> None:
    """Swin has biases and masks of windows, CvT neither; both look and are compared."""
    looked = {"heads", "distance", "layers", "embeddings"}
    assert groups(figures_of("swin-t")) == looked | {"positions", "mask"}
    assert groups(figures_of("cvt-13")) == looked


def test_a_long_text_stays_small() -> None:
    """600 tokens: grouped, thinned or cut, each with a note."""
    config = ALL["transformer-base"]
    model = randomise(build(config)).eval()
    source = torch.randint(3, 11, (1, 600))
    names = [str(n) for n in range(600)]
    with watched(model) as seen:
        model(source, source)
    figures = figures_of_text(
        seen,
        names={"encoder": names, "decoder": names},
        outputs=names,
        pieces=[str, str],
    )
    groups(figures)
    assert sum(len(json.dumps(figure.to_json())) for figure in figures) < 300_000


def test_gates_are_a_figure() -> None:
    """T2: a row a token, a column a gate, from shut to open."""
    gates = GateView(
        "encoder layer 1 forward", "encoder forward", 1, "gates", ["▁a"], ["input"], [[0.25]]
    )
    with watched(torch.nn.Identity()) as seen:
        pass
    (figure,) = figures_of_text(seen, names={"encoder": ["a"]}, gates=[gates])
    assert isinstance(figure.panel, Heat)
    assert figure.group == "gates"
    assert (figure.panel.rows, figure.panel.columns) == (["a"], ["input"])
    assert (figure.panel.values, figure.panel.scale) == ([[0.25]], [0.0, 1.0])


def test_looking_changes_nothing(translator: Path) -> None:
    """The figures are measured in the pass that is shown, and leave no hook behind."""
    predictor = load(translator)
    assert isinstance(predictor, Translator)
    text = "three four five"
    before = predictor(text)
    answer, view = explain_text(predictor, text)
    assert answer == before == predictor(text)
    assert view.figures[0].group == "loss"
    assert groups(view.figures) == {
        "loss",
        "mask",
        "heads",
        "distance",
        "layers",
        "embeddings",
        "positions",
    }


def test_what_a_reference_costs(translator: Path) -> None:
    """Teacher forcing gives the model's own translation what the search gave it."""
    predictor = load(translator)
    assert isinstance(predictor, Translator)
    _, view = explain_text(predictor, "three four")
    own = predictor("three four")
    scored = score_reference(predictor, "three four", own)
    assert scored.tokens == view.output
    assert scored.probabilities == pytest.approx(view.probabilities, abs=1e-5)
    assert scored.uniform == pytest.approx(math.log(len(predictor.tokenizers.target)))
    figure = reference_figure(predictor, "three four", "neun neun neun")
    assert isinstance(figure.panel, Table)
    worse, better = figure.panel.rows[-1][2], sum(-math.log(p) for p in view.probabilities)
    assert isinstance(worse, float)
    assert worse > better / len(view.probabilities)


def test_one_word_in_several_sentences(translator: Path) -> None:
    """Of a translator's encoder: a curve for each of three pairs, from layer 0 on."""
    predictor = load(translator)
    assert isinstance(predictor, Translator)
    also = ["one two three", "three five"]
    first, *rest = compare_word(predictor, "three", ["three four", *also])
    assert isinstance(first.panel, Lines)
    assert [curve.name for curve in first.panel.curves] == [
        "three, sentences 1 and 2",
        "three, sentences 1 and 3",
        "three, sentences 2 and 3",
        "other words, mean",
    ]
    # At the same place of the sentence, before the first layer, a word is itself.
    assert first.panel.curves[1].y[0] == pytest.approx(1, abs=1e-4)
    assert len(rest) == 3


def test_a_word_is_found_alone_before_inside_another() -> None:
    """And with an ending, as Korean has them."""
    assert _find("cat", "a catalogue of a cat") == 17
    assert _find("고양이", "게임 속 고양이를 본다") == 5
    assert _find("dog", "a cat") == -1


def test_wishes_that_cannot_be_met(translator: Path, classifier: Path) -> None:
    """Each says what to do."""
    texts, images = load(translator), load(classifier)
    assert isinstance(images, Classifier)
    with pytest.raises(UsageError, match=r"does not have the word 'tree'.*'three'"):
        look(texts, "three four", word="tree")
    with pytest.raises(UsageError, match="'five' does not have the word"):
        look(texts, "three four", word="three", also=("five",))
    with pytest.raises(UsageError, match="give the word, too"):
        look(texts, "three four", also=("three",))
    with pytest.raises(UsageError, match="reference is empty"):
        look(texts, "three four", reference=" ")
    with pytest.raises(UsageError, match="no use for a reference"):
        look(images, "a.png", reference="a")
    with pytest.raises(UsageError, match="leave the word out"):
        look(images, "a.png", word="a")
