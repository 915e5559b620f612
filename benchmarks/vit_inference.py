"""Classifying 8 images with ViT-B/16."""

from collections.abc import Iterator
from typing import Any

import torch

from benchmarks import flops
from benchmarks.exports import OPENVINO, openvino_classifier
from benchmarks.peers import hf_vit, timm_vit, torchvision_vit, vit_pytorch
from benchmarks.protocol import Case, Contender
from benchmarks.work import INFERENCE, answering
from manyheads.models.vit import Vit, VitConfig

TITLE = "Classifying images"
BATCH = 8


def cases() -> Iterator[Case]:
    config = VitConfig()
    images = torch.randn(BATCH, config.channels, config.height, config.width)

    def classify(model: Any, dtype: torch.dtype) -> object:
        return model(images.to(dtype))

    models = {
        "manyheads": Vit(config),
        "timm": timm_vit(config),
        "Hugging Face": hf_vit(config),
        "torchvision": torchvision_vit(config),
        "vit-pytorch": vit_pytorch(config),
    }
    yield Case(
        title=f"ViT-B/16, 224 pixels, batch {BATCH}",
        unit="img/s",
        amount=BATCH,
        flops=BATCH * flops.vit(config),
        contenders=[
            Contender(name, precision, answering(model, precision, classify))
            for name, model in models.items()
            for precision in INFERENCE
        ]
        + [
            Contender(
                "manyheads on OpenVINO",
                precision,
                openvino_classifier(config, models["manyheads"], precision, images),
            )
            for precision in OPENVINO
        ],
    )
