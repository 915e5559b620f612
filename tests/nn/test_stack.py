"""Whole stacks against torch.nn.Transformer, and what a stack promises by itself."""

import pytest
import torch
from torch import nn

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.rotary import Rotary, Rotate, unrotated
from manyheads.nn.blocks.block import DecoderBlock, EncoderBlock
from manyheads.nn.blocks.stack import Encoder
from manyheads.nn.layers.cache import KeyValueCache
from manyheads.nn.layers.feedforward import FeedForward
from manyheads.nn.layers.masks import causal_mask
from manyheads.nn.layers.residual import PreNorm
from manyheads.nn.recording.trace import LayerId
from tests import torch_reference
from tests.small import randomise


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
def test_torch_transformer(norm_first: bool, activation: str) -> None:
    """T12-T14: nn.Transformer with copied random weights, causal mask and padded sources."""
    theirs = randomise(
        nn.Transformer(
            d_model=8,
            nhead=2,
            num_encoder_layers=3,
            num_decoder_layers=2,
            dim_feedforward=16,
            dropout=0.0,
            activation=activation,
            batch_first=True,
            norm_first=norm_first,
        )
    )
    encoder = torch_reference.encoder_of(theirs.encoder)
    decoder = torch_reference.decoder_of(theirs.decoder)
    source, target = torch.randn(3, 5, 8), torch.randn(3, 4, 8)
    visible = torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] + [False] * 4])
    expected = theirs(
        source,
        target,
        tgt_mask=~causal_mask(4)[0, 0],  # theirs: True = hidden
        src_key_padding_mask=~visible,
        memory_key_padding_mask=~visible,
    )
    mask = visible[:, None, None]
    out = decoder(target, encoder(source, mask), mask)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=0)


def test_gradients_reach_the_first_layer() -> None:
    """T11: with the identity path, the first of 24 layers still learns."""
    torch.manual_seed(0)
    encoder = Encoder(
        (
            EncoderBlock(
                MultiHeadAttention(8, 2), FeedForward(8, 16, nn.GELU()), lambda: PreNorm(8)
            )
            for _ in range(24)
        ),
        nn.LayerNorm(8),
    )
    encoder(torch.randn(2, 5, 8))[..., 0].square().sum().backward()
    norms = []
    for layer in range(24):
        grad = encoder.get_parameter(f"blocks.{layer}.feedforward.contract.weight").grad
        assert grad is not None
        norms.append(grad.norm().item())
    assert min(norms) > 0
    assert max(norms) / min(norms) < 100


def test_sites_are_named_once() -> None:
    """Every attention knows its place after the stack is built."""
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    decoder = torch_reference.decoder_of(nn.TransformerDecoder(layer, 2))
    layer_ids = [
        (block.attention.layer_id, block.cross.layer_id)
        for block in decoder.blocks
        if isinstance(block, DecoderBlock)
    ]
    assert layer_ids == [
        (LayerId("decoder", 0, "self"), LayerId("decoder", 0, "cross")),
        (LayerId("decoder", 1, "self"), LayerId("decoder", 1, "cross")),
    ]


@pytest.mark.parametrize("rotate", [unrotated, Rotary(16, 4)], ids=["unrotated", "rotary"])
def test_an_encoder_that_reads_and_steps(rotate: Rotate) -> None:
    """T20: a beginning at once and then token by token is the whole under the causal mask."""
    torch.manual_seed(0)
    encoder = Encoder(
        (
            EncoderBlock(
                MultiHeadAttention(8, 2, rotate=rotate),
                FeedForward(8, 16, nn.GELU()),
                lambda: PreNorm(8),
            )
            for _ in range(2)
        ),
        nn.LayerNorm(8),
    ).eval()
    x = torch.randn(3, 6, 8)
    expected = encoder(x, causal_mask(6))
    caches = [KeyValueCache.empty(3, 2, 4, 4, x) for _ in encoder.blocks]
    found, caches = encoder.prefill(x[:, :4], caches)
    torch.testing.assert_close(found, expected[:, :4], atol=1e-6, rtol=0)
    for token in (4, 5):  # the second one after the room is full
        found, caches = encoder.step(x[:, token, None], caches)
        torch.testing.assert_close(found[:, 0], expected[:, token], atol=1e-6, rtol=0)
