"""How other libraries prepare images: their pixels and ours, from the same configuration.

Of Hugging Face's classes those on Pillow are compared, whose pixels are exact; those on torchvision
resize bytes with another rounding.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.peers import import_peer, transformers_library
from manyheads.convert.preprocessing import (
    Prepared,
    from_default,
    from_timm,
    from_transformers,
    preprocessing,
)
from manyheads.errors import UsageError
from manyheads.models.convert import families
from manyheads.models.convert.names import understand

HERE = Path("the configuration")
HALF, IMAGENET = [0.5, 0.5, 0.5], [0.485, 0.456, 0.406]
DEVIATIONS = [0.229, 0.224, 0.225]


@dataclass(frozen=True)
class Case:
    """A configuration, and whose."""

    name: str
    library: Literal["hf", "timm"]
    told: dict[str, Any]
    kind: str = "vit"  # of Hugging Face: the model_type

    def prepared(self) -> Prepared:
        if self.library == "timm":
            return from_timm(self.told, HERE)
        return from_transformers(self.told, self.kind, HERE)

    def ours(self, image: Image.Image) -> Tensor:
        return _prepare(self.prepared(), image)

    def theirs(self, image: Image.Image) -> Tensor:
        if self.library == "timm":
            data = import_peer("timm.data")
            config = data.resolve_data_config(pretrained_cfg=self.told)
            found: Tensor = data.create_transform(**config)(image)
            return found
        processors = transformers_library().AutoImageProcessor
        with tempfile.TemporaryDirectory() as name:
            for file, content in (
                ("config.json", {"model_type": self.kind}),
                ("preprocessor_config.json", self.told),
            ):
                (Path(name) / file).write_text(json.dumps(content), encoding="utf-8")
            processor = processors.from_pretrained(name, backend="pil")
        pixels: Tensor = processor(image, return_tensors="pt").pixel_values[0]
        return pixels.float()


def _prepare(prepared: Prepared, image: Image.Image) -> Tensor:
    asked = preprocessing(prepared, prepared.size or (224, 224), "RGB", HERE)
    return asked.normalise(torch.from_numpy(asked.pixels(image).copy())[None])[0]


def _hf(name: str, kind: str = "vit", **told: Any) -> Case:
    return Case(name, "hf", told, kind)


def _timm(name: str, side: int | tuple[int, int], **told: Any) -> Case:
    height, width = (side, side) if isinstance(side, int) else side
    return Case(name, "timm", {"input_size": [3, height, width]} | told)


IMAGENETS: dict[str, Any] = {"image_mean": IMAGENET, "image_std": DEVIATIONS}
CLIPS: dict[str, Any] = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
# Kept with the tests.
SMALL = (
    _hf("vit", feature_extractor_type="ViTFeatureExtractor", size=14, resample=2, image_mean=HALF),
    _hf("vit defaults but the size", size={"height": 12, "width": 18}),
    _hf("vit list", size=[12, 18], resample=3, image_mean=0.4, image_std=0.2),
    _hf("vit cropped", size={"shortest_edge": 17}, do_center_crop=True, crop_size=14),
    _hf("vit cropped stretch", size=17, do_center_crop=True, crop_size=[14, 14], resample=1),
    _hf(
        "vit not rescaled", size=14, do_rescale=False, image_mean=[127.5] * 3, image_std=[60.0] * 3
    ),
    _hf("vit bytes", size=14, do_rescale=False, do_normalize=False),
    _hf("vit fractions", size=14, do_normalize=False),
    _hf(
        "vit to both signs", size=14, rescale_factor=1 / 127.5, image_mean=[1.0] * 3, image_std=1.0
    ),
    _hf("vit nulls", size=14, do_rescale=None, do_normalize=None),
    _hf("deit null", "deit", size=14, do_center_crop=None),
    _hf("bit null", "bit", size=14, default_to_square=None, crop_size=14),
    _hf("vit shortest", size=14, default_to_square=False, do_center_crop=True, crop_size=11),
    *(_hf(f"vit resample {n}", size=14, resample=n) for n in range(6)),
    _hf("deit", "deit", size=16, crop_size=14, resample=3, do_center_crop=True, **IMAGENETS),
    _hf("deit stretch only", "deit", size=14, do_center_crop=False),
    _hf("swin", "swin", size=14, resample=3, **IMAGENETS),
    _hf("cvt", "cvt", size=14, crop_pct=0.875, resample=3, **IMAGENETS),
    _hf("resnet", "resnet", size={"shortest_edge": 14}, crop_pct=0.9, **IMAGENETS),
    _hf("resnet defaults but the size", "resnet", size=13),
    _hf("bit", "bit", size={"shortest_edge": 14}, crop_size={"height": 14, "width": 14}),
    _hf("clip", image_processor_type="CLIPImageProcessor", size=15, crop_size=12),
    _timm("center", 14, crop_pct=0.875, interpolation="bilinear"),
    _timm("center floored", 14, crop_pct=0.9, mean=HALF, std=HALF),
    _timm("squash", 14, crop_pct=0.9, crop_mode="squash"),
    _timm("whole", 13, crop_pct=1.0, interpolation="lanczos"),
    _timm("not square", (12, 18), crop_pct=0.8),
    _timm("not square, rounded down", (16, 64), crop_pct=0.9),
    _timm("not square squash", (12, 18), crop_pct=0.75, crop_mode="squash"),
)
# As published.
FULL = (
    _hf("vit-base-patch16-224", size=224, resample=2, image_mean=HALF, image_std=HALF),
    _hf("vit-base-patch16-384", size=384, resample=2, image_mean=HALF, image_std=HALF),
    _hf("deit-base", "deit", size=256, crop_size=224, resample=3, **IMAGENETS),
    _hf("deit-base-384", "deit", size=438, crop_size=384, resample=3, **IMAGENETS),
    _hf("swin-tiny", "swin", size=224, resample=3, **IMAGENETS),
    _hf("cvt-13", "cvt", size=224, crop_pct=0.875, resample=3, **IMAGENETS),
    _hf("cvt-13-384", "cvt", size=384, crop_pct=0.875, resample=3, **IMAGENETS),
    _hf("resnet-50", "resnet", size={"shortest_edge": 224}, crop_pct=0.875, **IMAGENETS),
    _hf("convnext-384", "resnet", size={"shortest_edge": 384}, crop_pct=1.0, **IMAGENETS),
    _hf(
        "bit-50",
        "bit",
        size={"shortest_edge": 448},
        crop_size={"height": 448, "width": 448},
        resample=2,
        image_mean=HALF,
        image_std=HALF,
    ),
    _hf("clip-vit-base", "clip", size=224, crop_size=224, resample=3, do_center_crop=True, **CLIPS),
    _hf(
        "siglip-base",
        "siglip",
        image_processor_type="SiglipImageProcessor",
        size={"height": 224, "width": 224},
        resample=3,
        image_mean=HALF,
        image_std=HALF,
    ),
    _hf(
        "dinov2-base",
        "dinov2",
        image_processor_type="BitImageProcessor",
        size={"shortest_edge": 256},
        crop_size={"height": 224, "width": 224},
        do_center_crop=True,
        resample=3,
        **IMAGENETS,
    ),
    _timm("vit augreg", 224, crop_pct=0.9, mean=HALF, std=HALF),
    _timm("resnet50.a1", 224, crop_pct=0.95),
    _timm("resnet50.a1 at 288", 288, crop_pct=1.0),
    _timm("swin 384", 384, crop_pct=1.0, crop_mode="squash"),
    _timm("coatnet", 224, crop_pct=0.95, mean=HALF, std=HALF),
    _timm("deit", 224, crop_pct=0.9),
    _timm("bit", 448, crop_pct=1.0, interpolation="bilinear", mean=HALF, std=HALF),
)
SIZES = ((61, 47), (40, 90), (33, 33))  # width and height
PHOTOS = ((640, 427), (375, 500), (1001, 750))


def images(sizes: tuple[tuple[int, int], ...]) -> list[Image.Image]:
    """Draw images with edges and noise."""
    generator = np.random.default_rng(0)
    found = []
    for width, height in sizes:
        values = generator.integers(0, 256, (height, width, 3))
        values[: height // 3, : width // 2] //= 4
        found.append(Image.fromarray(values.astype(np.uint8)))
    return found


def differences() -> Iterator[tuple[str, float]]:
    """Yield the largest difference of a value, relative to the largest value."""
    for cases, sizes in ((SMALL, SIZES), (FULL, PHOTOS)):
        drawn = images(sizes)
        for case in cases:
            pairs = [(case.ours(image), case.theirs(image)) for image in drawn]
            yield f"{case.library} pixels of {case.name}", max(_difference(*p) for p in pairs)
    yield from _torchvision()


def _torchvision() -> Iterator[tuple[str, float]]:
    """Compare every architecture of torchvision that can be converted."""
    models = import_peer("torchvision.models")
    drawn = images(PHOTOS[:1])[0]
    for name in models.list_models():
        weights = models.get_model_weights(name)
        try:
            family, _ = understand(name, families.TORCHVISION)
        except UsageError:
            continue
        first = getattr(weights, "IMAGENET1K_V1", None) or weights.IMAGENET1K_SWAG_LINEAR_V1
        found = _prepare(from_default(family.images.get(name, family.image)), drawn)
        yield f"torchvision pixels of {name}", _difference(found, first.transforms()(drawn))


def _difference(ours: Tensor, theirs: Tensor) -> float:
    if ours.shape != theirs.shape:
        return float("inf")
    return float((ours - theirs).abs().max() / theirs.abs().max())


def record(folder: Path) -> Iterator[Path]:
    """Write what their classes make of small images."""
    drawn = images(SIZES)
    tensors = {f"image {n}": torch.from_numpy(np.array(image)) for n, image in enumerate(drawn)}
    for case in SMALL:
        for n, image in enumerate(drawn):
            tensors[f"{case.name} {n}"] = case.theirs(image).contiguous()
    path = folder / "preprocessing" / "small-images.safetensors"
    path.parent.mkdir(exist_ok=True)
    about = {"cases": json.dumps([asdict(case) for case in SMALL])}
    about |= {name: version(name) for name in ("transformers", "timm", "torchvision", "pillow")}
    save_file(tensors, path, about)
    yield path
