"""`python -m benchmarks.goldens`: record answers of other libraries, to be tested without them.

Each file in tests/golden holds a tiny model's tensors by its library's own names, an input and the
logits; its metadata tells the library, its version and the model's configuration.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file

from benchmarks import (
    attributions,
    image_encoders,
    image_models,
    image_text,
    marian,
    preprocessing,
)
from benchmarks.references import SEED, references
from manyheads.errors import ManyheadsError

FOLDER = Path(__file__).parents[1] / "tests" / "golden"
RECORDED = (
    "hf-cvt-odd",
    "hf-deit",
    "hf-swin-covered",
    "hf-swin-padded",
    "hf-vit",
    "hf-vit-relu-without-bias",
    "timm-coatnet_0-wide",
    "timm-coatnet_0_rw-wide",
    "timm-coatnet_3_rw-wide",
    "timm-deit",
    "timm-swin-padded",
    "timm-swin-small",
    "timm-vit",
    "timm-vit-mean",
    "timm-vit-without-bias",
    "torchvision-swin-padded",
    "torchvision-swin-small",
)


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        for name, build in references().items():
            if name not in RECORDED:
                continue
            reference = build()
            path = FOLDER / f"{name}.safetensors"
            weights = {f"weights.{key}": tensor for key, tensor in reference.tensors.items()}
            save_file(
                weights | {"images": reference.images, "logits": reference.logits},
                path,
                {
                    "library": reference.library,
                    "family": reference.family,
                    "version": reference.version,
                    "torch": torch.__version__,
                    "seed": str(SEED),
                    "config": json.dumps(dict(reference.config)),
                },
            )
            _report(path)
        for path in _record_images():
            _report(path)
        for path in image_encoders.record(FOLDER / "encoders"):
            _report(path)
        for path in image_text.record(FOLDER / "image-text"):
            _report(path)
        for path in preprocessing.record(FOLDER):
            _report(path)
        for path in marian.record(FOLDER):
            _report(path)
        for path in attributions.record_cases(FOLDER):
            _report(path)
    except ManyheadsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _record_images() -> Iterator[Path]:
    (FOLDER / "images").mkdir(exist_ok=True)
    built = image_models.references()
    for name in image_models.RECORDED:
        reference = built[name]()
        path = FOLDER / "images" / f"{name}.safetensors"
        weights = {
            f"weights.{key}": tensor.contiguous() for key, tensor in reference.tensors.items()
        }
        save_file(
            weights | {"images": reference.images, "logits": reference.logits},
            path,
            {
                "kind": reference.kind,
                "version": reference.version,
                "torch": torch.__version__,
                "seed": str(image_models.SEED),
                "settings": json.dumps(dict(reference.settings)),
                "resized": json.dumps(reference.resized),
            },
        )
        yield path


def _report(path: Path) -> None:
    print(f"{path.relative_to(FOLDER.parents[1])}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    sys.exit(main())
