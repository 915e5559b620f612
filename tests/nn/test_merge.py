"""Patch merging: which four tokens meet, and in what order."""

import torch
from torch import nn

from manyheads.nn.vision.merge import NoMerging, PatchMerging


def plain(dim: int) -> PatchMerging:
    """Merging that only lays tokens beside each other and keeps the first half."""
    merge = PatchMerging(dim)
    merge.norm = nn.Identity()  # type: ignore[assignment]
    merge.project.weight.data = torch.eye(4 * dim)[: 2 * dim]
    return merge


def test_neighbours_by_hand() -> None:
    """V16: tokens 0 1 2 / 3 4 5: at first 0 and the one below it, 3; then 2, with 5 below."""
    x = torch.arange(6.0).view(1, 6, 1)
    merged, grid = plain(1)(x, (2, 3))
    assert grid == (1, 2)
    assert merged.tolist() == [[[0.0, 3.0], [2.0, 5.0]]]


def test_an_odd_edge_gets_zeros() -> None:
    x = torch.ones(1, 1, 2)
    merged, grid = plain(2)(x, (1, 1))
    assert grid == (1, 1)
    assert merged.tolist() == [[[1.0, 1.0, 0.0, 0.0]]]


def test_widths_double() -> None:
    merged, grid = PatchMerging(4)(torch.randn(2, 5 * 6, 4), (5, 6))
    assert grid == (3, 3)
    assert merged.shape == (2, 9, 8)


def test_before_the_first_stage_nothing_is_merged() -> None:
    x = torch.randn(1, 6, 4)
    assert NoMerging()(x, (2, 3)) == (x, (2, 3))
