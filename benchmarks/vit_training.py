"""One training step of ViT-S/16 on 16 images: forward, cross-entropy, backward, clipping, AdamW."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from benchmarks import flops
from benchmarks.peers import hf_vit, timm_vit, torchvision_vit, vit_pytorch
from benchmarks.protocol import Case, Contender
from benchmarks.work import TRAINING, learning
from manyheads.data.augment.augment import Augmentation
from manyheads.data.batching.batches import ImageBatch
from manyheads.data.images.image_set import ImageSet, Preprocessing
from manyheads.models.presets import PRESETS
from manyheads.models.vit import Vit, VitConfig
from manyheads.tasks.classify.task import ClassifyTask, ClassifyTrainConfig
from manyheads.train.training_task import Loss

TITLE = "Training a ViT"
BATCH = 16
SMOOTHING = 0.1


def cases() -> Iterator[Case]:
    config = PRESETS["vit-s"]
    assert isinstance(config, VitConfig)
    images = torch.randn(BATCH, config.channels, config.height, config.width)
    batches = [ImageBatch(images, torch.randint(config.classes, (BATCH,)), np.arange(BATCH))]
    # A task without data: nothing but its loss is called.
    none = ImageSet(np.zeros(0, dtype=int), ["any"], [], read=Image.open)  # type: ignore[arg-type]
    learn = ClassifyTrainConfig(label_smoothing=SMOOTHING)
    task = ClassifyTask(none, none, Preprocessing(), Augmentation(), learn, seed=1)
    sides: list[tuple[str, nn.Module, Callable[[nn.Module, ImageBatch], Loss]]] = [
        ("manyheads", Vit(config), task.loss),
        ("timm", timm_vit(config), _plain_loss),
        ("torchvision", torchvision_vit(config), _plain_loss),
        ("vit-pytorch", vit_pytorch(config), _plain_loss),
        ("Hugging Face", hf_vit(config), _hf_loss),
    ]
    yield Case(
        title=f"ViT-S/16, 224 pixels, batch {BATCH}",
        unit="img/s",
        amount=BATCH,
        flops=flops.TRAINING * BATCH * flops.vit(config),
        contenders=[
            Contender(name, precision, learning(model, precision, batches, loss))
            for name, model, loss in sides
            for precision in TRAINING
        ],
    )


def _plain_loss(model: nn.Module, batch: ImageBatch) -> Loss:
    return _torch_loss(model(batch.images), batch.labels)


def _hf_loss(model: nn.Module, batch: ImageBatch) -> Loss:
    return _torch_loss(model(pixel_values=batch.images).logits, batch.labels)


def _torch_loss(logits: Tensor, labels: Tensor) -> Loss:
    loss = F.cross_entropy(logits, labels, label_smoothing=SMOOTHING, reduction="sum")
    return Loss(loss, len(labels), {})
