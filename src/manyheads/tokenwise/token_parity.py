"""Compare models with one output per token on an engine with the same on torch."""

import time

import numpy as np
import torch
from torch import Tensor

from manyheads.asks.export_request import ParityRequest
from manyheads.data.batching.batches import TokenBatch
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.text.corpus import Sentences
from manyheads.engines.engine import engine_name
from manyheads.engines.engine_parity import Parity
from manyheads.measure.parity_inputs import data_to_compare, run_both
from manyheads.measure.score import sentences_to_measure
from manyheads.predict.text_reader import TokenPredictor
from manyheads.recipe_data.text_data import SentenceData
from manyheads.tokenwise.token_task import Examples, Measure


def lines_to_compare(data: SentenceData, request: ParityRequest) -> tuple[Sentences, str]:
    """Take lines from all over the data, or the texts that were given, and say where from.

    Raises:
        NotFoundError: the recipe's validation data are not here, and nothing else was given.
    """
    if request.texts:
        return Sentences(request.texts, "texts given"), "texts given"
    lines, head = data_to_compare(
        lambda wanted: sentences_to_measure(data, wanted), request, "lines"
    )
    chosen = evenly_spaced(len(lines), request.limit).tolist()
    return Sentences([lines.lines[index] for index in chosen], lines.origin), head["data"]


def token_parity(
    reference: TokenPredictor,
    exported: TokenPredictor,
    examples: Examples,
    measure: Measure,
    metric: str | None,
    *,
    name: str,
    max_tokens: int,
) -> Parity:
    """Compare the logits of every token that is scored, and what is most probable there.

    Args:
        reference: the model on torch.
        exported: the same model on the engine.
        examples: the lines.
        measure: measures a model on them.
        metric: the one of its scores to compare; None: the lines have no right answers.
        name: of the data.
        max_tokens: of a batch, padding included.
    """
    largest = gap = 0.0
    changed = 0
    seconds = {engine_name(each.engine): 0.0 for each in (reference, exported)}
    for indices in examples.plan(max_tokens, seed=0, epoch=0):
        batch = examples.batch(indices, epoch=0)
        ours, theirs = (_logits(each, batch, seconds) for each in (reference, exported))
        largest = max(largest, float(ours.abs().max()))
        gap = float(np.maximum(gap, float((ours - theirs).abs().max())))  # nan stays
        differ = torch.zeros_like(batch.scored)
        differ[batch.scored] = ours.argmax(dim=-1) != theirs.argmax(dim=-1)
        changed += int(differ.any(dim=1).sum())
    before = after = None
    if metric is not None:
        both = run_both(reference, exported, lambda each: measure(each.model, examples, max_tokens))
        before, after = (scores[metric] for scores in both[:2])
    return Parity(
        data=name,
        inputs=len(examples.kept),
        compared="logits",
        difference=gap / largest,
        changed=changed / len(examples.kept),
        metric=metric,
        before=before,
        after=after,
        seconds=seconds,
    )


@torch.inference_mode()
def _logits(predictor: TokenPredictor, batch: TokenBatch, seconds: dict[str, float]) -> Tensor:
    """Score the tokens of a batch, and add the time that it took."""
    began = time.perf_counter()
    with predictor.engine.running():
        logits: Tensor = predictor.model(batch.tokens, batch.scored)
    seconds[engine_name(predictor.engine)] += time.perf_counter() - began
    return logits.float()
