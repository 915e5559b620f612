"""Read settings from an architecture's name, word by word: `vit_small_patch32_224`.

A name is read by its family's rule, so that names nobody thought of are understood, and a word
without a meaning here is refused: it may name a part that has no equivalent here. A name supplies
what tensors do not show (heads, image size); where both say something, converters compare.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from manyheads.errors import UsageError
from manyheads.models.convert.converter import Converter

Said = dict[str, Any]
Words = Mapping[str, Said]  # from a pattern to the settings of a word; "$1" is its number


@dataclass(frozen=True, kw_only=True)
class Image:
    """How a library's default configuration of a family prepares images."""

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # ImageNet's
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    interpolation: str = "bilinear"
    crop: float = 0.875
    resize_mode: str = "crop"


@dataclass(frozen=True, kw_only=True)
class Family:
    """Architectures that one rule and one converter understand."""

    name: str
    head: str  # pattern of what their names begin with
    examples: tuple[str, ...]
    convert: Converter[Any]
    says: Mapping[str, Said] = field(default_factory=dict)  # settings from that beginning alone
    words: Words = field(default_factory=dict)  # of what follows, in any order
    image: Image = Image()
    images: Mapping[str, Image] = field(default_factory=dict)  # of names with another default


def understand(name: str, families: Sequence[Family]) -> tuple[Family, Said]:
    """Read an architecture's name; what follows a dot tells the weights apart and is left out.

    Raises:
        UsageError: it belongs to no family here, or has a word that its family's rule has not.
    """
    base = base_name(name)
    for family in families:
        start = re.match(rf"(?:{family.head})(?=_|$)", base)
        if start is None:
            continue
        settings = dict(family.says.get(start[0], {}))
        for word in filter(None, base[start.end() :].split("_")):
            if (meaning := _meaning(word, family.words)) is None:
                raise UsageError(
                    f"The architecture {name!r} has the word {word!r}, which is not understood "
                    f"here: it may name parts that have no equivalent here. {_forms((family,))}"
                )
            settings |= meaning
        return family, settings
    # A similar name is not suggested: its weights may fit, and the answers be wrong.
    raise UsageError(
        f"The architecture {name!r} is of no family that can be converted. {_forms(families)}"
    )


def base_name(name: str) -> str:
    """Return an architecture's name without its owner and what tells the weights apart."""
    return name.rpartition("/")[2].partition(".")[0]


def _meaning(word: str, words: Words) -> Said | None:
    for pattern, says in words.items():
        if match := re.fullmatch(pattern, word):
            return {key: int(match[1]) if value == "$1" else value for key, value in says.items()}
    return None


def _forms(families: Sequence[Family]) -> str:
    listed = "; ".join(f"{each.name} ({', '.join(each.examples)})" for each in families)
    return f"Understood are names like those of {listed}."
