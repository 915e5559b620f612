"""A convolution stem: tokens from overlapping neighbourhoods instead of patches cut apart."""

from collections.abc import Sequence

import torch
from torch import nn

from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.tracking import track_modules
from manyheads.nn.shapes import FeatureMap, Images, check_axes


class ConvStem(nn.Module):
    """Convolution, ReLU and max-pooling, so many times (Hassani et al. 2021, equation 3).

    Convolutions have no bias; each pooling (3 x 3, stride 2) halves rows and columns, rounded up.
    """

    def __init__(self, channels: int, widths: Sequence[int], *, kernel: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in zip([channels, *widths[:-1]], widths, strict=True):
            convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
            nn.init.kaiming_normal_(convolution.weight)
            # ReLU behind the pooling gives the same, for a quarter of the values.
            layers += [convolution, nn.MaxPool2d(3, stride=2, padding=1), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, images: Images) -> FeatureMap:
        """Turn pixels into a grid of tokens, in any size.

        Computed with the channel last, which convolutions in bf16 prefer and tokens are anyway.
        """
        check_axes(images, "batch channel height width")
        track_modules(self.layers)
        x = self.layers(images.contiguous(memory_format=torch.channels_last))
        record_features(x)
        return x
