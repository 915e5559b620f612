"""The linear layer: torch's own, whichever kernel computes it, and never with old weights."""

import copy
import pickle
from collections.abc import Callable
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from manyheads.nn.layers import linear
from manyheads.nn.layers.linear import Linear, pack
from manyheads.train.optim import optimizer
from tests.train.toy import config

packing = pytest.mark.skipif(not linear.PACKABLE, reason="this torch comes without oneDNN or MKL")


def layer(inputs: int = 16, outputs: int = 24, *, bias: bool = True) -> Linear:
    """The same weights at each call, packed."""
    torch.manual_seed(0)
    return pack(Linear(inputs, outputs, bias=bias))


@settings(deadline=None)  # oneDNN compiles a kernel for each new shape
@given(
    shape=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    bias=st.booleans(),
    cut=st.tuples(st.integers(0, 40), st.integers(1, 40)),
    threshold=st.sampled_from([0, linear.WORTHWHILE]),
)
def test_equals_torch(
    shape: list[int],
    sizes: tuple[int, int],
    bias: bool,
    cut: tuple[int, int],
    threshold: int,
) -> None:
    """All outputs or some, packed or not: F.linear's answer but for rounding."""
    mine = layer(*sizes, bias=bias)
    first = min(cut[0], sizes[1] - 1)
    last = min(first + cut[1], sizes[1])
    x = torch.randn(*shape, sizes[0])
    wanted = F.linear(x, mine.weight, mine.bias)
    with patch.object(linear, "WORTHWHILE", threshold), torch.inference_mode():
        torch.testing.assert_close(mine(x), wanted)
        torch.testing.assert_close(mine.forward_slice(x, first, last), wanted[..., first:last])


@pytest.mark.parametrize("library", ["mkl", "mkldnn"])
def test_nothing_is_packed_on_arm(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds of torch without MKL keep torch's product: only MKL's has been measured against."""
    monkeypatch.setattr(getattr(torch.backends, library), "is_available", lambda: False)
    assert linear.packable() == set()


def test_begins_as_torchs() -> None:
    """Same draws, same names: weights of one are weights of the other."""
    torch.manual_seed(3)
    mine = Linear(5, 7)
    torch.manual_seed(3)
    theirs = nn.Linear(5, 7)
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    assert torch.equal(mine.weight, theirs.weight)
    assert torch.equal(mine.bias, theirs.bias)


def written_in_place(mine: Linear) -> None:
    with torch.inference_mode():
        mine.weight.mul_(2)


def trained(mine: Linear) -> None:
    mine(torch.ones(1, 16)).sum().backward()
    torch.optim.SGD(mine.parameters(), lr=0.5).step()


def loaded(mine: Linear) -> None:
    mine.load_state_dict({name: tensor + 1 for name, tensor in mine.state_dict().items()})


def replaced(mine: Linear) -> None:
    mine.weight = nn.Parameter(mine.weight.detach() + 1)


def rounded(mine: Linear) -> None:
    mine.bfloat16()
    mine.float()


def new_bias(mine: Linear) -> None:
    mine.bias = nn.Parameter(mine.bias.detach() + 1)


@packing
@pytest.mark.parametrize("change", [written_in_place, trained, loaded, replaced, rounded, new_bias])
def test_new_weights_are_packed_anew(
    change: Callable[[Linear], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However weights change, the next answer is theirs."""
    monkeypatch.setattr(linear, "WORTHWHILE", 0)
    mine, x = layer(), torch.randn(3, 16)
    with torch.inference_mode():
        before = mine(x)
    change(mine)
    with torch.inference_mode():
        after, part = mine(x), mine.forward_slice(x, 2, 9)
    wanted = F.linear(x, mine.weight, mine.bias)
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, wanted)
    torch.testing.assert_close(part, wanted[:, 2:9])


@packing
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_pack_their_own(
    duplicate: Callable[[Linear], Linear], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer that has been used can be copied and sent to another process."""
    monkeypatch.setattr(linear, "WORTHWHILE", 0)
    mine, x = layer(), torch.randn(3, 16)
    with torch.inference_mode():
        wanted = mine(x)
    other = pack(duplicate(mine))
    with torch.inference_mode():
        assert torch.equal(other(x), wanted)
        other.weight.zero_()
        assert torch.equal(other(x), other.bias.expand_as(wanted))
        assert torch.equal(mine(x), wanted)


@packing
@pytest.mark.parametrize("dtype", sorted(linear.PACKABLE, key=str))
def test_learning_never_meets_packed_weights(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With gradients, autocast or another type, the product is torch's, and keeps its gradient."""
    monkeypatch.setattr(linear, "WORTHWHILE", 0)
    mine = layer().to(dtype)
    x = torch.randn(3, 16, dtype=dtype, requires_grad=True)
    answer = mine(x)
    answer.sum().backward()
    assert mine.weight.grad is not None
    assert x.grad is not None
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert mine(x).dtype == torch.bfloat16
    assert not mine._packed
    with torch.no_grad():
        mine(x)
    assert mine._packed


@packing
def test_training_unpacks_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """The house's own optimizer writes to weights behind torch's back: none may be packed then."""
    monkeypatch.setattr(linear, "WORTHWHILE", 0)
    mine, x = layer(), torch.randn(3, 16)
    with torch.inference_mode():
        mine(x)
    update = optimizer(mine.train(), config(learning_rate=0.5))
    for _ in range(3):
        mine(x).sum().backward()
        update.step()
        with torch.inference_mode():
            assert torch.equal(mine.eval()(x), F.linear(x, mine.weight, mine.bias))
        mine.train()
    assert mine._packed is None


def test_double_precision_is_left_alone() -> None:
    """oneDNN has no fp64."""
    mine, x = layer().double(), torch.randn(3, 16, dtype=torch.float64)
    with torch.inference_mode():
        assert torch.equal(mine(x), F.linear(x, mine.weight, mine.bias))


def test_weights_made_under_inference_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not count their changes, so nothing is kept of them."""
    monkeypatch.setattr(linear, "WORTHWHILE", 0)
    x = torch.randn(3, 16)
    with torch.inference_mode():
        mine = layer()
        mine(x)
        mine.weight.mul_(2)
        assert torch.equal(mine(x), F.linear(x, mine.weight, mine.bias))
