"""manyheads look."""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from manyheads.asks.load_options import LoadOptions
from manyheads.asks.look_request import LookRequest
from manyheads.cli.translate import general

if TYPE_CHECKING:
    from manyheads.looking.look_inside import Look


def run(
    model: str,
    request: LookRequest,
    load: LoadOptions,
    out: Path | None = None,
    shapes: bool = False,
    steps: bool = False,
    json: bool = False,
    figures: Path | None = None,
) -> None:
    """Show what a model attends to in a text or an image: a page to explore."""
    from manyheads.cli.terminal import waiting

    with waiting(f"looking into {model}"):
        from manyheads.asks.translate_request import TranslateRequest
        from manyheads.cli.printed_answers import print_json, print_tables, warn
        from manyheads.cli.steps import print_steps
        from manyheads.errors import UsageError
        from manyheads.lens.cause.cause_figures import GROUP, tabulated
        from manyheads.lens.panels import Table
        from manyheads.lens.trace.module_shapes import render_shapes
        from manyheads.lens.view.text_view import TextView
        from manyheads.looking.look_inside import FIGURES, FORMS, look_at, shapes_of
        from manyheads.predict.base_predictor import answers
        from manyheads.predict.load import load as load_model
        from manyheads.project.folder import own_files
        from manyheads.project.paths import checked_name, make_room

        if shapes:
            others = {"out": out, "steps": steps, "figures": figures}
            asked = request.model_dump(exclude={"given"}, exclude_defaults=True)
            beside = [name for name, value in (others | asked).items() if value]
            if beside:
                raise UsageError(
                    "--shapes prints shapes and nothing else: leave "
                    f"--{' and --'.join(beside)} out."
                )
        if out is not None:
            checked_name(out, FORMS)
        if figures is not None:
            checked_name(figures, FIGURES)
            if out is not None and figures.resolve() == out.resolve():
                raise UsageError(f"--out and --figures are both {out}: give two names.")
        predictor = load_model(model, **dict(load))
        given = request.given if predictor.folder.recipe.data.has_images else None
        for path in (out, figures):
            if path is not None:
                make_room(path, given, *own_files(predictor.folder.path))
        if steps and (request.untrained or not answers(predictor, TranslateRequest)):
            raise UsageError(f"{model} does not search for a translation: leave --steps out.")
        look = None if shapes else look_at(predictor, request)
    if look is None:
        lines = shapes_of(predictor, request.given)
        if json:
            print_json([asdict(line) for line in lines])
        else:
            print(render_shapes(lines))
        return
    # Files before what is printed: a reader may leave early, as `head -1` does.
    page = None if json and out is None else out or _new_page()
    told = []
    for path, write in ((page, look.save), (figures, look.figures_png)):
        if path is not None:
            replaced = path.exists()
            write(path)
            told.append(f"{'replaced' if replaced else 'wrote'} {path}")
    try:
        if json:
            print_json(look.to_json())
        else:
            if steps:
                assert isinstance(look.view, TextView)
                print_steps(look.view)
            _print(look)
            if request.reference is not None:
                panels = [each.panel for each in look.view.figures[:1]]
                print_tables([panel for panel in panels if isinstance(panel, Table)])
            if "instead" in look.told:
                for pair in (("text", "translation"), ("instead", "instead_translation")):
                    print("  →  ".join(look.told[each] for each in pair))
            for each in look.view.figures:
                if each.group == GROUP:
                    print_tables([tabulated(each)])
                    print(each.legend)
    finally:
        for line in (*told, *look.view.notes):
            warn(line)


def model_for(given: str) -> list[str]:
    """Choose a shipped model for an image, or for a text of several words; else none.

    One word, or a folder, is taken for a model whose input is missing.
    """
    from manyheads.cli.printed_answers import warn
    from manyheads.data.images.image_file import SUFFIXES

    if Path(given).suffix.lower() in SUFFIXES:
        return ["cifar10-cct-2-3x2"]
    if os.path.exists(given) or (given.isascii() and len(given.split()) < 2):  # noqa: PTH110
        return []
    model, why = general([given], None)
    if why is not None:
        warn(f"{why}; a model before the text is taken instead.")
    return [model]


def _new_page() -> Path:
    """Name a page that is not there yet: look.html, look-2.html, ..."""
    number = 1
    while (path := Path(f"look-{number}.html" if number > 1 else "look.html")).exists():
        number += 1
    return path


def _print(look: "Look") -> None:
    """Print the answer, and for a text its clearest map and its gates."""
    from manyheads.cli.steps import print_alignment
    from manyheads.cli.terminal import console
    from manyheads.lens.plot.terminal_plot import render_map
    from manyheads.lens.view.image_view import ImageView
    from manyheads.lens.view.text_view import clearest

    view = look.view
    if isinstance(view, ImageView):
        if "answer" in look.told:  # a caption, and then its words
            print(look.answer)
        for guess in view.classes:
            print(f"{guess.probability:6.1%}  {guess.label}" + "  (explained)" * guess.explained)
        return
    print(look.answer)
    translated = "translation" in look.told
    maps = [each for each in view.maps if each.kind == "decoder cross" or not translated]
    for each in [clearest(maps)] if maps else []:
        console(sys.stdout).print(render_map(each.rows, each.columns, each.mean, each.legend))
    if view.alignment is not None:
        print_alignment(view)
    for gates in view.gates:
        console(sys.stdout).print(render_map(gates.tokens, gates.gates, gates.mean, gates.legend))
