"""Pictures in tar files as webdataset has them: files of one picture share the name's beginning.

`0001.jpg` and `0001.cls` (or `0001.json`) are a picture and its label. The archive is read through
once for where everything lies; pictures are then read in any order.
"""

import hashlib
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from manyheads.data.images import ImageSet, number_labels
from manyheads.data.pictures import SUFFIXES, open_content
from manyheads.errors import DataError

LABELS = (".cls", ".txt", ".json")


class Member(NamedTuple):
    """Where a file lies in an archive."""

    shard: Path
    name: str
    offset: int
    size: int

    def content(self) -> bytes:
        """Read it."""
        with self.shard.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.size)


def read_shards(
    shards: Sequence[Path], label: str | None, separator: str | None = None
) -> ImageSet:
    """Read archives of pictures.

    Args:
        shards: uncompressed .tar files.
        label: the key of the label in a .json member; .cls and .txt members are labels. None:
            labels are not wanted.
        separator: between several labels of a picture; None: each has one.

    Raises:
        DataError: not an archive, a picture without a label, or one whose name has another dot.
    """
    pictures: list[Member] = []
    values: list[object] = []
    dotted: list[str] = []
    digest = hashlib.sha256()
    for shard in shards:
        for key, parts in _index(shard).items():
            dotted += [f"{shard}: {name}" for name in _dotted(parts)]
            picture = next((parts[each] for each in parts if each in SUFFIXES), None)
            if picture is None:
                continue
            value = None if label is None else _label(shard, key, parts, label)
            values.append(value)
            pictures.append(picture)
            digest.update(f"{picture.name}\t{picture.size}\t{value}\n".encode())
    if dotted:
        raise DataError(
            f"{dotted[0]} has a dot before its ending ({len(dotted):,} pictures like it). Files "
            "belong together whose names are the same up to the first dot: rename them, for "
            "example img.1.png and img.1.cls to img_1.png and img_1.cls."
        )
    if not pictures:
        raise DataError(
            f"{', '.join(map(str, shards))}: no pictures ({', '.join(sorted(SUFFIXES))})."
        )
    names = [f"{picture.shard}: {picture.name}" for picture in pictures]
    labels, classes = number_labels(None if label is None else values, names, separator)
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: open_content(pictures[index].content()),
        origin=", ".join(map(str, shards)),
        hashes=(digest.hexdigest(),),
    )


def _index(shard: Path) -> dict[str, dict[str, Member]]:
    """List the files of an archive by key and ending, which begins at the name's first dot."""
    found: dict[str, dict[str, Member]] = {}
    try:
        with tarfile.open(shard, "r:") as archive:
            for member in archive:
                if not member.isfile():
                    continue
                folder, slash, name = member.name.rpartition("/")
                if name.startswith("."):  # ._1.png, which macOS puts beside 1.png
                    continue
                stem, dot, ending = name.partition(".")
                place = Member(shard, member.name, member.offset_data, member.size)
                found.setdefault(f"{folder}{slash}{stem}", {})[f"{dot}{ending}".lower()] = place
    except (tarfile.TarError, OSError) as error:
        raise DataError(
            f"{shard} cannot be read as a tar archive: {error}. A compressed one has to be "
            "unpacked first (gunzip), so that pictures can be read in any order."
        ) from error
    return found


def _dotted(parts: Mapping[str, Member]) -> list[str]:
    """Name pictures that would be lost: img.1.png, unless it is another view of a labelled img."""
    whole = not SUFFIXES.isdisjoint(parts)
    return [
        member.name
        for ending, member in parts.items()
        if Path(ending).suffix in SUFFIXES
        and not (whole and all(f"{Path(ending).stem}{each}" not in parts for each in LABELS))
    ]


def _label(shard: Path, stem: str, parts: Mapping[str, Member], key: str) -> object:
    """Read the label that lies beside a picture."""
    ending = next((each for each in LABELS if each in parts), None)
    if ending is None:
        raise DataError(
            f"{shard}: {stem} has no label: expected {stem}.cls, {stem}.txt or {stem}.json beside "
            "the picture."
        )
    member = parts[ending]
    try:
        text = member.content().decode("utf-8").strip()
        if ending != ".json":
            return text
        table = json.loads(text)
    except ValueError as error:
        raise DataError(f"{member.shard}: {member.name} cannot be read: {error}.") from None
    if not isinstance(table, dict) or key not in table:
        keys = ", ".join(table) if isinstance(table, dict) else type(table).__name__
        raise DataError(
            f"{member.shard}: {member.name} has no {key!r}; it has {keys}. Name it with data.label."
        )
    return table[key]
