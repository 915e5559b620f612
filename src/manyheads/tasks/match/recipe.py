"""The recipe of the task "match"."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from manyheads.data.tokenizers.tokenizer import END, PAD, TokenizerConfig
from manyheads.recipe_data.caption_data import CaptionData, Columns, Language
from manyheads.recipe_data.encoder_recipe import EncoderRecipe
from manyheads.tasks.match.task import RANKS, MatchTrainConfig


class MatchData(CaptionData):
    """Images with texts; what is measured may ask with other texts than it learned."""

    # For each language, the columns of the texts that are searched for; those of `texts` if empty.
    queries: Mapping[Language, Columns] = {}

    @property
    def asked(self) -> "MatchData":
        """The same data with the texts of the queries."""
        return self.model_copy(update={"texts": self.queries}) if self.queries else self


class MatchRecipe(EncoderRecipe):
    """A recipe with task = "match"."""

    task: Literal["match"]
    data: MatchData
    tokenizer: TokenizerConfig = TokenizerConfig()
    train: MatchTrainConfig = MatchTrainConfig()

    @property
    def metrics(self) -> Sequence[str]:
        """Recall of texts and of images; with several languages, of the texts of each."""
        ways = [f"{way}_{k}" for way in ("text_to_image", "image_to_text") for k in RANKS]
        languages = list(self.data.asked.texts)
        each = [f"text_to_image_{k}_{code}" for code in languages for k in RANKS]
        return [*ways, *(each if len(languages) > 1 else [])]

    def derived(self) -> dict[str, Any]:
        """Special ids; a converted model has its own."""
        return {} if self.converted else {"pad": PAD, "end": END}
