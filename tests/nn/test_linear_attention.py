"""Linear attention: two forms of one sum, and the map it implies."""

import math

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.nn.attention.linear_attention import (
    ImpliedRecord,
    LinearAttention,
    feature_map,
    implied_weights,
    linear_attend,
)
from manyheads.nn.recording.trace import LayerId, record


def test_the_feature_map_by_hand() -> None:
    """V16: elu(x) + 1 is x + 1 above zero and e^x below."""
    expected = torch.tensor([math.exp(-1), 1.0, 3.0])
    torch.testing.assert_close(feature_map(torch.tensor([-1.0, 0.0, 2.0])), expected)


def test_a_map_by_hand() -> None:
    """phi(q) = 1; phi(k) = 1 and 3: weights 1/4 and 3/4, the answer 0.25 * 4 + 0.75 * 8 = 7."""
    q, k = torch.zeros(1, 1, 1, 1), torch.tensor([0.0, 2.0]).view(1, 1, 2, 1)
    v = torch.tensor([4.0, 8.0]).view(1, 1, 2, 1)
    assert implied_weights(q, k).flatten().tolist() == [0.25, 0.75]
    assert linear_attend(q, k, v).item() == 7.0


def test_keys_first_is_map_first() -> None:
    """Equations 4 and 5: brackets may be moved; hidden keys count for nothing."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 5, 4).unbind(0)
    present = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    present[1, ..., 3:] = False
    for mask in (None, present):
        torch.testing.assert_close(linear_attend(q, k, v, mask), implied_weights(q, k, mask) @ v)
    alone = linear_attend(q[1:], k[1:, :, :3], v[1:, :, :3])
    torch.testing.assert_close(linear_attend(q, k, v, present)[1:], alone)


def test_nothing_to_attend_to_gives_zeros() -> None:
    """As softmax attention does."""
    q, k, v = torch.randn(3, 1, 1, 2, 4).unbind(0)
    nothing = torch.zeros(1, 1, 1, 2, dtype=torch.bool)
    assert linear_attend(q, k, v, nothing).eq(0).all()
    assert implied_weights(q, k, nothing).eq(0).all()


def test_the_record_says_that_its_map_is_implied() -> None:
    torch.manual_seed(0)
    attention, x = LinearAttention(8, 2), torch.randn(2, 5, 8)
    attention.layer_id = LayerId("encoder", 0, "self")
    plain = attention(x)
    with record() as trace:
        assert torch.equal(attention(x), plain)
    (entry,) = trace
    assert isinstance(entry, ImpliedRecord)
    assert str(entry.layer_id) == "encoder layer 1 self (implied)"
    _, _, v = attention.qkv(x).chunk(3, dim=-1)
    v = v.unflatten(-1, (2, 4)).transpose(1, 2)
    answer = attention.out((entry.weights() @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(answer, plain)


def test_what_needs_a_map_is_refused() -> None:
    attention, x = LinearAttention(8, 2), torch.randn(1, 3, 8)
    with pytest.raises(UsageError, match="causal"):
        attention(x, torch.ones(3, 3, dtype=torch.bool).tril())
    with pytest.raises(UsageError, match="bias"):
        attention(x, bias=torch.zeros(1, 2, 3, 3))
