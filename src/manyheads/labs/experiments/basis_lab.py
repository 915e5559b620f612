"""T8a, E11: the mathematics behind sinusoidal positions, measured on their matrix.

Sines and cosines of harmonic frequencies are orthogonal over their period; those of the
Transformer are geometric, over a sentence. How independent are the columns really?
"""

import math

import torch
from torch import Tensor

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.lens.panels import number

BASE = 10000.0


def sinusoids(length: int, dim: int, base: float = BASE) -> Tensor:
    """The sinusoidal positions (position, dim) in float64, for any base."""
    wavelength = base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.arange(length, dtype=torch.float64)[:, None] / wavelength
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


def harmonics(length: int, dim: int) -> Tensor:
    """A Fourier basis with `dim` columns: integer numbers of periods over the length."""
    turns = torch.arange(1, dim // 2 + 1, dtype=torch.float64)
    angle = 2 * math.pi * torch.arange(length, dtype=torch.float64)[:, None] * turns / length
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


def cosines(matrix: Tensor) -> Tensor:
    """|cos| of the angle between every two columns; 0 for a column of zeros."""
    unit = matrix / matrix.norm(dim=0).clamp_min(torch.finfo(matrix.dtype).tiny)
    return (unit.T @ unit).abs()


def overlap(matrix: Tensor) -> tuple[float, float]:
    """Mean and largest |cos| between two different columns."""
    between = cosines(matrix)
    different = ~torch.eye(len(between), dtype=torch.bool)
    return between[different].mean().item(), between[different].max().item()


def rank_and_condition(matrix: Tensor) -> tuple[int, float]:
    """Numerical rank in float32, as in models, and condition number.

    A singular value counts if it is above the largest times the machine epsilon times the size, as
    in numpy's matrix_rank. Without full rank the condition number, in theory infinite, is limited
    by float64's rounding of the smallest singular value.
    """
    values = torch.linalg.svdvals(matrix)
    least = values[0] * max(matrix.shape) * torch.finfo(torch.float32).eps
    rank = int((values > least).sum())
    return rank, (values[0] / values[-1].clamp_min(1e-300)).item()


def rotation(shift: int, dim: int, base: float = BASE) -> Tensor:
    """R with PE(pos + shift) = R PE(pos): it rotates each pair of sine and cosine by an angle."""
    angle = shift / base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    sine, cosine = angle.sin(), angle.cos()
    # sin(a + b) = sin a cos b + cos a sin b, cos(a + b) = cos a cos b - sin a sin b
    return torch.block_diag(*torch.stack((cosine, sine, -sine, cosine), dim=-1).view(-1, 2, 2))


def rotation_error(length: int, shift: int, dim: int) -> float:
    """The largest error of the rotation compared with the shifted positions."""
    table = sinusoids(length + shift, dim)
    turned = table[:length] @ rotation(shift, dim).T
    return (turned - table[shift:]).abs().max().item()


def of_length(length: int, dim: int) -> Measured:
    """Measure the matrix of one length."""
    table = sinusoids(length, dim)
    rank, condition = rank_and_condition(table)
    mean, largest = overlap(table)
    fourier = overlap(harmonics(length, dim))[1] if dim < length else None
    return {
        "rank": rank,
        "possible": min(length, dim),
        "condition": condition,
        "mean": mean,
        "largest": largest,
        "fourier": fourier,
    }


def of_base(base: float, length: int, dim: int) -> Measured:
    """Measure the effect of the base."""
    table = sinusoids(length, dim, base)
    frequencies = base ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    return {
        "frequencies": len(frequencies.unique()),
        "longest": (2 * math.pi / frequencies[-1]).item(),
        "nearest": torch.pdist(table).min().item(),
        "rank": rank_and_condition(table)[0],
    }


def conclude(
    lengths: dict[int, Measured], bases: dict[float, Measured], error: float, dim: int
) -> str:
    """Conclude how independent the columns are, and which base is needed."""
    length, longest = max(lengths.items())
    small = {base: measured for base, measured in bases.items() if 1 < base < dim}
    distinct = all(f["frequencies"] == dim // 2 and f["nearest"] > 1e-3 for f in small.values())
    orthogonal = longest["largest"] < 1e-6
    independent = longest["rank"] == longest["possible"]
    columns = "orthogonal" if orthogonal else "not orthogonal"
    return (
        f"Over {length:,} positions the {dim} columns are {columns} (|cos| of two of them "
        f"{number(longest['mean'])} in the mean, {number(longest['largest'])} at most) and "
        f"{'all independent' if independent else 'not all independent in float32'} (rank "
        f"{longest['rank']} of {longest['possible']}); a shift is a rotation to within "
        f"{number(error)}; and bases below the dimension "
        f"({', '.join(map(number, small)) or 'none tried'}) "
        f"{'still keep' if distinct else 'do not keep'} all frequencies and positions distinct."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Compute all tables."""
    lengths = bench.measured("length {}", size.lengths, of_length, size.dim)
    bases = bench.measured("base {:g}", size.bases, of_base, size.base_length, size.dim)
    error = bench.trial(
        "rotation", lambda: {"error": rotation_error(size.base_length, size.shift, size.dim)}
    )["error"]
    shortest, step = min(size.lengths), max(size.dim // 64, 1)  # a large matrix is thinned
    return conclude(lengths, bases, error, size.dim), {
        "lengths": lengths,
        "bases": bases,
        "shortest": shortest,
        "cosines": {"values": cosines(sinusoids(shortest, size.dim))[::step, ::step].tolist()},
    }
