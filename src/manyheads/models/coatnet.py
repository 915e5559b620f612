"""CoAtNet: Dai et al. 2021, "Marrying Convolution and Attention for All Data Sizes".

Two stages of convolutions mix neighbours, two of attention distant tokens; a learned bias for each
distance gives attention the translation equivariance of a convolution.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.components import ACTIVATIONS, Activation
from manyheads.models.model_config import ImageConfig
from manyheads.models.sized_tables import SizedTable, stage_tables
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.relative import RelativeAttention
from manyheads.nn.blocks.block import AttentionBlock, GridBlock
from manyheads.nn.layers.feedforward import FeedForward
from manyheads.nn.layers.grid import to_map, to_tokens
from manyheads.nn.layers.head import Head
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.residual import PreNorm, branch_end
from manyheads.nn.layers.stochastic_depth import stage_decay
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.recording.tracking import start_image, track_modules
from manyheads.nn.shapes import ClassScores, Grid, Images, Tokens
from manyheads.nn.vision.mbconv import MaxDown, MBConv, MeanDown, SqueezeExcitation, shrink

Down = Literal["mean", "max"]
NORM_EPS = 1e-6
DOWNS: dict[Down, type[MeanDown] | type[MaxDown]] = {"mean": MeanDown, "max": MaxDown}


@dataclass(frozen=True, kw_only=True)
class CoatnetConfig(ImageConfig):
    """Shape and parts of a CoAtNet; the defaults are CoAtNet-0 (table 3).

    The paper leaves details open; the words below the line choose among the ways timm has trained.
    """

    behind_features = ("pool", "head")
    _width_key = "dims"

    stem: tuple[int, int] = (64, 64)
    dims: tuple[int, ...] = (96, 192, 384, 768)
    layers: tuple[int, ...] = (2, 3, 5, 2)
    convolutions: int = 2  # stages of MBConv; the others attend
    head_size: int = 32
    expansion: int = 4
    representation: int = 0  # width of a layer with tanh before the head; 0 is none
    dropout: float = 0.0
    attention_dropout: float = 0.0  # more than 0 leaves the fast path of the fused kernel
    drop_path: float = 0.0  # stochastic depth: the rate of the last layer; the first has 0
    layer_scale: float = 0.0  # gain of every attention and feed-forward branch at first; 0 is none
    # ---
    down: Down = "mean"
    activation: Activation = "gelu"  # of convolutions
    squeeze_activation: Activation = "silu"
    squeeze: Literal["early", "late"] = "late"  # before or after norm and activation
    expand: Literal["input", "output"] = "output"  # the width that is multiplied
    stride: Literal["depthwise", "pool"] = "depthwise"  # where a convolution branch is halved
    norm_activation: bool = False  # an activation behind the first norm of a convolution branch
    output_bias: bool = True  # of the last convolution of a branch and its shortcut
    shortcut_bias: bool = True  # of an attention's shortcut
    widen: Literal["first", "last"] = "first"  # the projection that makes attention wider

    def __post_init__(self) -> None:
        if len(self.dims) != len(self.layers) or not 0 <= self.convolutions <= len(self.dims):
            raise UsageError(
                f"dims describe {len(self.dims)} stages, layers {len(self.layers)}, of which "
                f"{self.convolutions} convolve: give a number of each for every stage."
            )
        if min(self.layers, default=1) < 1:
            raise UsageError(
                f"layers is {self.layers}, but a stage has at least 1 layer: leave a number out of "
                "dims and layers to leave out its stage."
            )
        for dim in self.dims[self.convolutions :]:
            if dim % self.head_size:
                raise UsageError(
                    f"A stage is {dim} wide, which heads of {self.head_size} do not fill: choose a "
                    "multiple."
                )

    @property
    def grids(self) -> list[Grid]:
        """Rows and columns of each stage: the stem and each stage halve them, rounded up."""
        steps = [2 ** (stage + 2) for stage in range(len(self.dims))]  # pixels a token
        return [(-(-self.height // step), -(-self.width // step)) for step in steps]

    @property
    def sized_tables(self) -> Mapping[str, SizedTable]:
        """Bias tables depend on the grid of their stage."""
        return stage_tables("stages.{}.*.bias.table", self.grids)

    def build(self) -> "Coatnet":
        """Build the model with fresh weights."""
        return Coatnet(self)


class DownBlock(AttentionBlock):
    """The first block of an attention stage: both branches are halved, and become wider."""

    def __init__(
        self,
        attention: RelativeAttention,
        feedforward: nn.Module,
        residual: partial[PreNorm],
        *,
        norm: nn.Module,
        pool: nn.Module,
        shortcut: nn.Module,
        end: nn.Module,
    ) -> None:
        super().__init__()
        self.norm = norm
        self.pool = pool
        self.attention = attention
        self.shortcut = shortcut
        self.end = end
        self.feedforward = feedforward
        self.around_feedforward = residual()
        self.around_feedforward.named("feedforward", attention)

    def forward(self, x: Tokens, grid: Grid) -> Float[Tensor, "batch fewer wider"]:
        """Halve, mix tokens, then transform each."""
        record_features(x)
        x = self.entered(x)
        track_modules([self.pool])
        short, _ = to_tokens(self.shortcut(to_map(x, grid)))
        y, halved = to_tokens(self.pool(to_map(self.norm(x), grid)))
        x = short + self.end(self.attention(y, halved))
        y = self.feedforward(self.around_feedforward.enter(x))
        return self.left(self.around_feedforward.add(x, y))


class MeanOfNormed(nn.Module):
    """Normalise each token, then average: what precedes a plain head."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=NORM_EPS)

    def forward(self, x: Tokens) -> Float[Tensor, "batch dim"]:
        """Make one vector of the tokens."""
        return self.norm(x).mean(dim=1)


