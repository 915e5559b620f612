"""One rank of some, run by `test_distribute.py`: every case is trained through the loop.

    python -m tests.train.ranks RANK WORLD FOLDER

With a world of 1 the models are not wrapped. Without jaxtyping's hook, which does not know the
tensors that FSDP2 puts in the place of parameters.
"""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.nn.parallel import DistributedDataParallel

from manyheads.data.augment.augment import Augmentation
from manyheads.models.encoder_decoder import EncoderDecoder
from manyheads.nn.blocks.block import AttentionBlock
from manyheads.tasks.caption import CaptionEvaluateConfig, CaptionTask, CaptionTrainConfig
from manyheads.tasks.classify import ClassifyTask, ClassifyTrainConfig
from manyheads.tasks.translate import TranslateTrainConfig
from manyheads.train.loop import fit
from tests.made import Silent, numbers
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


def replicated(model: nn.Module) -> nn.Module:
    return DistributedDataParallel(model)


def sharded(model: nn.Module) -> nn.Module:
    """FSDP2 gathers parameters where a module's forward begins, and where the methods named do."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.modules():
        if isinstance(block, AttentionBlock):
            fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh, reshard_after_forward=True)  # or validation leaves it gathered
    if isinstance(model, EncoderDecoder):  # which validation decodes with
        register_fsdp_forward_method(model, "start")
        register_fsdp_forward_method(model, "step")
        for block in model.decoder.blocks:
            register_fsdp_forward_method(block, "project")
            register_fsdp_forward_method(block, "step")
    return model


WRAPPED: dict[str, Callable[[nn.Module], nn.Module]] = {"ddp": replicated, "fsdp": sharded}


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


def main(rank: int, world: int, folder: Path) -> None:
    torch.set_num_threads(1)
    if world > 1:
        store = f"file://{folder}/store"
        dist.init_process_group("gloo", store, timedelta(seconds=60), world_size=world, rank=rank)
    for name, build in CASES.items():
        for wrapper, wrap in WRAPPED.items() if world > 1 else [("alone", lambda model: model)]:
            model, task, config = build()
            out = folder / f"{name}-{wrapper}-{rank}"
            out.mkdir()
            fit(
                wrap(model),
                task,
                config,
                out,
                seed=1,
                environment={},
                save_best=lambda model: None,
                observer=Silent(),
            )
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
