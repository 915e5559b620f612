"""The files of a folder, checked by the hashes that were written with them."""

import os
from collections.abc import Mapping
from pathlib import Path

from manyheads.errors import FolderError
from manyheads.project.recipe_limits import short
from manyheads.train.checkpoint import sha256


def check_hashes(record: Path, hashes: Mapping[str, str], again: str) -> None:
    """Check that the files beside a record are there, inside its folder, and as they were written.

    Args:
        record: the JSON file that has the hashes.
        hashes: the sha256 of each file, by its path from the record's folder.
        again: what to do about a file that is not.

    Raises:
        FolderError: one is not.
    """
    for name, expected in hashes.items():
        path = record.parent / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise FolderError(f"{record}, sha256: {short(name)} is not in the folder. {again}")
        if not os.path.isfile(path):  # noqa: PTH113 - Path raises on a name too long
            raise FolderError(f"{path} is missing. {again}")
        if sha256(path) != expected:
            raise FolderError(
                f"{path} is not the file that was written with this model (its sha256 differs): it "
                f"was changed or cut off. {again}"
            )
