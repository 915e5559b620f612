"""Draw the pictures of the README again, from the shipped models.

python scripts/pictures.py
"""

from pathlib import Path

import manyheads
from manyheads.lens.plot.image_plot import plot_image
from manyheads.lens.plot.text_plot import plot_text
from manyheads.recipe_data.image_splits import image_split
from manyheads.tasks.classify.look import explain_image
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.translate.look import explain_text
from manyheads.tasks.translate.predictor import Translator

IMAGES = Path(__file__).parents[1] / "docs" / "images"
TEXT = "Friday, 20 November 2026"


def main() -> None:
    """Write docs/images/translation.png, seven.png and seven-look.png."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    translator = manyheads.load("date-en-ko")
    assert isinstance(translator, Translator)
    output, view = explain_text(translator, TEXT)
    plot_text(view, IMAGES / "translation.png", title=f"date-en-ko: {TEXT}  →  {output}")

    classifier = manyheads.load("digits")
    assert isinstance(classifier, Classifier)
    recipe = classifier.folder.recipe
    assert isinstance(recipe, ClassifyRecipe)
    held_out = image_split("valid", recipe)
    seven = next(i for i, label in enumerate(held_out.labels) if held_out.classes[label] == "7")
    held_out.image(seven).save(IMAGES / "seven.png")
    picture, pixels = explain_image(classifier, IMAGES / "seven.png")
    plot_image(picture, pixels, IMAGES / "seven-look.png", title="digits: seven.png  →  7")


if __name__ == "__main__":
    main()
