"""Text generation, whole: sentences, a causal language model, perplexity."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from manyheads.asks.export_request import ParityRequest
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.text.corpus import Sentences
from manyheads.decode.sampling import Sampling
from manyheads.doctor.output_habits import Outputs, looping, one_sentence
from manyheads.doctor.run_batches import Examined, Write
from manyheads.engines.engine_parity import Parity
from manyheads.measure.parity_inputs import run_both
from manyheads.models.causal_lm import CausalLanguageModel
from manyheads.tasks.generate.predictor import Generator
from manyheads.tasks.generate.recipe import GenerateRecipe
from manyheads.tasks.generate.task import NextToken, complete
from manyheads.tokenwise.token_pipeline import LanguagePipeline
from manyheads.tokenwise.token_task import Examples

PROMPTS, WORDS, TOKENS = 40, 3, 48  # texts that a language model goes on with
SCORED = 32  # lines that an engine is fed token by token, to compare it
CONTINUED = 16  # tokens that it writes behind the first half of each line


class GeneratePipeline(LanguagePipeline[GenerateRecipe, Generator]):
    """Sentences in, a language model that predicts the next token out."""

    task = "generate"
    recipe = GenerateRecipe
    predictor = Generator
    members = ("config", "start", "step", "reorder", "keep")
    what = "Continues text: predicts the next token of a text from those before it."
    use = 'manyheads generate --model {name} "..."'

    def examples(
        self, recipe: GenerateRecipe, lines: Sentences, reader: Any, *, train: bool
    ) -> NextToken:
        """Predict each token from those before it."""
        return NextToken(lines, reader, recipe.train.max_length if train else None)

    def parity(self, reference: Generator, exported: Generator, request: ParityRequest) -> Parity:
        """Compare logits of whole lines, and how their first halves are continued.

        The difference is the larger one of both comparisons; answers are continuations, and the
        seconds those of writing them.
        """
        whole = super().parity(reference, exported, request)
        examples, _ = self.compared(reference, request)
        lines = [examples.sentences.lines[index] for index in examples.kept.tolist()]
        halves = [line[: len(line) // 2] for line in lines]
        ours, theirs, seconds = run_both(
            reference,
            exported,
            lambda each: [best.text for best, *_ in each.complete(halves, tokens=CONTINUED)],
        )
        differ = sum(a != b for a, b in zip(ours, theirs, strict=True))
        gap = float(np.maximum(whole.difference, _difference(reference, exported, examples)))
        return replace(whole, difference=gap, changed=differ / len(lines), seconds=seconds)

    def writer(self, recipe: GenerateRecipe, reader: Any, lines: Sentences) -> Write:
        """Continue the first words of validation lines by sampling; report what is wrong.

        The most probable text loops even in good models (Holtzman et al. 2020).
        """
        chosen = list(lines.lines)[:PROMPTS]
        prompts = [" ".join(line.split()[:WORDS]) for line in chosen]

        def examine(model: nn.Module, step: int, finished: bool) -> Examined:
            generator = cast(CausalLanguageModel, model)
            drawn = complete(generator, reader, prompts, tokens=TOKENS, sampling=Sampling())
            written = Outputs(prompts, [best[0].text for best in drawn], chosen)
            found = [*one_sentence(written, recipe, step), *looping(written, recipe, step)]
            return Examined(found, [f"continuations: {len(written.outputs)} drawn"])

        return examine


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


PIPELINE = GeneratePipeline()
