"""Positions: formulas by hand, what they promise, and the interpolation of a grid."""

import math

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.nn.layers.positions import (
    GridPositions,
    LearnedPositions,
    NoGridPositions,
    NoPositions,
    SinusoidalGridPositions,
    SinusoidalHalfPositions,
    SinusoidalPositions,
    grid_sinusoids,
    resize_grid,
    sinusoid_halves,
    sinusoids,
)

# --- Sinusoids ----------------------------------------------------------------------------------


def test_sinusoids_by_hand() -> None:
    """T8: PE(pos, 2i) = sin(pos / 10000^(2i/d)); for d = 4 the divisors are 1 and 100."""
    expected = [
        [0.0, 1.0, 0.0, 1.0],  # sin 0, cos 0, sin 0, cos 0
        [0.841471, 0.540302, 0.0099998, 0.99995],  # sin 1, cos 1, sin .01, cos .01
        [0.909297, -0.416147, 0.0199987, 0.9998],  # sin 2, cos 2, sin .02, cos .02
    ]
    torch.testing.assert_close(sinusoids(3, 4), torch.tensor(expected), atol=1e-6, rtol=0)


def test_wavelength_grows_with_the_dimension() -> None:
    """E1: dimension 0 turns fastest, with wavelength 2 pi; high dimensions turn slowly."""
    table = sinusoids(7000, 8)  # divisors 1, 10, 100, 1000: wavelengths 6.28, 62.8, 628, 6283
    signs = table[:, 0::2].sign()
    turns = (signs[1:] * signs[:-1] < 0).sum(0).tolist()
    # a sine of wavelength w changes sign 2 * 7000 / w times
    expected = [2 * 7000 / (2 * math.pi * divisor) for divisor in (1, 10, 100, 1000)]
    assert turns == pytest.approx(expected, abs=2)
    assert turns == sorted(turns, reverse=True)


def test_halves_are_the_same_sinusoids_in_another_order() -> None:
    """Marian's: all sines, then all cosines; an odd width has one sine more."""
    table = sinusoids(3, 4)
    assert torch.equal(sinusoid_halves(3, 4), table[:, [0, 2, 1, 3]])
    assert torch.equal(sinusoid_halves(3, 5), sinusoids(3, 5)[:, [0, 2, 4, 1, 3]])


@pytest.mark.parametrize("part", [SinusoidalPositions, SinusoidalHalfPositions])
def test_sinusoids_reach_beyond_their_table(part: type[SinusoidalPositions]) -> None:
    """The table is a formula, kept for speed; positions may start anywhere."""
    x = torch.zeros(2, 6, 8)
    short, long = part(4, 8), part(16, 8)
    assert torch.equal(short(x, first=3), long(x, first=3))
    assert torch.equal(long(x, first=3)[0], part.formula(16, 8)[3:9])


@pytest.mark.parametrize("length", [5, 5000])
def test_values_stay_between_minus_one_and_one(length: int) -> None:
    """T8: bounded whatever the length, where integers are not."""
    assert sinusoids(length, 16).abs().max() <= 1


def test_a_position_does_not_depend_on_the_length() -> None:
    """T8: unlike position / length, the fifth position is the same in every sentence."""
    assert torch.equal(sinusoids(100, 16)[:5], sinusoids(5, 16))


def test_every_position_is_different() -> None:
    """T8: no two of 5000 positions share a vector."""
    table = sinusoids(5000, 16)
    assert len(table.unique(dim=0)) == 5000


def test_a_shift_is_a_rotation() -> None:
    """T8a: PE(pos + k) = R(k) PE(pos) with one rotation for all positions."""
    table, shift = sinusoids(50, 8).double(), 3
    rotation = torch.zeros(8, 8, dtype=torch.float64)
    for i in range(4):
        angle = shift / 10000 ** (2 * i / 8)
        # sin(a + b) = cos b sin a + sin b cos a; cos(a + b) = cos b cos a - sin b sin a
        block = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        rotation[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor(block)
    torch.testing.assert_close(rotation @ rotation.T, torch.eye(8, dtype=torch.float64))
    torch.testing.assert_close(table[shift:], table[:-shift] @ rotation.T, atol=1e-6, rtol=0)


def test_similarity_depends_on_the_distance_alone() -> None:
    """T8a: PE(p) . PE(q) = sum_i cos((p - q) / 10000^(2i/d))."""
    table = sinusoids(40, 16)
    similarity = table @ table.T
    for distance in (0, 1, 7):
        diagonal = similarity.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("first", "length"), [(0, 3), (2, 3), (4, 9), (20, 1)])
