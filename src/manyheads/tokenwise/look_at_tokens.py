"""Look inside models that give one output per token of a text: language models and taggers."""

from dataclasses import replace

import torch

from manyheads.lens.labels import labels
from manyheads.lens.measures.token_losses import loss_table
from manyheads.lens.trace.module_shapes import ShapeLine, walk
from manyheads.lens.view.text_view import TextView, text_view
from manyheads.looking.figures import figures_of_text
from manyheads.looking.text_overlays import Reading, explained
from manyheads.looking.untrained import compared, watch
from manyheads.predict.text_reader import TokenPredictor, refuse_empty


def explain_tokens(
    reader: TokenPredictor, text: str, *, integrated: bool | None = False, fresh: bool = False
) -> tuple[str, TextView]:
    """Run a model over a text with a recorder open; return its answer and the view.

    `integrated` is that of `explain_reading`; if `fresh`, the recorded model is untrained, and the
    answer that of the trained one.
    """
    refuse_empty(text)
    tokens_read = reader.read_tokens(text)
    tokens = reader.tensor(tokens_read.ids)
    seen, logits, own = watch(reader, lambda each: each.model(tokens), fresh=fresh)
    log_probabilities = logits[0].float().log_softmax(dim=-1)
    chosen = own[0].float().log_softmax(dim=-1).argmax(dim=-1)
    output = reader.outputs(text, tokens_read.ids, chosen.tolist())
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
        seen.model, tokens, output.ids, seen.model, view.source, view.output, tokens_read.spans
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
    return output.answer, replace(compared(view, seen), figures=figures)


def shapes_of_tokens(reader: TokenPredictor, text: str) -> list[ShapeLine]:
    """Walk through one pass over a text."""
    refuse_empty(text)
    tokens = reader.tensor(reader.read_tokens(text).ids)
    with torch.inference_mode():
        return walk(reader.model, lambda: reader.model(tokens))
