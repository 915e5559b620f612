"""The public corpora of the recipes: files with checksums, licences and home pages."""

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class CorpusFile(NamedTuple):
    """A file of a corpus, as the recipes read it."""

    path: str
    bytes: int
    sha256: str
    at: str | None  # path under the corpus's url; a .gz file is unpacked, its lines are trimmed


class PublicCorpus(NamedTuple):
    """A corpus and its place of publication."""

    name: str
    title: str
    licence: str
    home: str
    url: str | None  # None: not published in the format that the recipes read
    files: tuple[CorpusFile, ...]

    @property
    def bytes(self) -> int:
        """The total size of all files."""
        return sum(file.bytes for file in self.files)


@cache
def public_corpora() -> dict[str, PublicCorpus]:
    """Return the public corpora by name."""
    text = files("manyheads.data.text").joinpath("public_corpora.json").read_text(encoding="utf-8")
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
