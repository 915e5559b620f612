"""manyheads look."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from manyheads.app.explain_tokens import Reader
    from manyheads.app.predict import Classifier, Predictor, Translator


def run(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Name of a shipped model, or a folder.")
    ],
    given: Annotated[str, typer.Argument(metavar="INPUT", help="A sentence, or a picture's path.")],
    out: Annotated[
        Path | None,
        typer.Option(help="PNG to write; look.png if not given."),
    ] = None,
    shapes: Annotated[
        bool, typer.Option("--shapes", help="Print the shapes of everything on the way instead.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the view as JSON.")] = False,
    target: Annotated[
        str | None,
        typer.Option(help="Of a picture: the class to explain; the likeliest if not given."),
    ] = None,
    baseline: Annotated[
        str, typer.Option(help="Of a picture: integrate gradients from black, mean or blur.")
    ] = "black",
    integrated: Annotated[
        bool | None,
        typer.Option(
            "--integrated/--no-integrated",
            help="Integrate gradients, which takes many passes; where it costs little if neither "
            "is given.",
        ),
    ] = None,
) -> None:
    """Show what a model attends to, text or picture: a PNG, and for text a map in the terminal."""
    from manyheads.app.paths import make_room
    from manyheads.app.predict import Classifier, Reconstruction, Translator, load
    from manyheads.cli.show import other_use
    from manyheads.errors import UsageError

    if out is not None:
        make_room(out)
    predictor = load(model)
    if isinstance(predictor, Reconstruction):
        raise UsageError(f"{model} is not looked at: {other_use(predictor)}")
    if target is not None and not isinstance(predictor, Classifier):
        raise UsageError(f"{model} gives no class to a picture: leave --target out.")
    if shapes:
        _print_shapes(predictor, given, as_json=json)
    elif isinstance(predictor, Translator):
        _look_at_text(predictor, given, out, as_json=json, integrated=integrated)
    elif isinstance(predictor, Classifier):
        options = {"target": target, "baseline": baseline, "integrated": integrated}
        _look_at_image(predictor, Path(given), out, as_json=json, **options)
    else:
        _look_at_tokens(predictor, given, out, as_json=json, integrated=integrated)


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


def _look_at_text(
    translator: "Translator", text: str, out: Path | None, *, as_json: bool, integrated: bool | None
) -> None:
    from manyheads.app.explain import explain_text
    from manyheads.cli.show import print_json, warn
    from manyheads.errors import UsageError
    from manyheads.lens.plot import plot_text
    from manyheads.lens.view import clearest

    output, view = explain_text(translator, text, integrated=integrated)
    if as_json:
        print_json({"text": text, "translation": output, **view.to_json()})
    else:
        from rich.console import Console

        from manyheads.lens.terminal import render_map

        print(output)
        looks = [each for each in view.maps if each.kind == "decoder cross"]
        for found in [clearest(looks)] if looks else []:
            Console().print(render_map(found.rows, found.columns, found.mean, found.legend))
        for gates in view.gates:
            Console().print(render_map(gates.tokens, gates.gates, gates.mean, gates.legend))
    if not view.maps and (out is not None or not as_json):
        reason = (
            "There is no attention to draw: this model's decoder knows the source as one vector. "
            'Train one with model.attention = "additive", "dot" or "general" to see where it looks.'
        )
        if out is not None:
            raise UsageError(reason)
        warn(reason)
    elif out is not None or not as_json:
        target = out or Path("look.png")
        plot_text(view, target, title=f"{text}  →  {output}")
        warn(f"wrote {target}")
    for note in view.notes:
        warn(note)


def _look_at_tokens(
    reader: "Reader", text: str, out: Path | None, *, as_json: bool, integrated: bool | None
) -> None:
    from manyheads.app.explain_tokens import explain_tokens
    from manyheads.cli.show import print_json, warn
    from manyheads.errors import UsageError
    from manyheads.lens.plot import plot_text
    from manyheads.lens.view import clearest

    answer, view = explain_tokens(reader, text, integrated=integrated)
    if as_json:
        print_json({"text": text, "answer": answer, **view.to_json()})
    else:
        from rich.console import Console

        from manyheads.lens.terminal import render_map

        print(answer)
        for found in [clearest(view.maps)] if view.maps else []:
            Console().print(render_map(found.rows, found.columns, found.mean, found.legend))
        for gates in view.gates:
            Console().print(render_map(gates.tokens, gates.gates, gates.mean, gates.legend))
    if out is not None and not view.maps:
        raise UsageError("There is no attention to draw: this model is recurrent. Leave --out out.")
    if view.maps and (out is not None or not as_json):
        target = out or Path("look.png")
        plot_text(view, target, title=answer, kind="encoder self")
        warn(f"wrote {target}")
    for note in view.notes:
        warn(note)


def _look_at_image(
    classifier: "Classifier", path: Path, out: Path | None, *, as_json: bool, **options: Any
) -> None:
    from manyheads.app.explain import explain_image
    from manyheads.cli.show import print_json, warn
    from manyheads.lens.plot import plot_image

    view, pixels = explain_image(classifier, path, **options)
    if as_json:
        print_json({"path": str(path), **view.to_json()})
    else:
        for found in view.classes:
            print(f"{found.probability:6.1%}  {found.label}")
    if out is not None or not as_json:
        target = out or Path("look.png")
        plot_image(view, pixels, target, title=path.name)
        warn(f"wrote {target}")
    for note in view.notes:
        warn(note)
