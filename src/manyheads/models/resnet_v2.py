"""BiT's ResNetV2: Kolesnikov et al. 2020, "Big Transfer", after He et al. 2016b.

Group norm and standardised filters in place of batch norm: no statistics of a batch, so that small
batches train and images do not see each other.
"""

from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.resnet import check_stages
from manyheads.nn.convolution import StandardisedConvolution, StemPool, initialise
from manyheads.nn.features import keep_map
from manyheads.nn.head import Head
from manyheads.nn.places import begin, see_through
from manyheads.nn.residual_block import PreActivationBottleneck, stages


@dataclass(frozen=True, kw_only=True)
class ResNetV2Config:
    """Shape; the defaults are BiT's R50x1. Images of any size will do."""

    height: int = 224
    width: int = 224
    channels: int = 3
    stem_width: int = 64
    depths: tuple[int, ...] = (3, 4, 6, 3)
    widths: tuple[int, ...] = (64, 128, 256, 512)  # channels inside a block, a number a stage
    outputs: tuple[int, ...] = (256, 512, 1024, 2048)  # channels behind a block
    norm_groups: int = 32
    classes: int = 1000

    def __post_init__(self) -> None:
        """Refuse stages that do not match, and channels that cannot be grouped."""
        check_stages(self.depths, self.widths, self.outputs)
        for channels in (self.stem_width, *self.widths, *self.outputs):
            if channels % self.norm_groups:
                raise UsageError(
                    f"{channels} channels cannot be normalised in {self.norm_groups} groups: "
                    "choose widths that are multiples of norm_groups."
                )


def bit(depths: tuple[int, ...], factor: int) -> ResNetV2Config:
    """Return one of the paper's shapes: every layer `factor` times as wide as in a ResNet."""
    widths = tuple(factor * width for width in (64, 128, 256, 512))
    return ResNetV2Config(
        stem_width=64 * factor,
        depths=depths,
        widths=widths,
        outputs=tuple(4 * width for width in widths),
    )


class ResNetV2(nn.Module):
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
            convolution=StandardisedConvolution,
            norm=norm,
        )
        self.norm = norm(config.outputs[-1])
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
        see_through([self.stem])
        x = F.relu(self.norm(self.stages(self.pool(self.stem(images)))))
        keep_map(x)
        return x
