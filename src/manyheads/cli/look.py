"""manyheads look."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from manyheads.app.look import Look
    from manyheads.app.predict import Predictor


def run(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Name of a shipped model, or a folder.")
    ],
    given: Annotated[str, typer.Argument(metavar="INPUT", help="A sentence, or a picture's path.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write, by its ending: .html (a page to explore), .png or .json; "
            "look.html if not given."
        ),
    ] = None,
    shapes: Annotated[
        bool, typer.Option("--shapes", help="Print the shapes of everything on the way instead.")
    ] = False,
    steps: Annotated[
        bool, typer.Option("--steps", help="Of a translation: print every step of the search.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the view as JSON.")] = False,
    target: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Of a picture: the class to explain; the likeliest."),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(help="Of a picture: what gradients are integrated from: black, mean, blur."),
    ] = "black",
    integrated: Annotated[
        bool | None,
        typer.Option(
            "--integrated/--no-integrated", help="Integrate gradients; by default if it is cheap."
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Of a translator: your own translation, scored token by token."
        ),
    ] = None,
    word: Annotated[
        str | None,
        typer.Option(help="Of a text: a word, to see its vector change with the sentence."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="One more sentence with this word; may be repeated."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="PNG", help="Also draw everything that is no attention map."),
    ] = None,
) -> None:
    """Show what a model attends to, in a text or a picture: a page to explore."""
    from manyheads.app.look import FIGURES, FORMS, check_given, look
    from manyheads.app.paths import checked_name, make_room
    from manyheads.app.predict import Reconstruction, Translator, load
    from manyheads.cli.show import other_use, print_json, print_tables, warn
    from manyheads.cli.steps import print_steps
    from manyheads.errors import UsageError
    from manyheads.lens.panels import Table
    from manyheads.lens.view import TextView

    if shapes:
        _refuse_beside_shapes(
            {
                "--out": out,
                "--steps": steps,
                "--target": target,
                "--reference": reference,
                "--word": word,
                "--also": also,
                "--figures": figures,
            }
        )
    if out is not None:
        make_room(checked_name(out, FORMS))
    if figures is not None:
        make_room(checked_name(figures, FIGURES))
        if out is not None and figures.resolve() == out.resolve():
            raise UsageError(f"--out and --figures are both {out}: give two names.")
    predictor = load(model)
    if isinstance(predictor, Reconstruction):
        raise UsageError(f"{model} is not looked at: {other_use(predictor)}")
    if shapes:
        check_given(predictor, given)
        _print_shapes(predictor, given, as_json=json)
        return
    if steps and not isinstance(predictor, Translator):
        raise UsageError(f"{model} does not search for a translation: leave --steps out.")
    found = look(
        predictor,
        given,
        target=target,
        baseline=baseline,
        integrated=integrated,
        reference=reference,
        word=word,
        also=also or (),
    )
    if json:
        print_json(found.to_json())
    else:
        if steps:
            assert isinstance(found.view, TextView)
            print_steps(found.view)
        _print(found)
        if reference is not None:
            panels = [each.panel for each in found.view.figures[:1]]
            print_tables([panel for panel in panels if isinstance(panel, Table)])
    if out is not None or not json:
        written = out or Path("look.html")
        found.save(written)
        warn(f"wrote {written}")
    if figures is not None:
        found.figures_png(figures)
        warn(f"wrote {figures}")
    for note in found.view.notes:
        warn(note)


def _refuse_beside_shapes(options: dict[str, object]) -> None:
    from manyheads.errors import UsageError

    given = [name for name, value in options.items() if value]
    if given:
        raise UsageError(
            f"--shapes prints shapes and nothing else: leave {' and '.join(given)} out."
        )


def _print_shapes(predictor: "Predictor", given: str, *, as_json: bool) -> None:
    from dataclasses import asdict

    from manyheads.app.explain import shapes_of_image, shapes_of_text
    from manyheads.app.explain_tokens import shapes_of_tokens
    from manyheads.app.predict import Classifier, Reconstruction, Translator
    from manyheads.cli.show import print_json
    from manyheads.lens.shapes import render_shapes

    if isinstance(predictor, Translator):
        lines = shapes_of_text(predictor, given)
    elif isinstance(predictor, Classifier):
        lines = shapes_of_image(predictor, Path(given))
    else:
        assert not isinstance(predictor, Reconstruction)
        lines = shapes_of_tokens(predictor, given)
    if as_json:
        print_json([asdict(line) for line in lines])
    else:
        print(render_shapes(lines))


def _print(found: "Look") -> None:
    """Print the answer, and for a text its clearest map and its gates."""
    from rich.console import Console

    from manyheads.cli.steps import print_alignment
    from manyheads.lens.picture import ImageView
    from manyheads.lens.terminal import render_map
    from manyheads.lens.view import clearest

    view = found.view
    if isinstance(view, ImageView):
        for guess in view.classes:
            print(f"{guess.probability:6.1%}  {guess.label}" + "  (explained)" * guess.explained)
        return
    print(found.answer)
    translated = "translation" in found.told
    maps = [each for each in view.maps if each.kind == "decoder cross" or not translated]
    for each in [clearest(maps)] if maps else []:
        Console().print(render_map(each.rows, each.columns, each.mean, each.legend))
    if view.alignment is not None:
        print_alignment(view)
    for gates in view.gates:
        Console().print(render_map(gates.tokens, gates.gates, gates.mean, gates.legend))
