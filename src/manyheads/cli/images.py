"""Images as a command gets them: paths of files or folders, or the lines of stdin."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import typer

from manyheads.asks.caption_request import CaptionAnswer
from manyheads.asks.classify_request import ClassifyAnswer
from manyheads.asks.read_request import ReadAnswer
from manyheads.asks.request import ImageRequest

A = TypeVar("A", bound=CaptionAnswer | ClassifyAnswer | ReadAnswer)
AT_ONCE = 32  # images that a model reads together


def print_answers(
    paths: list[Path] | None,
    answer: Callable[[Any], Iterable[A]],
    request: ImageRequest,
    made: Callable[..., A],
    show: Callable[[A, bool], None],
    *,
    json: bool,
) -> None:
    """Print an answer for each image, in order.

    An image that cannot be read is named on stderr, and the exit code is 1, or 2 if there is no
    such file.

    Without `paths` the images are the lines of stdin. `answer` answers requests; `request` is
    without its images, and `made` is the type of the answers. `show` prints an answer, if not as
    JSON, and is told whether there are several images.
    """
    from manyheads.cli.printed_answers import print_json, warn, warn_of
    from manyheads.data.images.image_file import SUFFIXES

    def answered(paths: list[Path]) -> Iterator[A]:
        """Answer images together; of a folder without any, say so in its place."""
        for is_folder, group in groupby(paths, Path.is_dir):
            if is_folder:
                for path in group:
                    error = f"{path} has no images ({', '.join(sorted(SUFFIXES))})."
                    yield made(path=str(path), error=error)
            else:
                yield from answer(request.with_inputs(group))

    code, done = 0, 0
    waiting = images(paths or [Path("-")])
    while chunk := list(islice(waiting, AT_ONCE)):
        several = done > 0 or len(chunk) > 1
        for result in answered(chunk):
            if result.error is not None:
                code = max(code, 1 if Path(result.path).exists() else 2)
                warn(result.error)
            if json:
                print_json(result.to_json())
            else:
                show(result, several)
            warn_of(result.path, result.notes)
        done += len(chunk)
    if code:
        raise typer.Exit(code)


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
