"""Keys keep their positions through cross-attention: words of a caption on patches of an image."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.decode.beam import beam_search
from manyheads.lens.measures.attention_distance import head_distances
from manyheads.lens.trace.attention_reader import attentions
from manyheads.lens.trace.decoding_trace import decoded
from manyheads.models.encoder_decoder import DecoderState
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.models.vit import Vit, VitConfig
from manyheads.nn.attention.recurrent_attention import SCORES, GlobalAttention
from manyheads.nn.layers.cache import KeyValueCache
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import Trace, record
from manyheads.nn.recording.tracking import (
    current_grid,
    grid_of,
    start_image,
    start_text,
    track_conv,
    track_memory,
)

IMAGE = VitConfig(
    height=4, width=6, channels=1, patch=2, dim=8, layers=1, heads=2, ffn_dim=16, classes=3
)
TEXT = TransformerConfig(vocabulary=11, dim=8, heads=2, ffn_dim=16, decoder_layers=2, dropout=0.0)


class Captioner(Transformer):
    """A decoder of text over the tokens of a ViT; `bridge` changes them on the way.

    The source of a search is the number of an image.
    """

    def __init__(self, images: Tensor, *, bridge: bool = False) -> None:
        super().__init__(replace(TEXT, encoder_layers=0))
        self.images = images
        self.image = Vit(IMAGE)
        self.bridge = nn.Linear(8, 8) if bridge else None

    def memory(self, images: Tensor) -> Tensor:
        tokens = self.image.features(images)
        # Of a bridge the one line that a model adds.
        return tokens if self.bridge is None else track_memory(self.bridge(tokens))

    def caption(self, images: Tensor, target: Tensor) -> Tensor:
        memory = self.memory(images)
        x = self.positions(self.embed(self.target_embedding, target))
        return self.output(self.decoder(x, memory))

    def start(self, source: Tensor, beams: int, max_length: int) -> DecoderState:
        memory = self.memory(self.images[source[:, 0]])
        caches = [
            KeyValueCache.empty(len(source) * beams, 2, max_length, 4, memory)
            for _ in self.decoder.blocks
        ]
        mask = torch.ones(len(source), 1, 1, memory.shape[1], dtype=torch.bool)
        return DecoderState(self.decoder.project(memory), mask, caches, beams)


def grid(images: Tensor) -> TokenGrid | None:
    """Where the ViT says that its tokens are."""
    with record(), torch.no_grad():
        Vit(IMAGE).features(images)
        return current_grid()


def positions(trace: Trace, kind: str) -> set[tuple[TokenGrid | None, TokenGrid | None]]:
    return {
        (each.query_grid, each.key_grid)
        for each in trace
        if isinstance(each, AttentionRecord) and each.layer_id.kind == kind
        if each.layer_id.stack == "decoder"
    }


@pytest.mark.parametrize("bridge", [False, True])
def test_words_on_patches(*, bridge: bool) -> None:
    """Teacher forcing: queries are text, keys the class token and 2 x 3 patches; bitwise same."""
    torch.manual_seed(0)
    images, target = torch.rand(1, 1, 4, 6), torch.tensor([[1, 5, 6]])
    model = Captioner(images, bridge=bridge).eval()
    expected = grid(images)
    assert expected is not None
    assert (expected.shape, expected.extra) == ((2, 3), ("class token",))
    with torch.no_grad():
        plain = model.caption(images, target)
        with record() as trace:
            assert torch.equal(model.caption(images, target), plain)
    assert positions(trace, "cross") == {(None, expected)}
    assert positions(trace, "self") == {(None, None)}
    crossed = [each for each in attentions(trace) if each.layer_id.kind == "cross"]
    assert [each.shape for each in crossed] == [(3, 7)] * 2
    assert not any(each.square for each in crossed)
    assert head_distances(crossed[0]).isfinite().all()


@pytest.mark.parametrize("bridge", [False, True])
def test_words_on_patches_in_a_search(*, bridge: bool) -> None:
    """Every step, after sentences have left the batch; and the output that is put together."""
    torch.manual_seed(0)
    images = torch.rand(2, 1, 4, 6)
    model, source = Captioner(images, bridge=bridge).eval(), torch.tensor([[0], [1]])
    options: dict[str, Any] = {"beams": 2, "start": 1, "end": 2}
    plain = beam_search(model, source, [3, 5], **options)
    with record() as trace:
        found = beam_search(model, source, [3, 5], **options)
    assert found == plain
    assert positions(trace, "cross") == {(None, grid(images))}
    best = found[1][0]
    output = [*best.tokens, *([2] if best.finished else [])]
    one = decoded(trace, output, [1])
    assert positions(one.trace, "cross") == {(None, grid(images))}
    crossed = [each for each in attentions(one.trace) if each.layer_id.kind == "cross"]
    assert [each.shape for each in crossed] == [(len(output), 7)] * 2


def test_a_recurrent_decoder_too() -> None:
    """Its scores are recorded with the same positions."""
    attention = GlobalAttention(SCORES["dot"](4), 4, 4)
    images = torch.rand(1, 1, 4, 6)
    with record() as trace, torch.no_grad():
        start_image(images)
        track_conv(2, 2, grid=(2, 3))
        memory = track_memory(torch.rand(1, 6, 4))
        start_text()
        source = attention.project(memory, torch.ones(1, 1, 1, 6, dtype=torch.bool))
        attention(torch.rand(1, 2, 4), source.select(torch.tensor([0])))
    ((queries, keys),) = positions(trace, "cross")
    assert queries is None
    assert keys is not None
    assert keys.shape == (2, 3)


def test_other_tensors_have_the_current_grid() -> None:
    """A text after an image is not on its patches, such as the texts of a two-tower model."""
    with record():
        start_image(torch.zeros(1, 1, 4, 6))
        memory = track_memory(torch.rand(1, 24, 4))
        start_text()
        known = grid_of(memory)
        assert known is not None
        assert known.shape == (4, 6)
        assert grid_of(torch.rand(1, 24, 4)) is None
        assert grid_of(F.relu(memory)) is None
    assert grid_of(memory) is None  # without a recorder
