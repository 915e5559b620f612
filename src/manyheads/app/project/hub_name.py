"""Names of models on the Hugging Face hub, and where they lie once they are fetched."""

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from manyheads.app.project.cache import cache_folder
from manyheads.errors import UsageError

HUB = "hf:"  # in front of such a name
_NAME = re.compile(r"hf:(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w./-]*))?", re.ASCII)


class HubName(NamedTuple):
    """A repository, and a branch, tag or commit of it; None is its default."""

    repository: str
    revision: str | None

    @property
    def folder(self) -> Path:
        """The model folder that is made of it, whether it is there or not."""
        return _models() / self._place

    @property
    def downloads(self) -> Path:
        """The folder of what is being fetched."""
        return cache_folder() / "hf-downloads" / self._place

    @property
    def _place(self) -> str:
        return self.repository + (f"@{quote(self.revision, safe='')}" if self.revision else "")


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
    parts = folder.absolute().parts
    front = _models().absolute().parts
    if parts[:-2] != front:
        return None
    return f"{HUB}{parts[-2]}/{unquote(parts[-1])}"


def fetched_models() -> list[str]:
    """List the models of the hub that are on this machine."""
    found = sorted(path.parent for path in _models().glob("*/*/manyheads.json"))
    return [name for name in map(hub_name_of, found) if name]


def _models() -> Path:
    return cache_folder() / "hf"
