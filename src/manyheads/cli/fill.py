"""manyheads fill."""

from typing import Annotated

import typer


def run(
    model: Annotated[str, typer.Option(help="Folder of a model trained to fill blanks.")],
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT", help='Texts with <mask>, as "a <mask>."; or the lines of stdin.'
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Proposals a blank.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Fill the blanks of texts: the likeliest tokens for each, with probabilities."""
    from manyheads.app.language import Filler
    from manyheads.app.predict import load
    from manyheads.app.texts import one_line
    from manyheads.cli.show import other_use, print_json
    from manyheads.cli.texts import texts
    from manyheads.errors import UsageError

    filler = load(model)
    if not isinstance(filler, Filler):
        raise UsageError(f"{model} does not fill blanks: {other_use(filler)}")
    for text in texts(given):
        blanks = filler.fill(text, top=top)
        if json:
            proposals = [[proposal._asdict() for proposal in blank] for blank in blanks]
            print_json({"text": text, "blanks": proposals})
        else:
            for number, blank in enumerate(blanks, 1):
                if len(blanks) > 1:
                    print(f"blank {number}")
                for proposal in blank:
                    print(f"{proposal.probability:6.1%}  {one_line(proposal.text)}", flush=True)
