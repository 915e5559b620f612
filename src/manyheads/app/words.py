"""One word in several sentences, in any model that reads text (atlas T6)."""

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from manyheads.app.explain_tokens import Reader, token_ids, token_names, token_spans
from manyheads.app.predict import Translator
from manyheads.errors import UsageError, nearest
from manyheads.lens.labels import labels
from manyheads.lens.panels import Figure
from manyheads.lens.reading import attentions
from manyheads.lens.states import record_states
from manyheads.lens.view import Span
from manyheads.lens.word_figures import Occurrence, tokens_of, word_figures
from manyheads.nn.trace import record
from manyheads.tasks.decoding import special_ids
from manyheads.tasks.details import spans

STACK = "encoder"  # what reads the text


def compare_word(reader: Translator | Reader, word: str, texts: Sequence[str]) -> list[Figure]:
    """Show how the vector of one word changes from sentence to sentence, and where it looks.

    Args:
        reader: the model.
        word: as it stands in every sentence; where it stands several times, the first is meant.
        texts: the sentences.

    Raises:
        UsageError: a sentence does not have the word.
    """
    return word_figures(word, [_occurrence(reader, word, text) for text in texts])


@torch.inference_mode()
def _occurrence(reader: Translator | Reader, word: str, text: str) -> Occurrence:
    begin = _find(word, text)
    if not word.strip() or begin < 0:
        raise UsageError(
            f"{text!r} does not have the word {word!r}{nearest(word, text.split())}"
            "Give --word as it is written in every sentence."
        )
    tokens, names, places = _read(reader, text)
    with record() as trace, record_states(reader.model) as states:
        if isinstance(reader, Translator):
            start = torch.full_like(tokens[:, :1], special_ids(reader.model).start)
            reader.model(tokens, start)
        else:
            reader.model(tokens)
    own = tokens_of(places, begin, begin + len(word))
    return Occurrence(
        text,
        labels(names),
        own,
        [n for n, place in enumerate(places) if place is not None and n not in own],
        [(each.name, each.x[0].float().cpu()) for each in states.stack(STACK)],
        [
            (f"layer {each.site.layer + 1}", each.read_by(_share(own, len(names))))
            for each in attentions(trace)
            if each.site.stack == STACK
        ],
    )


def _find(word: str, text: str) -> int:
    """Find a word; only where it stands nowhere alone, inside another, as with a Korean ending."""
    alone = re.search(rf"\b{re.escape(word)}\b", text)
    return text.find(word) if alone is None else alone.start()


def _share(own: Sequence[int], count: int) -> Tensor:
    """Ask the tokens of the word alike, and no others."""
    share = torch.zeros(count)
    share[list(own)] = 1 / len(own)
    return share


def _read(
    reader: Translator | Reader, text: str
) -> tuple[Tensor, Sequence[str], Sequence[Span | None]]:
    """Make tokens of a text, with their names and the characters that they stand for."""
    if not isinstance(reader, Translator):
        tokens = token_ids(reader, text)
        return tokens, token_names(reader, tokens[0].tolist(), text), token_spans(reader, text)
    sources = reader.tokenizers.source
    (ids,) = sources.encode([text])
    ids = [*ids, special_ids(reader.model).end]
    device = next(reader.model.parameters()).device
    names = [sources.piece(token) for token in ids]
    return torch.tensor([ids], device=device), names, [*spans(sources, text), None]
