"""Which families can be converted from which library: a line for each, and `families.toml`.

`check` says by a config.json alone, before weights are there, whether they can be converted.

A converter is called with (settings, tensors) and returns (Config, state dict). Settings are a
configuration's keys, or what the rule of names made of the architecture's name, under the names
that timm's constructors have for it: img_size, patch_size, window_size, embed_dim, num_heads,
depths; and wanted_size, the height and width that the user asks for.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal

from manyheads.errors import UsageError
from manyheads.models.convert import marian_weights as marian
from manyheads.models.convert.converter import Converter, read_tables, table
from manyheads.models.convert.foreign import Settings
from manyheads.models.convert.names import Family, Image, understand

TABLES = read_tables("families.toml")


def _converters(table: str) -> dict[str, Converter[Any]]:
    """Import the converters of a table; each is written as "module:name"."""
    found: dict[str, Converter[Any]] = {}
    for kind, where in TABLES[table].items():
        module, _, name = where.partition(":")
        found[kind] = getattr(import_module(f"{__package__}.{module}"), name)
    return found


# Every converter, by "library kind"; of Hugging Face the kind is the `model_type` of config.json.
CONVERTERS = _converters("converters")
# Of Hugging Face, by `model_type`: models of images and texts together.
IMAGE_TEXT = _converters("image_text")


def _families(library: str) -> Iterator[Family]:
    """Read the families of a library, in the order in which names are compared with them."""
    entries = {entry["name"]: entry for entry in TABLES[library]}
    for own in entries.values():
        entry = entries.get(own.get("like"), {}) | own
        says, words = entry.get("says", {}), entry.get("words", {})
        groups = [TABLES["groups"][name] for name in entry.get("groups", ())]
        yield Family(
            name=entry["name"],
            head=entry.get("head") or "|".join(sorted(says, key=len, reverse=True)),
            examples=entry["examples"],
            convert=CONVERTERS[entry["converter"]],
            says=says,
            words={word: said for group in (*groups, words) for word, said in group.items()},
            image=Image(**entry.get("image", {})),
            images={name: Image(**image) for name, image in entry.get("images", {}).items()},
        )


TIMM, TORCHVISION = tuple(_families("timm")), tuple(_families("torchvision"))

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
