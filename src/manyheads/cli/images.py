"""Images as a command gets them: paths of files or folders, or the lines of stdin."""

from collections.abc import Iterator
from pathlib import Path

AT_ONCE = 32  # images that a model reads together


def images(paths: list[Path]) -> Iterator[Path]:
    """Name the images of folders; a folder without any stands for itself."""
    from manyheads.cli.texts import texts
    from manyheads.data.images.image_file import is_image
    from manyheads.data.regular_files import files_below

    for path in paths:
        if str(path) == "-":
            yield from (Path(line) for line in texts(None) if line)
        elif path.is_dir():
            yield from list(filter(is_image, files_below(path))) or [path]
        else:
            yield path


def no_images(folder: Path) -> str:
    """Say that a folder has no images."""
    from manyheads.data.images.image_file import SUFFIXES

    return f"{folder} has no images ({', '.join(sorted(SUFFIXES))})."
