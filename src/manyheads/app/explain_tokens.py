"""Look inside what reads one text: language models and taggers."""

import torch

from manyheads.app.explain import explained, spans
from manyheads.app.language import Filler, Generator
from manyheads.app.overlays import Reading
from manyheads.app.tagging import Spacer
from manyheads.data.spacing import TAGS, without_spaces
from manyheads.data.tokenizer import END, START
from manyheads.errors import UsageError
from manyheads.lens.shapes import ShapeLine, walk
from manyheads.lens.view import Span, TextView, text_view
from manyheads.nn.trace import record
from manyheads.tasks.language import BLANK, MASK, blanked, blanked_pieces

Reader = Generator | Filler | Spacer


def explain_tokens(
    reader: Reader, text: str, *, integrated: bool | None = None
) -> tuple[str, TextView]:
    """Run a model over a text with a recorder open.

    Args:
        reader: the model.
        text: to read.
        integrated: whether to integrate gradients; None: where it costs little.

    Returns:
        The model's answer, and what there is to see. A generator's output is the text itself, and
        what is likeliest behind it; its probabilities are those of each token after those before.
        A filler's output is what it finds likeliest in each place, a tagger's its tags.

    Raises:
        UsageError: the text is empty, or there is nothing to see in the model.
    """
    tokens = _tokens(reader, text)
    with record() as trace, torch.inference_mode():
        logits = reader.model(tokens)
    log_probabilities = logits[0].float().log_softmax(dim=-1)
    best = log_probabilities.argmax(dim=-1).tolist()
    if isinstance(reader, Generator):
        output = [*tokens[0, 1:].tolist(), best[-1]]
        answer = reader(text)
    else:
        output = best
        answer = reader(text) if isinstance(reader, Spacer) else _filled(reader, tokens, best)
    chances = [
        row[token].exp().item() for row, token in zip(log_probabilities, output, strict=True)
    ]
    view = text_view(
        trace,
        source=_pieces(reader, tokens[0].tolist(), text),
        output=_said(reader, output),
        probabilities=chances,
        source_spans=_spans(reader, text),
    )
    reading = Reading(
        reader.model,
        tokens,
        output,
        reader.model,
        view.source,
        view.output,
        _spans(reader, text),
    )
    view = explained(view, reading, integrated=integrated)
    if not view.maps and not view.gates and not view.overlays:
        raise UsageError(
            f"{reader.folder.name} is a plain RNN, with neither attention nor gates to look at. "
            "Leave --no-integrated out, or add --shapes to see what walks through it."
        )
    return answer, view


def shapes_of_tokens(reader: Reader, text: str) -> list[ShapeLine]:
    """Walk through one pass over a text."""
    tokens = _tokens(reader, text)
    with torch.inference_mode():
        return walk(reader.model, lambda: reader.model(tokens))


def _tokens(reader: Reader, text: str) -> torch.Tensor:
    if not text.strip():
        raise UsageError("The text is empty: give a sentence to look at.")
    if isinstance(reader, Generator):
        ids = [START, *reader.tokenizer.encode([text])[0]]
    elif isinstance(reader, Filler):
        ids = [*blanked(reader.tokenizer, text), END]
    else:
        ids = reader.characters.encode(without_spaces(text)[0])
    return torch.tensor([ids], device=next(reader.model.parameters()).device)


def _pieces(reader: Reader, ids: list[int], text: str) -> list[str]:
    if isinstance(reader, Spacer):
        return list(without_spaces(text)[0])
    pieces = [reader.tokenizer.piece(token) for token in ids]
    return [BLANK if token == MASK else piece for token, piece in zip(ids, pieces, strict=True)]


def _spans(reader: Reader, text: str) -> list[Span | None]:
    """Say which characters of the text each token stands for."""
    if isinstance(reader, Spacer):
        return [[place, place + 1] for place, sign in enumerate(text) if not sign.isspace()]
    if isinstance(reader, Filler):
        pieces = blanked_pieces(reader.tokenizer, text)
        return [*([piece.begin, piece.end] for piece in pieces), None]
    return [None, *spans(reader.tokenizer, text)]


def _said(reader: Reader, output: list[int]) -> list[str]:
    if isinstance(reader, Spacer):
        return [TAGS[tag] for tag in output]
    return [reader.tokenizer.piece(token) for token in output]


def _filled(reader: Filler, tokens: torch.Tensor, best: list[int]) -> str:
    ids = [
        found if token == MASK else token
        for token, found in zip(tokens[0].tolist(), best, strict=True)
    ]
    return reader.tokenizer.decode([ids])[0]
