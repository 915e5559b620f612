"""Annotations of images in the format of COCO: a .json file of `images` and `annotations`.

An image has an `id` and a `file_name`, an annotation an `image_id` and a `caption`; an image may
have several. (Chen et al. 2015: Microsoft COCO Captions.)
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

from manyheads.data.images.caption_collector import KEYS, CaptionCollector, CaptionColumns
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_file import open_content, read_content
from manyheads.data.regular_files import size_of
from manyheads.data.text.encoding import decode
from manyheads.data.text.lines import Report, refuse
from manyheads.data.text.rows import require_columns
from manyheads.errors import DataError
from manyheads.files import expand_user
from manyheads.strict_json import loads

SAMPLE = 20  # images that are looked for in a folder
LISTS = ("images", "annotations")
IMAGE = ("id", "file_name")
ANNOTATION = "image_id"


def read_coco(
    path: Path, columns: CaptionColumns, *, folder: Path | None = None, report: Report = refuse
) -> CaptionedImages:
    """Read a file of annotations.

    Args:
        path: the file.
        columns: where an annotation has its texts, and their language; and the images to read, by
            one of their keys.
        folder: where the images are, or a folder above it; None: they are looked for beside it.
        report: called with each image or text that cannot be used.

    Raises:
        DataError: it is not such a file, the images are not found, or nothing can be used.
    """
    table, digest, seen = _read(path, {*LISTS, *IMAGE, ANNOTATION, *columns.wanted})
    if table["annotations"]:
        require_columns(columns.wanted, seen, str(path), KEYS)
    found = CaptionCollector(columns, report)
    files = _files(path, table["images"], found)
    names = [name for name in files.values() if name is not None]
    base = _image_folder(path, names, folder)
    places = {name: base / expand_user(name) for name in names}
    for name, at in places.items():
        found.add(str(at), at, [], key=name)
    for number, annotation in enumerate(table["annotations"], 1):
        place = f"{path}, annotation {number}"
        if not isinstance(annotation, dict) or not _is_id(annotation.get(ANNOTATION)):
            found.leave_out("invalid-record", place, f"expected an {ANNOTATION} and a caption")
            continue
        image_id = annotation[ANNOTATION]
        if image_id not in files:
            found.leave_out("no-image", place, f"no image has the id {image_id!a:.50}")
        elif (file := files[image_id]) is not None:
            found.add(file, None, columns.pick(annotation), place=place, key=file)
    sizes = [size_of(at) for at in places.values()]
    return found.finish(
        lambda at: open_content(read_content(at)),
        origin=str(path),
        hashes=(hashlib.sha256(f"{digest} {sizes}".encode()).hexdigest(),),
    )


def _files(
    path: Path, images: Sequence[Any], found: CaptionCollector
) -> dict[int | str, str | None]:
    """Return the name of each image's file by its id; None: not selected, or it has no name."""
    files: dict[int | str, str | None] = {}
    for number, image in enumerate(images, 1):
        place = f"{path}, image {number}"
        given, name = (image.get(key) if isinstance(image, dict) else None for key in IMAGE)
        if not _is_id(given):
            found.leave_out("invalid-record", place, "expected an id and a file_name")
        elif given in files:
            found.leave_out("invalid-record", place, f"another image has the id {given!a:.50}")
        elif not isinstance(name, str) or not name:
            found.leave_out("no-image", place, f"file_name is {name!a:.50}, not a path")
            files[given] = None
        else:
            files[given] = name if found.selects(image) else None
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
    found = {place: sum(size_of(place / expand_user(n)) >= 0 for n in sample) for place in places}
    best = max(places, key=lambda place: found[place])
    if sample and not found[best]:
        raise DataError(
            f"The images of {path} are not found, such as {names[0]!a}: looked in "
            f"{', '.join(map(str, dict.fromkeys(places)))}. Name their folder with data.images."
        )
    return best
