"""Images are prepared as the other libraries' own code prepares them, or the model is refused.

`python -m benchmarks.goldens` records what their classes make of small images; `make parity`
compares live, at published sizes too.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from torch import Tensor

from manyheads.convert.preprocessing import (
    PROCESSORS,
    USUAL,
    Prepared,
    from_timm,
    from_transformers,
    preprocessing,
)
from manyheads.data.images.image_set import Preprocessing
from manyheads.errors import UsageError
from manyheads.models.convert.families import HF

HERE = Path("theirs")
RECORDED = Path(__file__).parents[1] / "golden" / "preprocessing" / "small-images.safetensors"
with safe_open(RECORDED, framework="pt") as file:
    CASES: list[dict[str, Any]] = json.loads(file.metadata()["cases"])
    TENSORS: dict[str, Tensor] = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
IMAGES = [TENSORS[f"image {n}"].numpy() for n in range(3)]


def prepare(case: dict[str, Any]) -> Prepared:
    if case["library"] == "timm":
        return from_timm(case["told"], HERE)
    return from_transformers(case["told"], case["kind"], HERE)


def finished(prepared: Prepared, size: tuple[int, int] | None = None) -> Preprocessing:
    return preprocessing(prepared, size or prepared.size or (224, 224), "RGB", HERE)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_pixels_are_theirs(case: dict[str, Any]) -> None:
    """Bytes are equal; what differs is the rounding of means and deviations."""
    ours = finished(prepare(case))
    for number, image in enumerate(IMAGES):
        expected = TENSORS[f"{case['name']} {number}"]
        found = ours.normalise(torch.from_numpy(ours.pixels(Image.fromarray(image)).copy())[None])
        torch.testing.assert_close(
            found[0], expected, rtol=0, atol=1e-5 * expected.abs().max().item()
        )


def test_every_class_and_kind_is_recorded() -> None:
    kinds = {case["kind"] for case in CASES}
    assert kinds <= set(USUAL) == set(HF)  # the encoders of texts' models have their own tests
    assert {processor for processor, _ in USUAL.values()} | {"CLIP"} == set(PROCESSORS)


# --- What is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "kind", "message"),
    [
        ({"do_resize": False}, "vit", "do_resize = False"),
        ({"do_resize": None}, "vit", "do_resize = None"),
        ({"size": {"shortest_edge": 384}}, "vit", "without a crop"),
        ({"size": {"height": 384, "width": 384}}, "resnet", "needs a shortest_edge"),
        ({"size": {"shortest_edge": 224, "longest_edge": 300}}, "vit", "longest_edge"),
        ({"size": {"longest_edge": 300}}, "vit", "size = {'longest_edge': 300}"),
        ({"size": 200, "crop_size": 224}, "deit", "the crop is larger"),
        ({"size": [256, 300]}, "deit", "other proportions"),
        ({"crop_size": None}, "deit", "crop_size is missing"),
        ({"do_pad": True, "pad_size": {"height": 300, "width": 300}}, "vit", "never padded"),
        ({"image_processor_type": "LevitImageProcessor"}, "vit", "known are ViTImageProcessor"),
        ({"image_processor_type": ["ViT"]}, "vit", "image_processor_type"),
        ({"resample": 7}, "vit", "resample = 7"),
        ({"resample": None}, "vit", "resample = None"),
        ({"resample": "bicubic"}, "vit", "resample = 'bicubic'"),
        ({"size": "224"}, "vit", "size = '224'"),
        ({"size": 10**9}, "vit", "size = 1000000000"),
        ({"size": {"height": 224.5, "width": 224}}, "vit", "size = "),
        ({"image_std": [0.5, 0.0, 0.5]}, "vit", "image_std"),
        ({"image_std": float("inf")}, "vit", "image_std = inf"),
        ({"image_mean": [0.5, 0.5]}, "vit", "mean has 2 numbers"),
        ({"rescale_factor": 0}, "vit", "rescale_factor = 0"),
        ({"rescale_factor": float("nan")}, "vit", "rescale_factor = nan"),
        ({"do_normalize": "yes"}, "vit", "do_normalize = 'yes'"),
        ({"crop_pct": 1.5, "size": 224}, "cvt", r"crop_pct = 1\.5"),
    ],
)
def test_what_has_no_equivalent_is_refused(told: dict[str, Any], kind: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"theirs asks: .*{message}"):
        finished(from_transformers(told, kind, HERE))


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"crop_mode": "border"}, "crop_mode = 'border'"),
        ({"interpolation": "random"}, "interpolation = 'random'"),
        ({"crop_pct": 1.1}, r"crop_pct = 1\.1"),
        ({"crop_pct": "much"}, "crop_pct = 'much'"),
        ({"input_size": [224, 224]}, "input_size"),
        ({"input_size": [3, 224, "wide"]}, "input_size"),
        ({"std": [0.1, -0.1, 0.1]}, "std"),
    ],
)
def test_what_timm_alone_can_do_is_refused(told: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"theirs asks: .*{message}"):
        finished(from_timm(told, HERE))


# --- Sizes --------------------------------------------------------------------------------------


def test_another_size_keeps_the_share_and_its_rounding() -> None:
    """timm with crop_pct 0.95 at 288: the shorter side becomes floor(288 / 0.95) = 303 pixels."""
    prepared = from_timm({"crop_pct": 0.95, "crop_mode": "squash"}, HERE)
    left, _, right, _ = finished(prepared, (288, 288)).box(303, 606)
    assert (left, right) == (8, 296)  # half of 15, to the even one


def test_the_crop_is_told_in_pixels_of_the_photo() -> None:
    """For the pages that show it: 480 x 640 become 28 x 37, of which 24 x 24 are seen."""
    prepared = from_transformers({"size": 28, "crop_size": 24}, "bit", HERE)
    left, top, right, bottom = finished(prepared).box(480, 640)
    assert (left, right) == pytest.approx((2 * 480 / 28, 26 * 480 / 28))
    assert (top, bottom) == pytest.approx((6 * 640 / 37, 30 * 640 / 37))


def test_a_strip_is_not_blown_up() -> None:
    """Of 20,000 x 2 pixels, the resized whole would have 2,240,000 x 224, 1.5 GB."""
    prepared = from_transformers({"size": 224, "crop_size": 224}, "bit", HERE)
    strip = Image.fromarray(np.full((2, 20_000, 3), 7, dtype=np.uint8))
    assert (finished(prepared).pixels(strip) == 7).all()
