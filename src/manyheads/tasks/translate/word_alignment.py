"""Which attention of a translator says where words come from: measured, and kept with the model.

The choice lies in manyheads.json under "alignment". A folder without it is read by a rule that was
not measured.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.data.batching.batches import length_batches, pad
from manyheads.data.text.corpus import Corpus
from manyheads.data.text.word_links import Link, exact_matches
from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.generation.special_ids import special_ids
from manyheads.generation.token_details import attention_over_source, spans
from manyheads.lens.measures import alignment_head
from manyheads.lens.measures.alignment_head import AlignmentHead, Chosen, Errors, Reference
from manyheads.lens.measures.word_figures import tokens_of
from manyheads.nn.recording.trace import LayerId
from manyheads.project.alignment import Entry
from manyheads.tasks.translate.predictor import Translator

ROWS = 32  # texts per batch: the maps of all heads are computed


def reads_source(model: nn.Module) -> bool:
    """Return whether a translator's decoder attends to the source."""
    layer_ids = (getattr(part, "layer_id", None) for part in model.modules())
    return any(isinstance(layer_id, LayerId) and layer_id.kind == "cross" for layer_id in layer_ids)


@torch.inference_mode()
def alignment_errors(
    model: nn.Module,
    tokenizers: Tokenizers,
    sources: Sequence[str],
    outputs: Sequence[str],
    links: Sequence[Sequence[Link]],
    candidates: Callable[[Mapping[int, Tensor]], Sequence[AlignmentHead]] = alignment_head.readers,
    limit: int | None = None,
) -> dict[AlignmentHead, Errors]:
    """Count for every alignment head how many of the word links of each pair it misses.

    `candidates` returns the heads to test; by default all. At most `limit` pairs that have links
    are read; by default all.
    """
    errors: dict[AlignmentHead, Errors] = {}
    ids = special_ids(model)
    device = next(model.parameters()).device
    linked = [row for row, found in enumerate(links) if found][:limit]
    for rows in length_batches(linked, lambda n: len(sources[n]), ROWS):
        encoded = tokenizers.source.encode([sources[row] for row in rows])
        source = pad([[*tokens, ids.end] for tokens in encoded], ids.pad).to(device)
        target = tokenizers.target.encode([outputs[row] for row in rows])
        maps = attention_over_source(model, source, target, start=ids.start, padding=ids.pad)
        references = [list(_references(tokenizers, sources[n], outputs[n], links[n])) for n in rows]
        lengths = torch.tensor([len(tokens) for tokens in encoded])
        real = torch.arange(source.shape[1]) < lengths[:, None]  # the end is not counted
        for reader in candidates(maps):
            weights = alignment_head.read(maps, reader).cpu().masked_fill(~real[:, None], -1.0)
            most = weights.argmax(dim=2).tolist()
            each = [alignment_head.count(*pair) for pair in zip(most, references, strict=True)]
            each.append(errors.get(reader, Errors(0, 0)))
            errors[reader] = Errors(*map(sum, zip(*each, strict=True)))
    return errors


def _references(
    tokenizers: Tokenizers, source: str, output: str, links: Sequence[Link]
) -> Iterator[Reference]:
    sides = spans(tokenizers.source, source), spans(tokenizers.target, output)
    for link in links:
        columns = {column for span in link.sources for column in tokens_of(sides[0], *span)}
        rows = set(tokens_of(sides[1], *link.target))
        if rows and columns:
            yield Reference(rows, columns)


TEXTS = 1000  # with words of known origin, for the choice
LEAST = 30  # words of known origin that a choice is based on

Links = list[Sequence[Link]]


def known_links(corpus: Corpus, outputs: Sequence[str]) -> Links:
    """Find the words of translations whose origin is known.

    The corpus may know those of its targets: they hold for outputs that are equal. Otherwise they
    are the numbers and names that text and output both have once.
    """
    if corpus.links is None:
        return [exact_matches(*pair) for pair in zip(corpus.source, outputs, strict=True)]
    return [
        links if output == target else ()
        for links, output, target in zip(corpus.links, outputs, corpus.target, strict=True)
    ]


def choose_reader(translator: Translator, corpus: Corpus, data: str) -> Entry | None:
    """Choose by words of known origin in a corpus, called `data`; None if there are too few.

    Attention is asked over texts and their translations as they are given.

    Raises:
        UsageError: the model has no attention over the source.
    """
    sides, links = (corpus.source, corpus.target), known_links(corpus, corpus.target)
    errors = alignment_errors(translator.model, translator.tokenizers, *sides, links, limit=TEXTS)
    if not errors or next(iter(errors.values())).of < LEAST:
        return None
    best, usual = alignment_head.choose(errors), next(iter(errors))  # the rule is asked first
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
        return [alignment_head.fallback(maps) if chosen is None else chosen.reader]

    sides = corpus.source, outputs
    found = {
        name: alignment_errors(translator.model, translator.tokenizers, *sides, part, ask)
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
