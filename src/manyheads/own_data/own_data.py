"""Choose by what lies at a path how it is made ready for training."""

from pathlib import Path

from manyheads.data.images.image_file import SUFFIXES
from manyheads.data.text.lines import ending
from manyheads.errors import UsageError
from manyheads.files import expand_user
from manyheads.own_data.picture_files import names_images
from manyheads.own_data.prepared import Options, Prepared, check_room

TEXTS = (".tsv", ".csv", ".txt", ".json", ".jsonl", ".ndjson", ".xlsx", ".tmx", ".parquet")


def prepare(data: str, out: Path, options: Options, *, force: bool = False) -> Prepared:
    """Look at files of texts or images, and make their data folder and recipe.

    Raises:
        NotFoundError: there is nothing at the path.
        UsageError: `out` exists, or nothing here reads such a file.
        DataError: the file holds nothing that can be trained on.
    """
    if "://" in data:
        raise UsageError(f"{data} is an address: download the file, and give its path.")
    path = expand_user(data)
    check_room(out, path, force=force)
    if path.is_dir() or names_images(path):
        from manyheads.own_data.pictures import prepare_images

        return prepare_images(path, out, options)
    if path.suffix.lower() in SUFFIXES:
        raise UsageError(f"{path} is one image: give a folder of images.")
    from manyheads.own_data.tables import prepare_table

    return prepare_table(path, out, options)


def are_texts(data: str) -> bool:
    """Tell whether a name is that of a file of texts, and not of a table of images."""
    path = expand_user(data)
    return path.is_file() and ending(path).lower() in TEXTS and not names_images(path)
