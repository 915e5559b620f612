"""Train a date translator and a digit classifier, measure both, and look inside both.

Run it with `make demo`: a few minutes on two CPU cores. Everything it makes lies in demo/; run it
again and finished parts are not trained a second time.
"""

import sys
import time
from pathlib import Path

from rich.console import Console

import manyheads
from manyheads.cli.progress import ProgressBar
from manyheads.errors import RecipeError
from manyheads.fit.run_training import train
from manyheads.lens.plot.image_plot import plot_image
from manyheads.lens.plot.terminal_plot import render_map
from manyheads.lens.plot.text_plot import plot_text
from manyheads.lens.view.text_view import clearest
from manyheads.predict.base_predictor import Predictor
from manyheads.project.base_recipe import read_recipe
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_recipe
from manyheads.recipe_data.image_splits import image_split
from manyheads.tasks.classify.look import explain_image
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.translate.look import explain_text
from manyheads.tasks.translate.predictor import Translator

FOLDER = Path("demo")
DATES = (
    "Friday, 20 November 2026",
    "12:30 a.m. on November 20, 2026",
    "11/20/26",
    "from November 20, 2026 to January 2, 2027",
)
console = Console()


def main() -> None:
    """Run the whole demonstration."""
    translator, text_scores = trained("date-en-ko")
    classifier, image_scores = trained("digits")
    assert isinstance(translator, Translator)
    assert isinstance(classifier, Classifier)
    console.rule("Scores on held-out data")
    console.print(text_scores)
    console.print(image_scores)
    translate_dates(translator)
    classify_digits(classifier)
    say_what_else()


def trained(name: str) -> tuple[Predictor, str]:
    """Train a shipped recipe, or go on where an earlier demonstration stopped."""
    console.rule(f"Training {name}")
    out = FOLDER / name
    began = time.monotonic()
    with ProgressBar() as bar:
        line = train(read_recipe(find_recipe(name)), out=out, resume=True, observer=bar)
    score = f"{name}: {line['metric']} {line['value']:.2f}% of {line['data']}"
    groups = line.get("groups")
    if groups:
        worst = min(groups, key=groups.__getitem__)
        score += f"; lowest of {len(groups)} phrasings {groups[worst]:.2f}% ({worst})"
    return manyheads.load(out), f"{score}, {time.monotonic() - began:.0f} s"


def translate_dates(translator: Translator) -> None:
    """Translate a few dates and draw what the first translation looked at."""
    console.rule("English dates, Korean dates")
    for text, output in zip(DATES, translator(list(DATES)), strict=True):
        console.print(f"{text:<45} {output}", highlight=False)
    output, view = explain_text(translator, DATES[0])
    found = clearest(each for each in view.maps if each.kind == "decoder cross")
    console.print(render_map(found.rows, found.columns, found.mean, found.legend))
    image = FOLDER / "translation.png"
    plot_text(view, image, title=f"{DATES[0]}  →  {output}")
    console.print(f"{image}: where each output token looked")


def classify_digits(classifier: Classifier) -> None:
    """Save a few held-out digits as images, classify the files, draw what the first looked at."""
    console.rule("Handwritten digits")
    recipe = ModelFolder(FOLDER / "digits").recipe
    held_out = image_split("valid", recipe)  # type: ignore[arg-type]
    paths = []
    for index in range(5):
        path = FOLDER / f"digit-{index}.png"
        held_out.image(index).save(path)
        paths.append(path)
    for index, guesses in enumerate(classifier.classify(paths, top=3)):
        named = "  ".join(f"{label} {probability:.1%}" for label, probability in guesses)
        truth = held_out.classes[held_out.labels[index]]
        console.print(f"{paths[index]} (a {truth}): {named}", highlight=False)
    view, pixels = explain_image(classifier, paths[0])
    image = FOLDER / "digit.png"
    plot_image(view, pixels, image, title=f"{paths[0].name}: {view.classes[0].label}")
    console.print(f"{image}: where the class token looked")


ELSE = (
    ("translate English to German", 'translate "A man is riding a bicycle."'),
    ("describe an image", "caption docs/images/seven.png --language ko"),
    ("read a printed line, and translate it", "read docs/images/line.png --to en"),
    ("find images by words", "index docs/images --out demo/images.index"),
    ("", 'search "number seven" --index demo/images.index'),
    ("look inside", 'look date-en-ko "Friday, 20 November 2026"'),
    ("all of it on a page, and an API", "serve --open"),
)


def say_what_else() -> None:
    """Name commands that the shipped models answer at once."""
    console.rule("Without training: the shipped models")
    for what, command in ELSE:
        console.print(f"{what:<38} .venv/bin/manyheads {command}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    try:
        main()
    except RecipeError as error:
        sys.exit(f"demo: {error}\nOr remove the folder {FOLDER} and start again.")
    except manyheads.ManyheadsError as error:
        sys.exit(f"demo: {error}")
