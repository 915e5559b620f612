"""ONNX of models with an output per token or column, and of image encoders."""

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import manyheads
from manyheads.asks.export_request import ParityRequest
from manyheads.engine_export import export
from manyheads.errors import DataError, ManyheadsError, UsageError
from manyheads.measure.stored_model import evaluate
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import read_recipe
from manyheads.tasks.embed.predictor import Embedder
from manyheads.tasks.fill.predictor import MaskFiller
from manyheads.tasks.read.predictor import Reader
from manyheads.tasks.tag.predictor import WordSpacer
from tests import language
from tests.convert.test_convert_encoders import convert
from tests.exports import exported, exported_language
from tests.made import CLASSIFY, READ, half, run, trained, write_halves, write_recipe

TEXTS = ["eins zwei", "acht", "", "drei vier fünf sechs sieben acht neun zehn eins zwei drei"]


def export_copy(model: Path, out: Path, *options: str) -> tuple[Any, Any, dict[str, Any]]:
    """Export a model; load it on torch and on ONNX Runtime, with the report."""
    done = exported(model, "--to", "onnx", "--out", out, *options)
    assert done.returncode == 0, done.stderr
    report = json.loads((out / "engines" / "onnx" / "parity.json").read_text())
    ours, theirs = (manyheads.load(out, engine=name) for name in ("torch", "onnx"))
    return ours, theirs, report


def gate(models: tuple[Any, Any], **given: Any) -> dict[str, Any]:
    """What the export compares before it keeps anything, here of what it has kept."""
    pipeline = pipeline_of(models[0].folder.recipe)
    found: dict[str, Any] = pipeline.parity(*models, ParityRequest(**given)).to_json()
    return found


@pytest.fixture(scope="module")
def fillers() -> tuple[MaskFiller, MaskFiller]:
    """A model that fills blanks, on torch and on ONNX Runtime."""
    return exported_language("fill", MaskFiller)


def agree(report: dict[str, Any], compared: str, metric: str | None) -> None:
    """The report is of the float32 that torch gives."""
    assert report["compared"] == compared
    assert report["difference"] < 1e-4
    assert report["changed"] == 0
    assert report["metric"] == metric
    if metric is not None:
        assert report["before"] == pytest.approx(report["after"])
    assert set(report["seconds"]) == {"torch", "onnx"}


def scores(model: Any) -> dict[str, float]:
    return {name: each["value"] for name, each in evaluate(model)["all"].items()}


def test_blanks_are_filled_as_on_torch(fillers: tuple[MaskFiller, MaskFiller]) -> None:
    ours, theirs = fillers
    report = json.loads((ours.folder.path / "engines" / "onnx" / "parity.json").read_text())
    agree(report, "logits", "accuracy")
    assert report["inputs"] == 8
    for text in ("eins <mask>", "<mask>", "<mask> zwei drei vier <mask> sechs sieben"):
        for one, other in zip(ours.fill(text), theirs.fill(text), strict=True):
            assert [each.token for each in one] == [each.token for each in other]
            for a, b in zip(one, other, strict=True):
                assert a.probability == pytest.approx(b.probability, abs=1e-4)
    assert scores(theirs) == pytest.approx(scores(ours), abs=1e-3)


@pytest.mark.full  # as blanks are filled: an output per token
def test_texts_are_tagged_as_on_torch(tmp_path: Path) -> None:
    ours, theirs, report = export_copy(language.trained("tag-encoder"), tmp_path / "tag")
    agree(report, "logits", "f1")
    assert isinstance(ours, WordSpacer)
    assert theirs(TEXTS) == ours(TEXTS)
    assert theirs(TEXTS[0]) == ours(TEXTS[0])
    assert scores(theirs) == pytest.approx(scores(ours), abs=1e-3)


def test_texts_without_right_answers(fillers: tuple[MaskFiller, MaskFiller]) -> None:
    report = gate(fillers, texts=("eins zwei", "drei"))
    agree(report, "logits", None)
    assert (report["data"], report["inputs"]) == ("texts given", 2)


