"""Compare how a causal language model continues texts on an engine and on torch, token by token."""

from dataclasses import replace

import numpy as np
import torch

from manyheads.data.even_sample import evenly_spaced
from manyheads.engines.engine_parity import Parity
from manyheads.measure.parity_inputs import run_both
from manyheads.tasks.generate.predictor import Generator
from manyheads.tokenwise.token_task import Examples

SCORED = 32  # lines that are fed token by token
TOKENS = 16  # that are written behind the first half of each line


def continuation_parity(
    reference: Generator, exported: Generator, examples: Examples, whole: Parity
) -> Parity:
    """Add what a search asks of both to the comparison of whole lines.

    The difference is the larger one of both comparisons; answers are continuations, and the seconds
    those of writing them.
    """
    lines = [examples.sentences.lines[index] for index in examples.kept.tolist()]
    halves = [line[: len(line) // 2] for line in lines]
    ours, theirs, seconds = run_both(
        reference,
        exported,
        lambda each: [best.text for best, *_ in each.complete(halves, tokens=TOKENS)],
    )
    differ = sum(a != b for a, b in zip(ours, theirs, strict=True))
    return replace(
        whole,
        difference=float(np.maximum(whole.difference, _difference(reference, exported, examples))),
        changed=differ / len(lines),
        seconds=seconds,
    )


@torch.inference_mode()
def _difference(reference: Generator, exported: Generator, examples: Examples) -> float:
    """Return the largest difference of log-probabilities, by the largest logit.

    Both are fed the same tokens one by one, as in a search.
    """
    chosen = evenly_spaced(len(examples.kept), SCORED)
    batch = examples.batch(examples.kept[chosen], epoch=0)
    tokens, steps = batch.tokens, batch.tokens.shape[1]
    first, second = reference.model, exported.model
    ours, theirs = (model.start(tokens[:, :1], 1, steps) for model in (first, second))
    gap = largest = 0.0
    for n in range(steps):
        column, real = tokens[:, n : n + 1], batch.scored[:, n]
        scores, ours = first.step(column, ours)
        others, theirs = second.step(column, theirs)
        gap = float(np.maximum(gap, float((scores - others)[real].abs().max())))  # nan stays
    for row, real in zip(tokens, batch.scored, strict=True):
        largest = max(largest, float(first(row[None, real]).abs().max()))
    return gap / largest
