"""Which families can be converted from which library: a line for each.

`check` says by a config.json alone, before weights are there, whether they can be converted.

A converter is called with (settings, tensors) and returns (Config, state dict). Settings are a
configuration's keys, or what the rule of names made of the architecture's name, under the names
that timm's constructors have for it: img_size, patch_size, window_size, embed_dim, num_heads,
depths; and wanted_size, the height and width that the user asks for.
"""

from dataclasses import replace
from typing import Any, Literal

from manyheads.errors import UsageError
from manyheads.models.convert import captioner_weights as captioner
from manyheads.models.convert import clip_weights as clip
from manyheads.models.convert import coatnet_weights as coatnet
from manyheads.models.convert import cvt_weights as cvt
from manyheads.models.convert import dinov2_weights as dinov2
from manyheads.models.convert import google, hf, timm, torchvision
from manyheads.models.convert import marian_weights as marian
from manyheads.models.convert import resnet_v2_weights as resnet_v2
from manyheads.models.convert import resnet_weights as resnet
from manyheads.models.convert import swin_weights as swin
from manyheads.models.convert import vgg_weights as vgg
from manyheads.models.convert.converter import Converter, table
from manyheads.models.convert.foreign import Settings
from manyheads.models.convert.names import (
    PATCH,
    PIXELS,
    WINDOW,
    Family,
    Image,
    Said,
    Words,
    understand,
)

# Every converter, by "library kind"; of Hugging Face the kind is the `model_type` of config.json.
CONVERTERS: dict[str, Converter[Any]] = {
    "timm vit": timm.vit,
    "timm deit": timm.deit,
    "timm swin": swin.from_timm,
    "timm coatnet": coatnet.from_timm,
    "timm resnet": resnet.from_timm,
    "timm bit": resnet_v2.from_timm,
    "timm vgg": vgg.from_timm,
    "hf bit": resnet_v2.from_hf,
    "hf clip": clip.clip,
    "hf clip_vision_model": clip.clip,
    "hf cvt": cvt.from_hf,
    "hf deit": hf.deit,
    "hf dinov2": dinov2.from_hf,
    "hf dinov2_with_registers": dinov2.from_hf,
    "hf resnet": resnet.from_hf,
    "hf siglip": clip.siglip,
    "hf siglip_vision_model": clip.siglip,
    "hf swin": swin.from_hf,
    "hf vit": hf.vit,
    "torchvision vit": torchvision.vit,
    "torchvision swin": swin.from_torchvision,
    "torchvision resnet": resnet.from_torchvision,
    "torchvision vgg": vgg.from_torchvision,
    "google": google.from_google,
}

# Of Hugging Face, by `model_type`: models of images and texts together.
IMAGE_TEXT: dict[str, Converter[Any]] = {
    "clip": clip.clip_matcher,
    "siglip": clip.siglip_matcher,
    "vision-encoder-decoder": captioner.from_hf,
}

HALF = (0.5, 0.5, 0.5)
AUGREG = Image(mean=HALF, std=HALF, interpolation="bicubic", crop=0.9)

# Width and heads: 64 numbers a head, but for the largest.
Sizes = dict[str, tuple[int, int]]
VIT_SIZES: Sizes = {
    "tiny": (192, 3),
    "small": (384, 6),
    "base": (768, 12),
    "large": (1024, 16),
    "huge": (1280, 16),
    "giant": (1408, 16),
    "gigantic": (1664, 16),
}
MEDIUM: Sizes = {"medium": (512, 8), "betwixt": (640, 10)}
CLIP_SIZES: Sizes = VIT_SIZES | MEDIUM | {"xsmall": (256, 4), "plus": (896, 14)}
SIGLIP_SIZES: Sizes = {
    **{name: VIT_SIZES[name] for name in ("base", "large")},
    "so400m": (1152, 16),
    "giantopt": (1536, 16),
}
DINOV2_SIZES: Sizes = VIT_SIZES | {"giant": (1536, 24)}
REGISTER_SIZES: Sizes = MEDIUM | {
    "wee": (256, 4),
    "little": (320, 5),
    "mediumd": (512, 8),
    "base": (768, 12),
    "so150m": (896, 14),
    "so150m2": (832, 13),
}


def _sizes(sizes: Sizes) -> Words:
    keys = ("embed_dim", "num_heads")
    return {rf"({'|'.join(sizes)})": lambda size: dict(zip(keys, sizes[size], strict=True))}


def _sized(sizes: Sizes) -> Words:
    """Read the words for sizes of the model, of a patch and of images."""
    return {**_sizes(sizes), **PATCH, **PIXELS}