def test_inputs_that_cannot_be_compared(fillers: tuple[MaskFiller, MaskFiller]) -> None:
    """The export ends with them, and keeps nothing."""
    with pytest.raises(ManyheadsError, match=r"nothing-here\.txt"):
        gate(fillers, data="nothing-here.txt")
    with pytest.raises(DataError, match="texts given: no line has at most"):
        gate(fillers, texts=("eins " * 300,))


@pytest.mark.full
def test_an_export_with_texts_without_right_answers(tmp_path: Path) -> None:
    model = language.trained("fill")
    *_, report = export_copy(model, tmp_path / "fill", "--text", "eins zwei", "--text", "drei")
    agree(report, "logits", None)
    assert (report["data"], report["inputs"]) == ("texts given", 2)


def refused(model: Path, out: Path, *options: str) -> str:
    """What the command says when it keeps nothing."""
    done = exported(model, "--to", "onnx", "--out", out, *options)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert not out.exists()
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(("--data", "nothing-here.txt"), "nothing-here.txt", marks=pytest.mark.full),
        (("--text", ""), "--text is empty"),
        pytest.param(
            ("--text", "eins " * 300), "texts given: no line has at most", marks=pytest.mark.full
        ),
        (("--quantization", "int8"), "onnx has float32"),
        (("--to", "openvino"), "the targets ctranslate2 and onnx"),
    ],
)
def test_bad_input_keeps_nothing(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    assert message in refused(language.trained("fill"), tmp_path / "out", *options)


def line(text: str, width: int) -> Image.Image:
    """An image of a line of text."""
    image = Image.new("L", (width, 40), 255)
    ImageDraw.Draw(image).text((12, 8), text, fill=0, font=ImageFont.load_default(24))
    return image


def test_lines_are_read_as_on_torch(tmp_path: Path) -> None:
    """Of several widths, one alone and together."""
    ours, theirs, report = export_copy(trained("reader"), tmp_path / "reader", "--limit", "9")
    agree(report, "logits", "cer")
    assert report["lower_is_better"]
    assert report["inputs"] == 9
    assert isinstance(ours, Reader)
    images = [line("one two", 120), line("three", 300), line("four five six", 1500)]
    for some in (images[:1], images):
        assert theirs(cast(Any, some)) == ours(cast(Any, some))
    assert scores(theirs) == pytest.approx(scores(ours), abs=1e-3)
    with pytest.raises(UsageError, match="is for models that read texts: give lines as"):
        gate((ours, theirs), texts=("one",))


def test_the_widest_line_fits_the_graph(tmp_path: Path) -> None:
    text = READ + "\n[image]\nmax_width = 8192\n"
    recipe = read_recipe(write_recipe(tmp_path / "recipe.toml", text, tmp_path))
    config: Any = recipe.config()
    assert Reader.positions(recipe) * config.column_width >= 8192


def test_vectors_are_those_of_torch(tmp_path: Path) -> None:
    write_halves(tmp_path, count=6)
    model = convert("hf-clip", tmp_path)
    photos = str(tmp_path / "halves")
    ours, theirs, report = export_copy(model, tmp_path / "copy", "--data", photos)
    agree(report, "vectors", None)
    assert report["inputs"] == 6
    assert isinstance(ours, Embedder)
    images = [half(n % 2, n, height=5 + n, width=9) for n in range(7)]
    for some in (images[:1], images):
        expected = ours.embed_images(cast(Any, some))
        np.testing.assert_allclose(
            theirs.embed_images(some), expected, atol=1e-4 * np.abs(expected).max()
        )
    with pytest.raises(UsageError, match="`engine='torch'`"):
        theirs.embed_tokens(images)
    with pytest.raises(ManyheadsError, match="The data of this model are not here"):
        gate((ours, theirs))


def test_a_task_without_a_comparison_is_refused_at_once(tmp_path: Path) -> None:
    write_halves(tmp_path)
    text = CLASSIFY.replace('"classify"', '"reconstruct"')
    recipe = write_recipe(tmp_path / "recipe.toml", text, tmp_path)
    run(recipe, tmp_path / "model", "train.steps=1")
    with pytest.raises(UsageError, match="not compared for the task 'reconstruct'"):
        export(tmp_path / "model", to="onnx")
    assert not (tmp_path / "model" / "engines").exists()
