"""Images in tar files in webdataset format: the files of an image share the name up to the dot.

`0001.jpg` and `0001.cls` (or `0001.json`) are an image and its label. The archive is indexed once;
then images are read in any order.
"""

import hashlib
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from manyheads.data.images.image_file import SUFFIXES, open_content
from manyheads.data.images.image_set import ImageSet, number_labels
from manyheads.errors import DataError

LABELS = (".cls", ".txt", ".json")


class Member(NamedTuple):
    """The position of a file in an archive."""

    shard: Path
    name: str
    offset: int
    size: int

    def content(self) -> bytes:
        """Read the bytes of the file."""
        with self.shard.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.size)


def read_shards(
    shards: Sequence[Path], label: str | None, separator: str | None = None
) -> ImageSet:
    """Read uncompressed .tar archives of images.

    `label` is the key of the label in a .json member; .cls and .txt members are labels. Without it
    no labels are read. `separator` is as in `number_labels`.

    Raises:
        DataError: not an archive, an image without a label, or an image name with another dot.
    """
    images: list[Member] = []
    values: list[object] = []
    dotted: list[str] = []
    digest = hashlib.sha256()
    for shard in shards:
        for key, parts in _index(shard).items():
            dotted += [f"{shard}: {name}" for name in _dotted(parts)]
            image = next((parts[each] for each in parts if each in SUFFIXES), None)
            if image is None:
                continue
            value = None if label is None else _label(shard, key, parts, label)
            values.append(value)
            images.append(image)
            digest.update(f"{image.name}\t{image.size}\t{value}\n".encode(errors="surrogateescape"))
    if dotted:
        raise DataError(
            f"{dotted[0]} has a dot before its ending ({len(dotted):,} such images). The files of "
            "an image have the same name up to the first dot: rename them, for example img.1.png "
            "and img.1.cls to img_1.png and img_1.cls."
        )
    if not images:
        raise DataError(
            f"{', '.join(map(str, shards))}: no images ({', '.join(sorted(SUFFIXES))})."
        )
    names = [f"{image.shard}: {image.name}" for image in images]
    labels, classes = number_labels(None if label is None else values, names, separator)
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: open_content(images[index].content()),
        origin=", ".join(map(str, shards)),
        hashes=(digest.hexdigest(),),
    )


def _index(shard: Path) -> dict[str, dict[str, Member]]:
    """Return the files of an archive by key and ending; the ending begins at the first dot."""
    found: dict[str, dict[str, Member]] = {}
    try:
        with tarfile.open(shard, "r:") as archive:
            for member in archive:
                if not member.isfile():
                    continue
                folder, slash, name = member.name.rpartition("/")
                if name.startswith("."):  # ._1.png, macOS metadata of 1.png
                    continue
                stem, dot, ending = name.partition(".")
                entry = Member(shard, member.name, member.offset_data, member.size)
                found.setdefault(f"{folder}{slash}{stem}", {})[f"{dot}{ending}".lower()] = entry
    except (tarfile.TarError, OSError) as error:
        raise DataError(
            f"{shard} cannot be read as a tar archive: {error}. Decompress a compressed archive "
            "first (gunzip), so that images can be read in any order."
        ) from error
    return found


def _dotted(parts: Mapping[str, Member]) -> list[str]:
    """Return images that would be skipped: img.1.png, unless it is a view of a labelled img."""
    whole = not SUFFIXES.isdisjoint(parts)
    return [
        member.name
        for ending, member in parts.items()
        if Path(ending).suffix in SUFFIXES
        and not (whole and all(f"{Path(ending).stem}{each}" not in parts for each in LABELS))
    ]


def _label(shard: Path, stem: str, parts: Mapping[str, Member], key: str) -> object:
    """Read the label file of an image."""
    ending = next((each for each in LABELS if each in parts), None)
    if ending is None:
        raise DataError(
            f"{shard}: {stem} has no label: expected {stem}.cls, {stem}.txt or {stem}.json beside "
            "the image."
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