VIT_WORDS: Words = {
    **_sized(VIT_SIZES),
    # Of hybrids: a ResNet in front (its blocks are counted in the tensors), the way to a token.
    r"r\d*": dict,
    r"s\d+": dict,
    r"p(\d+)": lambda size: {"patch_size": int(size)},
}

# Depths and heads of the stages, width of the first.
SWIN_SIZES: dict[str, Said] = {
    "tiny": {"embed_dim": 96, "depths": (2, 2, 6, 2), "num_heads": (3, 6, 12, 24)},
    "small": {"embed_dim": 96, "depths": (2, 2, 18, 2), "num_heads": (3, 6, 12, 24)},
    "base": {"embed_dim": 128, "depths": (2, 2, 18, 2), "num_heads": (4, 8, 16, 32)},
    "large": {"embed_dim": 192, "depths": (2, 2, 18, 2), "num_heads": (6, 12, 24, 48)},
}

RESNET = Family(
    name="ResNet",
    head=r"(?:wide_)?resnet\d+(?:_2)?|resnext\d+_\d+x\d+d",
    examples=("resnet50", "resnet152", "wide_resnet50_2", "resnext50_32x4d"),
    convert=CONVERTERS["timm resnet"],
)
VGG = Family(
    name="VGG",
    head=r"vgg\d+(?:_bn)?",
    examples=("vgg16", "vgg16_bn"),
    convert=CONVERTERS["timm vgg"],
)
# Registers are counted in the tensors; "gap" is global average pooling.
REGISTERS: Words = {r"reg\d+": dict}
GAP: Words = {"gap": lambda: {"global_pool": "avg"}}

CLIP = Family(
    name="CLIP's image encoder",
    head=r"vit(?=\w*_clip(?:_|$))",
    words={
        **_sized(CLIP_SIZES),
        "clip": lambda: {"norm_eps": 1e-5, "pre_norm": True},
        "quickgelu": lambda: {"act_layer": "quick_gelu"},
    },
    examples=("vit_base_patch16_clip_224", "vit_base_patch32_clip_quickgelu_224"),
    convert=CONVERTERS["timm vit"],
    image=Image(
        mean=(0.48145466, 0.4578275, 0.40821073),
        std=(0.26862954, 0.26130258, 0.27577711),
        interpolation="bicubic",
        crop=0.9,
    ),
)
SIGLIP = Family(
    name="SigLIP's image encoder",
    head=r"vit(?=\w*_siglip(?:_|$))",
    words={**_sized(SIGLIP_SIZES), "siglip": lambda: {"global_pool": "map"}, **GAP},
    examples=("vit_base_patch16_siglip_224", "vit_so400m_patch14_siglip_384"),
    convert=CONVERTERS["timm vit"],
    image=AUGREG,
)
# The same architecture, but for the activation, which no word says: those that came later.
SIGLIP_TANH = replace(
    SIGLIP,
    name="SigLIP's image encoder with tanh in its GELU",
    head=r"vit(?=_(?:base_patch32|so400m_patch16|giantopt_patch16)_siglip(?:_|$)"
    r"|_large_patch16_siglip_(?:gap_)?512$)",
    says=lambda _: {"act_layer": "gelu_tanh"},
    examples=("vit_base_patch32_siglip_256", "vit_so400m_patch16_siglip_256"),
)
DINOV2 = Family(
    name="DINOv2",
    head=r"vit(?=\w*_dinov2$)",
    words={**_sizes(DINOV2_SIZES), **PATCH, **REGISTERS, "dinov2": dict},
    examples=("vit_small_patch14_dinov2", "vit_base_patch14_reg4_dinov2"),
    convert=CONVERTERS["timm vit"],
    image=Image(interpolation="bicubic", crop=1.0),
)
VIT_REGISTERS = Family(
    name="ViT with registers",
    head=r"vit(?=\w*_reg\d+_gap(?:_|$))",
    words={**_sized(REGISTER_SIZES), **REGISTERS, **GAP},
    examples=("vit_medium_patch16_reg4_gap_256",),
    convert=CONVERTERS["timm vit"],
    image=replace(AUGREG, crop=0.95),
)
VIT = Family(
    name="ViT",
    head="vit",
    words=VIT_WORDS,
    examples=("vit_base_patch16_224", "vit_small_patch32_384", "vit_base_r50_s16_224"),
    convert=CONVERTERS["timm vit"],
    image=AUGREG,
)
DEIT = replace(
    VIT,
    name="DeiT",
    head="deit",
    examples=("deit_small_patch16_224",),
    image=Image(interpolation="bicubic", crop=0.9),
)
TIMM: tuple[Family, ...] = (
    CLIP,
    SIGLIP_TANH,
    SIGLIP,
    DINOV2,
    VIT_REGISTERS,
    VIT,
    replace(
        DEIT,
        name="DeiT with a distillation token",
        head=r"deit(?=_[a-z]+_distilled)",
        words={**VIT_WORDS, "distilled": dict},
        examples=("deit_base_distilled_patch16_224",),
        convert=CONVERTERS["timm deit"],
    ),
    DEIT,
    replace(
        DEIT,
        name="DeiT III",
        head="deit3",
        words=_sized(VIT_SIZES | {"medium": MEDIUM["medium"]}),
        examples=("deit3_base_patch16_224",),
    ),
    Family(
        name="Swin",
        head="swin",
        words={rf"({'|'.join(SWIN_SIZES)})": SWIN_SIZES.__getitem__, **PATCH, **WINDOW, **PIXELS},
        examples=("swin_tiny_patch4_window7_224", "swin_base_patch4_window12_384"),
        convert=CONVERTERS["timm swin"],
        image=DEIT.image,
    ),
    RESNET,
    Family(
        name="BiT",
        head=r"resnetv2_\d+x\d+",
        words={"bit": dict, "bitm": dict},
        examples=("resnetv2_50x1_bit", "resnetv2_101x3_bit"),
        convert=CONVERTERS["timm bit"],
        image=Image(mean=HALF, std=HALF),
    ),
    Family(
        name="CoAtNet",
        head="|".join(sorted(coatnet.ARCHITECTURES, key=len, reverse=True)),
        says=lambda head: dict(coatnet.ARCHITECTURES[head]),
        words=PIXELS,
        examples=("coatnet_0_rw_224", "coatnet_2_224"),
        convert=CONVERTERS["timm coatnet"],
        image=Image(mean=HALF, std=HALF, interpolation="bicubic", crop=0.95),
    ),
    VGG,
)

