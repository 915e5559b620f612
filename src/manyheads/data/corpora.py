"""The public corpora of the recipes: their files with checksums, their licences, their homes."""

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class CorpusFile(NamedTuple):
    """A file as the recipes read it, under the data root."""

    path: str
    bytes: int
    sha256: str
    at: str | None  # under the corpus's url; one in .gz is unpacked and its lines are trimmed


class PublicCorpus(NamedTuple):
    """A corpus, and where it is published."""

    name: str
    title: str
    licence: str
    home: str
    url: str | None  # None: published, but not in the form that the recipes read
    files: tuple[CorpusFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.files)


@cache
def public_corpora() -> dict[str, PublicCorpus]:
    """Read the list of public corpora, by name."""
    text = files("manyheads.data").joinpath("corpora.json").read_text(encoding="utf-8")
    return {
        name: PublicCorpus(
            name,
            entry["title"],
            entry["licence"],
            entry["home"],
            entry.get("url"),
            tuple(
                CorpusFile(file["path"], file["bytes"], file["sha256"], file.get("at"))
                for file in entry["files"]
            ),
        )
        for name, entry in json.loads(text).items()
    }
