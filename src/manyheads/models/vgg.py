"""VGG: Simonyan & Zisserman 2015, "Very Deep Convolutional Networks for Large-Scale Image..."."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.models.model_config import ImageConfig, check_stages
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.head import Head
from manyheads.nn.layers.linear import Linear
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.tracking import start_image, track_modules
from manyheads.nn.shapes import ClassScores, FeatureMap, Images
from manyheads.nn.vision.convolution import check_halvings, initialise

GRID = 7  # rows and columns that the first fully connected layer sees: 224 / 2^5


def pooled(x: Images) -> Float[Tensor, "batch channel rows columns"]:
    """Average any feature map to 7 x 7."""
    return F.adaptive_avg_pool2d(x, GRID)


def dense(x: Images) -> Float[Tensor, "batch channel rows columns"]:
    """Leave a larger feature map as it is: the classifier slides over it (section 3.2)."""
    rows, columns = (max(GRID, length) for length in x.shape[2:])
    return x if (rows, columns) == x.shape[2:] else F.adaptive_avg_pool2d(x, (rows, columns))


HeadName = Literal["pooled", "dense"]
ConvolutionNorm = Literal["none", "batch"]
HEADS: dict[HeadName, Callable[[Tensor], Tensor]] = {"pooled": pooled, "dense": dense}
NORMS: dict[ConvolutionNorm, Callable[[int], nn.Module]] = {
    "none": nn.Identity,
    "batch": nn.BatchNorm2d,
}


@dataclass(frozen=True, kw_only=True)
class VggConfig(ImageConfig):
    """Shape and parts; the defaults are configuration D of table 1, VGG-16."""

    behind_features = ("expand", "mix", "head")
    _width_key = "widths"

    depths: tuple[int, ...] = (2, 2, 3, 3, 3)  # convolutions before each halving
    widths: tuple[int, ...] = (64, 128, 256, 512, 512)
    hidden_size: int = 4096
    norm: ConvolutionNorm = "none"
    head: HeadName = "pooled"
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_stages(self, ["depths", "widths"])
        check_halvings(self.height, self.width, len(self.depths))

    def build(self) -> "Vgg":
        """Build the model with fresh weights."""
        return Vgg(self)


class Vgg(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: VggConfig) -> None:
        super().__init__()
        self.config = config
        inputs = config.channels
        layers: list[nn.Module] = []
        for depth, width in zip(config.depths, config.widths, strict=True):
            for _ in range(depth):
                # With a bias also before a norm, which takes it out: so the weights were made.
                convolution = nn.Conv2d(inputs, width, 3, padding=1)
                layers.append(nn.Sequential(convolution, NORMS[config.norm](width), nn.ReLU()))
                inputs = width
            layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        self.to_windows = HEADS[config.head]
        self.expand = Linear(inputs * GRID * GRID, config.hidden_size)
        self.mix = Linear(config.hidden_size, config.hidden_size)
        self.dropout = Dropout(config.dropout)
        self.head = Head(config.hidden_size, config.classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights for ReLU (He et al. 2015); a zero head: all classes equally likely."""
        initialise(self.layers)
        for linear in (self.expand, self.mix):
            nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
            nn.init.zeros_(linear.bias)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Images) -> ClassScores:
        """Score every class for every image."""
        windows = F.unfold(self.to_windows(self.features(images)), GRID).transpose(1, 2)
        x = self.dropout(F.relu(self.expand(windows)))  # batch window hidden
        x = self.dropout(F.relu(self.mix(x)))
        return self.head(x.mean(dim=1))  # the mean of the windows' logits: the head is linear

    def features(self, images: Images) -> FeatureMap:
        """Return the feature map after the last halving."""
        start_image(images)
        check_halvings(images.shape[2], images.shape[3], len(self.config.depths))
        x = images
        *layers, halving = self.layers
        for layer in layers:
            track_modules(layer if isinstance(layer, nn.Sequential) else [layer])
            x = layer(x)
        record_features(x)
        track_modules([halving])
        return halving(x)
