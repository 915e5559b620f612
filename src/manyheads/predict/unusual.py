"""What is unusual about a text and its translation, measured against a model's validation data.

Also whether a captioner or a classifier is unsure of its answer.
"""

import re
from collections.abc import Iterable, Iterator
from math import exp
from typing import NamedTuple

from manyheads.data.text.scripts import script_share
from manyheads.data.tokenizers.piece_costs import has_unknown, piece_costs, unknown_characters
from manyheads.data.tokenizers.tokenizer import TextTokenizer
from manyheads.generation.text_decoding import Translation
from manyheads.project.domain import Domain

SHOWN = 5  # words or characters in a note
# Mean probability of the tokens of a text for an image, below which it is told. Of the captions of
# emoji-caption's validation images, 23% are below, of which 1% are right, and 69% of the others.
UNSURE_TEXT = 0.6
UNSURE_CLASS = 0.5  # probability of a class, below which all others together are more probable
MARKS = ".,:;!?()\"'“”„‚‘’"  # around a word
_NUMBER = re.compile(r"[$€£]?\d+(?:[.,:]\d+)*")  # also a price or a time of day


class Measures(NamedTuple):
    """Of a text and its translation: names and units as in `Domain`."""

    foreign: float
    text: float
    word: float
    unknown: float
    output: float


def without_numbers(text: str) -> str:
    """Leave out words that are numbers, prices or times, which the vocabulary may spell in bytes.

    >>> without_numbers("Room 77 is $12.50 a night, until 7:45.")
    'Room is a night, until'
    """
    return " ".join(word for word in text.split() if not _NUMBER.fullmatch(word.strip(MARKS)))


def measure(tokenizer: TextTokenizer, text: str, translation: Translation, script: str) -> Measures:
    """Measure one text, as the model reads it; `script` is that of most letters of its sources."""
    (ids,) = tokenizer.encode([text])
    costs = piece_costs(tokenizer)
    words = [] if costs is None else costs.word_costs(ids)
    unknown = unknown_characters(tokenizer, text) if has_unknown(tokenizer, ids) else []
    size = max(1, sum(map(len, text.split())))  # without white space
    tokens = max(1, len(translation.tokens) + translation.finished)
    share = script_share(text, script)
    return Measures(
        foreign=0.0 if share < 0 else 1 - share,  # below 0: it has no letters
        text=sum(words) / size,
        word=max(words, default=0.0),
        unknown=len(unknown) / size,
        output=-translation.log_probability / tokens,
    )


def reasons(
    tokenizer: TextTokenizer, text: str, translation: Translation, domain: Domain | None
) -> Iterator[str]:
    """Say what is unusual about a source; nothing if all is as usual.

    Args:
        tokenizer: of the source.
        text: as the model reads it.
        translation: the best.
        domain: the model's limits; without them only unknown characters are reported.
    """
    if domain is None:
        if unknown := unknown_characters(tokenizer, text):
            yield _unknown(unknown)
        return
    measured = measure(tokenizer, text, translation, domain.script)
    if measured.foreign > domain.foreign:
        yield f"letters of another script than {domain.script.title()}"
    if measured.unknown > domain.unknown:
        yield _unknown(unknown_characters(tokenizer, text))
    costs = piece_costs(tokenizer)
    if costs is not None and (measured.text > domain.text or measured.word > domain.word):
        # Of an unusual text where each word by itself is usual, those that make it so.
        ranked = sorted(costs.words(text), key=lambda word: -word.cost)
        dear = [word for word in ranked if word.cost > domain.text * len(word.text)]
        rare = [word for word in ranked if word.cost > domain.word] or dear
        yield f"unusual words: {_list(word.text for word in rare if word.text)}"


def unsure_of_translation(
    model: str, translation: Translation, domain: Domain | None
) -> str | None:
    """Say that a translation is less probable than right ones are; None if it is not."""
    tokens = max(1, len(translation.tokens) + translation.finished)
    if domain is None or -translation.log_probability / tokens <= domain.output:
        return None
    return (
        f"{model} is unsure of this translation: its tokens have a probability of "
        f"{exp(translation.log_probability / tokens):.0%} on average, those of right ones usually "
        f"{exp(-domain.output):.0%} or more"
    )


def unsure_of_text(model: str, translation: Translation) -> str | None:
    """Say that a text for an image is improbable; None if it is not."""
    tokens = max(1, len(translation.tokens) + translation.finished)
    mean = exp(translation.log_probability / tokens)
    if mean >= UNSURE_TEXT:
        return None
    return (
        f"the image is unlike what {model} learned to describe: a token of the text has a "
        f"probability of {mean:.0%} on average, all of it {exp(translation.log_probability):.2g}. "
        "Check the text."
    )


def unsure_of_class(model: str, label: str, probability: float) -> str | None:
    """Say that no class is probable; None if one is."""
    if probability >= UNSURE_CLASS:
        return None
    return (
        f"{model} is unsure: the most probable class, {label}, has a probability of "
        f"{probability:.0%}. An image of something else gets one of its classes, too. Check the "
        "answer."
    )


def unknown_note(tokenizer: TextTokenizer, text: str) -> tuple[str, ...] | None:
    """Say which characters of a text a model has no token for; None if there are none."""
    unknown = unknown_characters(tokenizer, text)
    return (f"{_unknown(unknown)}.",) if unknown else None


def _unknown(characters: Iterable[str]) -> str:
    return f"characters that the vocabulary does not have: {_list(characters)}"


def _list(words: Iterable[str]) -> str:
    different = list(dict.fromkeys(words))
    return ", ".join(map(repr, different[:SHOWN])) + ", ..." * (len(different) > SHOWN)
