"""Names of architectures are understood by rule, and words without a meaning are refused."""

from typing import Any

import pytest

from manyheads.errors import UsageError
from manyheads.models.convert.families import TIMM, TORCHVISION
from manyheads.models.convert.names import understand


@pytest.mark.parametrize(
    ("name", "family", "settings"),
    [
        (
            "vit_small_patch32_224",
            "ViT",
            {"embed_dim": 384, "num_heads": 6, "patch_size": 32, "img_size": 224},
        ),
        (
            "timm/vit_base_patch16_384.augreg_in21k_ft_in1k",
            "ViT",
            {"embed_dim": 768, "num_heads": 12, "patch_size": 16, "img_size": 384},
        ),
        (
            "vit_large_patch7_91",  # nobody has made one
            "ViT",
            {"embed_dim": 1024, "num_heads": 16, "patch_size": 7, "img_size": 91},
        ),
        ("vit_base_r50_s16_224", "ViT", {"embed_dim": 768, "num_heads": 12, "img_size": 224}),
        (
            "vit_tiny_r_s16_p8_384",
            "ViT",
            {"embed_dim": 192, "num_heads": 3, "patch_size": 8, "img_size": 384},
        ),
        (
            "deit_tiny_patch16_224",
            "DeiT",
            {"embed_dim": 192, "num_heads": 3, "patch_size": 16, "img_size": 224},
        ),
        (
            "deit_base_distilled_patch16_384",
            "DeiT with a distillation token",
            {"embed_dim": 768, "num_heads": 12, "patch_size": 16, "img_size": 384},
        ),
        (
            "swin_base_patch4_window12_384",
            "Swin",
            {
                "embed_dim": 128,
                "depths": (2, 2, 18, 2),
                "num_heads": (4, 8, 16, 32),
                "patch_size": 4,
                "window_size": 12,
                "img_size": 384,
            },
        ),
        ("resnet50", "ResNet", {}),
        ("resnet152.a1h_in1k", "ResNet", {}),
        ("wide_resnet50_2", "ResNet", {}),
        ("resnext101_32x8d", "ResNet", {}),
        ("resnetv2_50x1_bit.goog_in21k", "BiT", {}),
        ("vgg16_bn", "VGG", {}),
    ],
)
def test_names_of_timm(name: str, family: str, settings: dict[str, Any]) -> None:
    found, said = understand(name, TIMM)
    assert (found.name, said) == (family, settings)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("vit_b_16", {"embed_dim": 768, "num_heads": 12, "patch_size": 16}),
        ("vit_h_14", {"embed_dim": 1280, "num_heads": 16, "patch_size": 14}),
        ("resnet18", {}),
        ("vgg11", {}),
    ],
)
def test_names_of_torchvision(name: str, settings: dict[str, Any]) -> None:
    assert understand(name, TORCHVISION)[1] == settings


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("vit_small_patch16_18x2_224", "18x2"),
        ("vit_base_patch16_gap_224", "gap"),
        ("vit_base_patch16_rpn_224", "rpn"),
        ("vit_base_patch16_224_miil", "miil"),
        ("vit_relpos_base_patch16_224", "relpos"),
        ("vit_small_resnet26d_224", "resnet26d"),
        ("vit_base_patch16_rope_224", "rope"),
        ("swin_s3_tiny_224", "s3"),
        ("resnet50_gn", "gn"),
        ("resnet50_clip", "clip"),
        ("resnet50_mlp", "mlp"),
        ("wide_resnet50_2_gn", "gn"),
        ("resnetv2_50x1_evob", "evob"),
    ],
)
def test_a_word_without_a_meaning_is_refused(name: str, word: str) -> None:
    """It may stand for parts, or for other heads, that tensors do not show."""
    with pytest.raises(UsageError, match=f"word '{word}', which is not understood"):
        understand(name, TIMM)


@pytest.mark.parametrize(
    "name",
    [
        *("resnet50c", "resnet50d", "resnet50s", "resnet50t", "resnetaa50", "resnetblur50"),
        *("resnetrs50", "resnest50d", "seresnet50", "seresnext50_32x4d", "skresnet50"),
        *("ecaresnet50t", "gcresnet50t", "resnext26ts", "resnetv2_50", "resnetv2_50d_gn"),
        *("cait_s24_224", "xcit_tiny_12_p8_224", "beit_base_patch16_224"),
        *("vitamin_base_224", "flexivit_base", "eva02_base_patch14_224", "davit_base"),
        *("swinv2_tiny_window8_256", "swinv2_cr_tiny_224", "maxvit_tiny_rw_224", "convnext_tiny"),
        *("coatnet_bn_0_rw_224", "coatnet_rmlp_1_rw_224", "coatnext_nano_rw_224", "repvgg_a2"),
    ],
)
def test_other_families_are_refused(name: str) -> None:
    """The message lists what is understood."""
    with pytest.raises(UsageError, match=r"of no family .*resnetv2_50x1_bit.* VGG"):
        understand(name, TIMM)


@pytest.mark.parametrize("name", ["resnetaa50", "resnet50d", "vitamin_base_224", "swinv2_tiny"])
def test_no_similar_architecture_is_suggested(name: str) -> None:
    """Its weights might load, and every answer be wrong."""
    with pytest.raises(UsageError, match="of no family") as raised:
        understand(name, TIMM)
    assert "did you mean" not in str(raised.value)


def test_settings_belong_to_who_asked() -> None:
    """They are completed with what a file says; the table of names stays as it is."""
    understand("coatnet_0", TIMM)[1]["img_size"] = 8
    assert understand("coatnet_0", TIMM)[1] == {"head_hidden_size": 768}
