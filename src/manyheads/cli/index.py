"""manyheads index."""

from pathlib import Path

import typer

from manyheads.asks.image_search_request import IndexRequest
from manyheads.asks.load_options import LoadOptions


def run(
    request: IndexRequest,
    load: LoadOptions,
    out: Path,
    model: str | None = None,
    json: bool = False,
) -> None:
    """Index images, to find them with `search`; or bring an index up to date.

    Run it again to add images, or after Ctrl-C: only what is new or has changed is read and
    embedded. An image that cannot be read is named on stderr, the others are indexed, and the exit
    code is 1.
    """
    from manyheads.cli.printed_answers import print_json, warn
    from manyheads.cli.progress import ProgressBar
    from manyheads.cli.terminal import ReaderGoneError
    from manyheads.errors import InterruptedRunError
    from manyheads.image_search.image_index import index

    try:
        with ProgressBar() as bar:
            answer = index(
                out=out, model=model, progress=bar.progress, **dict(request), **dict(load)
            )
    except ReaderGoneError:
        raise InterruptedRunError("Stopped, as nobody reads on; what is done is saved.") from None
    for each in answer.unreadable:
        warn(each.error)
    if answer.gone:
        warn(
            f"the files of {answer.gone:,} images in the index are gone: `prune=True` removes them."
        )
    if json:
        print_json(answer.to_json())
    else:
        counts = {
            "added": answer.added,
            "changed": answer.changed,
            "removed": answer.removed,
            "unchanged": answer.unchanged,
        }
        done = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        print(f"{out}: {answer.images:,} images ({done or 'nothing to do'})")
    if answer.unreadable:
        raise typer.Exit(1)
