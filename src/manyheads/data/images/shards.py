"""Images in tar files in webdataset format: the files of an image share the name up to the dot.

`0001.jpg` and `0001.cls` (or `0001.json`) are an image and its label. The archive is indexed once;
then images are read in any order.
"""

import hashlib
import posixpath
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from manyheads.data.images.image_file import BEGIN, FOREIGN, SUFFIXES, begins_like_image
from manyheads.data.images.image_set import ImageSet, labelled
from manyheads.data.regular_files import require_regular
from manyheads.errors import DataError
from manyheads.strict_json import loads

LABELS = (".cls", ".txt", ".json")
LONGEST_LABEL = 1 << 20  # bytes
# What tarfile raises for damaged headers.
_DAMAGED = (tarfile.TarError, OSError, ValueError, OverflowError, MemoryError, RecursionError)
LINKS = 40  # from link to link, as in Linux


class Member(NamedTuple):
    """The position of a file in an archive."""

    shard: Path
    name: str
    offset: int
    size: int

    def __str__(self) -> str:
        """Name it for messages."""
        return f"{self.shard}: {self.name}"

    def content(self, limit: int = -1) -> bytes:
        """Read the bytes of the file, or the first of them."""
        with self.shard.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.size if limit < 0 else min(limit, self.size))

    def text(self) -> str:
        """Read the file of a label or text.

        Raises:
            ValueError: it is too long, or not UTF-8.
        """
        if self.size > LONGEST_LABEL:
            raise ValueError(f"it has {self.size:,} bytes")
        return self.content().decode()

    @property
    def is_image(self) -> bool:
        """Whether it is an image by its ending; without one, by its content."""
        ending = Path(self.name).suffix.lower()
        if ending:
            return ending in SUFFIXES or ending in FOREIGN
        return begins_like_image(self.content(BEGIN))


def read_shards(paths: Sequence[Path], label: str | None, separator: str | None = None) -> ImageSet:
    """Read uncompressed .tar archives of images.

    `label` is the key of the label in a .json member; .cls and .txt members are labels. Without it
    no labels are read. `separator` is as in `number_labels`.

    Raises:
        DataError: not an archive, an image without a label, or an image name with another dot.
    """
    images: list[Member] = []
    values: list[object] = []
    digest = hashlib.sha256()
    for place, found, parts in read_samples(paths):
        if len(found) > 1:
            raise DataError(
                f"{found[0].shard}: {' and '.join(part.name for part in found)} have the same "
                "name, so one label: rename one of them."
            )
        if not found:
            continue
        (image,) = found
        value = None if label is None else _label(place, parts, label)
        values.append(value)
        images.append(image)
        digest.update(f"{image.name}\t{image.size}\t{value}\n".encode(errors="surrogateescape"))
    origin = ", ".join(map(str, paths))
    if not images:
        raise DataError(f"{origin}: no images ({', '.join(sorted(SUFFIXES))}).")
    return labelled(
        [str(image) for image in images],
        None if label is None else values,
        separator,
        read=lambda index: images[index].content(),
        files=[image.shard for image in images],
        origin=origin,
        hashes=(digest.hexdigest(),),
    )


def read_samples(paths: Sequence[Path]) -> Iterator[tuple[str, list[Member], Mapping[str, Member]]]:
    """Yield each sample of archives: its place for messages, its images, all its files by ending.

    Raises:
        DataError: not an archive; at the end, an image would be skipped: img.1.png, unless it is a
            view of a labelled img.
    """
    dotted: list[Member] = []
    for shard in paths:
        for stem, parts in _index(shard).items():
            whole = not SUFFIXES.isdisjoint(parts)
            dotted += [
                member
                for ending, member in parts.items()
                if Path(ending).suffix in SUFFIXES
                and (not whole or any(f"{Path(ending).stem}{each}" in parts for each in LABELS))
            ]
            images = [part for each, part in parts.items() if "." not in each[1:] and part.is_image]
            yield f"{shard}: {stem}", images, parts
    if dotted:
        raise DataError(
            f"{dotted[0]} has a dot before its ending ({len(dotted):,} such images). The files of "
            "an image have the same name up to the first dot: rename them, for example img.1.png "
            "and img.1.cls to img_1.png and img_1.cls."
        )


