"""manyheads search."""

from contextlib import suppress
from pathlib import Path

import typer

from manyheads.asks.image_search_request import FoundImage, ImageSearchRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.cli.terminal import visible_name


def run(
    request: ImageSearchRequest,
    load: LoadOptions,
    index: Path,
    queries: list[str] | None = None,
    model: str | None = None,
    json: bool = False,
) -> None:
    """Find images of an index by words, or by an image that they resemble.

    A line for each image: its rank, its score (1 is the largest) and its path. A query that is an
    image but cannot be read is named on stderr, the others are answered, and the exit code is 1,
    or 2 if there is no such file.
    """
    from manyheads.cli.printed_answers import print_json, warn
    from manyheads.cli.texts import texts
    from manyheads.image_search.image_index import ImageIndex

    code, several = 0, queries is None or len(queries) > 1
    opened = ImageIndex(index, model=model, **dict(load))
    with opened:
        for query in queries or texts(None):
            (answer,) = opened.answer(request.with_inputs([query]))
            if answer.error is not None:
                code = max(code, 1 if answer.kind == "text" or Path(query).exists() else 2)
                warn(answer.error)
            if json:
                print_json(answer.to_json())
            elif answer.images is not None:
                if several:
                    print(query)
                _print(answer.images)
    if code:
        raise typer.Exit(code)


def _print(images: tuple[FoundImage, ...]) -> None:
    """Print a line for each image; paths in the current folder are relative to it."""
    here = Path.cwd()
    for rank, each in enumerate(images, 1):
        path = each.path
        with suppress(ValueError):
            path = str(Path(path).relative_to(here))
        label = f"  {visible_name(each.label)}" if each.label is not None else ""
        gone = "  (gone)" if each.gone else ""
        print(f"{rank:>3}  {each.score:6.3f}  {visible_name(path)}{label}{gone}", flush=True)
