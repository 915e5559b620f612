"""ONNX: one file for any runtime, and ONNX Runtime behind the same predictors."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import manyheads
from manyheads.engine_export import export
from manyheads.errors import FolderError, MissingExtraError, UsageError
from manyheads.generation.special_ids import special_ids
from manyheads.project.folder import ModelFolder
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.translate.predictor import Translator
from tests.exports import exported
from tests.made import half, write_hashes

TEXTS = ["two seven one", "nine", "", "four five six seven eight", "ten ten"]


@pytest.fixture(scope="module")
def translators(
    translator: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Translator, Translator]:
    """A translator on torch and on ONNX Runtime."""
    out = tmp_path_factory.mktemp("onnx") / "numbers"
    done = exported(translator, "--to", "onnx", "--out", out, "--text", TEXTS[0], "--limit", "1")
    assert done.returncode == 0, done.stderr
    models = (manyheads.load(out, engine=name) for name in ("torch", "onnx"))
    first, second = (each for each in models if isinstance(each, Translator))
    return first, second


@pytest.fixture(scope="module")
def exported_classifier(classifier: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the classifier with its ONNX graph."""
    out = tmp_path_factory.mktemp("onnx") / "classifier"
    done = exported(classifier, "--to", "onnx", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_a_classifier_answers_as_on_torch(exported_classifier: Path) -> None:
    """The export had two images; here are one and seven, of other sizes than the model's."""
    ours, theirs = (manyheads.load(exported_classifier, engine=e) for e in ("torch", "onnx"))
    assert isinstance(ours, Classifier)
    assert isinstance(theirs, Classifier)
    images = [half(n % 2, n, height=5 + n, width=9) for n in range(7)]
    for some in (images[:1], images):
        for one, other in zip(ours.classify(some), theirs.classify(some), strict=True):
            assert [each.label for each in one] == [each.label for each in other]
            for a, b in zip(one, other, strict=True):
                assert a.probability == pytest.approx(b.probability, abs=1e-4)


def test_one_file_says_what_it_is(classifier: Path, tmp_path: Path) -> None:
    """Another runtime needs nothing else: size, mean, and the names of the classes."""
    path = tmp_path / "halves.onnx"
    done = exported(classifier, "--to", "onnx", "--out", path, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == str(path)
    model = onnx.load(path)
    said = {each.key: each.value for each in model.metadata_props}
    folder = ModelFolder(classifier)
    assert json.loads(said["manyheads.classes"]) == folder.labels()
    stored = json.loads(said["manyheads.preprocessing"])
    image = folder.preprocessing()
    assert (stored["height"], stored["width"], stored["mode"]) == (4, 6, image.mode)
    assert [each.version for each in model.opset_import if not each.domain] == [20]
    session = onnxruntime.InferenceSession(path)
    (given,) = session.get_inputs()
    assert given.shape == ["images", image.channels, 4, 6]
    logits = session.run(None, {given.name: np.zeros((5, image.channels, 4, 6), np.float32)})[0]
    assert logits.shape == (5, len(folder.labels()))
    assert json.loads((tmp_path / "halves.parity.json").read_text())["changed"] == 0


@pytest.mark.parametrize(
    "options",
    [
        {"beams": 1},
        {"beams": 4, "coverage_penalty": 0.2},
        {"beams": 4, "groups": 2, "diversity": 0.5},
        {"sample": True, "temperature": 1.2, "beams": 1},
        {"beams": 3, "no_repeat_ngram": 2, "min_length": 3, "banned": (9, 10)},
    ],
    ids=lambda options: "-".join(options),
)
def test_every_search_runs_on_it(
    translators: tuple[Translator, Translator], options: dict[str, Any]
) -> None:
    ours, theirs = translators
    decode = replace(ours.decode, **options)
    expected, found = (each.translate(TEXTS, n_best=2, options=decode) for each in (ours, theirs))
    assert [[e.tokens for e in best] for best in found] == [
        [e.tokens for e in best] for best in expected
    ]
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            assert a.score == pytest.approx(b.score, abs=1e-3)


def test_prefixes_constraints_and_alignment(translators: tuple[Translator, Translator]) -> None:
    """Alignment is read from the torch model: a graph does not tell its attention by head."""
    phrases = translators[0].tokenizers.target.encode(["acht"])
    found = [
        (
            each.translate(TEXTS[:2], beams=4, prefixes=["eins", "neun"]),
            each.translate(TEXTS[:1], beams=4, constraints=[phrases]),
            [d for best in each.translate(TEXTS[:2], align=True) for d in best[0].details or ()],
        )
        for each in translators
    ]
    for one, other in zip(found[0][:2], found[1][:2], strict=True):
        assert [best[0].text for best in one] == [best[0].text for best in other]
    assert [each.source for each in found[0][2]] == [each.source for each in found[1][2]]
    assert "acht" in found[1][1][0][0].text


def test_longer_than_the_graph(translators: tuple[Translator, Translator]) -> None:
    theirs = translators[1]
    end = special_ids(theirs.model).end
    options = replace(theirs.decode, max_length=5000, max_loop=0, banned=(end,), forced_end=True)
    with pytest.raises(UsageError, match="exported graph ends at"):
        theirs.translate(TEXTS[:1], options=options)


def test_refusals(exported_classifier: Path) -> None:
    with pytest.raises(UsageError, match="takes 4 x 6: leave it out, or use engine='torch'"):
        manyheads.load(exported_classifier, engine="onnx", image_size=8)
    manyheads.load(exported_classifier, engine="onnx", image_size=(4, 6))
    model = manyheads.load(exported_classifier, engine="onnx").model
    with pytest.raises(UsageError, match="load the model with `engine='torch'`"):
        model(1, 2, 3)


def test_what_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Tagger has no graph .* Recurrent layers have none"):
        export("korean-spacing-lstm", to="onnx", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="`quantization` is 'int8'; onnx has float32"):
        export("digits", to="onnx", quantization="int8", out=tmp_path / "out")


def test_one_file_is_refused_for_two_graphs(tmp_path: Path) -> None:
    """Before one of them is traced."""
    out = tmp_path / "dates.onnx"
    with pytest.raises(UsageError, match=r"is 2 files, decoder\.onnx, encoder\.onnx: give a"):
        export("date-en-ko", to="onnx", out=out, texts=TEXTS[:1])
    assert not out.exists()


@pytest.mark.parametrize("file", ["../engine.json", "/etc/passwd", "model.onnx/", "parity.jsn"])
def test_no_graph_lies_elsewhere(exported_classifier: Path, tmp_path: Path, file: str) -> None:
    """Only a file beside graphs.json, which has a hash as all there, is opened."""
    own = shutil.copytree(exported_classifier, tmp_path / "own")
    listing = own / "engines/onnx/graphs.json"
    stored = json.loads(listing.read_text("utf-8"))
    stored["graphs"]["model"]["file"] = file
    listing.write_text(json.dumps(stored), "utf-8")
    write_hashes(listing.with_name("engine.json"))
    with pytest.raises(FolderError, match=r"graphs\.json: .* is not a file beside it"):
        manyheads.load(own, engine="onnx")


def test_a_file_that_was_cut_off(exported_classifier: Path) -> None:
    path = exported_classifier / "engines" / "onnx" / "model.onnx"
    content = path.read_bytes()
    try:
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(FolderError, match="changed or cut off"):
            manyheads.load(exported_classifier, engine="onnx")
    finally:
        path.write_bytes(content)


def test_without_the_extra(
    exported_classifier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for run in (
        lambda: export("digits", to="onnx", out=tmp_path / "out"),
        lambda: manyheads.load(exported_classifier, engine="onnx"),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'manyheads\[onnx\]'"):
            run()
