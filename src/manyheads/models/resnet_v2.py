"""BiT's ResNetV2: Kolesnikov et al. 2020, "Big Transfer", after He et al. 2016b.

Group norm and standardised filters in place of batch norm: no statistics of a batch, so that small
batches train and images do not see each other.
"""

from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import nn

from manyheads.errors import UsageError
from manyheads.models.model_config import ImageConfig, check_stages
from manyheads.models.resnet import ResidualNetwork
from manyheads.nn.layers.head import Head
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.tracking import start_image, track_modules
from manyheads.nn.shapes import FeatureMap, Images
from manyheads.nn.vision.convolution import StandardisedConvolution, StemPool
from manyheads.nn.vision.residual_block import BlockParts, PreActivationBottleneck, stages


@dataclass(frozen=True, kw_only=True)
class ResNetV2Config(ImageConfig):
    """Shape; the defaults are BiT's R50x1. Images of any size will do."""

    _width_key = "outputs"

    stem_width: int = 64
    depths: tuple[int, ...] = (3, 4, 6, 3)
    widths: tuple[int, ...] = (64, 128, 256, 512)  # channels inside a block, a number a stage
    outputs: tuple[int, ...] = (256, 512, 1024, 2048)  # channels behind a block
    norm_groups: int = 32

    def __post_init__(self) -> None:
        check_stages(self, ["depths", "widths", "outputs"])
        for channels in (self.stem_width, *self.widths, *self.outputs):
            if channels % self.norm_groups:
                raise UsageError(
                    f"{channels} channels cannot be normalised in {self.norm_groups} groups: "
                    "choose widths that are multiples of norm_groups."
                )

    def build(self) -> "ResNetV2":
        """Build the model with fresh weights."""
        return ResNetV2(self)


class ResNetV2(ResidualNetwork):
    """Images in, logits over classes out."""

    def __init__(self, config: ResNetV2Config) -> None:
        super().__init__()
        self.config = config
        norm = partial(nn.GroupNorm, config.norm_groups)
        self.stem = StandardisedConvolution(config.channels, config.stem_width, 7, stride=2)
        self.pool = StemPool()
        self.stages = stages(
            PreActivationBottleneck,
            config.stem_width,
            depths=config.depths,
            widths=config.widths,
            outputs=config.outputs,
            parts=BlockParts(StandardisedConvolution, norm),
        )
        self.norm = norm(config.outputs[-1])
        self.head = Head(config.outputs[-1], config.classes)
        self.reset_parameters()

    def features(self, images: Images) -> FeatureMap:
        """Return the feature map before the mean."""
        start_image(images)
        track_modules([self.stem])
        x = F.relu(self.norm(self.stages(self.pool(self.stem(images)))))
        record_features(x)
        return x
