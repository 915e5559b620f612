"""The recipe of the task "translate"."""

from collections.abc import Sequence
from typing import Literal

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.augment.text_noise import TextNoise
from manyheads.data.tokenizers.tokenizer import END, PAD, START, PairTokenizerConfig
from manyheads.project.recipe import Converted, Recipe
from manyheads.recipe_data.pair_data import PairData
from manyheads.tasks.translate.initialize import Start
from manyheads.tasks.translate.task import EvaluateConfig, TranslateTrainConfig


class TranslateRecipe(Recipe):
    """A recipe with task = "translate"."""

    task: Literal["translate"]
    data: PairData
    start: Start | None = None
    converted: Converted | None = None
    tokenizer: PairTokenizerConfig = PairTokenizerConfig()
    augment: TextNoise = TextNoise()
    train: TranslateTrainConfig = TranslateTrainConfig()
    decode: DecodeConfig = DecodeConfig()
    evaluate: EvaluateConfig = EvaluateConfig()

    @property
    def origin(self) -> Converted | None:
        """Where a converted model comes from."""
        return self.converted

    @property
    def metrics(self) -> Sequence[str]:
        """Those that the recipe evaluates."""
        return self.evaluate.metrics

    def tables_not_written(self) -> Sequence[str]:
        """The vocabulary and training of a converted model are not known."""
        return ("tokenizer", "augment", "train") if self.converted else ()

    def derived(self) -> dict[str, int]:
        """Special ids; those of a converted model are those of its own vocabulary."""
        if self.converted:
            return {key: self.model[key] for key in ("pad", "start", "end") if key in self.model}
        return {"pad": PAD, "start": START, "end": END}
