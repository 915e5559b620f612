"""manyheads tag."""

from typing import Annotated

import typer


def run(
    model: Annotated[str, typer.Option(help="Folder of a model trained to tag.")],
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts; without any, the lines of stdin."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Space Korean texts anew: an answer for every character."""
    from manyheads.app.predict import load
    from manyheads.app.tagging import Spacer, spaced
    from manyheads.cli.show import other_use, print_json
    from manyheads.cli.texts import texts
    from manyheads.errors import UsageError

    spacer = load(model)
    if not isinstance(spacer, Spacer):
        raise UsageError(f"{model} does not tag: {other_use(spacer)}")
    for text in texts(given):
        (found,) = spacer.tag([text])
        if json:
            print_json(
                {
                    "source": text,
                    "text": spaced(found),
                    "characters": [character for character, _ in found],
                    "space": [round(probability, 4) for _, probability in found],
                }
            )
        else:
            print(spaced(found), flush=True)
