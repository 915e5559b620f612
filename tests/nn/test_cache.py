"""The explicit key/value cache."""

import pytest
import torch
from torch import Tensor

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.layers.cache import KeyValueCache
from manyheads.nn.layers.masks import causal_mask
from tests.small import randomise


def numbers(*rows: float) -> Tensor:
    """One new key a row: (row, head = 1, new = 1, size = 1)."""
    return torch.tensor(rows, dtype=torch.float32)[:, None, None, None]


@pytest.mark.parametrize("capacity", [1, 2, 3, 5])
def test_append_remembers_whatever_the_capacity(capacity: int) -> None:
    """T17: storage doubles when it is full, and nobody notices."""
    cache = KeyValueCache.empty(2, 1, capacity, 1, torch.zeros(0))
    assert cache.length == 0
    for token in range(5):
        cache = cache.append(numbers(token, 10 + token), numbers(-token, -10 - token))
    assert cache.length == 5
    assert cache.keys[:, 0, :, 0].tolist() == [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]]
    assert cache.values[:, 0, :, 0].tolist() == [[0, -1, -2, -3, -4], [-10, -11, -12, -13, -14]]


def test_select_takes_rows_in_any_order_and_twice() -> None:
    """Beam search: a good beam goes on as several, a bad one not at all."""
    cache = KeyValueCache.empty(3, 1, 4, 1, torch.zeros(0))
    cache = cache.append(numbers(0, 1, 2), numbers(5, 6, 7))
    chosen = cache.select(torch.tensor([2, 0, 2]))
    assert chosen.keys.flatten().tolist() == [2, 0, 2]
    assert chosen.values.flatten().tolist() == [7, 5, 7]
    grown = chosen.append(numbers(3, 4, 5), numbers(8, 9, 10))  # copies do not share storage
    assert grown.keys[:, 0, :, 0].tolist() == [[2, 3], [0, 4], [2, 5]]
    assert cache.keys.flatten().tolist() == [0, 1, 2]


def test_select_while_gradients_are_kept() -> None:
    """A step that is taken outside of a search, without no_grad, is still a step."""
    new = numbers(0, 1, 2).requires_grad_()
    cache = KeyValueCache.empty(3, 1, 4, 1, torch.zeros(0)).append(new, 2 * new)
    chosen = cache.select(torch.tensor([2, 0, 2]))
    (chosen.keys + chosen.values).sum().backward()
    assert new.grad is not None
    assert new.grad.flatten().tolist() == [3, 0, 6]


def test_the_cache_follows_type_and_device() -> None:
    """The encoder's output says what numbers are kept."""
    assert KeyValueCache.empty(1, 1, 1, 1, torch.zeros(0, dtype=torch.bfloat16)).keys.dtype == (
        torch.bfloat16
    )


def test_steps_equal_the_causal_mask() -> None:
    """T17: one token at a time with a cache = the whole sequence at once under the mask."""
    attention = randomise(MultiHeadAttention(8, 2))
    x = torch.randn(3, 5, 8)  # three sentences with one beam each
    cache = KeyValueCache.empty(3, 2, 2, 4, x)
    outputs = []
    for token in range(5):
        out, cache = attention.step(x[:, token : token + 1], cache)
        outputs.append(out)
    torch.testing.assert_close(
        torch.cat(outputs, dim=1), attention(x, causal_mask(5)), atol=1e-6, rtol=0
    )


def test_storage_is_allocated_ahead_of_need() -> None:
    """Speed: within its capacity a cache is written in place, and grows by doubling beyond it."""
    cache = KeyValueCache.empty(1, 1, 2, 1, torch.zeros(0))
    capacities, places = [], []
    for token in range(5):
        cache = cache.append(numbers(token), numbers(token))
        capacities.append(cache.key_storage.shape[2])
        places.append(cache.key_storage.data_ptr())
    assert capacities == [2, 2, 4, 4, 8]
    assert places[0] == places[1]
    assert places[2] == places[3]
