"""Tiny vision Transformers of other libraries beyond the plain ViT, at several image sizes."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import references as plain
from benchmarks.peers import import_peer, transformers_library
from manyheads.models.convert.families import TIMM

Size = tuple[int, int]
SWIN_SIZES: dict[str, Size] = {
    "": (16, 32),  # windows fill the grids
    "-padded": (28, 36),  # they do not, in any stage
    "-covered": (16, 24),  # one window covers an axis of the last stage
}
ARCHITECTURES = next(family.says for family in TIMM if family.name == "CoAtNet")
SMALL = (12, 20)  # less than a window; Hugging Face cannot run it
DEIT_SIZES: dict[str, Size] = {"": (8, 12), "-square": (16, 16)}
CVT_SIZES: dict[str, Size] = {"": (16, 24), "-odd": (27, 41)}
COATNET_SIZES: dict[str, Size] = {"": (64, 64), "-wide": (32, 96)}


def references() -> dict[str, Callable[[], "plain.Reference"]]:
    """List the references; each is built when it is called."""
    cases: dict[str, Callable[[], plain.Reference]] = {}
    for suffix, size in SWIN_SIZES.items():
        cases[f"timm-swin{suffix}"] = partial(_timm_swin, size)
        cases[f"hf-swin{suffix}"] = partial(_hf_swin, size)
        cases[f"torchvision-swin{suffix}"] = partial(_torchvision_swin, size)
    cases["timm-swin-small"] = partial(_timm_swin, SMALL)
    cases["torchvision-swin-small"] = partial(_torchvision_swin, SMALL)
    cases["timm-swin-square"] = partial(
        _timm_swin, (32, 32), patch_size=4, embed_dim=16, window_size=3, qkv_bias=False
    )
    for suffix, size in DEIT_SIZES.items():
        cases[f"timm-deit{suffix}"] = partial(_timm_deit, size)
        cases[f"hf-deit{suffix}"] = partial(_hf_deit, size)
    cases["timm-deit-without-bias"] = partial(_timm_deit, (8, 12), qkv_bias=False)
    for suffix, size in CVT_SIZES.items():
        cases[f"hf-cvt{suffix}"] = partial(_hf_cvt, size)
    for architecture in ARCHITECTURES:
        if architecture == "coatnet_0" or architecture.endswith("_rw"):  # 1 to 5 differ in size
            for suffix, size in COATNET_SIZES.items():
                cases[f"timm-{architecture}{suffix}"] = partial(_timm_coatnet, architecture, size)
    # Bias tables are interpolated; a Swin's only where a window becomes smaller.
    cases["timm-swin-resized"] = partial(_timm_swin, SMALL, made_for=(32, 32))
    for suffix, size in {"": (96, 96), "-smaller": (32, 64)}.items():
        name = f"timm-coatnet_0-resized{suffix}"
        cases[name] = partial(_timm_coatnet, "coatnet_0", size, made_for=(64, 64))
    return cases


def _timm_swin(size: Size, made_for: Size | None = None, **arguments: Any) -> "plain.Reference":
    library = import_peer("timm.models.swin_transformer")
    settings = {
        "img_size": made_for or size,
        "patch_size": 2,
        "embed_dim": 8,
        "depths": (2, 2),
        "num_heads": (1, 2),
        "window_size": 4,
        "num_classes": 5,
    } | arguments
    model = library.SwinTransformer(**settings)
    asked = library.SwinTransformer(**settings | {"img_size": size}) if made_for else None
    return _reference("timm", "swin", model, settings, size, asked, library)


def _torchvision_swin(size: Size) -> "plain.Reference":
    settings = {
        "patch_size": [2, 2],
        "embed_dim": 8,
        "depths": [2, 2],
        "num_heads": [1, 2],
        "window_size": [4, 4],
        "num_classes": 5,
    }
    model = import_peer("torchvision.models.swin_transformer").SwinTransformer(**settings)
    return _reference("torchvision", "swin", model, settings | {"image_size": size}, size)


def _hf_swin(size: Size) -> "plain.Reference":
    library = transformers_library()
    config = library.SwinConfig(
        image_size=list(size),
        patch_size=2,
        embed_dim=8,
        depths=[2, 2],
        num_heads=[1, 2],
        window_size=4,
        num_labels=5,
    )
    return _stored("swin", library.SwinForImageClassification(config), size)


def _timm_deit(size: Size, **arguments: Any) -> "plain.Reference":
    settings = {
        "img_size": size,
        "patch_size": 4,
        "embed_dim": 8,
        "depth": 2,
        "num_heads": 2,
        "mlp_ratio": 2.0,
        "num_classes": 5,
    } | arguments
    model = import_peer("timm.models.deit").VisionTransformerDistilled(**settings)
    return _reference("timm", "deit", model, settings, size)


def _hf_deit(size: Size) -> "plain.Reference":
    library = transformers_library()
    config = library.DeiTConfig(
        image_size=list(size),
        patch_size=4,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=5,
    )
    return _stored("deit", library.DeiTForImageClassificationWithTeacher(config), size)


def _hf_cvt(size: Size) -> "plain.Reference":
    library = transformers_library()
    config = library.CvtConfig(
        patch_sizes=[7, 3],
        patch_stride=[4, 2],
        patch_padding=[2, 1],
        embed_dim=[4, 8],
        num_heads=[1, 2],
        depth=[1, 2],
        mlp_ratio=[2.0, 2.0],
        attention_drop_rate=[0.0, 0.0],
        drop_rate=[0.0, 0.0],
        drop_path_rate=[0.0, 0.0],
        qkv_bias=[True, True],
        cls_token=[False, True],
        qkv_projection_method=["dw_bn", "dw_bn"],
        kernel_qkv=[3, 3],
        padding_kv=[1, 1],
        stride_kv=[2, 2],
        padding_q=[1, 1],
        stride_q=[1, 1],
        num_labels=5,
    )
    return _stored("cvt", library.CvtForImageClassification(config), size)


def _timm_coatnet(architecture: str, size: Size, made_for: Size | None = None) -> "plain.Reference":
    library = import_peer("timm.models.maxxvit")
    shape = {
        "img_size": made_for or size,
        "embed_dim": (8, 8, 16, 16),
        "depths": (1, 2, 2, 2),
        "transformer_dim_head": 4,
        "stem_width": (4, 8),
        "num_classes": 5,
    }
    told = ARCHITECTURES[architecture]
    if "head_hidden_size" in told:
        shape["head_hidden_size"] = 12
    model = library.MaxxVit(library.model_cfgs[architecture], **shape)
    other = shape | {"img_size": size}
    asked = library.MaxxVit(library.model_cfgs[architecture], **other) if made_for else None
    return _reference("timm", "coatnet", model, dict(told) | shape, size, asked, library)


def _reference(
    library: "plain.Library",
    family: str,
    model: nn.Module,
    settings: Mapping[str, Any],
    size: Size,
    asked: nn.Module | None = None,
    module: Any = None,
) -> "plain.Reference":
    """Store a model and its answer, or that of `asked`: the same one, built for another size."""
    plain.randomise(model.eval(), 8, plain.SEED)
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if asked is not None:
        asked.load_state_dict(module.checkpoint_filter_fn(dict(tensors), asked))
    images = _images(size)
    with torch.inference_mode():
        logits = (asked or model).eval()(images).clone()
    return plain.Reference(
        library, version(library), settings, tensors, images, logits, family=family
    )


def _stored(family: str, model: Any, size: Size) -> "plain.Reference":
    plain.randomise(model.eval(), 8, plain.SEED)
    config, tensors = plain.stored(model)
    images = _images(size)
    with torch.inference_mode():
        logits = model(pixel_values=images).logits.clone()
    settings = {"image_size": size} | config  # CvT does not store it
    return plain.Reference(
        "transformers", version("transformers"), settings, tensors, images, logits, family=family
    )


def _images(size: Size) -> Tensor:
    generator = torch.Generator().manual_seed(plain.SEED)
    return torch.randn(2, 3, *size, generator=generator)
