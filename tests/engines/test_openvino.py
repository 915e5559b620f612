"""OpenVINO: image models in float32 and int8, calibrated, and without its telemetry."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import manyheads
from manyheads.asks.export_request import ParityRequest
from manyheads.engine_export import export
from manyheads.engines.exporter import ExportOptions
from manyheads.engines.openvino.engine import TELEMETRY
from manyheads.engines.openvino.exporter import EXPORTER
from manyheads.errors import FolderError, MissingExtraError, UsageError
from manyheads.measure.parity_inputs import examples_to_compare
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.folder import ModelFolder
from manyheads.tasks.classify.predictor import Classifier
from tests.exports import exported
from tests.made import half

IMAGES = [half(n % 2, n, height=5 + n, width=9) for n in range(5)]


@pytest.fixture(scope="module", params=["float32", "int8"])
def exported_classifier(
    classifier: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[str, Path]:
    """A copy of the classifier with its graph in a precision."""
    folder = tmp_path_factory.mktemp("openvino")
    (folder / "photos").mkdir()
    for number in range(20):
        half(number % 2, 100 + number).save(folder / "photos" / f"{number}.png")
    options = ["--quantization", request.param]
    options += ["--calibrate", str(folder / "photos")] if request.param == "int8" else []
    done = exported(classifier, "--to", "openvino", "--out", folder / "out", "--json", *options)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["quantization"] == request.param
    assert made["parity"]["inputs"] == 8
    assert ("calibrated on 20 images" in str(made["remarks"])) == (request.param == "int8")
    return request.param, folder / "out"


def test_answers_as_torch(exported_classifier: tuple[str, Path]) -> None:
    """The export had two images; here are one and five."""
    precision, folder = exported_classifier
    ours, theirs = (manyheads.load(folder, engine=each) for each in ("torch", "openvino"))
    assert isinstance(ours, Classifier)
    assert isinstance(theirs, Classifier)
    bar = 1e-4 if precision == "float32" else 0.15
    for some in (IMAGES[:1], IMAGES):
        for one, other in zip(ours.classify(some), theirs.classify(some), strict=True):
            expected = {each.label: each.probability for each in other}
            for each in one:
                assert each.probability == pytest.approx(expected[each.label], abs=bar)
    assert TELEMETRY not in sys.modules


@pytest.mark.parametrize(
    ("photos", "used", "measured"),
    [
        (0, "4 images of the validation data, measured on the others", 4),
        pytest.param(1, "1 images", 8, marks=pytest.mark.full),  # as of the 20 above
    ],
)
def test_the_gate_measures_on_other_images_than_int8_was_calibrated_on(
    classifier: Path, tmp_path: Path, photos: int, used: str, measured: int
) -> None:
    """Of the 8 validation images, 4 each; those of a folder leave all 8 for the gate."""
    options = ["--calibrate", str(tmp_path / "photos")] if photos else []
    if photos:
        (tmp_path / "photos").mkdir()
        half(0, 1).save(tmp_path / "photos" / "one.png")
    done = exported(
        *(classifier, "--to", "openvino", "--out", tmp_path / "out", "--json"),
        *("--quantization", "int8", "--force", *options),
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["parity"]["inputs"] == measured
    assert f"model: int8, calibrated on {used}" in made["remarks"]


def test_examples_that_were_used_are_not_compared() -> None:
    request = ParityRequest(left_out=(0, 3, 9), limit=4)
    found = examples_to_compare(10, request).tolist()
    assert len(found) == 4
    assert not {0, 3, 9} & {*found}
    other = ParityRequest(data="others", left_out=(0, 3, 9))
    assert examples_to_compare(10, other).tolist() == [*range(10)]


def test_one_validation_image_is_too_few(own_classifier: Path) -> None:
    """There would be none to measure on, or none to calibrate on."""
    folder = ModelFolder(own_classifier)
    one = pipeline_of(folder.recipe).validation_images(folder.recipe).select(np.array([0]))
    options = ExportOptions("int8", validation_images=lambda: one)
    with pytest.raises(UsageError, match="there are 1: give a folder of images as `calibrate`"):
        EXPORTER.export(folder, own_classifier, options)


def test_int8_needs_images(own_classifier: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for more in ({"calibrate": tmp_path / "empty"}, {"calibrate": tmp_path / "none"}):
        with pytest.raises(UsageError, match="int8 is calibrated on images, and there are none"):
            export(own_classifier, to="openvino", quantization="int8", **more)
    assert not (own_classifier / "engines").exists()


def test_texts_are_refused(translator: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"images of one size.* ctranslate2 and onnx"):
        export(translator, to="openvino", out=tmp_path / "out")


def test_damaged_files(exported_classifier: tuple[str, Path]) -> None:
    path = exported_classifier[1] / "engines" / "openvino" / "model.bin"
    content = path.read_bytes()
    try:
        path.write_bytes(content[:-1])
        with pytest.raises(FolderError, match="changed or cut off"):
            manyheads.load(exported_classifier[1], engine="openvino")
    finally:
        path.write_bytes(content)


def test_without_the_extra(
    exported_classifier: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nncf", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'manyheads\[openvino\]'"):
        export("digits", to="openvino", quantization="int8", out=tmp_path / "out")
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'manyheads\[openvino\]'"):
        manyheads.load(exported_classifier[1], engine="openvino")
