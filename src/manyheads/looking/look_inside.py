"""Look inside a model on one's own sentence or image; keep it as a page, an image or JSON."""

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor

from manyheads.asks.look_request import LookRequest
from manyheads.errors import UsageError
from manyheads.files import write_atomically, write_text
from manyheads.lens.cause.patching import uniform
from manyheads.lens.trace.head_steps import HeadSteps, head_steps
from manyheads.lens.trace.module_shapes import ShapeLine
from manyheads.lens.view.image_view import ImageView
from manyheads.lens.view.text_view import TextView
from manyheads.looking.figures import kept_traces
from manyheads.looking.taken_out import marked
from manyheads.looking.untrained import NOTE
from manyheads.nn.editing.edits import zeroed
from manyheads.nn.recording.trace import Trace
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.load import loaded
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.paths import checked_name, make_room
from manyheads.strict_json import dumps

FORMS = {".html": "a page to explore", ".png": "an image", ".json": "the numbers"}
FIGURES = {".png": "an image"}


@dataclass(frozen=True, repr=False)
class Look:
    """The view of one answer, and the files it can be saved as.

    For example `look("date-en-ko", "Friday, 20 November 2026").save("look.html")`.
    """

    told: dict[str, str]  # the model, and what was given and came out: texts, or a path
    view: TextView | ImageView
    pixels: Tensor | None = None  # of an image: (height, width) or (height, width, 3), 0..255

    @property
    def answer(self) -> str:
        """The model's answer: a translation, a caption, or the most likely class."""
        text = self.told.get("translation") or self.told.get("answer")
        if text is None and isinstance(self.view, ImageView):
            return self.view.classes[0].label
        return text or ""

    @property
    def title(self) -> str:
        """The model, what was given and what came out, on a line."""
        model = self.told["model"]
        if isinstance(self.view, ImageView):
            other = [each.label for each in self.view.classes[1:] if each.explained]
            why = f", explained: {other[0]}" if other and "answer" not in self.told else ""
            return f"{model}: {Path(self.told['path']).name}  →  {self.answer}{why}"
        if "translation" in self.told:
            return f"{model}: {self.told['text']}  →  {self.answer}"
        return f"{model}: {self.answer}"

    def __repr__(self) -> str:
        return f'<Look {self.title}; save("look.html") writes the page>'

    def _repr_html_(self) -> str:
        """Show the page in a notebook, where its scripts reach nothing but the page itself."""
        page = escape(self.html())
        return (
            '<iframe sandbox="allow-scripts allow-downloads" width="100%" height="720" '
            f'style="border: 0" srcdoc="{page}"></iframe>'
        )

    @property
    def name(self) -> str:
        """What files that are saved from the page are called."""
        given = self.told.get("path") or self.told["text"]
        return f"look {Path(given).stem if 'path' in self.told else given[:40]}"

    def to_json(self) -> dict[str, Any]:
        """Give the view as plain data; `lens/view/view.schema.json` describes it."""
        return {**self.told, **self.view.to_json()}

    def html(self) -> str:
        """Write one page that holds everything and asks the network for nothing."""
        from manyheads.lens.view.report import report

        return report(
            self.view, title=self.title, metadata=self.told, pixels=self.pixels, name=self.name
        )

    def page(self) -> dict[str, Any]:
        """Give what the modules of the page draw from, on a page that is served."""
        from manyheads.lens.view.report import page_data

        return page_data(self.view, metadata=self.told, pixels=self.pixels, name=self.name)

    def png(self, path: Path) -> None:
        """Draw the main map, and every layer and head small; without maps, the figures."""
        from manyheads.lens.plot.image_plot import plot_image
        from manyheads.lens.plot.text_plot import plot_text

        if isinstance(self.view, ImageView):
            assert self.pixels is not None
            plot_image(self.view, self.pixels, path, title=self.title)
        elif not self.view.maps:
            self.figures_png(path)
        else:
            kind = "decoder cross" if "translation" in self.told else "encoder self"
            plot_text(self.view, path, title=self.title, kind=kind)

    def figures_png(self, path: Path) -> None:
        """Draw the figures beside the maps: gates, heads, distances, costs and more."""
        from manyheads.lens.plot.panel_plot import draw_figures

        if not self.view.figures:
            raise UsageError("There are no figures to draw: this model has no layers to measure.")
        draw_figures(self.view.figures, path, title=self.title)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file in the form of its ending: .html, .png or .json.

        Raises:
            UsageError: another ending, or there is nothing to draw.
            MissingExtraError: a PNG needs matplotlib, and a font for these texts.
        """
        target = checked_name(path, FORMS)
        make_room(target, self.told.get("path"))
        form = target.suffix.lower()
        if form == ".png":
            self.png(target)
        elif form == ".html":
            # Lone surrogates become question marks.
            write_atomically(target, self.html().encode("utf-8", "replace"))
        else:
            write_text(target, dumps(self.to_json(), separators=(",", ":")) + "\n")


def look(model: str | Path | Predictor, given: str | Path | Image.Image, **parameters: Any) -> Look:
    """Run a model on a text or an image with a recorder open.

    Args:
        model: the name of a shipped model, a model folder, or what `load` returned.
        given: a text, or for an image model the path of an image, or one that Pillow opened.
        parameters: those of `LookRequest`, such as `target="cat"` or `word="name"`; of a model
            that is not loaded yet those of `load`, too.

    Raises:
        NotFoundError: there is no such model, or no such image.
        DataError: the image cannot be read, or the text holds lone surrogates.
        UsageError: something else is given, the text is empty, the model has nothing to look at,
            or it is asked for what another kind of model does.
    """
    if not isinstance(given, str | Path | Image.Image):
        raise UsageError(
            f"What was given is {given!r:.80}: give a text, the path of an image, or a Pillow "
            "image (of an array, `Image.fromarray(array)`)."
        )
    given = str(given) if isinstance(given, Path) else given
    predictor, parameters = loaded(model, parameters)
    return look_at(predictor, LookRequest(given=given, **parameters))


def look_at(predictor: Predictor, request: LookRequest) -> Look:
    """Do what `look` does, for a validated request."""
    name = predictor.folder.name
    maps = dict.fromkeys(request.uniform, uniform)
    with predictor.engine.running(), zeroed(request.without, maps):
        told, view, pixels = pipeline_of(predictor.folder.recipe).look(predictor, request)
    if request.untrained:
        if NOTE not in view.notes:
            raise UsageError(f"{name}: its task has no untrained model: leave `untrained` out.")
        name = f"{name}, untrained"
    if request.without:
        name = f"{name} without {', '.join(request.without)}"
        view = marked(view, request.without)
    if request.uniform:
        name = f"{name}, uniform {', '.join(request.uniform)}"
    return Look({"model": name} | told, view, pixels)


def head_steps_at(
    predictor: Predictor, request: LookRequest, site: str, head: int, row: int
) -> HeadSteps:
    """Compute how one row of one head of a look came about; head and row count from 1.

    Raises:
        UsageError: there is no such layer, head or row; or the map shows groups of tokens.
    """
    with kept_traces() as traces:
        look = look_at(predictor, request)
    steps = head_steps(traces[0] if traces else Trace(), site, head, row)
    shown = next((each for each in look.view.maps if each.site == site), None)
    if shown is None or max(steps.keys) >= len(shown.columns):
        raise UsageError(f"The map of {site} shows groups of tokens: give a shorter input.")
    return steps


def shapes_of(predictor: Predictor, given: str) -> list[ShapeLine]:
    """List the parts that one input passes through, with the shapes that go in and out."""
    with predictor.engine.running():
        return pipeline_of(predictor.folder.recipe).shapes(predictor, given)
