"""Text generation, whole: sentences, a causal language model, perplexity."""

from typing import Any, cast

from manyheads.asks.export_request import ParityRequest
from manyheads.data.text.corpus import Sentences
from manyheads.doctor.run_batches import LineWriter
from manyheads.engines.engine_parity import Parity
from manyheads.models.causal_lm import CausalLanguageModel
from manyheads.tasks.generate.examination import examine_continuations
from manyheads.tasks.generate.parity import continuation_parity
from manyheads.tasks.generate.predictor import Generator
from manyheads.tasks.generate.recipe import GenerateRecipe
from manyheads.tasks.generate.task import NextToken
from manyheads.tokenwise.token_pipeline import LanguagePipeline


class GeneratePipeline(LanguagePipeline[GenerateRecipe, Generator]):
    """Sentences in, a language model that predicts the next token out."""

    task = "generate"
    recipe = GenerateRecipe
    predictor = Generator
    members = ("config", "start", "step", "reorder", "keep")
    what = "Continues text: predicts the next token of a text from those before it."
    use = 'manyheads generate --model {name} "..."'
    predicted = "token"

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
        """Examine how validation lines are continued."""
        return lambda model, lines, step: examine_continuations(
            cast(CausalLanguageModel, model), reader, lines, recipe, step
        )


PIPELINE = GeneratePipeline()
