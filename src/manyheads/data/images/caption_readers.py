"""Readers of images with texts: folders, webdataset shards, tables, the hub, COCO's annotations.

In a folder `1.png` and `1.txt` are an image and its texts, one a line; `1.ko.txt` has texts in
Korean. In a shard, `1.json` may have them by name. A row of a table has an image and its texts;
rows with the same path are one image, with the texts of all rows. In COCO's .json an image has an
`id` and a `file_name`, an annotation an `image_id` and a `caption`; an image may have several.
(Chen et al. 2015: Microsoft COCO Captions.)
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from manyheads.data.images.captioned_images import (
    KEYS,
    CaptionCollector,
    CaptionColumns,
    CaptionedImages,
)
from manyheads.data.images.cell_store import IN_MEMORY, CellStore
from manyheads.data.images.image_file import SUFFIXES, content_of, is_image, read_cell, read_content
from manyheads.data.images.shards import Member, read_samples
from manyheads.data.regular_files import files_below, size_of
from manyheads.data.text.encoding import decode
from manyheads.data.text.languages import is_language_code
from manyheads.data.text.lines import content_hash, lines
from manyheads.data.text.rows import (
    TEXTS,
    column_type,
    open_hub_images,
    require_columns,
    table_rows,
)
from manyheads.errors import DataError, RecipeError
from manyheads.files import expand_user
from manyheads.strict_json import loads

TEXT, JSON = ".txt", ".json"
ABOUT = ("readme", "license", "licence", "notice")  # texts about a folder, not about an image
NO_IMAGE = "a text without an image of this name"

T = TypeVar("T")


def read_caption_folder(folder: Path, columns: CaptionColumns) -> CaptionedImages:
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
    collector = CaptionCollector(columns)
    others = [path for path in files if not is_image(path)]
    texts: dict[Path, list[tuple[str, Path]]] = {}
    for path in [each for each in others if each.suffix.lower() == TEXT]:
        stem, language = _owner(path, images.keys(), columns.default_language)
        if stem is not None:
            texts.setdefault(stem, []).append((language, path))
        elif path.stem.lower() not in ABOUT:
            collector.leave_out("no-image", str(path), NO_IMAGE)
    digest = hashlib.sha256()
    for stem, (path, *more) in images.items():
        if more:
            _same_name([str(each) for each in (path, *more)], collector)
            continue
        entry = f"{path.relative_to(folder)}\t{size_of(path)}\n"
        digest.update(entry.encode(errors="surrogateescape"))
        collector.add(str(path), path, [], key=path)
        for language, place in _default_first(texts.get(stem, []), columns.default_language):
            for line, text in lines(place, collector.problems.append):
                digest.update(f"{language}\t{text}\n".encode())
                where = f"{place}, line {line}"
                collector.add(str(path), path, [(language, text or None)], place=where, key=path)
    used = {path for paths in texts.values() for _, path in paths}
    return collector.finish(
        read_content,
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


def read_caption_shards(shards: Sequence[Path], columns: CaptionColumns) -> CaptionedImages:
    """Read uncompressed .tar archives of images and texts.

    The texts are those of the .txt members. Where there are none, or columns of texts are named,
    they are the values of these names in the .json member.

    Raises:
        DataError: not an archive, nothing that can be used, or an image name with another dot.
    """
    collector = CaptionCollector(columns)
    digest, seen = hashlib.sha256(), dict[str, None]()
    for place, images, parts in read_samples(shards):
        texts = _texts(place, parts, collector, seen)
        if len(images) > 1:
            _same_name([str(each) for each in images], collector)
        elif images:
            (image,) = images
            collector.add(str(image), image, texts)
            entry = f"{image.name}\t{image.size}\t{texts}\n"
            digest.update(entry.encode(errors="surrogateescape"))
        elif texts:
            collector.leave_out("no-image", place, NO_IMAGE)
    origin = ", ".join(map(str, shards))
    if seen and columns.named:
        require_columns(columns.names, seen, origin, KEYS)
    return collector.finish(Member.content, origin=origin, hashes=(digest.hexdigest(),))


def _texts(
    place: str, parts: Mapping[str, Member], collector: CaptionCollector, seen: dict[str, None]
) -> list[tuple[object, object]]:
    """Return the texts of an image, each with its language; `seen` collects names in .json."""
    columns = collector.columns
    plain = [] if columns.named else _plain_texts(parts, columns.default_language)
    try:
        if plain:
            texts = [(language, _lines(member).split("\n")) for language, member in plain]
            return [(language, text) for language, lines in texts for text in lines if text]
        if JSON not in parts:
            return []
        row = loads(_lines(parts[JSON]))
        if not isinstance(row, dict):
            raise ValueError("its .json is not a table of names and values")
    except ValueError as error:
        collector.leave_out("invalid-record", place, f"its text cannot be read: {error}")
        return []
    seen |= dict.fromkeys(row)
    return [(language, value) for language, value in columns.pick(row) if value is not None]


def _plain_texts(parts: Mapping[str, Member], default: str) -> list[tuple[str, Member]]:
    texts = []
    for ending, member in parts.items():
        language, _, last = ending[1:].rpartition(".")
        if f".{last}" == TEXT and (not language or is_language_code(language)):
            texts.append((language or default, member))
    return _default_first(texts, default)


def _lines(member: Member) -> str:
    return member.text().removeprefix("\ufeff").replace("\r\n", "\n")


def _same_name(names: Sequence[str], collector: CaptionCollector) -> None:
    for name in names:
        collector.leave_out("same-name", name, f"{len(names)} images have this name, so one text")


# Types of columns of images in a .parquet.
IMAGES = ("binary", "large_binary", "binary_view", "null")


def read_caption_tables(
    paths: Sequence[Path], columns: CaptionColumns, *, folder: Path | None = None
) -> CaptionedImages:
    """Read tables of images and texts.

    Images in a .parquet are bytes, paths, or Hugging Face's struct of both; in other tables paths.
    Images that are bytes in files larger than memory are kept in a temporary file.

    Args:
        paths: tables of one kind.
        columns: where images and texts are.
        folder: what paths of images are relative to; None: the folder of their table.

    Raises:
        MissingExtraError: pyarrow is not installed.
        DataError: a file cannot be read, has no such columns, or nothing that can be used.
    """
    origin = ", ".join(map(str, paths))
    collector, store = CaptionCollector(columns), CellStore(IN_MEMORY)
    report = collector.problems.append
    wanted = [columns.image, *columns.wanted]
    hashes, seen = [], dict[str, None]()
    for path in paths:
        sizes, check = list[int](), partial(_check_types, path=path, columns=columns)
        for _, place, row in table_rows(path, wanted, KEYS, report, check):
            seen |= dict.fromkeys(row)
            if not collector.selects(row):
                continue
            content = content_of(row.get(columns.image))
            if not isinstance(content, bytes | str) or not content:
                cell = f"{columns.image} is {row.get(columns.image)!a:.50}"
                collector.leave_out("no-image", place, f"{cell}, neither an image nor a path")
            elif isinstance(content, bytes):
                collector.add(place, store.add(content), columns.pick(row))
            else:
                at = (folder or path.parent) / expand_user(content)
                sizes.append(size_of(at))
                collector.add(str(at), at, columns.pick(row), place=place, key=str(at))
        digest = content_hash(path)
        if path.suffix != ".parquet" or sizes:  # of images that are files of their own
            digest = hashlib.sha256(f"{digest} {sizes}".encode()).hexdigest()
        hashes.append(digest)
    if seen:
        require_columns(wanted, seen, origin, KEYS)

    def read(cell: int | Path) -> bytes:
        return read_content(cell) if isinstance(cell, Path) else store[cell]

    return collector.finish(read, origin=origin, hashes=tuple(hashes))


def _check_types(types: Mapping[str, Any], path: Path, columns: CaptionColumns) -> None:
    """Refuse columns of other types than images and texts, before any row is read."""
    image = column_type(types[columns.image])
    if image not in (*IMAGES, *TEXTS) and not image.startswith("struct"):
        raise DataError(
            f"{path}: {columns.image} holds {image}, not images: bytes, paths, or a struct of both."
        )
    for name in columns.names:
        kind = column_type(types[name])
        if kind not in TEXTS and column_type(getattr(types[name], "value_type", None)) not in TEXTS:
            raise DataError(f"{path}: {name} holds {kind}, not texts or lists of texts.")


def read_captioned_hub(name: str, columns: CaptionColumns) -> CaptionedImages:
    """Read a data set that `open_hub` opens, with its errors.

    Raises:
        DataError: the data set has no such columns, or nothing that can be used.
    """
    rows, digest = open_hub_images(name, columns.image, columns.wanted, KEYS)
    collector = CaptionCollector(columns)
    for index, row in enumerate(rows.select_columns(columns.wanted)):
        if collector.selects(row):
            collector.add(f"{name}, row {index + 1}", index, columns.pick(row))
    return collector.finish(
        lambda index: read_cell(rows[index][columns.image], Path()), origin=name, hashes=(digest,)
    )


SAMPLE = 20  # images that are looked for in a folder
LISTS = ("images", "annotations")
IMAGE = ("id", "file_name")
ANNOTATION = "image_id"


def read_coco(
    path: Path, columns: CaptionColumns, *, folder: Path | None = None
) -> CaptionedImages:
    """Read a file of annotations.

    Args:
        path: the file.
        columns: where an annotation has its texts, and their language; and the images to read, by
            one of their keys.
        folder: where the images are, or a folder above it; None: they are looked for beside it.

    Raises:
        DataError: it is not such a file, the images are not found, or nothing can be used.
    """
    table, digest, seen = _read(path, {*LISTS, *IMAGE, ANNOTATION, *columns.wanted})
    if table["annotations"]:
        require_columns(columns.wanted, seen, str(path), KEYS)
    collector = CaptionCollector(columns)
    files = _files(path, table["images"], collector)
    names = [name for name in files.values() if name is not None]
    base = _image_folder(path, names, folder)
    places = {name: base / expand_user(name) for name in names}
    for name, at in places.items():
        collector.add(str(at), at, [], key=name)
    for number, annotation in enumerate(table["annotations"], 1):
        place = f"{path}, annotation {number}"
        if not isinstance(annotation, dict) or not _is_id(annotation.get(ANNOTATION)):
            collector.leave_out("invalid-record", place, f"expected an {ANNOTATION} and a caption")
            continue
        image_id = annotation[ANNOTATION]
        if image_id not in files:
            collector.leave_out("no-image", place, f"no image has the id {image_id!a:.50}")
        elif (file := files[image_id]) is not None:
            collector.add(file, None, columns.pick(annotation), place=place, key=file)
    sizes = [size_of(at) for at in places.values()]
    hashed = hashlib.sha256(f"{digest} {sizes}".encode()).hexdigest()
    return collector.finish(read_content, origin=str(path), hashes=(hashed,))


def _files(path: Path, rows: list[Any], collector: CaptionCollector) -> dict[int | str, str | None]:
    """Return the name of each image's file by its id; None: not selected, or it has no name."""
    files: dict[int | str, str | None] = {}
    for number, image in enumerate(rows, 1):
        place = f"{path}, image {number}"
        ident, name = (image.get(key) if isinstance(image, dict) else None for key in IMAGE)
        if not _is_id(ident):
            collector.leave_out("invalid-record", place, "expected an id and a file_name")
        elif ident in files:
            collector.leave_out("invalid-record", place, f"another image has the id {ident!a:.50}")
        elif not isinstance(name, str) or not name:
            collector.leave_out("no-image", place, f"file_name is {name!a:.50}, not a path")
            files[ident] = None
        else:
            files[ident] = name if collector.selects(image) else None
    return files