def test_sinusoidal_positions_reach_beyond_their_table(first: int, length: int) -> None:
    """T8: any length, because the table is a formula; `first` is where decoding stands."""
    x = torch.randn(2, length, 6)
    out = SinusoidalPositions(8, 6)(x, first)
    torch.testing.assert_close(out, x + sinusoids(30, 6)[first : first + length])


def test_sinusoids_are_no_parameters() -> None:
    """T8: nothing to learn, nothing to store."""
    positions = SinusoidalPositions(8, 6)
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_sinusoids_are_there_on_the_meta_device() -> None:
    """A model that is built empty, to be loaded, has its formula all the same."""
    with torch.device("meta"):
        positions = SinusoidalPositions(8, 6)
    assert torch.equal(positions.table, sinusoids(8, 6))


def test_odd_widths_end_with_a_sine() -> None:
    """T8: the formula has no trouble with an odd d."""
    divisor = 10000 ** (2 / 3)
    expected = [[0.0, 1.0, 0.0], [math.sin(1), math.cos(1), math.sin(1 / divisor)]]
    torch.testing.assert_close(sinusoids(2, 3), torch.tensor(expected))


# --- Learned, none ------------------------------------------------------------------------------


def test_learned_positions_add_their_rows() -> None:
    """T8: row t of the table is added to token t, counted from `first`."""
    positions, x = LearnedPositions(5, 3), torch.randn(2, 2, 3)
    assert torch.equal(positions(x), x + positions.table[:2])
    assert torch.equal(positions(x, first=3), x + positions.table[3:])


@pytest.mark.parametrize(("first", "length"), [(0, 6), (4, 2)])
def test_learned_positions_end(first: int, length: int) -> None:
    """T8: a learned table knows nothing beyond its end and says so, with both numbers."""
    with pytest.raises(UsageError, match=r"reaches position 6, but only 5 positions"):
        LearnedPositions(5, 3)(torch.zeros(1, length, 3), first)


def test_no_positions_is_the_identity() -> None:
    """T8: a model without positions sees a set."""
    x = torch.randn(1, 4, 3)
    assert NoPositions(5, 3)(x, first=2) is x
    assert NoGridPositions((2, 2), 0, 3, std=0.02)(x, (2, 2)) is x


# --- A grid, and its interpolation --------------------------------------------------------------


def test_grid_positions_have_a_row_for_the_class_token() -> None:
    """E14, V3: E_pos has N + 1 rows with a class token, N without."""
    assert GridPositions((14, 14), 1, 8, std=0.02).table.shape == (197, 8)
    assert GridPositions((14, 14), 0, 8, std=0.02).table.shape == (196, 8)


@pytest.mark.parametrize("std", [0.02, 0.5])
def test_fresh_grid_positions(std: float) -> None:
    """V3: how different places are at first is a choice."""
    torch.manual_seed(0)
    table = GridPositions((20, 20), 1, 64, std=std).table
    assert table.std().item() == pytest.approx(std, rel=0.05)


def test_grid_positions_add_their_rows() -> None:
    """V3: 1-D: row n is added to token n, the class token's first."""
    positions, x = GridPositions((2, 3), 1, 4, std=0.02), torch.randn(2, 7, 4)
    assert torch.equal(positions(x, (2, 3)), x + positions.table)
    assert positions(torch.randn(1, 13, 4), (4, 3)).shape == (1, 13, 4)


def test_the_same_grid_is_left_alone() -> None:
    """V9: no interpolation, not even rounding, at the size that was learned."""
    table = torch.randn(7, 4)
    assert resize_grid(table, (2, 3), (2, 3), 1) is table


