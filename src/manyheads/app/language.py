"""Predictors of language models: continue a prompt, score a text, fill a blank."""

from collections.abc import Sequence
from typing import cast

from manyheads.app.folder import ModelFolder
from manyheads.app.recipe import FillRecipe, GenerateRecipe
from manyheads.app.texts import OneOrMany
from manyheads.decode.sample import Sampling
from manyheads.models.causal_lm import CausalLanguageModel
from manyheads.models.masked_lm import MaskedLanguageModel
from manyheads.tasks.language import (
    Completion,
    Filling,
    ScoredToken,
    complete,
    fill,
    token_scores,
)
from manyheads.train.device import best_device


class Generator(OneOrMany):
    """Call it with a prompt or a list of prompts. `model` is the torch module."""

    def __init__(self, folder: ModelFolder) -> None:
        assert isinstance(folder.recipe, GenerateRecipe)
        self.folder = folder
        self.tokenizer = folder.tokenizers().target
        self.model = cast(CausalLanguageModel, folder.model().to(best_device()))

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Continue each prompt greedily; the prompt is part of the answer."""
        return [best.text for best, *_ in self.complete(texts)]

    def complete(
        self,
        prompts: Sequence[str],
        *,
        tokens: int = 64,
        beams: int = 1,
        sampling: Sampling | None = None,
        n_best: int = 1,
        seed: int = 1,
    ) -> list[list[Completion]]:
        """Continue each prompt by at most so many tokens.

        Args:
            prompts: raw texts; an empty one begins a text of its own.
            tokens: the most that are written.
            beams: of a search for the likeliest continuation, 1 is greedy; at least n_best.
            sampling: draw from this distribution instead of searching.
            n_best: continuations a prompt: so many draws, or the best of the beams.
            seed: of the draws; what is drawn for a prompt depends on this and the prompt alone.
        """
        return complete(
            self.model,
            self.tokenizer,
            prompts,
            tokens=tokens,
            beams=beams,
            sampling=sampling,
            n_best=n_best,
            seed=seed,
        )

    def score(self, texts: Sequence[str]) -> list[list[ScoredToken]]:
        """Say how likely each token of each text is after those before it, its end included.

        The sum of a text's log-probabilities is that of the text; the exponential of minus their
        mean is its perplexity.
        """
        return token_scores(self.model, self.tokenizer, texts)


class Filler:
    """Call it with a text in which <mask> stands for a token. `model` is the torch module."""

    def __init__(self, folder: ModelFolder) -> None:
        assert isinstance(folder.recipe, FillRecipe)
        self.folder = folder
        self.tokenizer = folder.tokenizers().source
        self.model = cast(MaskedLanguageModel, folder.model().to(best_device()))

    def __call__(self, text: str) -> str:
        """Fill every <mask> of a text with its likeliest token."""
        return self.fill(text, top=1)[0][0].text

    def fill(self, text: str, *, top: int = 5) -> list[list[Filling]]:
        """Propose the `top` likeliest tokens for each <mask> of a text, with probabilities."""
        return fill(self.model, self.tokenizer, text, top=top)
