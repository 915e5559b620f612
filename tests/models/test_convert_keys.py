"""What a configuration says is read, known to be of no matter to this converter, or refused."""

from typing import Any

import pytest

from manyheads.errors import UsageError
from manyheads.models.convert.families import CONVERTERS, IMAGE_TEXT, check
from tests.models import test_golden_encoders, test_golden_image_text
from tests.models.test_golden_images import load

KINDS = {
    **CONVERTERS,
    **{f"hf {kind} with texts": converter for kind, converter in IMAGE_TEXT.items()},
}
CAPTIONER = {
    "encoder": {"model_type": "vit"},
    "decoder": {"model_type": "gpt2"},
    **dict.fromkeys(("decoder_start_token_id", "pad_token_id", "eos_token_id"), 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_converter_takes_a_key_that_it_does_not_know(kind: str) -> None:
    """Before any weights are there."""
    told = CAPTIONER if "encoder-decoder" in kind else {}
    KINDS[kind].check({**told, "wanted_size": (8, 8)})
    with pytest.raises(UsageError, match="has a_new_part = 'x', which is not understood"):
        KINDS[kind].check({**told, "a_new_part": "x"})


@pytest.mark.parametrize(
    ("golden", "change"),
    [
        # Of what timm's ViT reads and the others do not; once silently of no effect.
        ("timm-resnet-basic", {"act_layer": "silu"}),
        ("timm-resnet-bottleneck", {"act_layer": "gelu"}),
        ("timm-bit-odd", {"act_layer": "gelu"}),
        ("timm-vgg-batch-norm-large", {"act_layer": "silu"}),
        # Shown by no tensor.
        ("timm-resnet-basic", {"output_stride": 8}),
        ("timm-bit-odd", {"stem_type": "same"}),
        ("timm-vit-patch-mean", {"pool_include_prefix": True}),
        ("timm-vit-patch-mean", {"dynamic_img_pad": True}),
        ("timm-vit-patch-mean", {"depth": 3}),
        ("hf-resnet-basic", {"auto_map": {"AutoModel": "own.Model"}}),
        ("hf-resnet-basic", {"quantization_config": {"bits": 4}}),
        ("hf-vit-resized", {"pruned_heads": {"0": [1]}}),
        ("hf-vit-resized", {"num_hidden_layers": 5}),
    ],
)
def test_what_would_answer_otherwise_is_refused(golden: str, change: dict[str, Any]) -> None:
    reference = load(golden)
    reference.convert()
    with pytest.raises(UsageError, match=next(iter(change))):
        CONVERTERS[reference.kind](reference.settings | change, reference.tensors)


def test_the_norm_of_clip_is_not_one_of_a_plain_vit() -> None:
    """It is visible in the tensors; a plain ViT has other epsilons, and maybe another GELU."""
    clip = test_golden_encoders.load("timm-clip")
    with pytest.raises(UsageError, match="pre_norm False, but its tensors have True"):
        clip.convert(pre_norm=False)
    siglip = test_golden_encoders.load("timm-siglip")
    with pytest.raises(UsageError, match="global_pool 'avg'"):
        siglip.convert(global_pool=None)


def test_a_gate_is_of_silu() -> None:
    """timm's SwiGLU takes the activation that is said."""
    golden = test_golden_encoders.load("timm-dinov2-swiglu")
    golden.convert(act_layer="silu")
    with pytest.raises(UsageError, match="gates of act_layer 'gelu'"):
        golden.convert(act_layer="gelu")


def test_a_configuration_alone_is_checked() -> None:
    """As a hub's name is, before the weights are fetched."""
    for name in test_golden_image_text.NAMES:
        assert check(test_golden_image_text.load(name).settings) == "hf"
    assert check(load("hf-bit").settings) == "hf"
    assert check({"architecture": "resnet50.a1_in1k", "num_features": 2048}) == "timm"
    assert check({"model_type": "marian", "num_beams": 6, "dropout": 0.1}) == "marian"
    refused: dict[str, dict[str, Any]] = {
        "act_layer = 'silu'": {"architecture": "resnet50", "model_args": {"act_layer": "silu"}},
        "word 'xp'": {"architecture": "vit_base_xp"},
        "model_args = 'x'": {"architecture": "resnet50", "model_args": "x"},
        "normalize_before = True": {"model_type": "marian", "normalize_before": True},
        "model_type 'blip' is none": {"model_type": "blip"},
        "model_type None is none": {},
        r"model_type \[1\] is none": {"model_type": [1]},
        "hidden_act = 'mish'": {"model_type": "clip", "text_config": {"hidden_act": "mish"}},
        "text_config = 'x'": {"model_type": "siglip", "text_config": "x"},
    }
    for message, about in refused.items():
        with pytest.raises(UsageError, match=message):
            check(about)
    # Where a captioner was trained, its decoder's vocab_size often stands in front, too.
    assert check({**CAPTIONER, "model_type": "vision-encoder-decoder", "vocab_size": 9}) == "hf"
    # A classifier of images has texts in its configuration only.
    check({**refused["hidden_act = 'mish'"], "architectures": ["CLIPForImageClassification"]})
