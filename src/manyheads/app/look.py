"""Look inside a model on one's own sentence or picture; keep it as a page, a picture or JSON."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from manyheads.app.asked import asked_figures
from manyheads.app.explain import explain_image, explain_text
from manyheads.app.explain_tokens import explain_tokens
from manyheads.app.paths import checked_name, make_room
from manyheads.app.predict import Classifier, Predictor, Reconstruction, Translator, load
from manyheads.data.pictures import SUFFIXES as PICTURES
from manyheads.errors import NotFoundError, UsageError
from manyheads.lens.picture import ImageView
from manyheads.lens.view import TextView

if TYPE_CHECKING:
    from collections.abc import Callable

FORMS = {".html": "a page to explore", ".png": "a picture", ".json": "the numbers"}
FIGURES = {".png": "a picture"}
BASELINE = "black"


@dataclass(frozen=True)
class Look:
    """What there is to see in one answer, and the forms in which it can be kept.

    For example `look("date-en-ko", "Friday, 20 November 2026").save("look.html")`.
    """

    told: dict[str, str]  # the model, and what was given and came out: texts, or a path
    view: TextView | ImageView
    pixels: Tensor | None = None  # of a picture: (height, width) or (height, width, 3), 0..255

    @property
    def answer(self) -> str:
        """What the model said: a translation, or the likeliest class."""
        if isinstance(self.view, ImageView):
            return self.view.classes[0].label
        return self.told.get("translation") or self.told["answer"]

    @property
    def title(self) -> str:
        """The model, what was given and what came out, on a line."""
        model = self.told["model"]
        if isinstance(self.view, ImageView):
            other = [each.label for each in self.view.classes[1:] if each.explained]
            why = f", explained: {other[0]}" if other else ""
            return f"{model}: {Path(self.told['path']).name}  →  {self.answer}{why}"
        if "translation" in self.told:
            return f"{model}: {self.told['text']}  →  {self.answer}"
        return f"{model}: {self.answer}"

    def to_json(self) -> dict[str, Any]:
        """Give the view as plain data; `lens/view.schema.json` describes it."""
        return {**self.told, **self.view.to_json()}

    def html(self) -> str:
        """Write one page that holds everything and asks the network for nothing."""
        from manyheads.lens.report import report

        given = self.told.get("path") or self.told["text"]
        return report(
            self.view,
            title=self.title,
            told=self.told,
            pixels=self.pixels,
            name=f"look {Path(given).stem if 'path' in self.told else given[:40]}",
        )

    def png(self, path: Path) -> None:
        """Draw the map that says most, and every layer and head small; without maps, the figures.

        Raises:
            MissingExtraError: matplotlib, or a font for these texts, is not installed.
        """
        from manyheads.lens.picture_plot import plot_image
        from manyheads.lens.text_plot import plot_text

        if isinstance(self.view, ImageView):
            assert self.pixels is not None
            plot_image(self.view, self.pixels, path, title=self.title)
        elif not self.view.maps:
            self.figures_png(path)
        elif "translation" in self.told:
            plot_text(self.view, path, title=self.title)
        else:
            plot_text(self.view, path, title=self.title, kind="encoder self")

    def figures_png(self, path: Path) -> None:
        """Draw what there is to see beside maps: gates, heads, distances, costs and more.

        Raises:
            UsageError: there is nothing.
            MissingExtraError: matplotlib, or a font for these texts, is not installed.
        """
        from manyheads.lens.panel_plot import draw_figures

        if not self.view.figures:
            raise UsageError("There are no figures to draw: this model has no layers to measure.")
        draw_figures(self.view.figures, path, title=self.title)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file whose name says what it is: .html, .png or .json.

        Raises:
            UsageError: another name, or there is nothing to draw.
            MissingExtraError: a PNG needs matplotlib.
        """
        target = checked_name(path, FORMS)
        make_room(target)
        writers: dict[str, Callable[[], None]] = {
            ".png": lambda: self.png(target),
            ".html": lambda: _write(target, self.html()),
            ".json": lambda: _write(
                target, json.dumps(self.to_json(), ensure_ascii=False, separators=(",", ":")) + "\n"
            ),
        }
        writers[target.suffix.lower()]()


def look(
    model: str | Path | Predictor,
    given: str | Path,
    *,
    target: str | None = None,
    baseline: str = BASELINE,
    integrated: bool | None = None,
    reference: str | None = None,
    word: str | None = None,
    also: Sequence[str] = (),
) -> Look:
    """Run a model on a text or a picture with a recorder open.

    Args:
        model: the name of a shipped model, a model folder, or what `load` gave.
        given: a text, or for a model of pictures the path of one.
        target: of a picture: the class that is explained; the likeliest if None.
        baseline: of a picture: what gradients are integrated from.
        integrated: whether to integrate gradients; None: where it costs little.
        reference: of a translator: a translation of one's own, to see what it costs the model.
        word: of a text: a word whose vector is compared between sentences, and where it looks.
        also: more sentences with this word.

    Raises:
        NotFoundError: there is no such model, or no such picture.
        DataError: the picture cannot be read, or the text holds half of a character.
        UsageError: the text is empty, the model has nothing to look at, or it is asked for what
            another kind of model does.
    """
    predictor = load(model) if isinstance(model, str | Path) else model
    if isinstance(predictor, Reconstruction):
        raise UsageError(
            f"{predictor.folder.name} answers nothing, so there is nothing to look at: start a "
            "classifier from it with start.model=FOLDER."
        )
    check_given(predictor, given)
    told = {"model": predictor.folder.name}
    asked = asked_figures(predictor, str(given), reference=reference, word=word, also=also)
    if isinstance(predictor, Classifier):
        view, pixels = explain_image(
            predictor, Path(given), target=target, baseline=baseline, integrated=integrated
        )
        return Look({**told, "path": str(given)}, view, pixels)
    if target is not None:
        raise UsageError(
            f"{predictor.folder.name} reads texts and explains every token of its answer: it takes "
            "no target class."
        )
    if baseline != BASELINE:
        raise UsageError(
            f"{predictor.folder.name} reads texts, whose gradients are integrated from zero "
            "embeddings: it takes no baseline."
        )
    if isinstance(predictor, Translator):
        output, found = explain_text(predictor, str(given), integrated=integrated)
        told |= {"text": str(given), "translation": output}
    else:
        output, found = explain_tokens(predictor, str(given), integrated=integrated)
        told |= {"text": str(given), "answer": output}
    return Look(told, replace(found, figures=[*asked, *found.figures]))


def check_given(predictor: Predictor, given: str | Path) -> None:
    """Refuse a path where a model reads texts, and what is no picture where it looks at them.

    Raises:
        NotFoundError: there is no such picture.
        UsageError: it is of the other kind, or a folder.
    """
    name = predictor.folder.name
    if not isinstance(predictor, Classifier):
        # Not `Path.is_file`, which raises where a text is too long for a name.
        if Path(given).suffix.lower() in PICTURES and os.path.isfile(given):  # noqa: PTH113
            raise UsageError(
                f"{given} is a picture, and {name} reads texts: give a sentence, or a model of "
                "pictures (`manyheads models` lists those that are shipped)."
            )
    elif os.path.isdir(given):  # noqa: PTH112
        raise UsageError(f"{given} is a folder: name a picture in it.")
    elif not os.path.exists(given):  # noqa: PTH110
        raise NotFoundError(
            f"There is no file {given}: {name} looks at pictures, so give the path of one."
        )


def _write(target: Path, text: str) -> None:
    # What is no character, such as half of a surrogate pair, becomes a question mark.
    target.write_bytes(text.encode("utf-8", "replace"))
