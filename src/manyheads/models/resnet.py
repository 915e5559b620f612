"""ResNet: He et al. 2016, "Deep Residual Learning for Image Recognition"."""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.convolution import Convolution, NormedConvolution, StemPool, initialise
from manyheads.nn.features import keep_map
from manyheads.nn.head import Head
from manyheads.nn.places import begin, see_through
from manyheads.nn.residual_block import BasicBlock, Block, Bottleneck, stages

BlockName = Literal["basic", "bottleneck"]
Stem = Literal["halving", "plain"]

BLOCKS: dict[BlockName, Block] = {"basic": BasicBlock, "bottleneck": Bottleneck}


class HalvingStem(nn.Module):
    """7 x 7 with stride 2, then the pool: a quarter of the height and width (table 1)."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.convolution = NormedConvolution(
            Convolution(channels, width, 7, stride=2), nn.BatchNorm2d(width)
        )
        self.pool = StemPool()

    def forward(
        self, images: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch dim row column"]:
        """Convolve, bend, pool."""
        see_through([self.convolution.convolution])
        return self.pool(F.relu(self.convolution(images)))


class PlainStem(nn.Module):
    """3 x 3 with stride 1: images of 32 pixels have nothing to give away (section 4.2)."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.convolution = NormedConvolution(Convolution(channels, width, 3), nn.BatchNorm2d(width))

    def forward(
        self, images: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch dim row column"]:
        """Convolve, bend."""
        see_through([self.convolution.convolution])
        return F.relu(self.convolution(images))


STEMS: dict[Stem, type[HalvingStem] | type[PlainStem]] = {
    "halving": HalvingStem,
    "plain": PlainStem,
}


@dataclass(frozen=True, kw_only=True)
class ResNetConfig:
    """Shape and parts; the defaults are the 50 layers of table 1.

    Images of any size will do; height and width say which one the model is meant for.
    """

    height: int = 224
    width: int = 224
    channels: int = 3
    stem: Stem = "halving"
    stem_width: int = 64
    block: BlockName = "bottleneck"
    depths: tuple[int, ...] = (3, 4, 6, 3)
    widths: tuple[int, ...] = (64, 128, 256, 512)  # channels inside a block, a number a stage
    outputs: tuple[int, ...] = (256, 512, 1024, 2048)  # channels behind a block
    groups: int = 1  # of the 3 x 3 convolutions: more than 1 is ResNeXt
    classes: int = 1000

    def __post_init__(self) -> None:
        """Refuse stages that do not match."""
        check_stages(self.depths, self.widths, self.outputs)


class ResNet(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = STEMS[config.stem](config.channels, config.stem_width)
        self.stages = stages(
            BLOCKS[config.block],
            config.stem_width,
            depths=config.depths,
            widths=config.widths,
            outputs=config.outputs,
            groups=config.groups,
            convolution=Convolution,
            norm=nn.BatchNorm2d,
        )
        self.head = Head(config.outputs[-1], config.classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights for ReLU (He et al. 2015); a zero head: all classes equally likely."""
        initialise(self)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(
        self, images: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch classes"]:
        """Score every class for every image."""
        return self.head(self.features(images).mean(dim=(2, 3)))

    def features(
        self, images: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch dim row column"]:
        """Give the feature map that the mean is taken of."""
        begin(images)
        x = self.stages(self.stem(images))
        keep_map(x)
        return x


def check_stages(
    depths: tuple[int, ...], widths: tuple[int, ...], outputs: tuple[int, ...]
) -> None:
    """Refuse a description of stages that says different numbers of them.

    Raises:
        UsageError: it does.
    """
    if not len(depths) == len(widths) == len(outputs) > 0:
        raise UsageError(
            f"depths has {len(depths)} numbers, widths {len(widths)} and outputs {len(outputs)}: "
            "give each one number a stage."
        )
