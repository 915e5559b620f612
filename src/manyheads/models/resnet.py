"""ResNet: He et al. 2016, "Deep Residual Learning for Image Recognition"."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch.nn.functional as F
from torch import nn

from manyheads.models.model_config import ImageConfig, check_stages
from manyheads.nn.layers.head import Head
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.tracking import start_image, track_modules
from manyheads.nn.shapes import ClassScores, FeatureMap, Images
from manyheads.nn.vision.convolution import Convolution, NormedConvolution, StemPool, initialise
from manyheads.nn.vision.residual_block import BasicBlock, Block, BlockParts, Bottleneck, stages

BlockName = Literal["basic", "bottleneck"]
Stem = Literal["halving", "plain"]

BLOCKS: dict[BlockName, Block] = {"basic": BasicBlock, "bottleneck": Bottleneck}


class ConvolutionStem(nn.Module):
    """A convolution with batch norm and ReLU, then a pool."""

    def __init__(
        self, channels: int, width: int, *, size: int, stride: int, pool: type[nn.Module]
    ) -> None:
        super().__init__()
        convolution = Convolution(channels, width, size, stride=stride)
        self.convolution = NormedConvolution(convolution, nn.BatchNorm2d(width))
        self.pool = pool()

    def forward(self, images: Images) -> FeatureMap:
        """Convolve, normalise, activate, pool."""
        track_modules([self.convolution.convolution])
        return self.pool(F.relu(self.convolution(images)))


# The first leaves a quarter of height and width (table 1), the second an image of 32 pixels its
# size (section 4.2).
STEMS: dict[Stem, partial[ConvolutionStem]] = {
    "halving": partial(ConvolutionStem, size=7, stride=2, pool=StemPool),
    "plain": partial(ConvolutionStem, size=3, stride=1, pool=nn.Identity),
}


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(ImageConfig):
    """Shape and parts; the defaults are the 50 layers of table 1. Images of any size will do."""

    _width_key = "outputs"

    stem: Stem = "halving"
    stem_width: int = 64
    block: BlockName = "bottleneck"
    depths: tuple[int, ...] = (3, 4, 6, 3)
    widths: tuple[int, ...] = (64, 128, 256, 512)  # channels inside a block, a number a stage
    outputs: tuple[int, ...] = (256, 512, 1024, 2048)  # channels behind a block
    groups: int = 1  # of the 3 x 3 convolutions: more than 1 is ResNeXt

    def __post_init__(self) -> None:
        check_stages(self, ["depths", "widths", "outputs"])

    def build(self) -> "ResNet":
        """Build the model with fresh weights."""
        return ResNet(self)


class ResidualNetwork(nn.Module):
    """A residual network: the mean of its last feature map is classified by a linear head."""

    head: Head

    def reset_parameters(self) -> None:
        """Draw weights for ReLU (He et al. 2015); a zero head: all classes equally likely."""
        initialise(self)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Images) -> ClassScores:
        """Score every class for every image."""
        return self.head(self.features(images).mean(dim=(2, 3)))

    def features(self, images: Images) -> FeatureMap:
        """Return the last feature map."""
        raise NotImplementedError


class ResNet(ResidualNetwork):
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
            parts=BlockParts(Convolution, nn.BatchNorm2d, config.groups),
        )
        self.head = Head(config.outputs[-1], config.classes)
        self.reset_parameters()

    def features(self, images: Images) -> FeatureMap:
        """Return the feature map before the mean."""
        start_image(images)
        x = self.stages(self.stem(images))
        record_features(x)
        return x
