"""One word in several sentences, in any model that reads text (atlas T6)."""

import re
from collections.abc import Sequence

import torch

from manyheads.asks.look_request import LookRequest
from manyheads.cancellation import raise_if_cancelled
from manyheads.errors import UsageError, nearest
from manyheads.lens.labels import labels
from manyheads.lens.measures.word_figures import Occurrence, tokens_of, word_figures
from manyheads.lens.panels import Figure
from manyheads.lens.trace.attention_reader import attentions
from manyheads.lens.trace.states import record_states
from manyheads.nn.recording.trace import record
from manyheads.predict.text_reader import TextReader

STACK = "encoder"  # what reads the text


def compare_words(reader: TextReader, text: str, request: LookRequest) -> list[Figure]:
    """Compare a word between sentences, if the request names one."""
    if request.word is None:
        return []
    return compare_word(reader, request.word, [text, *request.also])


def compare_word(reader: TextReader, word: str, texts: Sequence[str]) -> list[Figure]:
    """Show how the vector and the attention of one word change from sentence to sentence."""
    return word_figures(word, [_occurrence(reader, word, text) for text in texts])


@torch.inference_mode()
def _occurrence(reader: TextReader, word: str, text: str) -> Occurrence:
    raise_if_cancelled()
    begin = _find(word, text)
    if not word.strip() or begin < 0:
        raise UsageError(
            f"{text!r} does not have the word {word!r}{nearest(word, text.split())}"
            "Give `word` as it is written in every sentence."
        )
    tokens = reader.read_tokens(text)
    with record() as trace, record_states(reader.model) as states:
        reader.encode(reader.tensor(tokens.ids))
    own = tokens_of(tokens.spans, begin, begin + len(word))
    share = torch.zeros(len(tokens.ids))
    share[list(own)] = 1 / len(own)  # the same for each token of the word, 0 for others
    return Occurrence(
        text,
        labels(tokens.names),
        own,
        [n for n, place in enumerate(tokens.spans) if place is not None and n not in own],
        [(each.name, each.x[0].float().cpu()) for each in states.stack(STACK)],
        [
            (f"layer {each.layer_id.layer + 1}", each.read_by(share))
            for each in attentions(trace)
            if each.layer_id.stack == STACK
        ],
    )


def _find(word: str, text: str) -> int:
    """Find a word; inside another word only if it is nowhere a word of its own."""
    alone = re.search(rf"\b{re.escape(word)}\b", text)
    return text.find(word) if alone is None else alone.start()