@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("new", [(4, 6), (5, 2), (1, 1), (3, 7)])
def test_resize_keeps_extra_tokens_and_shape(extra: int, new: tuple[int, int]) -> None:
    """V9: tokens without a place are kept bit by bit; the grid may become any size."""
    table = torch.randn(extra + 6, 4)
    out = resize_grid(table, (2, 3), new, extra)
    assert out.shape == (extra + new[0] * new[1], 4)
    assert torch.equal(out[:extra], table[:extra])


def test_resize_knows_rows_from_columns() -> None:
    """V9: what varies along rows only still does after a non-square interpolation."""
    row = torch.arange(4.0)[:, None].expand(4, 3)
    column = torch.arange(3.0)[None].expand(4, 3)
    table = torch.stack((row, column, torch.ones(4, 3)), dim=-1).flatten(0, 1)
    out = resize_grid(table, (4, 3), (8, 9), 0).unflatten(0, (8, 9))
    torch.testing.assert_close(out[..., 0], out[:, :1, 0].expand(8, 9))  # equal along a row
    torch.testing.assert_close(out[..., 1], out[:1, :, 1].expand(8, 9))  # equal along a column
    assert out[:, 0, 0].diff().gt(0).all()  # still in order
    assert out[0, :, 1].diff().gt(0).all()
    torch.testing.assert_close(out[..., 2], torch.ones(8, 9))  # a constant stays one


def test_resize_there_and_back() -> None:
    """V9: a smooth table survives doubling and halving."""
    ramp = torch.linspace(-1, 1, 8)
    table = (ramp[:, None] + ramp[None] ** 2).reshape(64, 1)
    back = resize_grid(resize_grid(table, (8, 8), (16, 16), 0), (16, 16), (8, 8), 0)
    torch.testing.assert_close(back, table, atol=0.05, rtol=0)


def test_resized_positions_learn() -> None:
    """V9: fine-tuning at another resolution still trains the table that was learned."""
    positions = GridPositions((2, 2), 1, 3, std=0.02)
    positions(torch.zeros(1, 17, 3), (4, 4)).sum().backward()
    assert positions.table.grad is not None
    assert positions.table.grad.ne(0).all()


def test_resize_in_bf16() -> None:
    """V9: a model stored in 16 bits takes another image size too."""
    table = torch.randn(7, 4)
    half = resize_grid(table.bfloat16(), (2, 3), (4, 6), 1)
    assert half.dtype == torch.bfloat16
    full = resize_grid(table.bfloat16().float(), (2, 3), (4, 6), 1)
    torch.testing.assert_close(half.float(), full, atol=0.02, rtol=0.01)


# --- 2-D sinusoids ------------------------------------------------------------------------------


def test_2d_sinusoids_by_hand() -> None:
    """V3: half of a vector is the sinusoid of the row, half that of the column; zeros in front."""
    sin, cos = math.sin(1), math.cos(1)
    expected = [
        [0, 0, 0, 0],  # the class token
        [0, 1, 0, 1],  # row 0, column 0
        [0, 1, sin, cos],  # row 0, column 1
        [sin, cos, 0, 1],
        [sin, cos, sin, cos],
    ]
    torch.testing.assert_close(grid_sinusoids((2, 2), 1, 4), torch.tensor(expected))


def test_2d_sinusoids_fit_any_grid() -> None:
    """V9: a formula needs no interpolation, and nothing of it is stored."""
    positions = SinusoidalGridPositions((2, 2), 1, 4, std=1.0)
    assert not positions.state_dict()
    assert torch.equal(positions(torch.zeros(1, 5, 4), (2, 2))[0], grid_sinusoids((2, 2), 1, 4))
    assert torch.equal(positions(torch.zeros(1, 7, 4), (2, 3))[0], grid_sinusoids((2, 3), 1, 4))


def test_2d_sinusoids_need_an_even_width() -> None:
    with pytest.raises(UsageError, match="dim 5 is odd"):
        SinusoidalGridPositions((2, 2), 1, 5, std=1.0)