TORCHVISION: tuple[Family, ...] = (
    Family(
        name="ViT",
        head="vit",
        words={
            **_sizes({name[0]: VIT_SIZES[name] for name in ("base", "large", "huge")}),
            r"(\d+)": lambda size: {"patch_size": int(size)},
        },
        examples=("vit_b_16", "vit_l_32", "vit_h_14"),
        convert=CONVERTERS["torchvision vit"],
        images={
            "vit_l_16": Image(crop=224 / 242),
            "vit_h_14": Image(interpolation="bicubic", crop=1.0),
        },
    ),
    Family(
        name="Swin",
        head="swin",
        words={
            "(t|s|b)": lambda size: {
                "window_size": (7, 7),
                **SWIN_SIZES[{"t": "tiny", "s": "small", "b": "base"}[size]],
            }
        },
        examples=("swin_t", "swin_b"),
        convert=CONVERTERS["torchvision swin"],
        images={
            name: Image(interpolation="bicubic", crop=224 / resized)
            for name, resized in (("swin_t", 232), ("swin_s", 246), ("swin_b", 238))
        },
    ),
    replace(
        RESNET,
        examples=("resnet18", "resnet50", "wide_resnet50_2", "resnext50_32x4d"),
        convert=CONVERTERS["torchvision resnet"],
        images={"resnext101_64x4d": Image(crop=224 / 232)},
    ),
    replace(VGG, convert=CONVERTERS["torchvision vgg"]),
)

HF: dict[str, Converter[Any]] = {
    name.removeprefix("hf "): each for name, each in CONVERTERS.items() if name.startswith("hf ")
}

GOOGLE = CONVERTERS["google"]


def check(about: Settings) -> Literal["hf", "marian", "timm"]:
    """Make sure that a model can be converted, by its config.json alone; say by which library.

    Raises:
        UsageError: it cannot; the reason is the key or the value that has no equivalent here.
    """
    kind, name = about.get("model_type"), about.get("architecture")
    if kind == "marian":
        marian.read.check(about)
        return "marian"
    if kind is None and isinstance(name, str):
        family, settings = understand(name, TIMM)
        family.convert.check({**settings, **table(about, "model_args")})
        return "timm"
    if not isinstance(kind, str) or kind not in HF | IMAGE_TEXT:
        raise UsageError(
            f"The model_type {kind!r} is none that can be converted. Understood are "
            f"{', '.join(dict.fromkeys(['marian', *IMAGE_TEXT, *HF]))}."
        )
    (HF | IMAGE_TEXT if has_texts(about) else HF)[kind].check(about)
    return "hf"


def has_texts(about: Settings) -> bool:
    """Say by a config.json whether a model of Hugging Face may read or write texts.

    Of CLIP and SigLIP there are image encoders and classifiers too.
    """
    classes = str(about.get("architectures"))
    without = "ImageClassification" in classes or "VisionModel" in classes
    return about.get("model_type") in IMAGE_TEXT and not without