def _index(shard: Path) -> dict[str, dict[str, Member]]:
    """Return the files of an archive by key and ending; the ending begins at the first dot."""
    samples: dict[str, dict[str, Member]] = {}
    for name, member in _members(shard).items():
        folder, slash, base = name.rpartition("/")
        if base.startswith("."):  # ._1.png, macOS metadata of 1.png
            continue
        stem, dot, ending = base.partition(".")
        samples.setdefault(f"{folder}{slash}{stem}", {})[f"{dot}{ending}".lower()] = member
    return samples


def _members(shard: Path) -> dict[str, Member]:
    """Return the files of an archive by name; a link is the file that it leads to."""
    members: dict[str, Member] = {}
    links: dict[str, str] = {}
    try:
        with (
            require_regular(shard).open("rb") as file,
            tarfile.open(fileobj=file, mode="r:") as archive,
        ):
            last = -1
            for member in archive:
                name = posixpath.normpath(member.name)
                if not last < member.offset <= member.offset_data or member.size < 0:
                    raise tarfile.ReadError(f"the header of {name!a} is damaged")
                last = member.offset
                if member.issparse():
                    raise tarfile.ReadError(f"{name!a} is sparse: pack without --sparse")
                if member.isfile():
                    members[name] = Member(shard, member.name, member.offset_data, member.size)
                elif member.islnk():
                    links[name] = posixpath.normpath(member.linkname)
                elif member.issym():
                    beside = posixpath.join(posixpath.dirname(name), member.linkname)
                    links[name] = posixpath.normpath(beside)
            _refuse_unread(file, archive.offset)
    except _DAMAGED as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise DataError(
            f"{shard} cannot be read as a tar archive: {reason}. Copy or download it again. "
            "Decompress a compressed archive first (gunzip), so that images can be read in any "
            "order."
        ) from error
    for name in links:
        target = name
        for _ in range(LINKS):
            target = links.get(target, target)
        if target in members:
            members[name] = members[target]._replace(name=name)
        elif Path(name).suffix.lower() in {*SUFFIXES, *FOREIGN, *LABELS}:
            raise DataError(
                f"{shard}: {name} is a link to {links[name]}, which is not a file of the archive. "
                "Pack the files themselves: tar --dereference."
            )
    return members


def _refuse_unread(file: IO[bytes], end: int) -> None:
    """Refuse an archive that does not end where reading stopped: cut off, damaged or joined.

    An archive ends with blocks of zeros, and nothing follows them.
    """
    file.seek(end)
    if len(file.read(tarfile.BLOCKSIZE)) < tarfile.BLOCKSIZE:
        raise tarfile.ReadError(f"it has no end; {end:,} bytes of it can be read")
    file.seek(end)
    while block := file.read(1 << 20):
        if block.count(0) < len(block):
            raise tarfile.ReadError(f"it is damaged behind byte {end:,}, or two archives joined")


def _label(place: str, parts: Mapping[str, Member], key: str) -> object:
    ending = next((each for each in LABELS if each in parts), None)
    if ending is None:
        stem = place.rpartition(": ")[2]
        raise DataError(f"{place} has no label: expected {stem}.cls, .txt or .json beside it.")
    member = parts[ending]
    try:
        text = member.text().strip()
        if ending != ".json":
            return text
        table = loads(text)
    except ValueError as error:
        raise DataError(f"{member} cannot be read: {error}.") from None
    if not isinstance(table, dict) or key not in table:
        keys = ", ".join(table) if isinstance(table, dict) else type(table).__name__
        raise DataError(f"{member} has no {key!r}; it has {keys}. Name it with data.label.")
    return table[key]
