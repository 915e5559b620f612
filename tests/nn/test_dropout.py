"""Dropout from random bytes."""

import pytest
import torch

from manyheads.nn.layers.dropout import Dropout

COUNT = 100_000


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_share_scale_and_expectation(p: float) -> None:
    """p is rounded to n/256; n/256 of the values go, the rest are scaled by 256/(256 - n)."""
    torch.manual_seed(0)
    out = Dropout(p).train()(torch.ones(COUNT))
    dropped = round(256 * p)  # of 256 values of a byte
    share = out.eq(0).float().mean().item()
    deviation = (dropped / 256 * (1 - dropped / 256) / COUNT) ** 0.5
    assert abs(share - dropped / 256) < 4 * deviation
    scale = 256 / (256 - dropped)
    assert set(out.unique().tolist()) == {0.0, torch.tensor(scale).item()}
    assert abs(out.mean().item() - 1) < 4 * deviation * scale  # the expectation stays


def test_evaluation_is_the_identity() -> None:
    """In evaluation nothing is dropped and nothing copied."""
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x


def test_no_dropout_is_the_identity_in_training() -> None:
    """p = 0 draws no random numbers."""
    x = torch.randn(3, 5)
    torch.manual_seed(0)
    assert Dropout(0.0).train()(x) is x
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(1))


def test_the_seed_decides() -> None:
    """The same seed drops the same values: resuming a run depends on it."""
    x, dropout = torch.ones(1000), Dropout(0.3).train()
    torch.manual_seed(7)
    first = dropout(x)
    second = dropout(x)
    torch.manual_seed(7)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_gradients_pass_where_values_pass() -> None:
    """The gradient of a dropped value is 0, of a kept one the scale."""
    torch.manual_seed(0)
    x = torch.randn(50, requires_grad=True)
    out = Dropout(0.5).train()(x)
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.where(out == 0, 0.0, 2.0))


@pytest.mark.parametrize("shape", [(1,), (7,), (9,), (2, 3, 5), (0, 4)])
def test_any_number_of_values(shape: tuple[int, ...]) -> None:
    """Random bits come eight bytes at a time; shapes need not be multiples of eight."""
    assert Dropout(0.5).train()(torch.ones(shape)).shape == shape


@pytest.mark.parametrize(("values", "words"), [(0, 0), (1, 1), (8, 1), (9, 2), (16, 2)])
def test_eight_values_cost_one_random_word(values: int, words: int) -> None:
    """What is drawn behind it depends on that: no more, no less."""
    torch.manual_seed(0)
    Dropout(0.5).train()(torch.ones(values))
    behind = torch.rand(1)
    torch.manual_seed(0)
    torch.empty(words, dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
    assert torch.equal(behind, torch.rand(1))


def test_neighbours_are_independent() -> None:
    """All eight bytes of a random word are random, and neighbours do not follow each other."""
    torch.manual_seed(0)
    kept = Dropout(0.5).train()(torch.ones(8 * 20_000)).ne(0).double()
    by_byte = kept.view(-1, 8).mean(0)
    assert (by_byte - 0.5).abs().max() < 0.02
    centred = kept - kept.mean()
    for distance in (1, 2, 7, 8):
        correlation = (centred[:-distance] * centred[distance:]).mean() / centred.var()
        assert abs(correlation) < 0.015


def test_half_precision_stays_half() -> None:
    """bf16 in, bf16 out."""
    assert Dropout(0.5).train()(torch.ones(4, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_it_prints_its_share() -> None:
    """A printed model says how much is dropped."""
    assert repr(Dropout(0.1)) == "Dropout(p=0.1)"


def test_elsewhere_it_is_torch_s_own() -> None:
    """On other devices than a CPU p is not rounded: a probability below 1/512 would be 0."""
    x = torch.ones(3, device="meta")
    assert Dropout(0.001).train()(x) is not x
    assert Dropout(0.001).train()(torch.ones(3)).tolist() == [1, 1, 1]
