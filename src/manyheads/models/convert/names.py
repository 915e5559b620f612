"""What an architecture's name says, word by word: `vit_small_patch32_224`.

A name is read by its family's rule, so that names nobody thought of are understood, and a word
without a meaning here is refused: it stands for something that ours may not have. A name supplies
what tensors do not show (heads, image size); where both say something, converters compare.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from manyheads.errors import UsageError, nearest

Settings = dict[str, Any]
Converter = Callable[[Mapping[str, Any], Mapping[str, Tensor]], tuple[Any, dict[str, Tensor]]]
# From a pattern to what a word that matches it says, given the pattern's groups.
Words = Mapping[str, Callable[..., Settings]]

PIXELS: Words = {r"(\d{2,4})": lambda size: {"img_size": int(size)}}
PATCH: Words = {r"patch(\d+)": lambda size: {"patch_size": int(size)}}
WINDOW: Words = {r"window(\d+)": lambda size: {"window_size": int(size)}}


@dataclass(frozen=True, kw_only=True)
class Picture:
    """How a library's default configuration of a family prepares pictures."""

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)  # ImageNet's
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    interpolation: str = "bilinear"
    crop: float = 0.875
    fit: str = "crop"


@dataclass(frozen=True, kw_only=True)
class Family:
    """Architectures that one rule and one converter understand."""

    name: str
    head: str  # pattern of what their names begin with
    examples: tuple[str, ...]
    convert: Converter
    says: Callable[[str], Settings] | None = None  # what that beginning says by itself
    words: Words = field(default_factory=dict)  # of what follows, in any order
    picture: Picture = Picture()


def understand(name: str, families: Iterable[Family]) -> tuple[Family, Settings]:
    """Read an architecture's name; what follows a dot tells the weights apart and is left out.

    Raises:
        UsageError: it belongs to no family here, or has a word that its family's rule has not.
    """
    families = tuple(families)
    base = name.rpartition("/")[2].partition(".")[0]
    for family in families:
        start = re.match(rf"(?:{family.head})(?=_|$)", base)
        if start is None:
            continue
        settings = family.says(start[0]) if family.says else {}
        for word in filter(None, base[start.end() :].split("_")):
            said = _meaning(word, family.words)
            if said is None:
                raise UsageError(
                    f"The architecture {name!r} has the word {word!r}, which is not understood "
                    f"here: it may stand for parts that ours has not. {_forms((family,))}"
                )
            settings = settings | said
        return family, settings
    examples = [example for family in families for example in family.examples]
    raise UsageError(
        f"The architecture {name!r} is of no family that can be converted"
        f"{nearest(base, examples)}{_forms(families)}"
    )


def _meaning(word: str, words: Words) -> Settings | None:
    for pattern, says in words.items():
        found = re.fullmatch(pattern, word)
        if found:
            return says(*found.groups())
    return None


def _forms(families: Iterable[Family]) -> str:
    listed = "; ".join(f"{each.name} ({', '.join(each.examples)})" for each in families)
    return f"Understood are names like those of {listed}."
