"""Images with texts in files beside them: a folder, or webdataset shards.

`1.png` and `1.txt` are an image and its texts, one a line; `1.ko.txt` has texts in Korean. In a
shard, `1.json` may have them by name.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from manyheads.data.images.caption_collector import (
    CaptionCollector,
    CaptionColumns,
    Report,
    refuse,
    require_columns,
)
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_file import SUFFIXES, is_image, open_content, read_content
from manyheads.data.images.shards import (
    LONGEST_LABEL,
    Member,
    dotted_images,
    index_shard,
    refuse_dotted,
)
from manyheads.data.regular_files import files_below, size_of
from manyheads.data.text.languages import is_language_code
from manyheads.data.text.lines import lines
from manyheads.errors import DataError, RecipeError
from manyheads.strict_json import loads

TEXT, JSON = ".txt", ".json"
ABOUT = ("readme", "license", "licence", "notice")  # texts about a folder, not about an image

T = TypeVar("T")


def read_caption_folder(
    folder: Path, columns: CaptionColumns, report: Report = refuse
) -> CaptionedImages:
    """Read the images of a folder, at any depth, each with its .txt files beside it.

    Raises:
        RecipeError: columns of texts are named, which files of text do not have.
        DataError: there are no images with texts, or a folder cannot be read.
    """
    if columns.named:
        raise RecipeError(
            f"{folder} has texts in files beside the images, so there are no columns: leave out "
            "data.texts, data.caption and data.language_column. name.txt is in data.language, "
            "name.ko.txt in ko."
        )
    files = [path for path in files_below(folder) if not path.name.startswith(".")]
    images: dict[Path, list[Path]] = {}
    for path in files:
        if is_image(path):
            images.setdefault(path.with_suffix(""), []).append(path)
    if not images:
        raise DataError(f"{folder} has no images ({', '.join(sorted(SUFFIXES))}).")
    found = CaptionCollector(columns, report)
    others = [path for path in files if not is_image(path)]
    texts: dict[Path, list[tuple[str, Path]]] = {}
    for path in [each for each in others if each.suffix.lower() == TEXT]:
        stem, language = _owner(path, images.keys(), columns.default_language)
        if stem is not None:
            texts.setdefault(stem, []).append((language, path))
        elif path.stem.lower() not in ABOUT:
            found.without_image(str(path), "a text without an image of this name")
    digest = hashlib.sha256()
    for stem, (path, *more) in images.items():
        if more:
            found.same_name([str(each) for each in (path, *more)])
            continue
        entry = f"{path.relative_to(folder)}\t{size_of(path)}\n"
        digest.update(entry.encode(errors="surrogateescape"))
        found.add(str(path), path, [], key=path)
        for language, place in _default_first(texts.get(stem, []), columns.default_language):
            for line, text in lines(place, found.note):
                digest.update(f"{language}\t{text}\n".encode())
                where = f"{place}, line {line}"
                found.add(str(path), path, [(language, text or None)], place=where, key=path)
    used = {path for paths in texts.values() for _, path in paths}
    return found.finish(
        lambda path: open_content(read_content(path)),
        origin=str(folder),
        hashes=(digest.hexdigest(),),
        other_files=tuple(str(path) for path in others if path not in used),
    )


def _owner(text: Path, images: Collection[Path], default: str) -> tuple[Path | None, str]:
    """Return the name of the image that a file of text belongs to, and the language."""
    stem = text.with_suffix("")
    if stem in images:
        return stem, default
    name, _, language = stem.name.rpartition(".")
    if name and is_language_code(language) and stem.with_name(name) in images:
        return stem.with_name(name), language
    return None, ""


def _default_first(texts: Iterable[tuple[str, T]], default: str) -> list[tuple[str, T]]:
    return sorted(texts, key=lambda each: (each[0] != default, each[0]))


def read_caption_shards(
    shards: Sequence[Path], columns: CaptionColumns, report: Report = refuse
) -> CaptionedImages:
    """Read uncompressed .tar archives of images and texts.

    The texts are those of the .txt members. Where there are none, or columns of texts are named,
    they are the values of these names in the .json member.

    Raises:
        DataError: not an archive, nothing that can be used, or an image name with another dot.
    """
    found = CaptionCollector(columns, report)
    digest, dotted, seen = hashlib.sha256(), list[str](), dict[str, None]()
    for shard in shards:
        for stem, parts in index_shard(shard).items():
            dotted += [f"{shard}: {name}" for name in dotted_images(parts)]
            texts = _texts(f"{shard}: {stem}", parts, found, seen)
            whole = [part for each, part in parts.items() if "." not in each[1:] and part.is_image]
            if len(whole) > 1:
                found.same_name([f"{shard}: {each.name}" for each in whole])
            elif whole:
                (image,) = whole
                found.add(f"{shard}: {image.name}", image, texts)
                entry = f"{image.name}\t{image.size}\t{texts}\n"
                digest.update(entry.encode(errors="surrogateescape"))
            elif texts:
                found.without_image(f"{shard}: {stem}", "a text without an image of this name")
    refuse_dotted(dotted)
    if seen and columns.named:
        require_columns(columns.names, seen, ", ".join(map(str, shards)))
    return found.finish(
        lambda image: open_content(image.content()),
        origin=", ".join(map(str, shards)),
        hashes=(digest.hexdigest(),),
    )


def _texts(
    place: str, parts: Mapping[str, Member], found: CaptionCollector, seen: dict[str, None]
) -> list[tuple[object, object]]:
    """Return the texts of an image, each with its language; `seen` collects names in .json."""
    columns = found.columns
    plain = [] if columns.named else _plain_texts(parts, columns.default_language)
    try:
        if plain:
            return [
                (language, text)
                for language, member in plain
                for text in _decoded(member).split("\n")
                if text
            ]
        if JSON not in parts:
            return []
        row = loads(_decoded(parts[JSON]))
        if not isinstance(row, dict):
            raise ValueError("its .json is not a table of names and values")
    except ValueError as error:
        found.invalid(place, f"its text cannot be read: {error}")
        return []
    seen |= dict.fromkeys(row)
    return [(language, value) for language, value in columns.pick(row) if value is not None]


def _plain_texts(parts: Mapping[str, Member], default: str) -> list[tuple[str, Member]]:
    """Return the .txt members, each with its language."""
    texts = []
    for ending, member in parts.items():
        language, _, last = ending[1:].rpartition(".")
        if f".{last}" == TEXT and (not language or is_language_code(language)):
            texts.append((language or default, member))
    return _default_first(texts, default)


def _decoded(member: Member) -> str:
    """Read the text of a member.

    Raises:
        ValueError: it is too long, or not UTF-8.
    """
    if member.size > LONGEST_LABEL:
        raise ValueError(f"it has {member.size:,} bytes")
    return member.content().decode("utf-8-sig").replace("\r\n", "\n")
