"""manyheads fetch."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The corpus; without a name, list them.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Take the files from a local folder."),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of data sets; else MANYHEADS_DATA, else data/."),
    ] = None,
) -> None:
    """Bring a public corpus that the recipes use: from its home or a folder, with checksums."""
    from manyheads.app.data.fetch import fetch, find_public
    from manyheads.app.project.paths import data_root
    from manyheads.cli.show import warn
    from manyheads.data.text.public_corpora import public_corpora

    if name is None:
        for corpus in public_corpora().values():
            if not corpus.files:
                continue
            here = [(data_root(root) / file.path).exists() for file in corpus.files]
            state = "here" if all(here) else "in part" if any(here) else "not here"
            print(f"{corpus.name:<9} {corpus.bytes / 1e6:6.1f} MB  {state}: {corpus.title}")
            print(f"{'':<9} {corpus.home}" + ("" if corpus.url else " (only with --from)"))
        return
    corpus = find_public(name)
    print(f"{corpus.title}\nlicence: {corpus.licence}\nhome: {corpus.home}")
    done = fetch(corpus, data_root(root), folder=folder, say=warn)
    print(
        f"{done.folder}: {done.brought} files brought, {done.present} were there; "
        "all checksums are right"
    )
