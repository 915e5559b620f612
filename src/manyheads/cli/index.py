"""manyheads index."""

from pathlib import Path
from typing import Annotated

import typer

from manyheads.cli.options import Device, Engine, Threads


def run(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the index.")],
    images: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="IMAGES", help="Images, folders, tables, .parquet or .tar files of images."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Shipped model, folder, or hf:USER/MODEL; emoji-search if the index is new."
        ),
    ] = None,
    image_column: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of a table with images or paths.")
    ] = "image",
    label_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of a table to show beside an image's name."),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove images that are gone.")] = False,
    reread: Annotated[
        bool, typer.Option("--reread", help="Read unchanged files again, too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
    engine: Engine = "torch",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Index images, to find them with `search`; or bring an index up to date.

    Run it again to add images, or after Ctrl-C: only what is new or has changed is read and
    embedded. An image that cannot be read is named on stderr, the others are indexed, and the exit
    code is 1.
    """
    from manyheads.app.image_search.image_index import index
    from manyheads.cli.progress import ProgressBar
    from manyheads.cli.show import print_json, warn
    from manyheads.cli.terminal import ReaderGoneError
    from manyheads.errors import InterruptedRunError

    try:
        with ProgressBar() as bar:
            answer = index(
                images or [],
                out=out,
                model=model,
                progress=bar.progress,
                image_column=image_column,
                label_column=label_column,
                prune=prune,
                reread=reread,
                engine=engine,
                device=device,
                threads=threads,
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
