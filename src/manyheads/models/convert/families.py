"""Which families can be converted from which library: a line for each, and `families.toml`.

`check` says by a config.json alone, before weights are there, whether they can be converted.

A converter is called with (settings, tensors) and returns (Config, state dict). Settings are a
configuration's keys, or what the rule of names made of the architecture's name, under the names
that timm's constructors have for it: img_size, patch_size, window_size, embed_dim, num_heads,
depths; and wanted_size, the height and width that the user asks for.
"""

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
from manyheads.models.convert.converter import Converter, read_tables, table
from manyheads.models.convert.foreign import Settings
from manyheads.models.convert.names import Family, Image, understand

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


def _families(library: str) -> tuple[Family, ...]:
    """Read the families of a library, in the order in which names are compared with them."""
    tables = read_tables("families.toml")
    entries = {entry["name"]: entry for entry in tables[library]}
    families = []
    for own in entries.values():
        entry = entries.get(own.get("like"), {}) | own
        says, words = entry.get("says", {}), entry.get("words", {})
        groups = [tables["groups"][name] for name in entry.get("groups", ())]
        families.append(
            Family(
                name=entry["name"],
                head=entry.get("head") or "|".join(sorted(says, key=len, reverse=True)),
                examples=entry["examples"],
                convert=CONVERTERS[entry["converter"]],
                says=says,
                words={
                    word: settings for group in (*groups, words) for word, settings in group.items()
                },
                image=Image(**entry.get("image", {})),
                images={name: Image(**image) for name, image in entry.get("images", {}).items()},
            )
        )
    return tuple(families)


TIMM, TORCHVISION = _families("timm"), _families("torchvision")

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
