"""Overlapping patches."""

import torch
import torch.nn.functional as F

from manyheads.nn.vision.patch import OverlappingPatches


def test_a_convolution_and_a_norm() -> None:
    """V17: tokens are read row by row, each is normalised."""
    torch.manual_seed(0)
    part = OverlappingPatches(3, 8, kernel=7, stride=4, padding=2)
    x = torch.randn(2, 3, 15, 21)
    tokens, grid = part(x)
    assert grid == (4, 5)
    grid_of_vectors = F.conv2d(x, part.project.weight, part.project.bias, stride=4, padding=2)
    expected = F.layer_norm(grid_of_vectors[:, :, 1, 2], (8,))
    torch.testing.assert_close(tokens[:, 5 + 2], expected)


def test_neighbouring_tokens_share_pixels() -> None:
    """A pixel between two tokens reaches both; patches cut apart would not do that."""
    part = OverlappingPatches(1, 4, kernel=3, stride=2, padding=1).double()
    x = torch.zeros(1, 1, 4, 4, dtype=torch.float64, requires_grad=True)
    tokens = part.project(x)
    seen = [torch.autograd.grad(tokens[0, 0, 0, c], x, retain_graph=True)[0] for c in (0, 1)]
    assert seen[0][0, 0, 0, 1] != 0
    assert seen[1][0, 0, 0, 1] != 0
