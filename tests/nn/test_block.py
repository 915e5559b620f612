"""Encoder and decoder blocks against the lecture's modules and torch's layers, weights copied."""

import pytest
import torch
from torch import nn

from manyheads.nn.blocks.stack import Decoder, Encoder
from manyheads.nn.layers.masks import causal_mask
from tests import lecture, torch_reference
from tests.small import randomise

BATCH, TARGET, SOURCE, WIDTH, HEADS = 2, 4, 6, 8, 2


def close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


# --- The lecture's four modules (T21) -----------------------------------------------------------


def test_lecture_encoder_layer() -> None:
    """T21: MultiheadAttention and FeedForward are our EncoderBlock with post-norm."""
    theirs = randomise(lecture.EncoderLayer(WIDTH, HEADS, expand=4))
    x = torch.randn(BATCH, SOURCE, WIDTH)
    close(lecture.encoder_block(theirs)(x), theirs(x))


def test_lecture_decoder_layer() -> None:
    """T21, T14: masked, then encoder-decoder attention (another length!) are our DecoderBlock."""
    theirs = randomise(lecture.DecoderLayer(WIDTH, HEADS, expand=4))
    ours = lecture.decoder_block(theirs)
    x, memory = torch.randn(BATCH, TARGET, WIDTH), torch.randn(BATCH, SOURCE, WIDTH)
    out = ours(x, memory, causal_mask(TARGET), None)
    close(out, theirs(x, memory))


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_lecture_attention_alone(heads: int) -> None:
    """T21: MultiheadAttention with its residual and norm is `around_attention`."""
    theirs = randomise(lecture.EncoderLayer(WIDTH, heads, expand=2))
    ours = lecture.encoder_block(theirs)
    x = torch.randn(BATCH, SOURCE, WIDTH)
    around, then = ours.around_attention, ours.around_feedforward
    close(around.add(x, ours.attention(around.enter(x))), theirs.attention(x))
    close(then.add(x, ours.feedforward(then.enter(x))), theirs.feedforward(x))


def test_lecture_stacks() -> None:
    """T12, T21: a whole encoder and decoder from the lecture's modules."""
    encoder_layers = [randomise(lecture.EncoderLayer(WIDTH, HEADS, 4), seed) for seed in range(3)]
    decoder_layers = [randomise(lecture.DecoderLayer(WIDTH, HEADS, 4), seed) for seed in range(3)]
    x, memory = torch.randn(BATCH, TARGET, WIDTH), torch.randn(BATCH, SOURCE, WIDTH)
    encoder = Encoder(map(lecture.encoder_block, encoder_layers), nn.Identity())
    decoder = Decoder(map(lecture.decoder_block, decoder_layers), nn.Identity())
    out = decoder(x, encoder(memory))
    for layer in encoder_layers:
        memory = layer(memory)
    for decoder_layer in decoder_layers:
        x = decoder_layer(x, memory)
    close(out, x)


class WrongLength(lecture.EncoderDecoderAttention):
    """Splits keys and values into heads by the length of the queries."""

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        self.length = x.shape[1]
        return super().forward(x, memory)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(BATCH, self.length, HEADS, WIDTH // HEADS).transpose(1, 2)


def test_lecture_decoder_reshaped_with_the_wrong_length() -> None:
    """E2: right while both sides are as long, and broken as soon as the lengths differ."""
    right = randomise(lecture.DecoderLayer(WIDTH, HEADS, expand=4))
    wrong = lecture.DecoderLayer(WIDTH, HEADS, expand=4)
    wrong.cross = WrongLength(WIDTH, HEADS)
    wrong.load_state_dict(right.state_dict())
    ours = lecture.decoder_block(right)
    x, causal = torch.randn(BATCH, TARGET, WIDTH), causal_mask(TARGET)
    memory = torch.randn(BATCH, TARGET, WIDTH)
    close(wrong(x, memory), ours(x, memory, causal, None))
    for length in (TARGET - 1, SOURCE, 2 * TARGET):
        memory = torch.randn(BATCH, length, WIDTH)
        with pytest.raises(RuntimeError, match="invalid for input of size"):
            wrong(x, memory)
        close(right(x, memory), ours(x, memory, causal, None))


# --- torch.nn's layers --------------------------------------------------------------------------

kinds = pytest.mark.parametrize(
    ("norm_first", "activation"),
    [(False, "relu"), (False, "gelu"), (True, "relu"), (True, "gelu")],
)


def test_torch_multihead_attention() -> None:
    """T9: torch packs the three projections the same way."""
    theirs = randomise(nn.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    ours = torch_reference.attention(theirs)
    x, source = torch.randn(BATCH, TARGET, WIDTH), torch.randn(BATCH, SOURCE, WIDTH)
    close(ours(x), theirs(x, x, x)[0])
    close(ours.cross_attend(x, ours.project(source)), theirs(x, source, source)[0])


@kinds
def test_torch_encoder_layer(norm_first: bool, activation: str) -> None:
    """T11, V4, V5: nn.TransformerEncoderLayer, with padding."""
    theirs = randomise(
        nn.TransformerEncoderLayer(
            WIDTH,
            HEADS,
            16,
            dropout=0,
            activation=activation,
            batch_first=True,
            norm_first=norm_first,
        )
    )
    ours = torch_reference.encoder_block(theirs)
    x = torch.randn(BATCH, SOURCE, WIDTH)
    visible = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    expected = theirs(x, src_key_padding_mask=~visible)  # theirs: True = hidden
    close(ours(x, visible[:, None, None]), expected)


@kinds
def test_torch_decoder_layer(norm_first: bool, activation: str) -> None:
    """T13, T14: nn.TransformerDecoderLayer under the causal mask, over a padded source."""
    theirs = randomise(
        nn.TransformerDecoderLayer(
            WIDTH,
            HEADS,
            16,
            dropout=0,
            activation=activation,
            batch_first=True,
            norm_first=norm_first,
        )
    )
    ours = torch_reference.decoder_block(theirs)
    x, memory = torch.randn(BATCH, TARGET, WIDTH), torch.randn(BATCH, SOURCE, WIDTH)
    visible = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    expected = theirs(
        x, memory, tgt_mask=~causal_mask(TARGET)[0, 0], memory_key_padding_mask=~visible
    )
    close(ours(x, memory, causal_mask(TARGET), visible[:, None, None]), expected)
