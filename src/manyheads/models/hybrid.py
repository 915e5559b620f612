"""ResNet and ViT in one: the tokens are a feature map's (Dosovitskiy et al. 2021, section 3.1)."""

from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import nn

from manyheads.errors import UsageError
from manyheads.models.vit import PATCHES, Vit, VitConfig
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.tracking import track_modules
from manyheads.nn.shapes import Grid, Images, Tokens
from manyheads.nn.vision.convolution import (
    NormedConvolution,
    StandardisedConvolution,
    StemPool,
    initialise,
)
from manyheads.nn.vision.residual_block import BlockParts, Bottleneck, stages

STEM_STRIDE = 4  # of the convolution and the pool together


@dataclass(frozen=True, kw_only=True)
class HybridConfig(VitConfig):
    """A ViT behind a ResNet; the defaults are the paper's R50+ViT-B/16.

    Its 16 is the whole way from pixels to tokens: of the 50 layers, stage 4 is left out and
    stage 3 has its 9 blocks (section 4.1). `patch` is cut from the feature map, 1 is a pixel of
    it. Without stages (`depths = []`) only the stem is left.
    """

    tasks = ("classify",)

    patch: int = 1
    depths: tuple[int, ...] = (3, 4, 9)
    stem_width: int = 64
    norm_groups: int = 32

    def __post_init__(self) -> None:
        self.check_attention()
        if min(self.depths, default=1) < 1:
            raise UsageError(
                f"depths is {self.depths}, but a stage has at least 1 block: leave a number out to "
                "leave out its stage."
            )
        rows, columns = self.feature_map(self.height, self.width)
        if self.patch < 1 or rows % self.patch or columns % self.patch:
            raise UsageError(
                f"Images of {self.height} x {self.width} pixels have a feature map of {rows} x "
                f"{columns} here, which cannot be cut into patches of {self.patch} x {self.patch}: "
                f"choose sizes that are multiples of {self.stride * max(self.patch, 1)}."
            )

    @property
    def stride(self) -> int:
        """Pixels of the image from one value of the feature map to the next."""
        return STEM_STRIDE * 2 ** max(len(self.depths) - 1, 0)

    @property
    def grid(self) -> Grid:
        """Rows and columns of tokens."""
        rows, columns = self.feature_map(self.height, self.width)
        return rows // self.patch, columns // self.patch

    def feature_map(self, height: int, width: int) -> Grid:
        """Rows and columns of the feature map; a rest of the image is padded."""
        return -(-height // self.stride), -(-width // self.stride)

    def variant(self, suffix: str) -> None:
        """Return None: patches are cut from a feature map, so "/16" would mislead."""

    def build(self) -> "Hybrid":
        """Build the model with fresh weights."""
        return Hybrid(self)


class ResNetTokens(nn.Module):
    """A ResNet with group norm and standardised filters, and a linear map of its feature map.

    Norms follow their convolutions as in the first ResNet; borders are padded as TensorFlow does.
    """

    def __init__(self, config: HybridConfig) -> None:
        super().__init__()
        norm = partial(nn.GroupNorm, config.norm_groups)
        convolution = partial(StandardisedConvolution, padding="same")
        self.stem = NormedConvolution(
            convolution(config.channels, config.stem_width, 7, stride=2), norm(config.stem_width)
        )
        self.pool = StemPool("same")
        widths = [config.stem_width * 2**stage for stage in range(len(config.depths))]
        outputs = [4 * width for width in widths]
        self.stages = stages(
            Bottleneck,
            config.stem_width,
            depths=config.depths,
            widths=widths,
            outputs=outputs,
            parts=BlockParts(convolution, norm),
        )
        dim = outputs[-1] if outputs else config.stem_width
        self.patches = PATCHES[config.patches](
            dim, config.patch, config.dim, bias=config.patch_bias
        )
        initialise(self)

    def forward(self, images: Images) -> Tokens:
        """Embed every patch of the feature map."""
        track_modules([self.stem.convolution])
        x = self.stages(self.pool(F.relu(self.stem(images))))
        record_features(x)
        return self.patches(x)


class Hybrid(Vit):
    """Images in, logits over classes out."""

    config: HybridConfig

    def embedding(self) -> nn.Module:
        """Build the module that turns images into tokens."""
        return ResNetTokens(self.config)

    def grid(self, height: int, width: int) -> Grid:
        """Count the rows and columns of tokens of an image."""
        rows, columns = self.config.feature_map(height, width)
        return rows // self.config.patch, columns // self.config.patch
