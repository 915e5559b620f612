"""Text generation, whole: sentences, a causal language model, perplexity."""

from typing import Any, cast

from torch import nn

from manyheads.asks.export_request import ParityRequest
from manyheads.data.text.corpus import Sentences
from manyheads.decode.sampling import Sampling
from manyheads.doctor.outputs import Outputs, looping, one_sentence
from manyheads.doctor.run_batches import Examined, LineWriter
from manyheads.engines.engine_parity import Parity
from manyheads.models.causal_lm import CausalLanguageModel
from manyheads.tasks.generate.parity import continuation_parity
from manyheads.tasks.generate.predictor import Generator
from manyheads.tasks.generate.recipe import GenerateRecipe
from manyheads.tasks.generate.task import NextToken, complete
from manyheads.tokenwise.token_pipeline import LanguagePipeline

PROMPTS, WORDS, TOKENS = 40, 3, 48  # texts that a language model goes on with


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
        """Compare logits of whole lines, and how their first halves are continued."""
        whole = super().parity(reference, exported, request)
        return continuation_parity(reference, exported, self.compared(reference, request)[0], whole)

    def writer(self, recipe: GenerateRecipe, reader: Any) -> LineWriter:
        """Continue the first words of validation lines by sampling; report what is wrong.

        The most probable text loops even in good models (Holtzman et al. 2020).
        """

        def examine(model: nn.Module, lines: Sentences, step: int) -> Examined:
            chosen = list(lines.lines)[:PROMPTS]
            prompts = [" ".join(line.split()[:WORDS]) for line in chosen]
            generator = cast(CausalLanguageModel, model)
            drawn = complete(generator, reader, prompts, tokens=TOKENS, sampling=Sampling())
            written = Outputs(prompts, [best[0].text for best in drawn], chosen)
            found = [*one_sentence(written, recipe, step), *looping(written, recipe, step)]
            return Examined(found, [f"continuations: {len(written.outputs)} drawn"])

        return examine


PIPELINE = GeneratePipeline()
