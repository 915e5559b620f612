"""Figures that somebody asked for by name: what a translation costs, one word in many sentences."""

from collections.abc import Sequence

from manyheads.app.predict import Classifier, Predictor, Reconstruction, Translator
from manyheads.app.reference import reference_figure
from manyheads.app.words import compare_word
from manyheads.errors import UsageError
from manyheads.lens.panels import Figure


def asked_figures(
    predictor: Predictor,
    text: str,
    *,
    reference: str | None = None,
    word: str | None = None,
    also: Sequence[str] = (),
) -> list[Figure]:
    """Make the figures that were asked for, none without a wish.

    Args:
        predictor: the model.
        text: that is looked at.
        reference: a translation of it by somebody else.
        word: of the text.
        also: more sentences with this word.

    Raises:
        UsageError: the model does not do this, or a sentence does not have the word.
    """
    if also and word is None:
        raise UsageError("--also gives more sentences with a word: say which one with --word.")
    figures = []
    if reference is not None:
        if not isinstance(predictor, Translator):
            raise UsageError(
                f"{predictor.folder.name} does not translate, so it has no use for a reference: "
                "leave --reference out."
            )
        figures.append(reference_figure(predictor, text, reference))
    if word is not None:
        if not word.strip():
            raise UsageError("The word is empty: give one that stands in the text.")
        if isinstance(predictor, Classifier | Reconstruction):
            raise UsageError(
                f"{predictor.folder.name} looks at pictures, which have no words: leave --word out."
            )
        figures += compare_word(predictor, word, [text, *also])
    return figures
