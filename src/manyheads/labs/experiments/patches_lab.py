"""V1, E6: an image is HW / P^2 tokens; patch embedding is a convolution with stride P."""

from collections.abc import Mapping

import numpy as np
import torch

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.lens.panels import number
from manyheads.nn.vision.patch import ConvPatches, LinearPatches, patchify
from manyheads.streams import stream


def tokens(size: int, patch: int) -> int | None:
    """Count the patches of a square image; None if it is not divisible into patches."""
    return None if size % patch else (size // patch) ** 2


def cut(patch: int, dim: int, seed: int) -> Measured:
    """Embed patches both ways with the same weights; compare the results."""
    torch.manual_seed(stream(seed, "init"))
    linear, convolution = LinearPatches(3, patch, dim).double(), ConvPatches(3, patch, dim).double()
    convolution.load_state_dict(linear.state_dict())
    inputs = torch.randn(2, 3, 3 * patch, 4 * patch, dtype=torch.float64)
    with torch.no_grad():
        difference = (linear(inputs) - convolution(inputs)).abs().max().item()
    values = patchify(inputs, patch).shape
    return {"difference": difference, "tokens": values[1], "values": values[2]}


def disc(size: int) -> torch.Tensor:
    """An example image: a disc that is bright on one side."""
    place = torch.linspace(-1, 1, size)
    inside = (place[:, None].square() + place.square()) < 0.7
    return (0.6 + 0.4 * place) * inside


def apart(size: int, patch: int) -> list[list[float | None]]:
    """The disc with a gap between its patches."""
    gaps, spaced = list(range(patch, size, patch)), disc(size).numpy()
    for axis in (0, 1):
        spaced = np.insert(spaced, gaps, np.nan, axis)
    return [[None if np.isnan(value) else value for value in row] for row in spaced.tolist()]


def conclude(counted: Mapping[tuple[int, int], int | None], same: dict[int, Measured]) -> str:
    """Conclude with the token counts, and whether the two forms agree."""
    worst = max(each["difference"] for each in same.values())
    agree = "the same map" if worst < 1e-9 else "not the same map"
    grown = counted[256, 16]
    return (
        f"A picture of 224 x 224 in patches of 16 is {counted[224, 16]} tokens, one of 256 x 256 "
        f"is {grown} tokens ({'' if grown == 16 else 'not '}16: that is the side of the grid); its "
        f"map of scores has {number((grown or 0) ** 2)} entries a head; and cutting with one "
        f"linear map is {agree} as a convolution with stride P (largest difference "
        f"{number(worst)})."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Count patches and compare both forms."""
    counted = {(side, patch): tokens(side, patch) for side in size.sizes for patch in size.patches}
    same = bench.measured("patches of {}", size.patches, cut, size.dim, 1)
    rows = {side: {patch: counted[side, patch] for patch in size.patches} for side in size.sizes}
    return conclude(counted, same), {
        "tokens": rows,
        "scores": {
            side: {patch: n and n**2 for patch, n in row.items()} for side, row in rows.items()
        },
        "same": same,
        "by_side": {f"{side} pixels": row for side, row in rows.items()},
        "in_8": {"values": apart(32, 8)},
        "in_4": {"values": apart(32, 4)},
    }
