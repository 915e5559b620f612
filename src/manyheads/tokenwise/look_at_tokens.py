"""Look inside models that give one output per token of a text: language models and taggers."""

from dataclasses import replace

import torch

from manyheads.errors import UsageError
from manyheads.lens.labels import labels
from manyheads.lens.measures.token_losses import loss_table
from manyheads.lens.trace.module_shapes import ShapeLine, walk
from manyheads.lens.view.text_view import TextView, text_view
from manyheads.looking.figures import figures_of_text, watched
from manyheads.looking.text_overlays import Reading, explained
from manyheads.predict.text_reader import TokenPredictor, refuse_empty


def explain_tokens(
    reader: TokenPredictor, text: str, *, integrated: bool | None = None
) -> tuple[str, TextView]:
    """Run a model over a text with a recorder open; return its answer and the view.

    Gradients are integrated if `integrated` is True, or None and the cost is low.
    """
    refuse_empty(text)
    tokens_read = reader.read_tokens(text)
    tokens = reader.tensor(tokens_read.ids)
    with watched(reader.model) as seen:
        logits = reader.model(tokens)
    log_probabilities = logits[0].float().log_softmax(dim=-1)
    output = reader.outputs(text, tokens_read.ids, log_probabilities.argmax(dim=-1).tolist())
    chances = [
        row[token].exp().item() for row, token in zip(log_probabilities, output.ids, strict=True)
    ]
    view = text_view(
        seen.trace,
        source=tokens_read.names,
        output=output.names,
        probabilities=chances,
        source_spans=tokens_read.spans,
    )
    reading = Reading(
        reader.model, tokens, output.ids, reader.model, view.source, view.output, tokens_read.spans
    )
    view = explained(view, reading, integrated=integrated)
    figures = figures_of_text(
        seen, names={"encoder": labels(view.source)}, gates=view.gates, pieces=reader.pieces
    )
    if output.given:
        costs = loss_table(
            view.output[: output.given],
            chances[: output.given],  # those of the view are rounded; the loss of 0 is infinite
            title="How surprised the model was by each word",
            given="given those before it",
        )
        figures = [costs, *figures]
    if not view.maps and not view.gates and not view.overlays:
        raise UsageError(
            f"{reader.folder.name} is a plain RNN, with neither attention nor gates to look at. "
            "Leave out `integrated=False`, or ask for its `shapes`."
        )
    return output.answer, replace(view, figures=figures)


def shapes_of_tokens(reader: TokenPredictor, text: str) -> list[ShapeLine]:
    """Walk through one pass over a text."""
    refuse_empty(text)
    tokens = reader.tensor(reader.read_tokens(text).ids)
    with torch.inference_mode():
        return walk(reader.model, lambda: reader.model(tokens))
