"""torchvision's VisionTransformer -> our Vit, through the names that timm has for the same."""

from manyheads.models.convert import timm
from manyheads.models.convert.converter import keys
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.vit import VitConfig

# Modules of a block, theirs and timm's. The two layers of an MLP were once named otherwise.
BLOCK = {"ln_1": "norm1", "self_attention.out_proj": "attn.proj", "ln_2": "norm2"}
MLPS = (
    {"mlp.0": "mlp.fc1", "mlp.3": "mlp.fc2"},
    {"mlp.linear_1": "mlp.fc1", "mlp.linear_2": "mlp.fc2"},
)


@keys("torchvision vit").reader
def vit(settings: Settings, weights: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a VisionTransformer, whose heads are 64 wide unless `num_heads` is said."""
    named = {
        "cls_token": weights.take("class_token"),
        "pos_embed": weights.take("encoder.pos_embedding"),
        **weights.module("conv_proj", "patch_embed.proj"),
        **weights.module("encoder.ln", "norm"),
        **weights.module("heads.head", "head"),
    }
    if "heads.pre_logits.weight" in weights:
        named |= weights.module("heads.pre_logits", "pre_logits.fc")
    for layer in range(weights.reach("encoder.layers.encoder_layer_{}.ln_1.weight")):
        theirs, ours = f"encoder.layers.encoder_layer_{layer}", f"blocks.{layer}"
        mlp = MLPS[f"{theirs}.mlp.linear_1.weight" in weights]
        named |= weights.modules(theirs, ours, BLOCK | mlp)
        for part in ("weight", "bias"):
            named[f"{ours}.attn.qkv.{part}"] = weights.take(
                f"{theirs}.self_attention.in_proj_{part}"
            )
    dim = named["cls_token"].shape[-1]
    return timm.vit({**settings, "num_heads": settings["num_heads"] or max(dim // 64, 1)}, named)
