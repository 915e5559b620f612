"""Names of models on the Hugging Face hub, and where they lie once they are fetched."""

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from manyheads.errors import UsageError
from manyheads.project.cache_folder import cache_folder

HUB = "hf:"  # in front of such a name
MODELS = "hf"  # in the cache
_NAME = re.compile(r"hf:(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w./-]*))?", re.ASCII)


class HubName(NamedTuple):
    """A repository, and a branch, tag or commit of it; None is its default."""

    repository: str
    revision: str | None

    def under(self, folder: str = MODELS) -> Path:
        """Return its folder in a folder of the cache; in that of models its model folder."""
        behind = f"@{quote(self.revision, safe='')}" if self.revision else ""
        return cache_folder() / folder / f"{self.repository}{behind}"


def read_hub_name(name: str) -> HubName:
    """Read hf:USER/MODEL or hf:USER/MODEL@REVISION.

    Raises:
        UsageError: it is neither.

    Examples:
        >>> read_hub_name("hf:Helsinki-NLP/opus-mt-en-de@refs/pr/3")
        HubName(repository='Helsinki-NLP/opus-mt-en-de', revision='refs/pr/3')
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(
            f"{name!r:.200} is no name of a model on the hub: write hf:USER/MODEL, or "
            "hf:USER/MODEL@REVISION for a branch, a tag or a commit."
        )
    return HubName(found[1], found[2])


def hub_name_of(folder: Path) -> str | None:
    """Return the name of a model that was fetched from the hub, by its folder; None of others."""
    place = folder.absolute()
    if place.parent.parent != (cache_folder() / MODELS).absolute():
        return None
    return f"{HUB}{place.parent.name}/{unquote(place.name)}"


def fetched_models() -> list[str]:
    """List the models of the hub that are on this machine."""
    found = sorted((cache_folder() / MODELS).glob("*/*/manyheads.json"))
    return [name for path in found if (name := hub_name_of(path.parent))]
