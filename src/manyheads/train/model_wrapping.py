"""Wrap a model for several ranks, for less memory, and for compiled code.

A part of a model that computes with its own parameters only in `forward`, and in the methods that
it names in `forward_methods`, can be gathered and recomputed by itself: a block. FSDP2 gathers its
parameters when one of them begins. Whatever belongs to no block is gathered with the whole model.
"""

import inspect
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

from manyheads.errors import UsageError
from manyheads.train.average import BATCH_NORMS
from manyheads.train.distribute import unwrapped
from manyheads.train.ranks import rank_and_world
from manyheads.train.train_config import TrainConfig


def blocks(model: nn.Module) -> list[nn.Module]:
    """Return the parts of a model that say that they are blocks; not the model itself."""
    return [p for p in model.modules() if hasattr(p, "forward_methods") and p is not model]


def prepare(model: nn.Module, config: TrainConfig) -> nn.Module:
    """Wrap a model, which is on its device and has its initial weights, as a recipe says.

    Raises:
        UsageError: `train.checkpoint_activations` for a model without blocks; `train.compile`
            without a compiler.
    """
    if config.compile:
        compile_blocks(model)
    if config.checkpoint_activations:
        checkpoint_activations(model)  # around compiled code, which accepts no context of its own
    return WRAPPERS[config.parallel](model) if rank_and_world()[1] > 1 else model


def replicated(model: nn.Module) -> nn.Module:
    """Keep the whole model on each rank; gradients are averaged while they are computed."""
    device = next(model.parameters()).device
    options: dict[str, Any] = {
        "device_ids": None if device.type == "cpu" else [device],
        "gradient_as_bucket_view": True,
        # The only ones that change, of batch norm, are averaged where they are used.
        _BUFFERS: False,
    }
    return nn.parallel.DistributedDataParallel(model, **options)


_BUFFERS = next(  # newer versions of torch have the first
    name
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in inspect.signature(nn.parallel.DistributedDataParallel).parameters
)


def sharded(model: nn.Module) -> nn.Module:
    """Keep a part of every tensor on each rank (FSDP2); the model is changed in place."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    device = next(model.parameters()).device
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for part in [*blocks(model), model]:
        # Gathered again for the backward pass, also the root: what is left gathered is not saved.
        fully_shard(part, mesh=mesh, reshard_after_forward=True)
        for name in getattr(part, "forward_methods", ()):
            if hasattr(part, name):
                register_fsdp_forward_method(part, name)
    return model


WRAPPERS = {"ddp": replicated, "fsdp": sharded}


def compile_blocks(model: nn.Module) -> None:
    """Compile each block's forward pass in training, or the whole model's, if it has no blocks.

    Blocks of one kind and shape share their code, which is compiled for the first size of a batch,
    and once more for all others. The choice of the positions to score, which differ in number with
    every batch, would have a whole model compiled anew each time. CPUs need a C++ compiler.
    """
    device = next(model.parameters()).device
    names = [os.environ.get("CXX") or "g++", "clang++"]
    if device.type == "cpu" and not any(map(shutil.which, names)):
        raise UsageError(
            f"train.compile needs a C++ compiler, and there is no {' or '.join(names)}. Install "
            "one (Debian, Ubuntu: apt-get install g++), or leave train.compile out."
        )
    parts = blocks(model) or [model]
    limits: Any = torch._dynamo.config
    limits.recompile_limit = max(limits.recompile_limit, 2 * len(parts))  # of code that they share
    for block in parts:
        block.forward = partial(_in_training, block, torch.compile(block.forward), block.forward)


def _in_training(block: nn.Module, fast: Any, plain: Any, *given: Any, **named: Any) -> Any:
    return (fast if _learns(block) else plain)(*given, **named)


def _learns(block: nn.Module) -> bool:
    return block.training and torch.is_grad_enabled()


def checkpoint_activations(model: nn.Module) -> None:
    """Keep only the inputs of blocks for the backward pass, which computes the rest again."""
    found = blocks(model)
    if not found:
        raise UsageError(
            f"train.checkpoint_activations: {type(model).__name__} has no blocks that could be "
            "computed again. Leave it out. (A block is a module with an attribute forward_methods.)"
        )
    for block in found:
        block.forward = partial(_recomputed, block, block.forward)


def _recomputed(block: nn.Module, forward: Any, *given: Any, **named: Any) -> Any:
    if not _learns(block):
        return forward(*given, **named)
    again = partial(_twice, block)
    return checkpoint(forward, *given, use_reentrant=False, context_fn=again, **named)


def _twice(block: nn.Module) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Let the second computation of a block leave its running statistics alone."""
    return nullcontext(), _fixed_statistics(block)


@contextmanager
def _fixed_statistics(block: nn.Module) -> Iterator[None]:
    norms = [part for part in block.modules() if isinstance(part, BATCH_NORMS)]
    before = [(part.momentum, part.num_batches_tracked) for part in norms]
    counted = [None if count is None else count.clone() for _, count in before]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, (momentum, count), value in zip(norms, before, counted, strict=True):
            norm.momentum = momentum
            if count is not None and value is not None:
                count.copy_(value)


@contextmanager
def gradient_sync(model: nn.Module, now: bool) -> Iterator[None]:
    """Add up the gradients of the ranks in the backward passes inside the block, or do not."""
    if rank_and_world()[1] == 1:
        yield
        return
    wrappers = [part for part in _around(model) if hasattr(part, "no_sync")]
    with nullcontext() if now or not wrappers else wrappers[0].no_sync():
        inner: Any = unwrapped(model)
        if hasattr(inner, "set_requires_gradient_sync"):
            inner.set_requires_gradient_sync(now)
        yield


def _around(model: nn.Module) -> Iterator[Any]:
    inner = unwrapped(model)
    while model is not inner:
        yield model
        (model,) = model.children()


@contextmanager
def gathered(model: nn.Module) -> Iterator[None]:
    """Have all tensors of a model whole on every rank, so that one can use it by itself.

    All ranks enter and leave together.
    """
    shards: list[Any] = [part for part in model.modules() if hasattr(part, "unshard")]
    for part in shards:
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()
    try:
        yield
    finally:
        for part in shards:
            part.set_reshard_after_forward(True, recurse=False)
            part.reshard()


def average_statistics(model: nn.Module) -> None:
    """Average the running statistics of batch norm over the ranks, each of which has its own."""
    world = rank_and_world()[1]
    if world == 1:
        return
    for part in model.modules():
        if isinstance(part, BATCH_NORMS) and part.running_mean is not None:
            assert part.running_var is not None
            for statistic in (part.running_mean, part.running_var):
                dist.all_reduce(statistic)
                statistic.div_(world)
