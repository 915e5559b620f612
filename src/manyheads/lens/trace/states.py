"""The vectors of tokens, layer by layer: the outputs of blocks and recurrent layers.

They are read with hooks that change nothing: outputs stay bitwise the same. Layers are recognised
by the classes of `nn`, so no model is known here. With a recorder open, layers of images also have
the grid of their tokens, and the receptive field of each.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.nn.blocks.block import AttentionBlock
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.recording.tracking import current_grid
from manyheads.nn.rnn import Recurrent
from manyheads.nn.vision.mbconv import MBConv
from manyheads.nn.vision.residual_block import BasicBlock, Bottleneck, PreActivationBottleneck

CONVOLUTIONAL = BasicBlock | Bottleneck | PreActivationBottleneck | MBConv
EMBEDDED = "embedded"  # the name of what goes into the first layer
CONVOLUTIONS = "convolutions"  # the stack of layers without attention


@dataclass(frozen=True, slots=True, eq=False)
class LayerState:
    """The output of one layer."""

    stack: str  # "encoder", "decoder", "stage 1", "convolutions"
    name: str  # "encoder layer 1", "block 3"
    layer: int  # of its stack, from 1; 0 is what goes into the first
    x: Float[Tensor, "example token dim"] | Float[Tensor, "example channel row column"]
    grid: TokenGrid | None = None  # positions of tokens, or of values of a map, in an image

    @property
    def is_map(self) -> bool:
        """Whether it is the output of convolutions."""
        return self.x.ndim == 4


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Token ids, and the table they were looked up in."""

    table: Float[Tensor, "vocabulary dim"]
    tokens: Int[Tensor, "example token"]


@dataclass
class States:
    """Everything that was read from one pass, in the order in which it ran."""

    layers: list[LayerState] = field(default_factory=list)
    lookups: list[Lookup] = field(default_factory=list)

    def stack(self, *names: str) -> list[LayerState]:
        """The layers of some stacks."""
        return [each for each in self.layers if each.stack in names]

    def _enter(self, part: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        """Keep the input of the first layer, and of a second stack of tokens."""
        stack, layer = _place(part)
        fresh = layer == 1 and not stack.startswith("stage") and not self.stack(stack)
        if self.layers and not fresh:
            return
        self.layers.append(LayerState(stack, EMBEDDED, 0, inputs[0].detach(), current_grid()))

    def _leave(self, part: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
        x = (output[0] if isinstance(output, tuple) else output).detach()
        stack, layer = _place(part)
        if stack == CONVOLUTIONS:
            layer = sum(each.layer > 0 for each in self.stack(stack)) + 1
            name = f"{'convolution' if isinstance(part, nn.Conv2d) else 'block'} {layer}"
        else:
            name = f"{stack} layer {layer}"
        self.layers.append(LayerState(stack, name, layer, x, current_grid()))

    def _look_up(self, part: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
        assert isinstance(part, nn.Embedding)
        self.lookups.append(Lookup(part.weight.detach(), inputs[0].detach()))


@contextmanager
def record_states(model: nn.Module) -> Iterator[States]:
    """Read the states of every pass through a model while this is open."""
    found = States()
    with ExitStack() as hooks:
        for part in layers_of(model):
            hooks.callback(part.register_forward_pre_hook(found._enter).remove)
            hooks.callback(part.register_forward_hook(found._leave).remove)
        for part in model.modules():
            if isinstance(part, nn.Embedding):
                hooks.callback(part.register_forward_hook(found._look_up).remove)
        yield found


def layers_of(model: nn.Module) -> list[nn.Module]:
    """List the layers: blocks and recurrent layers; without any, convolutions."""
    kinds = AttentionBlock | Recurrent | CONVOLUTIONAL
    found: list[nn.Module] = [part for part in model.modules() if isinstance(part, kinds)]
    return found or [part for part in model.modules() if isinstance(part, nn.Conv2d)]


@torch.inference_mode()
def outputs(model: nn.Module, images: Float[Tensor, "..."]) -> list[LayerState]:
    """Run a model, and return the input of its first layer and the output of each layer."""
    model.eval()
    with record_states(model) as found:
        model(images)
    return found.layers


def pooled(x: Tensor) -> Float[Tensor, "example dim"]:
    """One vector an example: the mean over tokens, or over the positions of a map."""
    return x.mean(dim=1) if x.ndim == 3 else x.mean(dim=(2, 3)) if x.ndim == 4 else x


def _place(part: nn.Module) -> tuple[str, int]:
    """Name the stack of a layer and number it there, by the layer id of its attention."""
    if isinstance(part, Recurrent):
        return part.layer_ids[0].stack, part.layer_ids[0].layer + 1
    for inner in part.modules():
        layer_id = getattr(inner, "layer_id", None)
        if isinstance(layer_id, LayerId):
            return layer_id.stack, layer_id.layer + 1
    return CONVOLUTIONS, 0
