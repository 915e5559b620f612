"""What is indexed: images from folders, files, tables and archives, with names that stay theirs."""

import hashlib
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

import numpy as np
from PIL import Image

from manyheads.data.images.image_file import SUFFIXES, ImageContent, is_image
from manyheads.data.images.image_set import ImageSet, read_files
from manyheads.data.text.rows import HUB
from manyheads.errors import DataError, NotFoundError
from manyheads.project.paths import data_root, here
from manyheads.recipe_data.image_data import ImageData, LabelledImageData
from manyheads.recipe_data.image_splits import find_images

SEPARATORS = re.compile(r"[\s_\-.,+()\[\]]+")


def gather(
    given: Sequence[str], image_column: str = "image", label_column: str | None = None
) -> list[ImageSet]:
    """Find images without opening them; the names of the sets have absolute paths.

    Args:
        given: images, folders of images, and whatever a recipe's [data] table may name.
        image_column: of tables.
        label_column: of tables, or None; what it says of an image is its class in the set.

    Raises:
        NotFoundError: something is not there.
        DataError: a folder has no images; a table cannot be read, or has no such column.
    """
    sets: list[ImageSet] = []
    alone: list[Path] = []
    for each in given:
        name = here(each)
        if ".." in Path(name).parts:  # absolute, and the same from everywhere
            name = str(Path(name).resolve())
        if Path(name).is_file() and is_image(Path(name)):
            alone.append(Path(name))
            continue
        data: ImageData
        if label_column is None:
            data = ImageData(train=name, image=image_column)
        else:
            data = LabelledImageData(train=name, image=image_column, label=label_column)
        try:
            sets.append(find_images(name, data))
        except NotFoundError:
            if name.startswith(HUB):
                raise
            raise NotFoundError(
                f"There is no {each!r}, neither in the current folder nor in {data_root(None)}. "
                "Name images, folders, tables (.csv, .tsv, .jsonl), .parquet or .tar files."
            ) from None
        except DataError as error:  # of recipes, whose keys have other names
            own = "`image_column` and `label_column`"
            raise DataError(str(error).replace("data.image and data.label", own)) from error
    return [*sets, read_files(alone)] if alone else sets


def sha256_of(content: bytes | ImageContent) -> str:
    """Hash the file of an image; of an image without a file its shape and its values."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    kind = content.mode if isinstance(content, Image.Image) else content.dtype.str
    values = np.ascontiguousarray(content)
    digest = hashlib.sha256(f"{kind} {values.shape}\n".encode())
    digest.update(values.tobytes())
    return digest.hexdigest()


def words_of(name: str) -> str:
    """Return the words of an image's name; none if it is no file, or has no word.

    Examples:
        >>> words_of("icons/arrow-upLeft_2.png"), words_of("a.tar: cats/GRÖSSE.jpg")
        ('arrow up Left 2', 'GRÖSSE')
        >>> words_of("a.parquet, row 3"), words_of("0001.png")
        ('', '')
    """
    path = Path(name)
    if path.suffix.lower() not in SUFFIXES:
        return ""
    stem = normalize("NFC", path.stem.encode(errors="ignore").decode())  # of any file system
    parts = (f" {b}" if a.islower() and b.isupper() else b for a, b in pairwise(f" {stem}"))
    words = SEPARATORS.sub(" ", "".join(parts)).strip()
    return words if any(map(str.isalpha, words)) else ""


def is_gone(file: str) -> bool:
    """Tell whether a file is not there; one that cannot be looked for may be."""
    try:
        os.stat(file)  # noqa: PTH116 - as fast as possible, for each image
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False
