"""Notes on images that are unlike a model's training images: measured, set, kept, told."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import manyheads
from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.data.images.digits import read_digits
from manyheads.data.images.pixels import Pixels
from manyheads.errors import DataError, FolderError, OutputError
from manyheads.measure.image_limits import LEAST, image_domain
from manyheads.predict.unusual_images import ImageMeasures, measure_images, unlike
from manyheads.project.domain import ImageDomain, stored_image_domain
from manyheads.tasks.classify.evaluation import evaluate
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.match.predictor import Matcher


def test_measures_on_paper() -> None:
    """Two channels of 2 x 3: seven pairs of neighbours, six pixels on the edge."""
    image = torch.tensor([[[0, 2, 10], [0, 2, 10]], [[4, 4, 4], [0, 4, 4]]])
    (found,) = measure_images(image[None].byte())
    # Across: 2, 8, 4 (second channel), 8; down: 4, 0, 0.
    assert found.alike == pytest.approx(100 * 3 / 7)
    assert found.change == pytest.approx(26 / 7)
    assert found.median == 4
    assert found.light == pytest.approx(44 / 12)
    assert found.contrast == pytest.approx(np.std([0, 2, 10, 0, 2, 10, 4, 4, 4, 0, 4, 4]))
    assert found.colour == pytest.approx((4 + 2 + 6 + 0 + 2 + 6) / 6)
    # Both rows, then the first and the last column: corners count twice.
    first, second = [0, 2, 10, 0, 2, 10, 0, 0, 10, 10], [4, 4, 4, 0, 4, 4, 4, 0, 4, 4]
    assert found.edge == pytest.approx((np.std(first) + np.std(second)) / 2)
    (one,) = measure_images(torch.full((1, 1, 1, 1), 9, dtype=torch.uint8))
    assert one == ImageMeasures(100, 0, 0, 9, 0, 0, 0)


def test_limits_hold_for_their_own_images_and_not_for_others() -> None:
    """At most the margin and the share beyond; white noise is told by what exceeds most."""
    model = manyheads.load("digits", Classifier)
    few, some = (read_digits().select(np.arange(count)) for count in (LEAST - 1, 400))
    assert image_domain(few, model.preprocessing, "d") is None
    pixels = Pixels(some, model.preprocessing)
    domain = image_domain(some, model.preprocessing, "d")
    assert domain is not None
    assert (domain.data, domain.images) == ("d", 400)
    assert set(domain.limits) == set(ImageMeasures._fields)
    told = list(unlike("digits", pixels[np.arange(400)], domain))
    assert sum(note is not None for note in told) <= 4
    assert list(unlike("digits", pixels[np.arange(3)], None)) == [None] * 3
    light = ImageDomain(data="d", images=9, limits={"light": (20.0, 30.0), "alike": (0.0, 99.0)})
    grey, white = (torch.full((1, 8, 8), value, dtype=torch.uint8) for value in (25, 255))
    notes = list(unlike("m", [white], light))
    assert notes == [
        "the image is unlike what m learned to recognise: the mean brightness is 255, in nearly "
        "all of its training images it is 20 to 30. Check the answer."
    ]
    (note,) = unlike("m", [grey], light)  # its brightness is usual
    assert note is not None
    assert (
        "that are alike (percent) is 100, in nearly all of its training images it is 0 to 99"
        in note
    )
    nothing = ImageDomain(data="d", images=9, limits={"else": (0.0, 0.0)})  # of a later version
    assert list(unlike("m", [white], nothing)) == [None]


def test_classifiers_and_captioners_tell(tmp_path: Path) -> None:
    """A photo for a model of digits, a colour for one of photos; their own images not."""
    noise = np.random.default_rng(1).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    for name in ("digits", "cifar10-cct-2-3x2"):
        model: Any = manyheads.load(name, Classifier)
        (answer,) = model.respond(model.request(images=(Image.fromarray(noise),)))
        assert f"the image is unlike what {name} learned to recognise" in answer.notes[-1]
    digits = manyheads.load("digits", Classifier)
    own = read_digits()
    images: Any = tuple(own.open(number) for number in range(1700, 1720))
    answers = digits.respond(digits.request(images=images))
    assert sum(answer.notes is not None for answer in answers) <= 1
    captioner: Any = manyheads.load("emoji-caption")
    (text,) = captioner.respond(captioner.request(images=(Image.fromarray(noise),)))
    assert "unlike what emoji-caption learned to recognise" in text.notes[0]


def test_a_matcher_names_a_model_for_photos() -> None:
    """Where words for an image are chosen, and it is no drawing."""
    matcher = manyheads.load("emoji-search", Matcher)
    noise = np.random.default_rng(1).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    heart = Path(__file__).parents[2] / "docs" / "images" / "heart.png"
    request = matcher.request(images=(Image.fromarray(noise), heart), labels=("cat", "heart"))
    strange, usual = matcher.respond(request)
    assert strange.notes is not None
    assert strange.notes[-1].endswith("for images of all kinds: hf:openai/clip-vit-base-patch32.")
    assert usual.notes is None


def test_limits_are_set_by_an_evaluation_and_kept(tmp_path: Path) -> None:
    """From training images, when validation images are measured."""
    pytest.importorskip("sklearn")
    shipped = manyheads.load("digits", Classifier)
    own = shutil.copytree(shipped.folder.path, tmp_path / "own")
    path = own / "manyheads.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    del manifest["image_domain"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    model = manyheads.load(own, Classifier)
    assert model.image_domain is None
    evaluate(model, EvaluateRequest(data="digits", limit=20))
    assert stored_image_domain(model.folder) is None
    evaluate(model, EvaluateRequest(limit=20))
    assert shipped.image_domain is not None
    again = manyheads.load(own, Classifier).image_domain
    assert again is not None
    assert again.limits == shipped.image_domain.limits
    for size, known in (((8, 8), True), ((16, 16), False)):
        sized = manyheads.load(own, Classifier, image_size=size)
        assert (sized.image_domain is not None) == known
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(manifest | {"image_domain": {"data": 3}}), encoding="utf-8")
    with pytest.raises(FolderError, match=r"manyheads\.json, image_domain\.data"):
        manyheads.load(own)


def test_an_evaluation_does_not_fail_for_the_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the folder cannot be written, or a training image is damaged: said, and measured."""
    pytest.importorskip("sklearn")
    own = shutil.copytree(manyheads.load("digits").folder.path, tmp_path / "own")
    path = own / "manyheads.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    del manifest["image_domain"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    for error in (OutputError("no space"), DataError("damaged")):

        def refuse(*_: Any, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr("manyheads.measure.image_limits.store_image_domain", refuse)
        assert evaluate(manyheads.load(own, Classifier), EvaluateRequest(limit=20))["value"] > 90
        assert f"was not stored with the model: {error}" in caplog.text
