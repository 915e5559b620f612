"""Small models of several tasks, each with its data, for test_distribute.py."""

from typing import Any

from torch import nn

from manyheads.data.augment.augment import Augmentation
from manyheads.tasks.caption.task import CaptionEvaluateConfig, CaptionTask, CaptionTrainConfig
from manyheads.tasks.classify.task import ClassifyTask, ClassifyTrainConfig
from manyheads.tasks.translate.recipe import TranslateTrainConfig
from tests.made import numbers
from tests.squares import captioned
from tests.tasks import test_caption_task as captions
from tests.tasks import test_classify_task as image
from tests.tasks import test_translate_task as text

STEPS = 6
HOW: dict[str, Any] = {
    "steps": STEPS,
    "warmup": 1,
    "learning_rate": 1e-3,  # Adam divides by what may be rounding: small steps keep runs together
    "log_every": 1,
    "save_every": STEPS,
    "ema": 0.9,
}
WAYS = ("ddp", "fsdp")


def translation() -> tuple[nn.Module, Any, TranslateTrainConfig]:
    """Batches of several lengths, two an update; some hold one pair, so that one rank has none."""
    config = TranslateTrainConfig(max_tokens=15, accumulate=2, label_smoothing=0.1, clip=0.0, **HOW)
    return text.model(), text.task(*numbers(40, 0), config), config


def classification() -> tuple[nn.Module, Any, ClassifyTrainConfig]:
    """Eleven images in batches of five, five and one, which one rank has no part of; clipped."""
    config = ClassifyTrainConfig(batch_size=5, clip=0.01, **HOW)
    images, none = image.images(11), Augmentation()
    task = ClassifyTask(images, images, image.PREPROCESSING, none, config, seed=1)
    return image.model(), task, config


def captioning() -> tuple[nn.Module, Any, CaptionTrainConfig]:
    """Eleven images with three captions each, of which two are drawn; the last batch has one."""
    config = CaptionTrainConfig(batch_size=5, captions=2, label_smoothing=0.1, **HOW)
    task = CaptionTask(
        captioned(11),
        captioned(2),
        captions.tokenizer(),
        captions.PREPROCESSING,
        Augmentation(),
        config,
        CaptionEvaluateConfig(),
        seed=1,
    )
    return captions.model(), task, config


CASES = {"text": translation, "image": classification, "caption": captioning}
