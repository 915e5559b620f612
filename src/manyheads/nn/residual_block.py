"""Residual blocks of convolutions: two wide ones, a bottleneck of three, and one with norms first.

The shortcut is the identity where shapes allow it and a 1 x 1 convolution where they do not
(He et al. 2016a, section 3.3, option B).
"""

from collections.abc import Callable, Sequence

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.convolution import ConvolutionFactory, NormedConvolution, NormFactory
from manyheads.nn.places import see_through


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions (He et al. 2016a, figure 5 left); inner width and outputs are one."""

    def __init__(
        self,
        inputs: int,
        width: int,
        outputs: int,
        *,
        stride: int,
        groups: int,
        convolution: ConvolutionFactory,
        norm: NormFactory,
    ) -> None:
        super().__init__()
        self.first = NormedConvolution(
            convolution(inputs, width, 3, stride=stride, groups=groups), norm(width)
        )
        self.second = NormedConvolution(
            convolution(width, outputs, 3, groups=groups), norm(outputs)
        )
        self.shortcut = _shortcut(inputs, outputs, stride, convolution, norm)

    def forward(
        self, x: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch output rows columns"]:
        """Convolve twice, add the shortcut, bend."""
        see_through([self.first.convolution, self.second.convolution])
        y = self.second(F.relu(self.first(x)))
        return F.relu(y + self.shortcut(x))


class Bottleneck(nn.Module):
    """1 x 1 to fewer channels, 3 x 3, 1 x 1 back (He et al. 2016a, figure 5 right).

    The stride is on the 3 x 3 convolution, as everybody's weights have it ("v1.5"); the paper's
    first 1 x 1 would skip three quarters of its input.
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        outputs: int,
        *,
        stride: int,
        groups: int,
        convolution: ConvolutionFactory,
        norm: NormFactory,
    ) -> None:
        super().__init__()
        self.reduce = NormedConvolution(convolution(inputs, width, 1), norm(width))
        self.mix = NormedConvolution(
            convolution(width, width, 3, stride=stride, groups=groups), norm(width)
        )
        self.expand = NormedConvolution(convolution(width, outputs, 1), norm(outputs))
        self.shortcut = _shortcut(inputs, outputs, stride, convolution, norm)

    def forward(
        self, x: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch output rows columns"]:
        """Reduce, mix, expand, add the shortcut, bend."""
        see_through([self.mix.convolution])  # the others read one place each
        y = self.expand(F.relu(self.mix(F.relu(self.reduce(x)))))
        return F.relu(y + self.shortcut(x))


class PreActivationBottleneck(nn.Module):
    """Norm and ReLU before each convolution: the sum stays untouched (He et al. 2016b, figure 4e).

    Where the shortcut is a convolution, it too reads the normalised input.
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        outputs: int,
        *,
        stride: int,
        groups: int,
        convolution: ConvolutionFactory,
        norm: NormFactory,
    ) -> None:
        super().__init__()
        self.norm1 = norm(inputs)
        self.reduce = convolution(inputs, width, 1)
        self.norm2 = norm(width)
        self.mix = convolution(width, width, 3, stride=stride, groups=groups)
        self.norm3 = norm(width)
        self.expand = convolution(width, outputs, 1)
        changes = stride != 1 or inputs != outputs
        self.shortcut = convolution(inputs, outputs, 1, stride=stride) if changes else None

    def forward(
        self, x: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch output rows columns"]:
        """Reduce, mix, expand, each behind its norm; add the shortcut."""
        see_through([self.mix])  # the others read one place each
        y = F.relu(self.norm1(x))
        past = x if self.shortcut is None else self.shortcut(y)
        y = self.mix(F.relu(self.norm2(self.reduce(y))))
        return self.expand(F.relu(self.norm3(y))) + past


Block = Callable[..., nn.Module]  # one of the classes above


def stages(
    block: Block,
    inputs: int,
    *,
    depths: Sequence[int],
    widths: Sequence[int],
    outputs: Sequence[int],
    groups: int = 1,
    convolution: ConvolutionFactory,
    norm: NormFactory,
) -> nn.Sequential:
    """Build stages of blocks; each but the first halves height and width in its first block."""
    built = []
    for number, (depth, width, channels) in enumerate(zip(depths, widths, outputs, strict=True)):
        blocks = []
        for index in range(depth):
            stride = 2 if number and not index else 1
            blocks.append(
                block(
                    inputs,
                    width,
                    channels,
                    stride=stride,
                    groups=groups,
                    convolution=convolution,
                    norm=norm,
                )
            )
            inputs = channels
        built.append(nn.Sequential(*blocks))
    return nn.Sequential(*built)


def _shortcut(
    inputs: int, outputs: int, stride: int, convolution: ConvolutionFactory, norm: NormFactory
) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return NormedConvolution(convolution(inputs, outputs, 1, stride=stride), norm(outputs))