def _is_id(value: object) -> TypeGuard[int | str]:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _read(path: Path, keys: set[str]) -> tuple[dict[str, list[Any]], str, dict[str, None]]:
    """Read the two lists of a file, of their entries only these keys.

    Returns:
        The lists, the sha256 of the file, and all keys that occur in it.
    """
    seen: dict[str, None] = {}

    def keep(entry: dict[str, Any]) -> dict[str, Any]:
        seen.update(dict.fromkeys(entry))
        return {key: value for key, value in entry.items() if key in keys} or entry

    try:
        content = read_content(path)
        text, _ = decode(content, str(path))
        table = loads(text.removeprefix("\ufeff"), object_hook=keep)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from None
    if not isinstance(table, dict) or not all(isinstance(table.get(key), list) for key in LISTS):
        has = ", ".join(table)[:200] if isinstance(table, dict) else type(table).__name__
        raise DataError(
            f"{path} is not a file of COCO captions: expected the lists images and annotations, "
            f"found {has or 'nothing'}. For one object a line, name it .jsonl."
        )
    return table, hashlib.sha256(content).hexdigest(), seen


def _image_folder(path: Path, names: Sequence[str], folder: Path | None) -> Path:
    """Find the folder of the images, as COCO unpacks them.

    Beside annotations/captions_val2017.json that is val2017 or images/val2017.
    """
    bases = [path.parent, path.parent.parent] if folder is None else [folder]
    split = path.stem.rpartition("_")[2]
    places = [
        base / each
        for base in bases
        for each in ("", split, "images", f"images/{split}", f"{split}/images")
    ]
    sample = names[:SAMPLE]
    counts = {place: sum(size_of(place / expand_user(n)) >= 0 for n in sample) for place in places}
    best = max(places, key=lambda place: counts[place])
    if sample and not counts[best]:
        raise DataError(
            f"The images of {path} are not found, such as {names[0]!a}: looked in "
            f"{', '.join(map(str, dict.fromkeys(places)))}. Name their folder with data.images."
        )
    return best
