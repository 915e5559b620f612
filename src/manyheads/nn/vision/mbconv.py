"""The inverted bottleneck with squeeze-and-excitation, as in MobileNetV3 and EfficientNet."""

from collections import OrderedDict
from typing import ClassVar

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.layers.stochastic_depth import StochasticDepth
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.tracking import track_modules
from manyheads.nn.shapes import FeatureMap


class SqueezeExcitation(nn.Module):
    """Scale each channel by what the mean of all channels says (Hu et al. 2018, section 3)."""

    def __init__(self, dim: int, hidden: int, activation: nn.Module) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(dim, hidden, 1)
        self.activation = activation
        self.excite = nn.Conv2d(hidden, dim, 1)

    def forward(self, x: FeatureMap) -> FeatureMap:
        """Average over the map, squeeze, excite, scale."""
        mean = x.mean(dim=(2, 3), keepdim=True)
        return x * self.excite(self.activation(self.squeeze(mean))).sigmoid()


class MeanDown(nn.Module):
    """Halve a map by averaging 2 x 2; at an odd edge what there is is averaged."""

    kernel_size, stride, padding, ceil_mode = 2, 2, 0, True

    def forward(self, x: FeatureMap) -> Float[Tensor, "batch dim half_row half_column"]:
        """Halve rows and columns, rounded up."""
        return F.avg_pool2d(x, self.kernel_size, self.stride, ceil_mode=self.ceil_mode)


class MaxDown(nn.Module):
    """Halve a map by the largest of 3 x 3."""

    kernel_size, stride, padding, ceil_mode = 3, 2, 1, False

    def forward(self, x: FeatureMap) -> Float[Tensor, "batch dim half_row half_column"]:
        """Halve rows and columns, rounded up."""
        return F.max_pool2d(x, self.kernel_size, self.stride, self.padding)


class MBConv(nn.Module):
    """x + Contract(SE(Depthwise(Expand(Norm(x))))) (Sandler et al. 2018; CoAtNet, appendix A.1).

    What lies between norm and sum is `layers`, built by `mbconv`; `shortcut` fits x to the sum.
    """

    forward_methods: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, layers: nn.Sequential, shortcut: nn.Module, *, drop_path: float = 0.0
    ) -> None:
        super().__init__()
        self.layers = layers
        self.shortcut = shortcut
        self.drop_path = StochasticDepth(drop_path)

    def forward(self, x: FeatureMap) -> Float[Tensor, "batch output out_row out_column"]:
        """Add the branch to the map."""
        track_modules(self.layers)  # the shortcut sees no more
        x = self.shortcut(x) + self.drop_path(self.layers(x))
        record_features(x)
        return x


def shrink(
    dim: int, outputs: int, down: type[MeanDown] | type[MaxDown], *, bias: bool
) -> nn.Module:
    """Build a shortcut that halves the map, and widens it where it gets wider."""
    parts: OrderedDict[str, nn.Module] = OrderedDict(pool=down())
    if outputs != dim:
        parts["widen"] = nn.Conv2d(dim, outputs, 1, bias=bias)
    return nn.Sequential(parts)
