"""Swin Transformers of timm, Hugging Face and torchvision -> our Swin.

The three agree on the arithmetic, but not on what happens at the edge of a grid that windows do not
fill: see `EDGES` in models/swin.py.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert import hf, timm
from manyheads.models.convert.converter import Keys
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import height_and_width, height_width, packed, patches, single
from manyheads.models.swin import EdgesName, SwinConfig


class Names(NamedTuple):
    """What a library calls its modules; in braces a stage's number, or one computed from it."""

    patches: str
    patch_norm: str
    stages: str  # what is numbered there; `parts` of them are a stage
    blocks: str
    merge: str
    block: Mapping[str, str]  # modules of a block, theirs and ours
    attention: str
    qkv: tuple[str, ...]
    norm: str
    head: str
    edges: EdgesName
    parts: int = 1


TIMM_BLOCK = timm.BLOCK | {"attn.proj": "attention.attention.out"}
TIMM = Names(
    patches="patch_embed.proj",
    patch_norm="patch_embed.norm",
    stages="layers.",
    blocks="layers.{stage}.blocks",
    merge="layers.{stage}.downsample",
    block=TIMM_BLOCK,
    attention="attn",
    qkv=("qkv",),
    norm="norm",
    head="head.fc",
    edges="timm",
)
TORCHVISION = Names(
    patches="features.0.0",
    patch_norm="features.0.2",
    stages="features.",  # blocks and mergings take turns behind the patches
    blocks="features.{odd}",
    merge="features.{even}",
    block={
        {"mlp.fc1": "mlp.0", "mlp.fc2": "mlp.3"}.get(theirs, theirs): ours
        for theirs, ours in TIMM_BLOCK.items()
    },
    attention="attn",
    qkv=("qkv",),
    norm="norm",
    head="head",
    edges="torchvision",
    parts=2,
)
HF = Names(
    patches="swin.embeddings.patch_embeddings.projection",
    patch_norm="swin.embeddings.norm",
    stages="swin.encoder.layers.",
    blocks="swin.encoder.layers.{stage}.blocks",
    merge="swin.encoder.layers.{before}.downsample",
    block=hf.LAYER | {"attention.output.dense": "attention.attention.out"},
    attention="attention.self",
    qkv=hf.QKV,
    norm="swin.layernorm",
    head="classifier",
    edges="transformers",
)
READ: dict[str, Any] = {"num_heads": (3, 6, 12, 24), "window_size": 7}
SHOWN = "depths=layers embed_dim=dim patch_size=patch mlp_ratio qkv_bias"
TIMM_KEYS = Keys(
    kind="timm Swin",
    read={**READ, "img_size": 224},
    only={"global_pool": ("avg",)},
    shown=f"{SHOWN} in_chans=channels num_classes=classes",
    idle=timm.IDLE,
)
TORCHVISION_KEYS = Keys(
    kind="torchvision Swin",
    read={**READ, "image_size": 224},
    shown=f"{SHOWN} num_classes=classes",
    idle="attention_dropout dropout stochastic_depth_prob",
)
HF_KEYS = Keys(
    kind="Hugging Face Swin",
    read={**READ, "image_size": 224},
    only={
        "hidden_act": ("gelu",),
        "layer_norm_eps": (1e-5,),
        "use_absolute_embeddings": (False,),
    },
    shown=f"{SHOWN} num_channels=channels hidden_size num_layers",
    idle=f"{hf.IDLE} drop_path_rate path_norm",
)
Result = tuple[SwinConfig, State]


@TIMM_KEYS.reader
def from_timm(settings: Settings, given: ForeignTensors) -> Result:
    """Map a SwinTransformer of timm."""
    return _read(given, TIMM, settings, settings["img_size"])


@TORCHVISION_KEYS.reader
def from_torchvision(settings: Settings, given: ForeignTensors) -> Result:
    """Map a SwinTransformer of torchvision (not of its version 2), with its `image_size`."""
    return _read(given, TORCHVISION, settings, settings["image_size"])


@HF_KEYS.reader
def from_hf(settings: Settings, given: ForeignTensors) -> Result:
    """Map a SwinForImageClassification of Hugging Face."""
    return _read(given, HF, settings, settings["image_size"])


def _read(given: ForeignTensors, names: Names, settings: Settings, size: Any) -> Result:
    kernel, state = patches(given, names.patches)
    state |= given.module(names.patch_norm, "norm_patches")
    layers = []
    for stage in range(-(-given.count(names.stages) // names.parts)):
        numbers = {"stage": stage, "before": stage - 1, "even": 2 * stage, "odd": 2 * stage + 1}
        blocks, ours = names.blocks.format(**numbers), f"stages.{stage}"
        if stage:
            merge = names.merge.format(**numbers)
            state |= given.module(f"{merge}.norm", f"{ours}.merge.norm")
            state |= given.convolution(f"{merge}.reduction", f"{ours}.merge.project")
        layers.append(given.count(f"{blocks}."))
        for layer in range(layers[-1]):
            theirs, mine = f"{blocks}.{layer}", f"{ours}.blocks.{layer}"
            state |= given.modules(theirs, mine, names.block)
            attention = f"{theirs}.{names.attention}"
            qkv = [f"{attention}.{part}" for part in names.qkv]
            state |= packed(given, qkv, f"{mine}.attention.attention.qkv")
            table = given.take(f"{attention}.relative_position_bias_table")
            state[f"{mine}.attention.bias.table"] = table
    state |= given.module(names.norm, "norm")
    state |= given.module(names.head, "head")
    return _config(state, kernel, layers, settings, size, names.edges), state


def _config(
    state: Tensors,
    kernel: Tensor,
    layers: list[int],
    settings: Settings,
    size: Any,
    edges: EdgesName,
) -> SwinConfig:
    window = settings["window_size"]
    if isinstance(window, list | tuple) and len(window) != 2:
        window = single(window, "window_size")
    config = SwinConfig(
        **height_width(size),
        channels=kernel.shape[1],
        patch=kernel.shape[2],
        dim=kernel.shape[0],
        layers=tuple(layers),
        heads=tuple(settings["num_heads"]),
        window=height_and_width(window),
        expansion=len(state["stages.0.blocks.0.feedforward.expand.bias"]) / kernel.shape[0],
        classes=len(state["head.bias"]),
        edges=edges,
    )
    for stage, (rows, columns) in enumerate(config.windows):
        found = len(state[f"stages.{stage}.blocks.0.attention.bias.table"])
        if found != (2 * rows - 1) * (2 * columns - 1):
            raise UsageError(
                f"Stage {stage + 1} of the model has a bias for {found} distances, but windows of "
                f"{rows} x {columns} have {(2 * rows - 1) * (2 * columns - 1)}: check that its "
                "image size and window size are stated."
            )
    return config
