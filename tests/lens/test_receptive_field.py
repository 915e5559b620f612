"""How far convolutions see, worked out by hand."""

import torch
from torch import nn

from manyheads.lens.measures.receptive_field import (
    layers_needed,
    measured_field,
    receptive_field,
)


def test_receptive_field() -> None:
    """E4: 3 + 2 (n - 1); 15 layers see 31 pixels, so 32 need 16."""
    assert [receptive_field(n) for n in (1, 2, 14, 15, 16)] == [3, 5, 29, 31, 33]
    assert layers_needed(32) == 16
    assert layers_needed(31) == 15
    assert receptive_field(1, kernel=7) == 7


def test_what_is_seen_is_counted() -> None:
    """Two convolutions of 3, the second with stride 2: 5 pixels; a 1 x 1 sees one."""
    first, second = nn.Conv2d(1, 1, 3, padding=1), nn.Conv2d(1, 1, 3, padding=1, stride=2)
    for part in (first, second):
        nn.init.ones_(part.weight)
    images = torch.ones(1, 1, 5, 21)
    assert measured_field(nn.Sequential(first, second), images, 5) == 5
    assert measured_field(nn.Conv2d(1, 1, 1), images, 5) == 1
