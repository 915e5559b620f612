"""Edits against plain torch hooks on models of Hugging Face with random weights, converted.

Patching, ablation of every head and attribution patching, each done twice: by a hook on the
library's module, and by `edit` on ours.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.image_models import _hf
from benchmarks.image_text import captioner
from benchmarks.marian import TINY, _reference, random_model
from benchmarks.peers import transformers_library
from benchmarks.references import stored
from manyheads.lens.cause.patching import attribute
from manyheads.models.convert.families import CONVERTERS, IMAGE_TEXT
from manyheads.models.presets import build
from manyheads.nn.editing.edits import edit
from manyheads.nn.recording.trace import LayerId, record
from manyheads.train.model_tensors import restore

TOKEN = 2
Run = Callable[[Tensor], Tensor]  # logits of one input


def differences() -> Iterator[tuple[str, float]]:
    """Compare both libraries' models."""
    model, source, target = random_model(TINY)
    ours = _reference(model, source, target).ours()
    one, other = source[:1], source[:1].flip(1)
    read = target[:1]

    def theirs(given: Tensor) -> Tensor:
        logits: Tensor = model(input_ids=given, decoder_input_ids=read).logits
        return logits[:, -1]

    def own(given: Tensor) -> Tensor:
        logits: Tensor = ours(given, read.expand(len(given), -1))
        return logits[:, -1]

    encoder, decoder = model.model.encoder.layers, model.model.decoder.layers
    yield from _compared("hf marian", theirs, own, list(encoder), one, other)
    heads = {
        ("encoder", 1, "self"): encoder[0].self_attn.out_proj,
        ("encoder", 2, "self"): encoder[1].self_attn.out_proj,
        ("decoder", 1, "self"): decoder[0].self_attn.out_proj,
        ("decoder", 1, "cross"): decoder[0].encoder_attn.out_proj,
    }
    yield "hf marian: ablation of every head", _ablation(heads, theirs, own, one)
    library = transformers_library()
    shape = library.ViTConfig(
        image_size=8,
        patch_size=4,
        num_labels=5,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
    )
    vit = library.ViTForImageClassification(shape).eval()
    reference = _hf("hf vit", vit, (8, 8))
    config, state = CONVERTERS["hf vit"](reference.settings, reference.tensors)
    own_vit = build(config).eval()
    own_vit.load_state_dict(state)
    images = reference.images[:1], reference.images[:1].flip(3)

    def look(given: Tensor) -> Tensor:
        logits: Tensor = vit(pixel_values=given).logits
        return logits

    blocks = [each for each in vit.modules() if type(each).__name__ == "ViTLayer"]
    yield from _compared("hf vit", look, own_vit, blocks, *images)
    projections = [_projection(each) for each in blocks]
    heads = {("encoder", n + 1, "self"): each for n, each in enumerate(projections)}
    yield "hf vit: ablation of every head", _ablation(heads, look, own_vit, images[0])
    yield from _gpt2()


def _gpt2() -> Iterator[tuple[str, float]]:
    """Compare GPT-2 as converters take it: the decoder of a VisionEncoderDecoder."""
    model = captioner("ViT", "gpt2", n_layer=2)
    config, state = IMAGE_TEXT["vision-encoder-decoder"](*stored(model))
    writer: Any = build(config).eval()
    restore(writer, state, Path("hf gpt2"))
    image = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))

    def theirs(given: Tensor) -> Tensor:
        pixels = image.expand(len(given), -1, -1, -1)
        logits: Tensor = model(pixel_values=pixels, decoder_input_ids=given).logits
        return logits[:, -1]

    def own(given: Tensor) -> Tensor:
        logits: Tensor = writer(image.expand(len(given), -1, -1, -1), given)
        return logits[:, -1]

    one, other = torch.tensor([[2, 3, 4, 5, 6]]), torch.tensor([[2, 7, 8, 3, 9]])
    blocks = list(model.decoder.transformer.h)
    yield from _compared("hf gpt2", theirs, own, blocks, one, other, "decoder")
    heads = {
        ("decoder", n + 1, kind): part.c_proj
        for n, block in enumerate(blocks)
        for kind, part in (("self", block.attn), ("cross", block.crossattention))
    }
    yield "hf gpt2: ablation of every head", _ablation(heads, theirs, own, one)


def _projection(block: nn.Module) -> nn.Module:
    """Find the output projection of a block's attention."""
    name = next(n for n, _ in block.named_modules() if n.endswith(("output.dense", "o_proj")))
    return block.get_submodule(name)


def _compared(
    name: str,
    theirs: Run,
    ours: Run,
    layers: list[nn.Module],
    one: Tensor,
    other: Tensor,
    stack: str = "encoder",
) -> Iterator[tuple[str, float]]:
    """Patch a token's state after each layer; estimate it by the gradient of one logit."""
    with torch.no_grad(), record(states=True) as trace:
        ours(other)
    patched, estimated = [], []
    for number, layer in enumerate(layers):
        with torch.no_grad(), ExitStack() as hooks:
            seen: list[Tensor] = []
            hooks.enter_context(_hook(layer, _keeping(seen)))
            theirs(other)
        with torch.no_grad(), _hook(layer, partial(_with, other=seen[0])):
            expected = theirs(one)
        with torch.no_grad(), edit() as changes:
            changes.state(stack, number + 1, tokens=[TOKEN]).replace(trace)
            patched.append(_relative(ours(one), expected))
        kept: list[Tensor] = []
        with _hook(layer, _keeping(kept)):
            score = theirs(one)[0, 1]
        (gradient,) = torch.autograd.grad(score, kept)
        site = LayerId(stack, number, "state")
        found = attribute(
            lambda rows: ours(one.expand(rows, *one.shape[1:]))[:, 1], trace, [site], {}
        )
        by_hand = ((seen[0] - kept[0].detach()) * gradient).sum(dim=-1)[0]
        estimated.append(_relative(found[site], by_hand))
    yield f"{name}: activation patching", max(patched)
    yield f"{name}: attribution patching", max(estimated)


def _ablation(
    projections: dict[tuple[str, int, str], nn.Module], theirs: Run, ours: Run, one: Tensor
) -> float:
    """Zero each head's columns in front of the output projection."""
    worst = 0.0
    for (stack, layer, kind), projection in projections.items():
        for head in (1, 2):

            def zero(_: nn.Module, given: tuple[Tensor, ...], head: int = head) -> tuple[Tensor]:
                x = given[0].clone()
                x.unflatten(-1, (2, -1))[..., head - 1, :] = 0
                return (x,)

            handle = projection.register_forward_pre_hook(zero)
            with torch.no_grad(), edit() as changes:
                changes.head(stack, layer, kind, head).zero()
                found = ours(one)
                expected = theirs(one)
            handle.remove()
            worst = max(worst, _relative(found, expected))
    return worst


def _hook(layer: nn.Module, change: Callable[[Tensor], Tensor]) -> Any:
    """Change the output of a layer while this is open."""

    def changed(_: nn.Module, __: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (change(output[0]), *output[1:])
        return change(output)

    return layer.register_forward_hook(changed)  # a handle is a context manager


def _keeping(kept: list[Tensor]) -> Callable[[Tensor], Tensor]:
    def keep(x: Tensor) -> Tensor:
        kept.append(x)
        return x

    return keep


def _with(x: Tensor, other: Tensor) -> Tensor:
    x = x.clone()
    x[:, TOKEN] = other[:, TOKEN]
    return x


def _relative(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())
