"""Residual blocks of convolutions: two wide ones, a bottleneck of three, and one with norms first.

The shortcut is the identity where shapes allow it and a 1 x 1 convolution where they do not
(He et al. 2016a, section 3.3, option B).
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.recording.tracking import track_modules
from manyheads.nn.shapes import Images
from manyheads.nn.vision.convolution import ConvolutionFactory, NormedConvolution, NormFactory


class BlockParts(NamedTuple):
    """The kinds of convolution and norm that all blocks of a network share."""

    convolution: ConvolutionFactory
    norm: NormFactory
    groups: int = 1  # of the 3 x 3 convolutions

    def mixing(self, inputs: int, outputs: int, stride: int = 1) -> NormedConvolution:
        """Build a 3 x 3 convolution and its norm."""
        convolution = self.convolution(inputs, outputs, 3, stride=stride, groups=self.groups)
        return NormedConvolution(convolution, self.norm(outputs))

    def pointwise(self, inputs: int, outputs: int, stride: int = 1) -> NormedConvolution:
        """Build a 1 x 1 convolution and its norm."""
        convolution = self.convolution(inputs, outputs, 1, stride=stride)
        return NormedConvolution(convolution, self.norm(outputs))

    def shortcut(self, inputs: int, outputs: int, stride: int) -> nn.Module:
        """Build the identity, or a 1 x 1 convolution where the shape changes."""
        same = stride == 1 and inputs == outputs
        return nn.Identity() if same else self.pointwise(inputs, outputs, stride)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions (He et al. 2016a, figure 5 left); inner width and outputs are one."""

    forward_methods: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, inputs: int, width: int, outputs: int, *, stride: int, parts: BlockParts
    ) -> None:
        super().__init__()
        self.first = parts.mixing(inputs, width, stride)
        self.second = parts.mixing(width, outputs)
        self.shortcut = parts.shortcut(inputs, outputs, stride)

    def forward(self, x: Images) -> Float[Tensor, "batch output rows columns"]:
        """Two 3 x 3 convolutions with a residual connection, then ReLU."""
        track_modules([self.first.convolution, self.second.convolution])
        y = self.second(F.relu(self.first(x)))
        return F.relu(y + self.shortcut(x))


class Bottleneck(nn.Module):
    """1 x 1 to fewer channels, 3 x 3, 1 x 1 back (He et al. 2016a, figure 5 right).

    The stride is on the 3 x 3 convolution, as everybody's weights have it ("v1.5"); the paper's
    first 1 x 1 would skip three quarters of its input.
    """

    forward_methods: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, inputs: int, width: int, outputs: int, *, stride: int, parts: BlockParts
    ) -> None:
        super().__init__()
        self.reduce = parts.pointwise(inputs, width)
        self.mix = parts.mixing(width, width, stride)
        self.expand = parts.pointwise(width, outputs)
        self.shortcut = parts.shortcut(inputs, outputs, stride)

    def forward(self, x: Images) -> Float[Tensor, "batch output rows columns"]:
        """Reduce, mix and expand with a residual connection, then ReLU."""
        track_modules([self.mix.convolution])  # the others read one place each
        y = self.expand(F.relu(self.mix(F.relu(self.reduce(x)))))
        return F.relu(y + self.shortcut(x))


class PreActivationBottleneck(nn.Module):
    """Norm and ReLU before each convolution: the sum stays untouched (He et al. 2016b, figure 4e).

    Where the shortcut is a convolution, it too reads the normalised input.
    """

    forward_methods: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, inputs: int, width: int, outputs: int, *, stride: int, parts: BlockParts
    ) -> None:
        super().__init__()
        convolution, norm, groups = parts
        self.norm1 = norm(inputs)
        self.reduce = convolution(inputs, width, 1)
        self.norm2 = norm(width)
        self.mix = convolution(width, width, 3, stride=stride, groups=groups)
        self.norm3 = norm(width)
        self.expand = convolution(width, outputs, 1)
        changes = stride != 1 or inputs != outputs
        self.shortcut = convolution(inputs, outputs, 1, stride=stride) if changes else None

    def forward(self, x: Images) -> Float[Tensor, "batch output rows columns"]:
        """Reduce, mix, expand, each behind its norm; add the shortcut."""
        track_modules([self.mix])  # the others read one place each
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
    parts: BlockParts,
) -> nn.Sequential:
    """Build stages of blocks; each but the first halves height and width in its first block."""
    built = []
    for number, (depth, width, channels) in enumerate(zip(depths, widths, outputs, strict=True)):
        blocks = []
        for index in range(depth):
            stride = 2 if number and not index else 1
            blocks.append(block(inputs, width, channels, stride=stride, parts=parts))
            inputs = channels
        built.append(nn.Sequential(*blocks))
    return nn.Sequential(*built)
