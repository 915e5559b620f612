"""V1, E6: a picture is HW / P^2 tokens; cutting and multiplying is a convolution with stride P."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch

from manyheads.lab.bench import Bench, Lab, Measured, Scale
from manyheads.lab.findings import Findings
from manyheads.lens.panels import Curve, Heat, Lines, Table, number
from manyheads.nn.patch import ConvPatches, LinearPatches, patchify
from manyheads.streams import stream


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is counted."""

    sizes: tuple[int, ...] = (32, 224, 256, 384, 512)
    patches: tuple[int, ...] = (4, 8, 14, 16, 32)
    dim: int = 64


SIZES: dict[Scale, Size] = {
    "full": Size(dim=768),
    "quick": Size(),
    "smoke": Size(sizes=(224, 256), patches=(16, 32), dim=8),
}


def tokens(size: int, patch: int) -> int | None:
    """Count the patches of a square picture; None if it cannot be cut into whole ones."""
    return None if size % patch else (size // patch) ** 2


def cut(patch: int, dim: int, seed: int) -> Measured:
    """Cut pictures both ways, with the same weights; count what comes out."""
    torch.manual_seed(stream(seed, "init"))
    linear, convolution = LinearPatches(3, patch, dim).double(), ConvPatches(3, patch, dim).double()
    convolution.load_state_dict(linear.state_dict())
    pictures = torch.randn(2, 3, 3 * patch, 4 * patch, dtype=torch.float64)
    with torch.no_grad():
        difference = (linear(pictures) - convolution(pictures)).abs().max().item()
    values = patchify(pictures, patch).shape
    return {"difference": difference, "tokens": values[1], "values": values[2]}


def disc(size: int) -> torch.Tensor:
    """A picture to cut: a disc that is bright on one side."""
    place = torch.linspace(-1, 1, size)
    inside = (place[:, None].square() + place.square()) < 0.7
    return (0.6 + 0.4 * place) * inside


def apart(size: int, patch: int) -> list[list[float | None]]:
    """The disc with a gap between its patches."""
    picture = disc(size)
    rows: list[list[float | None]] = []
    for i, row in enumerate(picture.tolist()):
        line: list[float | None] = []
        for j, value in enumerate(row):
            line += [None] * bool(j and j % patch == 0) + [value]
        if i and i % patch == 0:
            rows.append([None] * len(line))
        rows.append(line)
    return rows


def conclude(counted: Mapping[tuple[int, int], int | None], same: dict[int, Measured]) -> str:
    """Say the two counts that matter, and whether the two forms agree."""
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


def run(bench: Bench) -> Findings:
    """Count and cut."""
    size = bench.choose(SIZES)
    counted = {(side, patch): tokens(side, patch) for side in size.sizes for patch in size.patches}
    same = {
        patch: bench.trial(f"patches of {patch}", partial(cut, patch, size.dim, 1))
        for patch in size.patches
    }

    def row(side: int, what: int) -> list[int | None]:
        return [n if n is None else n**what for n in (counted[side, p] for p in size.patches)]

    return Findings(
        conclude(counted, same),
        [
            Table(
                "Tokens (rows: side of the picture; columns: side of a patch)",
                ["pixels", *(f"P = {patch}" for patch in size.patches)],
                [[side, *row(side, 1)] for side in size.sizes],
            ),
            Table(
                "Scores of one head: tokens squared",
                ["pixels", *(f"P = {patch}" for patch in size.patches)],
                [[side, *row(side, 2)] for side in size.sizes],
            ),
            Table(
                "Both forms, with the same weights",
                ["P", "values a token, P x P x 3", "largest difference"],
                [[patch, each["values"], each["difference"]] for patch, each in same.items()],
            ),
        ],
        [
            Lines(
                "Tokens of a picture",
                "side of a patch, pixels",
                "tokens",
                [
                    Curve(
                        f"{side} pixels",
                        [float(patch) for patch in size.patches],
                        [None if n is None else float(n) for n in row(side, 1)],
                    )
                    for side in size.sizes
                ],
                log_x=True,
                log_y=True,
            ),
            Heat(
                "32 pixels in patches of 8: 16 tokens",
                "column",
                "row",
                apart(32, 8),
                numbered=False,
            ),
            Heat("in patches of 4: 64 tokens", "column", "row", apart(32, 4), numbered=False),
        ],
    )


LAB = Lab(
    method=(
        "N = HW / P^2 is counted for square pictures. Both forms of the patch embedding get the "
        "same weights and the same random pictures, in float64. Empty cells are sizes that cannot "
        "be cut into whole patches."
    ),
    limits="Counting: what the tokens of smaller patches are worth is a matter of training.",
    run=run,
    seeds=1,
)
