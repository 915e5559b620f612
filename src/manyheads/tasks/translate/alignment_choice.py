"""Which attention of a translator says where words come from: measured, and kept with the model.

The choice lies in manyheads.json under "alignment". A folder without it is read by a rule that was
not measured.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from manyheads.data.text.corpus import Corpus
from manyheads.data.text.word_links import Link, exact_matches
from manyheads.lens.measures.alignment_head import (
    AlignmentHead,
    Chosen,
    Errors,
    choose,
    fallback,
    readers,
)
from manyheads.project.alignment import Entry
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.word_alignment import alignment_errors

TEXTS = 1000  # with words of known origin, for the choice
LEAST = 30  # words of known origin that a choice is based on

Links = list[Sequence[Link]]


def known_links(corpus: Corpus, outputs: Sequence[str]) -> Links:
    """Find the words of translations whose origin is known.

    The corpus may know those of its targets: they hold for outputs that are equal. Otherwise they
    are the numbers and names that text and output both have once.
    """
    if corpus.links is None:
        return [
            exact_matches(source, output)
            for source, output in zip(corpus.source, outputs, strict=True)
        ]
    return [
        links if output == target else ()
        for links, output, target in zip(corpus.links, outputs, corpus.target, strict=True)
    ]


def choose_reader(translator: Translator, corpus: Corpus, data: str) -> Entry | None:
    """Choose by words of known origin in a corpus; None if there are too few of them.

    Args:
        translator: whose attention is asked, over texts and their translations as they are given.
        corpus: pairs.
        data: what to call it.

    Raises:
        UsageError: the model has no attention over the source.
    """
    links = known_links(corpus, corpus.target)
    errors = _errors(translator, corpus, corpus.target, links, readers, most=TEXTS)
    if not errors or next(iter(errors.values())).of < LEAST:
        return None
    best, usual = choose(errors), next(iter(errors))  # the rule is asked first
    return Entry(
        layer=None if best.layer is None else best.layer + 1,
        head=None if best.head is None else best.head + 1,
        step="read" if best.late else "written",
        error=round(errors[best].percent, 3),
        references=errors[best].of,
        usual=round(errors[usual].percent, 3),
        ways=len(errors),
        data=data,
    )


def measured(
    translator: Translator, corpus: Corpus, outputs: Sequence[str], chosen: Chosen | None
) -> dict[str, Any] | None:
    """Measure the chosen attention, or that of the rule; None if no word's origin is known.

    Raises:
        UsageError: the model has no attention over the source.
    """
    links = known_links(corpus, outputs)
    numbers: Links = [
        [link for link in found if output[slice(*link.target)].isdigit()]
        for found, output in zip(links, outputs, strict=True)
    ]

    def ask(maps: Mapping[int, Tensor]) -> list[AlignmentHead]:
        return [fallback(maps) if chosen is None else chosen.reader]

    found = {
        name: _errors(translator, corpus, outputs, part, ask)
        for name, part in (("words", links), ("numbers", numbers))
    }
    if not found["words"]:
        return None
    ((reader, _),) = found["words"].items()
    return {
        "reader": str(reader),
        **{
            name: {"wrong": each.wrong, "of": each.of, "error": each.percent}
            for name, errors in found.items()
            for each in errors.values()
            if each.of
        },
    }


def _errors(
    translator: Translator,
    corpus: Corpus,
    outputs: Sequence[str],
    links: Links,
    ask: Callable[[Mapping[int, Tensor]], Sequence[AlignmentHead]],
    most: int | None = None,
) -> dict[AlignmentHead, Errors]:
    rows = [row for row, found in enumerate(links) if found][:most]
    return alignment_errors(
        translator.model,
        translator.tokenizers,
        [corpus.source[row] for row in rows],
        [outputs[row] for row in rows],
        [links[row] for row in rows],
        ask,
    )
