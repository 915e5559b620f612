"""Where a model drops in training: the embeddings of both sides, before the stack reads them."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from manyheads.models.presets import build
from tests.small import CCTS, OTHERS, READERS, SEQ2SEQS, STAGED, TRANSFORMERS, VITS, inputs

SMALL = {**TRANSFORMERS, **SEQ2SEQS, **READERS, **VITS, **CCTS, **STAGED, **OTHERS}


def read(part: nn.Module, run: Callable[[], object]) -> Tensor:
    """Return the first tensor that a part of a model is given."""
    given: list[Tensor] = []
    handle = part.register_forward_pre_hook(lambda module, arguments: given.append(arguments[0]))
    run()
    handle.remove()
    return given[0].detach()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("transformer-base", "encoder"),
        ("transformer-base", "decoder"),
        ("seq2seq-lstm-attention", "encoder"),
        ("seq2seq-lstm-attention", "decoder"),
        ("gpt2-small", "encoder"),
        ("bert-base", "encoder"),
        ("tagger-encoder", "context"),
        ("tagger-lstm", "context"),
        ("vit-b", "encoder"),
        ("cct-7/3x1", "encoder"),
        ("swin-t", "stages.0"),
    ],
)
def test_half_of_the_embeddings_is_dropped(name: str, part: str) -> None:
    """Section 5.4 of Vaswani et al. 2017: "in both the encoder and decoder stacks"; images too."""
    config = replace(SMALL[name], dropout=0.5)
    torch.manual_seed(0)
    model = build(config)
    arguments = [torch.cat([each] * 40) for each in inputs(config)]
    stack = model.get_submodule(part)
    kept = read(stack, lambda: model.train()(*arguments))
    whole = read(stack, lambda: model.eval()(*arguments))
    real = whole != 0  # some values are 0 without dropout: those of padding, sin 0 at position 0
    share = (kept[real] == 0).float().mean().item()
    assert abs(share - 0.5) < 4 * (0.25 / real.sum().item()) ** 0.5
    torch.testing.assert_close(kept[kept != 0], 2 * whole[kept != 0])
