"""The public data sets of the recipes: files with checksums, licences and home pages."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePath
from typing import Any, NamedTuple


class CorpusFile(NamedTuple):
    """A file of a corpus, as the recipes read it."""

    path: str
    bytes: int
    sha256: str
    # Path under the corpus's url; a .gz file is unpacked, its lines are trimmed.
    at: str | None = None


class PublicCorpus(NamedTuple):
    """A data set, its place of publication, and its licence with who is to be named."""

    name: str
    title: str
    licence: str
    home: str
    url: str | None = None  # None: not published in the format that the recipes read
    how: str | None = None  # how else it is had, or that it cannot be
    files: tuple[CorpusFile, ...] = ()

    @property
    def bytes(self) -> int:
        """The total size of all files."""
        return sum(file.bytes for file in self.files)


@cache
def public_corpora() -> dict[str, PublicCorpus]:
    """Return the public corpora by name."""
    found = {}
    for name, entry in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items():
        listed = tuple(CorpusFile(**file) for file in entry.pop("files", ()))
        found[name] = PublicCorpus(name, **entry, files=listed)
    return found


def training_sets(data: Mapping[str, Any]) -> list[str]:
    """Return the names of all data sets that a recipe's [data] table trains on."""
    return [data["train"], *(data.get("additional") or ())]


def public_sources(data: Mapping[str, Any]) -> list[PublicCorpus]:
    """Return the public data sets, fonts included, that a recipe's [data] table trains on."""
    known = public_corpora()
    names = [re.split("[/:]", each)[0] for each in training_sets(data)]
    fonts = data.get("fonts") or ()
    for place in (fonts,) if isinstance(fonts, str) else fonts:
        path = PurePath(place)
        if "nanum" in path.parts:
            names.append("nanum")
        elif path.is_relative_to("/usr/share/fonts"):
            names.append("fonts")
    return [known[name] for name in dict.fromkeys(names) if name in known]
