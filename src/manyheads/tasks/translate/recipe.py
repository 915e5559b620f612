"""The recipe of the task "translate"."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import model_validator

from manyheads.asks.decode_config import DecodeConfig
from manyheads.asks.evaluate_request import EvaluateConfig
from manyheads.bounded_numbers import Count, NotNegative
from manyheads.data.augment.speech_levels import TAGS
from manyheads.data.augment.text_noise import TextNoise
from manyheads.data.tokenizers.tokenizer import END, PAD, START, PairTokenizerConfig
from manyheads.project.base_recipe import Converted, Recipe, Table
from manyheads.recipe_data.text_data import PairData
from manyheads.train.train_config import TrainConfig


class Start(Table):
    """The [start] table: language models or translators whose weights a translator begins with."""

    encoder: str | None = None
    decoder: str | None = None
    # "theirs": take the vocabulary over. "own": learn one from the training data; pieces that both
    # vocabularies have begin with their vectors, the others with fresh ones.
    vocabulary: Literal["theirs", "own"] = "theirs"

    @model_validator(mode="after")
    def _names_one(self) -> "Start":
        if self.encoder is None and self.decoder is None:
            raise ValueError("name a model as encoder, as decoder, or as both")
        return self


@dataclass(frozen=True, kw_only=True)
class TranslateTrainConfig(TrainConfig):
    """The [train] table of a translator."""

    max_tokens: Count = 4096  # per batch and side, padding included
    r_drop: NotNegative = 0.0  # alpha of R-Drop (Liang et al. 2021), a second pass; 5 is usual
    max_length: Count = 256  # tokens; longer pairs are left out of training, and counted


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

    @model_validator(mode="after")
    def _continues_converted(self) -> "TranslateRecipe":
        """A converted model that is trained on is continued whole, with its vocabulary."""
        start = self.start
        if self.converted and start:
            whole = start.encoder is not None and start.encoder == start.decoder
            if not whole or start.vocabulary == "own" or self.tokenizer.sampling:
                raise ValueError(
                    "a converted model is continued whole: name it as start.encoder and "
                    "start.decoder, leave start.vocabulary and tokenizer.sampling out"
                )
        return self

    @model_validator(mode="after")
    def _knows_its_levels(self) -> "TranslateRecipe":
        known = {*TAGS.values()} <= {*self.tokenizer.symbols}
        if self.augment.levels and not (known and self.tokenizer.tag):
            raise ValueError(
                f"augment.levels puts {', '.join(TAGS.values())} before sources: name all of them "
                "in tokenizer.symbols, and the usual one as tokenizer.tag"
            )
        return self

    @property
    def metrics(self) -> Sequence[str]:
        """Those that the recipe evaluates."""
        return self.evaluate.metrics

    def tables_not_written(self) -> Sequence[str]:
        """The vocabulary of a converted model has no recipe; nor has its training elsewhere."""
        if self.converted is None:
            return ()
        return ("tokenizer",) if self.start else ("tokenizer", "augment", "train")

    def derived(self) -> dict[str, int]:
        """Special ids; those of a converted model are those of its own vocabulary."""
        if self.converted:
            return {key: self.model[key] for key in ("pad", "start", "end") if key in self.model}
        return {"pad": PAD, "start": START, "end": END}
