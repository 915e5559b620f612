"""A CNN that trains fast: Jordan 2024, "94% on CIFAR-10 in 3.29 Seconds on a Single GPU".

It differs from the paper's: the first filters are fixed ones with a batch norm in place of
eigenvectors of the training set, norms have scales, and the head a bias and no factor of 1/9.
"""

import math
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.model_config import ImageConfig
from manyheads.nn.layers.head import Head
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.tracking import start_image, track_modules
from manyheads.nn.shapes import ClassScores, FeatureMap, Images
from manyheads.nn.vision.convolution import Convolution, check_halvings

PATCH = 2  # rows and columns that a first filter sees


@dataclass(frozen=True, kw_only=True)
class AirbenchConfig(ImageConfig):
    """Shape and parts; the defaults are those of airbench94 (section 3.1)."""

    _width_key = "widths"

    height: int = 32
    width: int = 32
    classes: int = 10
    widths: tuple[int, ...] = (64, 256, 256)  # channels of each group, which halves the map

    def __post_init__(self) -> None:
        if not self.widths:
            raise UsageError("widths is (): give the channels of at least one group.")
        check_halvings(self.height, self.width, len(self.widths), border=PATCH - 1)

    def build(self) -> "Airbench":
        """Build the model with fresh weights."""
        return Airbench(self)


def patch_filters(channels: int) -> Float[Tensor, "filter channel row column"]:
    """Return an orthonormal basis of patches of 2 x 2 pixels, and its negatives.

    It is the cosine transform over channels, rows and columns: sums and differences of pixels,
    of brightness, of red against blue, of green against both. With a batch norm behind them they
    whiten the patches of natural images nearly as the eigenvectors of a training set do, which the
    paper takes (section 3.2).
    """
    along = [_cosines(size) for size in (channels, PATCH, PATCH)]
    filters = torch.einsum("ac,by,dx->abdcyx", *along).flatten(0, 2)
    return torch.cat((filters, -filters))


def _cosines(size: int) -> Float[Tensor, "frequency place"]:
    """The orthonormal cosine transform (DCT-II)."""
    place = torch.arange(size) + 0.5
    rows = torch.cos(math.pi / size * torch.arange(size)[:, None] * place)
    return rows / rows.norm(dim=1, keepdim=True)


class PatchConvolution(Convolution):
    """The first convolution, which does not learn; without a border."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, 2 * channels * PATCH**2, PATCH)
        self.padding = (0, 0)
        del self.weight
        self.register_buffer("weight", patch_filters(channels))


class HalvingGroup(nn.Module):
    """A convolution, a pool, and a second convolution, each with batch norm and GELU."""

    muon_layers: ClassVar[type[nn.Module]] = Convolution

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = Convolution(inputs, outputs, 3)
        self.pool = nn.MaxPool2d(2)
        self.first_norm = nn.BatchNorm2d(outputs, momentum=0.4)
        self.second = Convolution(outputs, outputs, 3)
        self.second_norm = nn.BatchNorm2d(outputs, momentum=0.4)
        for convolution in (self.first, self.second):  # filters that copy a channel (section 3.3)
            nn.init.dirac_(convolution.weight.data[: convolution.in_channels])

    def forward(self, x: FeatureMap) -> Float[Tensor, "batch output half_rows half_columns"]:
        """Convolve, halve, convolve."""
        track_modules([self.first, self.pool, self.second])
        x = F.gelu(self.first_norm(self.pool(self.first(x))))
        return F.gelu(self.second_norm(self.second(x)))


class Airbench(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: AirbenchConfig) -> None:
        super().__init__()
        self.config = config
        self.filters = PatchConvolution(config.channels)
        inputs = self.filters.out_channels
        self.norm = nn.BatchNorm2d(inputs)
        self.groups = nn.Sequential(*starmap(HalvingGroup, pairwise((inputs, *config.widths))))
        self.head = Head(config.widths[-1], config.classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """A zero head: all classes equally likely. The groups have drawn their weights."""
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Images) -> ClassScores:
        """Score every class for every image: each channel by its largest value."""
        return self.head(self.features(images).amax(dim=(2, 3)))

    def features(self, images: Images) -> FeatureMap:
        """Return the last feature map."""
        start_image(images)
        height, width = images.shape[2:]
        check_halvings(height, width, len(self.config.widths), border=PATCH - 1)
        track_modules([self.filters])
        x = self.groups(F.gelu(self.norm(self.filters(images))))
        record_features(x)
        return x
