"""Images as a command gets them: paths of files or folders, or the lines of stdin."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

A = TypeVar("A")
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


def answers(
    paths: Sequence[Path], answer: Callable[[list[Path]], Iterable[A]], made: Callable[..., A]
) -> Iterator[A]:
    """Answer images together; of a folder without any, say so in its place.

    Args:
        paths: images, and folders without any.
        answer: answers images.
        made: the type of the answers.
    """
    from manyheads.data.images.image_file import SUFFIXES

    for folder, group in groupby(paths, Path.is_dir):
        if not folder:
            yield from answer([*group])
            continue
        for path in group:
            error = f"{path} has no images ({', '.join(sorted(SUFFIXES))})."
            yield made(path=str(path), error=error)
