"""Choose by what lies at a path how it is made ready for training."""

from importlib import import_module
from pathlib import Path

from manyheads.data.images.image_file import SUFFIXES
from manyheads.errors import UsageError
from manyheads.files import expand_user
from manyheads.own_data.prepared import Options, Prepared, check_room

CAPTIONS = ("captions.jsonl", "captions.csv", "captions.tsv")


def prepare(data: str, out: Path, options: Options, *, force: bool = False) -> Prepared:
    """Look at files of texts or images, and make their data folder and recipe.

    Raises:
        NotFoundError: there is nothing at the path.
        UsageError: `out` exists, or nothing here reads such a file.
        DataError: the file holds nothing that can be trained on.
    """
    path = expand_user(data)
    check_room(out, path, force=force)
    if path.is_dir() or path.name in CAPTIONS:
        try:  # TODO: a plain import, once the module is there
            pictures = import_module("manyheads.own_data.pictures")
        except ModuleNotFoundError:
            raise UsageError(f"{path}: images are not supported here yet.") from None
        prepared: Prepared = pictures.prepare_images(path, out, options)
        return prepared
    if path.suffix.lower() in SUFFIXES:
        raise UsageError(f"{path} is one image: give a folder of images.")
    from manyheads.own_data.tables import prepare_table

    return prepare_table(path, out, options)
