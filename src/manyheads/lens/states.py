"""The vectors of tokens, layer by layer: what every block and recurrent layer answers.

Read off with hooks, which only look: answers stay bitwise the same. What a layer is follows from
the parts of `nn`, so no model is known here. With a recorder open, layers of pictures also say
where their tokens stand, and how much of the picture each has seen.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.nn.block import AttentionBlock
from manyheads.nn.mbconv import MBConv
from manyheads.nn.places import Places, here
from manyheads.nn.recurrent import Recurrent
from manyheads.nn.residual_block import BasicBlock, Bottleneck, PreActivationBottleneck
from manyheads.nn.trace import Site

CONVOLUTIONAL = BasicBlock | Bottleneck | PreActivationBottleneck | MBConv
EMBEDDED = "embedded"  # the name of what goes into the first layer
CONVOLUTIONS = "convolutions"  # the stack of layers that have no site


@dataclass(frozen=True, slots=True, eq=False)
class LayerState:
    """What one layer answered."""

    stack: str  # "encoder", "decoder", "stage 1", "convolutions"
    name: str  # "encoder layer 1", "block 3"
    layer: int  # of its stack, from 1; 0 is what goes into the first
    x: Float[Tensor, "example token dim"] | Float[Tensor, "example channel row column"]
    places: Places | None = None  # where tokens, or values of a map, stand in a picture

    @property
    def is_map(self) -> bool:
        """Whether convolutions answered it."""
        return self.x.ndim == 4


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Tokens that became vectors, and the table they were looked up in."""

    table: Float[Tensor, "vocabulary dim"]
    tokens: Int[Tensor, "example token"]


@dataclass
class States:
    """Everything that was read off one pass, in the order in which it ran."""

    layers: list[LayerState] = field(default_factory=list)
    lookups: list[Lookup] = field(default_factory=list)

    def stack(self, *names: str) -> list[LayerState]:
        """The layers of some stacks."""
        return [each for each in self.layers if each.stack in names]

    def _enter(self, part: nn.Module, given: tuple[Tensor, ...]) -> None:
        """Keep what goes into the first layer of all, and into a second stack of tokens."""
        stack, layer = _place(part)
        fresh = layer == 1 and not stack.startswith("stage") and not self.stack(stack)
        if self.layers and not fresh:
            return
        self.layers.append(LayerState(stack, EMBEDDED, 0, given[0].detach(), here()))

    def _leave(self, part: nn.Module, _given: object, answer: Tensor | tuple[Tensor, ...]) -> None:
        x = (answer[0] if isinstance(answer, tuple) else answer).detach()
        stack, layer = _place(part)
        if stack == CONVOLUTIONS:
            layer = sum(each.layer > 0 for each in self.stack(stack)) + 1
            name = f"{'convolution' if isinstance(part, nn.Conv2d) else 'block'} {layer}"
        else:
            name = f"{stack} layer {layer}"
        self.layers.append(LayerState(stack, name, layer, x, here()))

    def _look_up(self, part: nn.Module, given: tuple[Tensor, ...], _answer: Tensor) -> None:
        assert isinstance(part, nn.Embedding)
        self.lookups.append(Lookup(part.weight.detach(), given[0].detach()))


@contextmanager
def record_states(model: nn.Module) -> Iterator[States]:
    """Read the states off every pass through a model while this is open."""
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
    """List what counts as a layer: blocks and recurrent layers; without any, convolutions."""
    kinds = AttentionBlock | Recurrent | CONVOLUTIONAL
    found: list[nn.Module] = [part for part in model.modules() if isinstance(part, kinds)]
    return found or [part for part in model.modules() if isinstance(part, nn.Conv2d)]


@torch.inference_mode()
def outputs(model: nn.Module, pictures: Float[Tensor, "..."]) -> list[LayerState]:
    """Let a model answer, and return what went into its first layer and what each answered."""
    model.eval()
    with record_states(model) as found:
        model(pictures)
    return found.layers


def pooled(x: Tensor) -> Float[Tensor, "example dim"]:
    """One vector an example: the mean over tokens, or over the places of a map."""
    return x.mean(dim=1) if x.ndim == 3 else x.mean(dim=(2, 3)) if x.ndim == 4 else x


def _place(part: nn.Module) -> tuple[str, int]:
    """Name the stack of a layer and number it there, by the site of the attention in it."""
    if isinstance(part, Recurrent):
        return part.sites[0].stack, part.sites[0].layer + 1
    for inner in part.modules():
        site = getattr(inner, "site", None)
        if isinstance(site, Site):
            return site.stack, site.layer + 1
    return CONVOLUTIONS, 0
