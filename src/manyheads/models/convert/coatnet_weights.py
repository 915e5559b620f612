"""timm's CoAtNets (its MaxxVit of convolution and attention stages) -> our Coatnet."""

import re

from manyheads.errors import UsageError
from manyheads.models.coatnet import CoatnetConfig, Down
from manyheads.models.convert.converter import keys
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import height_width, pointwise


def _check(settings: Settings) -> None:
    if settings["conv_pool_type"] != settings["transformer_pool_type"]:
        raise UsageError(
            f"This timm model has conv_pool_type {settings['conv_pool_type']!r} and "
            f"transformer_pool_type {settings['transformer_pool_type']!r}; they must be equal."
        )
    kinds = "".join(settings["block_type"])
    if not re.fullmatch("C*T*", kinds):
        raise UsageError(
            f"This timm model has block_type {tuple(kinds)}; Coatnet has stages of convolutions "
            "('C'), then stages of attention ('T')."
        )


DOWNS: dict[str, Down] = {"avg2": "mean", "max": "max"}


@keys("timm coatnet", _check).reader
def from_timm(settings: Settings, weights: ForeignTensors) -> tuple[CoatnetConfig, State]:
    """Map a MaxxVit whose stages are convolutions, then attentions with a table of biases.

    For the settings of timm's list see `families.toml`.
    """
    convolutions = settings["block_type"].count("C")
    state = weights.convolution("stem.conv1", "stem.first")
    state |= weights.convolution("stem.conv2", "stem.second")
    state |= weights.batch_norm("stem.norm1", "stem.norm")
    layers, dims = [], []
    for stage in range(weights.count("stages.")):
        layers.append(weights.count(f"stages.{stage}.blocks."))
        for layer in range(layers[-1]):
            theirs, ours = f"stages.{stage}.blocks.{layer}", f"stages.{stage}.{layer}"
            convert = _convolution if stage < convolutions else _attention
            block = convert(weights, theirs, settings)
            state |= {f"{ours}.{name}": tensor for name, tensor in block.items()}
        last = f"stages.{stage}.{layers[-1] - 1}"
        name = "layers.contract" if stage < convolutions else "feedforward.contract"
        dims.append(len(state[f"{last}.{name}.weight"]))
    hidden = settings["head_hidden_size"]
    state |= weights.module("head.norm" if hidden else "norm", "pool.norm")
    if hidden:
        state |= weights.module("head.pre_logits.fc", "pool.hidden")
    state |= weights.module("head.fc", "head")
    widen = f"stages.{convolutions}.0.shortcut.widen"
    config = CoatnetConfig(
        **height_width(settings["img_size"]),
        channels=state["stem.first.weight"].shape[1],
        stem=(len(state["stem.first.weight"]), len(state["stem.second.weight"])),
        dims=tuple(dims),
        layers=tuple(layers),
        convolutions=convolutions,
        head_size=settings["transformer_dim_head"],
        classes=len(state["head.bias"]),
        representation=hidden or 0,
        layer_scale=settings["transformer_init_values"] or 0.0,
        down=DOWNS[settings["transformer_pool_type"]],
        activation=settings["conv_act_layer"],
        squeeze_activation=settings["conv_attn_act_layer"],
        squeeze="early" if settings["conv_attn_early"] else "late",
        expand="output" if settings["conv_expand_output"] else "input",
        stride="depthwise" if settings["conv_stride_mode"] == "dw" else "pool",
        norm_activation=settings["conv_pre_norm_act"],
        output_bias="stages.0.0.layers.contract.bias" in state,
        shortcut_bias=f"{widen}.bias" in state or f"{widen}.weight" not in state,
        widen="first" if settings["transformer_expand_first"] else "last",
    )
    return config, state


def _convolution(weights: ForeignTensors, theirs: str, settings: Settings) -> State:
    state = weights.batch_norm(f"{theirs}.pre_norm", "layers.norm")
    state |= weights.batch_norm(f"{theirs}.norm1", "layers.norm_expanded")
    state |= weights.batch_norm(f"{theirs}.norm2", "layers.norm_depthwise")
    state["layers.expand.weight"] = weights.take(f"{theirs}.conv1_1x1.weight")
    state["layers.depthwise.weight"] = weights.take(f"{theirs}.conv2_kxk.weight")
    squeeze = "se_early" if settings["conv_attn_early"] else "se"
    state |= weights.module(f"{theirs}.{squeeze}.fc1", "layers.squeeze.squeeze")
    state |= weights.module(f"{theirs}.{squeeze}.fc2", "layers.squeeze.excite")
    state |= _maybe_biased(weights, f"{theirs}.conv3_1x1", "layers.contract")
    return state | _maybe_biased(weights, f"{theirs}.shortcut.expand", "shortcut.widen")


def _attention(weights: ForeignTensors, theirs: str, settings: Settings) -> State:
    first = f"{theirs}.norm1.norm.weight" in weights  # the first of a stage
    norm, ours = ("norm1.norm", "norm") if first else ("norm1", "around_attention.norm")
    state = weights.module(f"{theirs}.{norm}", ours)
    state |= _maybe_biased(weights, f"{theirs}.shortcut.expand", "shortcut.widen")
    size = settings["transformer_dim_head"]
    for name, tensor in pointwise(weights, f"{theirs}.attn.qkv", "attention.attention.qkv").items():
        # Theirs has queries, keys and values of one head beside each other, then the next head's.
        by_head = tensor.unflatten(0, (-1, 3, size))
        state[name] = by_head.transpose(0, 1).flatten(0, 2).contiguous()
    state |= pointwise(weights, f"{theirs}.attn.proj", "attention.attention.out")
    table = f"{theirs}.attn.rel_pos.relative_position_bias_table"
    state["attention.bias.table"] = weights.take(table)
    state |= weights.module(f"{theirs}.norm2", "around_feedforward.norm")
    state |= pointwise(weights, f"{theirs}.mlp.fc1", "feedforward.expand")
    state |= pointwise(weights, f"{theirs}.mlp.fc2", "feedforward.contract")
    if settings["transformer_init_values"]:
        end = "end" if first else "around_attention.dropout"
        state[f"{end}.1.gain"] = weights.take(f"{theirs}.ls1.gamma")
        state["around_feedforward.dropout.1.gain"] = weights.take(f"{theirs}.ls2.gamma")
    return state


def _maybe_biased(weights: ForeignTensors, theirs: str, ours: str) -> State:
    names = (f"{part}" for part in ("weight", "bias") if f"{theirs}.{part}" in weights)
    return {f"{ours}.{part}": weights.take(f"{theirs}.{part}") for part in names}
