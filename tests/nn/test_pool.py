"""From tokens to one vector."""

import math

import pytest
import torch
from torch import nn

from manyheads.errors import UsageError
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.blocks.pool import (
    AttentionPool,
    ClassAndMeanPool,
    ClassToken,
    MeanPool,
    PatchMeanPool,
    SequencePool,
    TwoTokens,
)
from manyheads.nn.recording.trace import LayerId, record


def test_class_token_stands_in_front() -> None:
    """V2: one learned token, the same for every image, and its final vector is the answer."""
    pool = ClassToken(2)
    x = torch.tensor([[[1.0, 2], [3, 4]], [[5, 6], [7, 8]]])
    tokens = pool.prepend(x)
    assert tokens.shape == (2, 3, 2)
    assert torch.equal(tokens[0, 0], tokens[1, 0])
    assert torch.equal(tokens[:, 1:], x)
    assert torch.equal(pool(tokens), tokens[:, 0])
    assert pool.extra == 1


def test_mean_pool_by_hand() -> None:
    """V2: the mean over tokens, ((1, 2) + (3, 4)) / 2 = (2, 3), and no extra token."""
    pool = MeanPool(2)
    x = torch.tensor([[[1.0, 2], [3, 4]]])
    assert pool.prepend(x) is x
    assert pool(x).tolist() == [[2.0, 3.0]]
    assert pool.extra == 0


def test_two_tokens_stand_in_front() -> None:
    """V15: the class token first, then the distillation token; the vector is their mean."""
    pool = TwoTokens(2)
    pool.token.data = torch.tensor([[[1.0, 2.0], [3.0, 6.0]]])
    x = torch.zeros(2, 3, 2)
    tokens = pool.prepend(x)
    assert tokens.shape == (2, 5, 2)
    assert tokens[1, :2].tolist() == [[1.0, 2.0], [3.0, 6.0]]
    assert pool(tokens).tolist() == [[2.0, 4.0]] * 2


def test_sequence_pool_by_hand() -> None:
    """V2: g(x) = ln 3 * x_0 weighs (0, 4) with 1/4 and (1, 8) with 3/4: (0.75, 7)."""
    pool = SequencePool(2)
    pool.query.data = torch.tensor([math.log(3), 0.0])
    x = torch.tensor([[[0.0, 4], [1, 8]]])
    assert pool.prepend(x) is x
    torch.testing.assert_close(pool(x), torch.tensor([[0.75, 7.0]]))


def test_sequence_pool_is_recorded() -> None:
    pool, x = SequencePool(4), torch.randn(2, 3, 4)
    plain = pool(x)
    with record() as trace:
        assert torch.equal(pool(x), plain)
    (entry,) = trace
    assert isinstance(entry, SoftmaxRecord)
    assert entry.layer_id == LayerId("pool", 0, "sequence")
    torch.testing.assert_close((entry.weights() @ x[:, None])[:, 0, 0], plain)


def test_attention_pool_asks_with_one_query() -> None:
    """V2: each head has weights of its own, and the order of the tokens does not matter."""
    torch.manual_seed(0)
    pool, x = AttentionPool(4, 2), torch.randn(2, 3, 4)
    with record() as trace:
        vector = pool(x)
    (entry,) = trace
    assert isinstance(entry, SoftmaxRecord)
    assert entry.layer_id == LayerId("pool", 0, "attention")
    assert entry.weights().shape == (2, 2, 1, 3)
    assert vector.shape == (2, 4)
    torch.testing.assert_close(pool(x[:, [2, 0, 1]]), vector)


def test_registers_stand_behind_the_class_token_and_are_read_by_no_pool() -> None:
    """Their vectors may be anything: no pool's answer depends on them."""
    for kind in (ClassToken, MeanPool, PatchMeanPool, ClassAndMeanPool, TwoTokens):
        pool = kind(2, registers=3)
        tokens = pool.prepend(torch.randn(2, 4, 2))
        assert tokens.shape == (2, len(kind.names) + 3 + 4, 2)
        assert pool.names[len(kind.names) :] == ("register 1", "register 2", "register 3")
        other = tokens.clone()
        other[:, len(kind.names) : pool.extra] = 7.0
        assert torch.equal(pool(tokens), pool(other))
        assert pool(tokens).shape == (2, pool.outputs)


def test_class_and_mean_by_hand() -> None:
    """The class token (9, 9), then the mean of (1, 2) and (3, 4)."""
    pool = ClassAndMeanPool(2)
    x = torch.tensor([[[9.0, 9], [1, 2], [3, 4]]])
    assert pool(x).tolist() == [[9.0, 9.0, 2.0, 3.0]]


@pytest.mark.parametrize("kind", [SequencePool, AttentionPool])
def test_pools_that_attend_refuse_registers(kind: type[nn.Module]) -> None:
    with pytest.raises(UsageError, match=r'registers is 2, .* choose pool = "class"'):
        kind(4, registers=2)
