"""The recipe of the task "generate"."""

from typing import Literal

from manyheads.tokenwise.token_pipeline import LanguageRecipe


class GenerateRecipe(LanguageRecipe):
    """A recipe with task = "generate": a language model that predicts the next token."""

    task: Literal["generate"]