class HiddenOfMean(nn.Module):
    """Average, normalise, and pass a layer with tanh."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=NORM_EPS)
        self.hidden = Linear(dim, hidden)

    def forward(self, x: Tokens) -> Float[Tensor, "batch hidden"]:
        """Make one vector of the tokens."""
        return self.hidden(self.norm(x.mean(dim=1))).tanh()


class Coatnet(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: CoatnetConfig) -> None:
        super().__init__()
        self.config = config
        first, second = config.stem
        self.stem = nn.Sequential(
            OrderedDict(
                first=nn.Conv2d(config.channels, first, 3, stride=2, padding=1, bias=False),
                norm=nn.BatchNorm2d(first),
                activation=ACTIVATIONS[config.activation](),
                second=nn.Conv2d(first, second, 3, padding=1, bias=False),
            )
        )
        rates = stage_decay(config.drop_path, config.layers)
        stages = []
        dim = second
        for stage, outputs in enumerate(config.dims):
            kind = _convolve if stage < config.convolutions else _attend
            blocks = []
            for layer, rate in enumerate(rates[stage]):
                blocks.append(kind(config, stage, layer, dim, outputs, rate))
                dim = outputs
            stages.append(nn.ModuleList(blocks))
        self.stages = nn.ModuleList(stages)
        self.pool = (
            HiddenOfMean(dim, config.representation) if config.representation else MeanOfNormed(dim)
        )
        self.head = Head(config.representation or dim, config.classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw initial weights: Xavier for linear layers, He for convolutions, a zero head."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        nn.init.zeros_(self.head.weight)  # all classes equally likely at first

    def forward(self, images: Images) -> ClassScores:
        """Score every class for every image."""
        return self.head(self.pool(self.features(images)))

    def features(self, images: Images) -> Tokens:
        """Return the vectors of the last stage's tokens."""
        start_image(images)
        track_modules(self.stem)
        x = self.stem(images.contiguous(memory_format=torch.channels_last))
        split = self.config.convolutions
        for blocks in self.stages[:split]:
            for block in blocks:  # type: ignore[attr-defined]
                x = block(x)
        tokens, grid = to_tokens(x)
        for blocks in self.stages[split:]:
            for layer, block in enumerate(blocks):  # type: ignore[arg-type]
                tokens = block(tokens, grid)
                if layer == 0:  # the first halves the grid
                    grid = (-(-grid[0] // 2), -(-grid[1] // 2))
        return tokens


def _convolve(
    config: CoatnetConfig,
    stage: int,  # noqa: ARG001 - the same call builds every kind
    layer: int,
    dim: int,
    outputs: int,
    drop_path: float,
) -> nn.Module:
    """Build a block of a convolution stage; the first halves the map and widens it."""
    activation = ACTIVATIONS[config.activation]
    first = layer == 0
    wide = outputs if config.expand == "output" else dim
    hidden = config.expansion * wide
    squeezed = (outputs if config.expand == "output" else hidden) // 4
    parts: OrderedDict[str, nn.Module] = OrderedDict(norm=nn.BatchNorm2d(dim))
    if config.norm_activation:
        parts["norm_activation"] = activation()
    if first and config.stride == "pool":
        parts["pool"] = MeanDown()
    parts["expand"] = nn.Conv2d(dim, hidden, 1, bias=False)
    parts["norm_expanded"] = nn.BatchNorm2d(hidden)
    parts["activation_expanded"] = activation()
    parts["depthwise"] = nn.Conv2d(
        hidden,
        hidden,
        3,
        stride=2 if first and config.stride == "depthwise" else 1,
        padding=1,
        groups=hidden,
        bias=False,
    )
    squeeze = SqueezeExcitation(hidden, squeezed, ACTIVATIONS[config.squeeze_activation]())
    if config.squeeze == "early":
        parts["squeeze"] = squeeze
    parts["norm_depthwise"] = nn.BatchNorm2d(hidden)
    parts["activation_depthwise"] = activation()
    if config.squeeze == "late":
        parts["squeeze"] = squeeze
    parts["contract"] = nn.Conv2d(hidden, outputs, 1, bias=config.output_bias)
    shortcut = (
        shrink(dim, outputs, DOWNS[config.down], bias=config.output_bias)
        if first
        else nn.Identity()
    )
    return MBConv(nn.Sequential(parts), shortcut, drop_path=drop_path)


def _attend(
    config: CoatnetConfig, stage: int, layer: int, dim: int, outputs: int, drop_path: float
) -> nn.Module:
    """Build a block of an attention stage; the first halves the grid and widens it."""
    inner = outputs if config.widen == "first" else dim
    attention = MultiHeadAttention(
        dim,
        inner // config.head_size,
        attention_dim=inner,
        outputs=outputs,
        dropout=config.attention_dropout,
    )
    attention.layer_id = LayerId(f"stage {stage + 1}", layer, "self")
    relative = RelativeAttention(attention, config.grids[stage])
    feedforward = FeedForward(
        outputs, config.expansion * outputs, nn.GELU(), dropout=config.dropout
    )
    residual = partial(
        PreNorm,
        outputs,
        dropout=config.dropout,
        eps=NORM_EPS,
        layer_scale=config.layer_scale,
        drop_path=drop_path,
    )
    if layer:
        return GridBlock(relative, feedforward, residual)
    down = DOWNS[config.down]
    return DownBlock(
        relative,
        feedforward,
        residual,
        norm=nn.LayerNorm(dim, eps=NORM_EPS),
        pool=down(),
        shortcut=shrink(dim, outputs, down, bias=config.shortcut_bias),
        end=branch_end(outputs, config.dropout, config.layer_scale, drop_path),
    )
