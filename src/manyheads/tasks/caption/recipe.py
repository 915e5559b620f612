"""The recipe of the task "caption"."""

from collections.abc import Sequence
from typing import Any, Literal

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.tokenizers.tokenizer import END, PAD, START, TokenizerConfig
from manyheads.recipe_data.encoder_recipe import EncoderRecipe
from manyheads.tasks.caption.task import CaptionEvaluateConfig, CaptionTrainConfig


class CaptionRecipe(EncoderRecipe):
    """A recipe with task = "caption"."""

    task: Literal["caption"]
    tokenizer: TokenizerConfig = TokenizerConfig()
    train: CaptionTrainConfig = CaptionTrainConfig()
    decode: DecodeConfig = DecodeConfig()
    evaluate: CaptionEvaluateConfig = CaptionEvaluateConfig()

    @property
    def metrics(self) -> Sequence[str]:
        """Means over languages; with several, each language has its own too."""
        languages = list(self.data.texts)
        each = [f"{name}_{code}" for name in self.evaluate.metrics for code in languages]
        return [*self.evaluate.metrics, *(each if len(languages) > 1 else [])]

    def derived(self) -> dict[str, Any]:
        """Special ids; a converted model has its own."""
        return {} if self.converted else {"pad": PAD, "start": START, "end": END}
