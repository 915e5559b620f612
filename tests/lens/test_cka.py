"""Centred kernel alignment, worked out by hand."""

import pytest
import torch

from manyheads.lens.measures.cka import cka_figures, cka_matrix, on_one_grid
from manyheads.lens.panels import Heat
from manyheads.lens.trace.states import LayerState
from manyheads.nn.recording.token_grid import Axis, TokenGrid


def unbiased_cka(x: torch.Tensor, y: torch.Tensor) -> float:
    return cka_matrix([x, y])[0][1]


def test_cka() -> None:
    """1 for what is turned, moved and scaled."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(20, 6, generator=random, dtype=torch.float64)
    turn, _ = torch.linalg.qr(torch.randn(6, 6, generator=random, dtype=torch.float64))
    assert unbiased_cka(x, 3 * x @ turn + 7) == pytest.approx(1.0, abs=1e-9)


def test_unbiased_cka_by_its_sums() -> None:
    """The U-centred inner product equals the sums of Song et al. 2012, equation 5."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(9, 4, generator=random, dtype=torch.float64)
    y = x @ torch.randn(4, 3, generator=random, dtype=torch.float64)

    def hsic(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        k, m, n = (a @ a.T).fill_diagonal_(0), (b @ b.T).fill_diagonal_(0), len(a)
        between = 2 / (n - 2) * (k @ m).sum()
        return (k @ m).trace() + k.sum() * m.sum() / ((n - 1) * (n - 2)) - between

    wanted = hsic(x, y) / (hsic(x, x) * hsic(y, y)).sqrt()
    assert unbiased_cka(x, y) == pytest.approx(wanted.item(), abs=1e-12)
    assert unbiased_cka(x, 2 * x + 5) == pytest.approx(1.0)
    table = cka_matrix([x, y])
    assert table[0] == pytest.approx([1.0, wanted.item()])
    assert table[1] == pytest.approx([wanted.item(), 1.0])


def test_few_examples_in_many_dimensions_do_not_look_alike() -> None:
    """Noise against noise: the plain estimate says 0.9 each time, the unbiased one 0 on average."""
    random = torch.Generator().manual_seed(0)
    pairs = torch.randn(40, 2, 10, 500, generator=random)

    def plain(x: torch.Tensor, y: torch.Tensor) -> float:
        """Kornblith et al. 2019, equation 4, for centred features."""
        x, y = x - x.mean(dim=0), y - y.mean(dim=0)
        return float((y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm()))

    assert min(plain(x, y) for x, y in pairs) > 0.8
    assert abs(sum(unbiased_cka(x, y) for x, y in pairs) / len(pairs)) < 0.05


def test_finer_grids_are_averaged() -> None:
    """A 4 x 4 map beside 2 x 2 patches behind a class token: four means of four."""
    fine = torch.arange(16.0).view(1, 1, 4, 4)
    grid = TokenGrid((4, 4), Axis(2, 0, 2, 2), Axis(2, 0, 2, 2), ("class token",))
    coarse = torch.tensor([[[9.0], [1.0], [2.0], [3.0], [4.0]]])
    layers = [
        LayerState("convolutions", "block 1", 1, fine),
        LayerState("encoder", "encoder layer 1", 1, coarse, grid),
    ]
    (_, a), (_, b) = on_one_grid(layers)
    assert a.flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert b.flatten().tolist() == [1, 2, 3, 4]
    (figure,) = cka_figures(layers)
    assert isinstance(figure.panel, Heat)
    assert figure.panel.rows == ["block 1", "encoder layer 1"]
    assert figure.panel.values[0][0] == pytest.approx(1)
    assert "over 4 places" in figure.legend


def test_stacks_of_a_text_are_compared_among_themselves() -> None:
    """Source and output have other tokens; three tokens are too few."""
    random = torch.Generator().manual_seed(0)

    def layer(stack: str, number: int, tokens: int) -> LayerState:
        x = torch.randn(1, tokens, 8, generator=random)
        return LayerState(stack, f"{stack} layer {number}", number, x)

    layers = [layer("encoder", n, 5) for n in (1, 2)] + [layer("decoder", n, 3) for n in (1, 2)]
    (figure,) = cka_figures(layers)
    assert isinstance(figure.panel, Heat)
    assert figure.panel.rows == ["layer 1", "layer 2"]
    assert "encoder" in figure.panel.title
