"""Look inside what reads one text: language models and taggers."""

from dataclasses import replace

import torch

from manyheads.app.explain import explained
from manyheads.app.figures import Watched, figures_of_text, watched
from manyheads.app.language import Filler, Generator
from manyheads.app.tagging import Spacer
from manyheads.app.text_overlays import Reading
from manyheads.data.spacing import TAGS, without_spaces
from manyheads.data.tokenizer import END, START
from manyheads.errors import UsageError
from manyheads.lens.labels import labels
from manyheads.lens.losses import loss_table
from manyheads.lens.panels import Figure
from manyheads.lens.shapes import ShapeLine, walk
from manyheads.lens.view import Span, TextView, text_view
from manyheads.tasks.details import spans
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
    tokens = token_ids(reader, text)
    with watched(reader.model) as seen:
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
    source_spans = token_spans(reader, text)
    view = text_view(
        seen.trace,
        source=token_names(reader, tokens[0].tolist(), text),
        output=_said(reader, output),
        probabilities=chances,
        source_spans=source_spans,
    )
    reading = Reading(
        reader.model,
        tokens,
        output,
        reader.model,
        view.source,
        view.output,
        source_spans,
    )
    view = explained(view, reading, integrated=integrated)
    view = replace(view, figures=_figures(reader, seen, view, chances))
    if not view.maps and not view.gates and not view.overlays:
        raise UsageError(
            f"{reader.folder.name} is a plain RNN, with neither attention nor gates to look at. "
            "Leave --no-integrated out, or add --shapes to see what walks through it."
        )
    return answer, view


def _figures(reader: Reader, seen: Watched, view: TextView, chances: list[float]) -> list[Figure]:
    names = labels(view.source)
    figures = figures_of_text(
        seen,
        names={"encoder": names},
        gates=view.gates,
        pieces=[] if isinstance(reader, Spacer) else [reader.tokenizer.piece],
    )
    written = view.output[:-1]  # what is behind the text nobody wrote
    if not isinstance(reader, Generator) or not written:
        return figures
    costs = loss_table(
        written,
        chances[:-1],  # those of the view are rounded, and the loss of 0 is infinite
        title="What the text costs",
        given="given those before it",
    )
    return [costs, *figures]


def shapes_of_tokens(reader: Reader, text: str) -> list[ShapeLine]:
    """Walk through one pass over a text."""
    tokens = token_ids(reader, text)
    with torch.inference_mode():
        return walk(reader.model, lambda: reader.model(tokens))


def token_ids(reader: Reader, text: str) -> torch.Tensor:
    """Make the ids that a model reads of a text, as one example."""
    if not text.strip():
        raise UsageError("The text is empty: give a sentence to look at.")
    if isinstance(reader, Generator):
        ids = [START, *reader.tokenizer.encode([text])[0]]
    elif isinstance(reader, Filler):
        ids = [*blanked(reader.tokenizer, text), END]
    else:
        ids = reader.characters.encode(without_spaces(text)[0])
    return torch.tensor([ids], device=next(reader.model.parameters()).device)


def token_names(reader: Reader, ids: list[int], text: str) -> list[str]:
    """Write each token."""
    if isinstance(reader, Spacer):
        return list(without_spaces(text)[0])
    pieces = [reader.tokenizer.piece(token) for token in ids]
    return [BLANK if token == MASK else piece for token, piece in zip(ids, pieces, strict=True)]


def token_spans(reader: Reader, text: str) -> list[Span | None]:
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
