"""Images with texts in files beside them: a folder, or webdataset shards.

`1.png` and `1.txt` are an image and its texts, one a line; `1.ko.txt` has texts in Korean. In a
shard, `1.json` may have them by name.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from manyheads.data.images.caption_collector import KEYS, CaptionCollector, CaptionColumns
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_file import SUFFIXES, is_image, open_content, read_content
from manyheads.data.images.shards import Member, read_samples
from manyheads.data.regular_files import files_below, size_of
from manyheads.data.text.languages import is_language_code
from manyheads.data.text.lines import Report, lines, refuse
from manyheads.data.text.rows import require_columns
from manyheads.errors import DataError, RecipeError
from manyheads.strict_json import loads

TEXT, JSON = ".txt", ".json"
ABOUT = ("readme", "license", "licence", "notice")  # texts about a folder, not about an image
NO_IMAGE = "a text without an image of this name"

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
            found.leave_out("no-image", str(path), NO_IMAGE)
    digest = hashlib.sha256()
    for stem, (path, *more) in images.items():
        if more:
            _same_name([str(each) for each in (path, *more)], found)
            continue
        entry = f"{path.relative_to(folder)}\t{size_of(path)}\n"
        digest.update(entry.encode(errors="surrogateescape"))
        found.add(str(path), path, [], key=path)
        for language, place in _default_first(texts.get(stem, []), columns.default_language):
            for line, text in lines(place, report):
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
    digest, seen = hashlib.sha256(), dict[str, None]()
    for place, images, parts in read_samples(shards):
        texts = _texts(place, parts, found, seen)
        if len(images) > 1:
            _same_name([str(each) for each in images], found)
        elif images:
            (image,) = images
            found.add(str(image), image, texts)
            entry = f"{image.name}\t{image.size}\t{texts}\n"
            digest.update(entry.encode(errors="surrogateescape"))
        elif texts:
            found.leave_out("no-image", place, NO_IMAGE)
    origin = ", ".join(map(str, shards))
    if seen and columns.named:
        require_columns(columns.names, seen, origin, KEYS)
    return found.finish(
        lambda image: open_content(image.content()), origin=origin, hashes=(digest.hexdigest(),)
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
                for text in _lines(member).split("\n")
                if text
            ]
        if JSON not in parts:
            return []
        row = loads(_lines(parts[JSON]))
        if not isinstance(row, dict):
            raise ValueError("its .json is not a table of names and values")
    except ValueError as error:
        found.leave_out("invalid-record", place, f"its text cannot be read: {error}")
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


def _lines(member: Member) -> str:
    return member.text().removeprefix("\ufeff").replace("\r\n", "\n")


def _same_name(names: Sequence[str], found: CaptionCollector) -> None:
    for name in names:
        found.leave_out("same-name", name, f"{len(names)} images have this name, so one text")
