"""manyheads convert: a command for each format."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from manyheads.app.convert import Conversion

app = typer.Typer(
    help="Make model folders of other libraries' models, and the other way round.",
    no_args_is_help=True,
)
Out = Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; new or empty.")]


@app.command()
def marian(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Folder of a Hugging Face Marian model (OPUS-MT), or its name on the hub.",
        ),
    ],
    out: Out,
    source_language: Annotated[
        str | None, typer.Option(help="If the tokenizer's configuration does not name it.")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(help="Likewise, of the language translated into.")
    ] = None,
    prefix: Annotated[
        str, typer.Option(help='Language code of texts that begin with none, such as ">>kor<<".')
    ] = "",
) -> None:
    """Make a model folder of a Hugging Face Marian model."""
    from manyheads.app.convert import from_marian

    made = from_marian(
        source,
        out,
        source_language=source_language,
        target_language=target_language,
        prefix=prefix,
    )
    _report(made)
    print(f'Translate with: manyheads translate --model {made.folder} "..."')


@app.command()
def to_marian(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Name of a shipped model, or a folder.")
    ],
    out: Out,
) -> None:
    """Write a translator as a folder that Hugging Face's MarianMTModel loads."""
    from manyheads.app.convert import to_marian as write

    _report(write(model, out))


def _report(made: "Conversion") -> None:
    from manyheads.cli.show import warn

    for remark in made.remarks:
        warn(remark)
    print(f"{made.folder}: {made.source} to {made.target}, {made.parameters:,} parameters")
