"""Rotary positions: turns by hand, and that only distances count."""

import math

import pytest
import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.transformer import Transformer
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.rotary import Rotary, unrotated
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.layers.cache import KeyValueCache
from manyheads.nn.layers.masks import causal_mask
from manyheads.nn.recording.trace import record
from tests.small import TRANSFORMERS, inputs, randomise


def close(actual: Tensor, expected: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


def rotary_attention() -> MultiHeadAttention:
    return randomise(MultiHeadAttention(8, 2, rotate=Rotary(16, 4)))


def test_a_turn_by_hand() -> None:
    """Su et al. 2021, equation 34: in two dimensions, position m turns by m radians."""
    x = torch.tensor([1.0, 0.0]).expand(1, 1, 3, 2)
    turned = Rotary(8, 2)(x)[0, 0]
    close(turned, torch.tensor([[math.cos(m), math.sin(m)] for m in range(3)]))
    y = torch.tensor([3.0, 4.0]).expand(1, 1, 1, 2)
    expected = [3 * math.cos(2) - 4 * math.sin(2), 3 * math.sin(2) + 4 * math.cos(2)]
    close(Rotary(8, 2)(y, 2)[0, 0, 0], torch.tensor(expected))


def test_pairs_turn_at_their_own_speed() -> None:
    """Pair i of a head of width d turns by m / 10000^(2i/d): 1 and 1/100 for d = 4."""
    x = torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(1, 1, 1, 4)
    turned = Rotary(8, 4)(x, 5)[0, 0, 0]
    close(turned, torch.tensor([math.cos(5), math.sin(5), math.cos(0.05), math.sin(0.05)]))


def test_lengths_are_kept() -> None:
    """A rotation changes no norm, and position 0 changes nothing."""
    x = torch.randn(2, 3, 5, 8)
    turned = Rotary(8, 8)(x)
    close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[:, :, 0], x[:, :, 0])
    assert (turned[:, :, 1:] - x[:, :, 1:]).abs().amax(-1).min() > 1e-3


def test_scores_depend_on_the_distance_alone() -> None:
    """T8a: shifting queries and keys together changes no score; shifting one of them does."""
    torch.manual_seed(0)
    rotary, q, k = Rotary(64, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    scores = rotary(q) @ rotary(k).transpose(-2, -1)
    for shift in (1, 7, 40):
        shifted = rotary(q, shift) @ rotary(k, shift).transpose(-2, -1)
        close(shifted, scores)
        other = rotary(q, shift) @ rotary(k).transpose(-2, -1)
        assert (other - scores).abs().max() > 0.1


@pytest.mark.parametrize(("first", "length"), [(0, 3), (2, 3), (4, 9), (20, 1)])
def test_it_reaches_beyond_its_table(first: int, length: int) -> None:
    """Any length, because the table is a formula; `first` is where decoding stands."""
    x = torch.randn(1, 1, length, 4)
    far = torch.zeros(1, 1, first + length, 4)
    far[:, :, first:] = x
    assert torch.equal(Rotary(8, 4)(x, first), Rotary(64, 4)(far)[:, :, first:])


def test_nothing_to_learn_nothing_to_store() -> None:
    """The table is a formula, also when a model is built on the meta device to be loaded."""
    with torch.device("meta"):
        rotary = Rotary(8, 4)
    assert not list(rotary.parameters())
    assert not rotary.state_dict()
    assert rotary.table.device.type == "cpu"


def test_half_precision_stays_half_precision() -> None:
    """Turned in fp32, returned in the type of x."""
    x = torch.randn(1, 1, 5, 4).bfloat16()
    turned = Rotary(8, 4)(x)
    assert turned.dtype == torch.bfloat16
    assert torch.equal(turned, Rotary(8, 4)(x.float()).bfloat16())


def test_odd_heads_are_refused() -> None:
    """Dimensions turn in pairs."""
    with pytest.raises(UsageError, match="a head is 3 wide"):
        Rotary(8, 3)


def test_self_attention_knows_order_by_rotation_alone() -> None:
    """Without rotation attention sees a set; with it, what stands where matters."""
    torch.manual_seed(0)
    x, order = torch.randn(1, 4, 8), torch.tensor([2, 0, 3, 1])
    plain = randomise(MultiHeadAttention(8, 2))
    assert plain.rotate is unrotated
    close(plain(x[:, order]), plain(x)[:, order])
    rotary = rotary_attention()
    assert (rotary(x[:, order]) - rotary(x)[:, order]).abs().max() > 0.01


def test_cached_keys_are_turned_once() -> None:
    """T17: one token at a time, each at its own position, gives what all at once give."""
    attention, x = rotary_attention(), torch.randn(2, 6, 8)
    whole = attention(x, causal_mask(6))
    cache = KeyValueCache.empty(2, 2, 2, 4, x)
    for t in range(6):
        out, cache = attention.step(x[:, t : t + 1], cache)
        close(out, whole[:, t : t + 1])


def test_what_is_recorded_is_what_was_compared() -> None:
    """The recorded queries and keys are turned, so maps are right."""
    attention, x = rotary_attention(), torch.randn(1, 4, 8)
    with record() as trace:
        attention(x)
    (entry,) = trace
    assert isinstance(entry, SoftmaxRecord)
    q, k, _ = attention.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
    close(entry.q, Rotary(8, 4)(q))
    close(entry.k, Rotary(8, 4)(k))


def test_the_source_is_never_turned() -> None:
    """T14: positions of a source and of a target have no distance."""
    model = Transformer(TRANSFORMERS["rotary"])
    for block in model.encoder.blocks:
        assert isinstance(block.attention.rotate, Rotary)
    for decoder_block in model.decoder.blocks:
        assert isinstance(decoder_block.attention.rotate, Rotary)
        assert decoder_block.cross.rotate is unrotated


def test_a_transformer_sees_distances_only() -> None:
    """T8: the same words further right get the same vectors, if what is in front is not seen."""
    config = TRANSFORMERS["rotary"]
    model = randomise(Transformer(config)).eval()
    source, _ = inputs(config)
    here = model.encode(source[:1, :3])
    hidden = torch.full((1, 2), config.pad)
    there = model.encode(torch.cat((hidden, source[:1, :3]), dim=1))
    close(there[:, 2:], here)
