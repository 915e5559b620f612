"""The [decode] table: how a trained model searches for its output."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt, Le

from manyheads.bounded_numbers import Count

STEEPEST = 10  # length penalty; beyond it, scores of long outputs soon are 0 or infinite
LengthPenalty = Annotated[float, Ge(-STEEPEST), Le(STEEPEST)]
Penalty = Annotated[float, Ge(0), Le(1000)]  # in nats
Temperature = Annotated[float, Ge(1e-4), Le(1000)]


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """The [decode] table: how a trained translator decodes."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    beams: Count = 4  # 1 is greedy
    length_penalty: float = 1.0  # score = log-probability / length ** length_penalty
    early_stopping: bool = False  # stop at `beams` outputs, even if a beam might become better
    coverage_penalty: Penalty = 0.0  # for source tokens with little attention; 0.2 is usual
    # Groups of beams that avoid each other's tokens, for an n-best list of different translations.
    groups: Count = 1
    diversity: Penalty = 0.0  # penalty for a token that another group has at the same step
    # Sample the next token instead of searching for the most likely translation.
    sample: bool = False
    temperature: Temperature = 1.0  # below 1 sharper, above 1 flatter distributions
    top_k: Count | None = None  # sample from the k most likely tokens
    top_p: Annotated[float, Gt(0), Le(1)] = 1.0  # sample from the smallest set with this mass
    no_repeat_ngram: Annotated[int, Ge(0)] = 0  # never repeat an n-gram of this size; 0 is off
    min_length: Annotated[int, Ge(0)] = 0  # tokens, without the end token
    max_length: Count | None = (
        None  # tokens, with the end token; None: 2 * source + 16; captions 128
    )
    # Tokens that an output may repeat in a row, more where its source repeats some; 0 is no limit.
    max_loop: Annotated[int, Ge(0)] = 32
    tag: str = ""  # that texts begin with, of tokenizer.symbols; "": tokenizer.tag, if there is one
    # A text in capitals is translated in sentence case, if the vocabulary does not know capitals.
    recase: bool = True
    forced_end: bool = False  # force the end token at the length limit; Marian models need it
    banned: tuple[Annotated[int, Ge(0)], ...] = ()  # ids of tokens that are never generated
    renormalise: bool = False  # renormalise the probabilities after all rules

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other or have no effect."""
        for name in ("length_penalty", "coverage_penalty", "diversity", "temperature"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} is {getattr(self, name)}: it must be a finite number")
        if abs(self.length_penalty) > STEEPEST:
            raise ValueError(
                f"length_penalty is {self.length_penalty}, an exponent of the length: it must be "
                f"between -{STEEPEST} and {STEEPEST}"
            )
        narrowed = [
            f"{name} is {getattr(self, name)}"
            for name, default in (("temperature", 1.0), ("top_k", None), ("top_p", 1.0))
            if getattr(self, name) != default
        ]
        if narrowed and not self.sample:
            raise ValueError(f"{narrowed[0]}, but sampling is off: set sample = true")
        if self.sample and (self.groups > 1 or self.coverage_penalty or self.early_stopping):
            raise ValueError(
                "sample is true, but groups, coverage_penalty and early_stopping are options of "
                "beam search: leave them out, or set sample = false"
            )
        if (self.groups > 1) != (self.diversity > 0):
            raise ValueError(
                f"groups is {self.groups} and diversity {self.diversity}: several groups need a "
                "diversity above 0, such as 0.5, and a diversity needs several groups"
            )
        if self.beams % self.groups:
            raise ValueError(
                f"beams is {self.beams} and groups {self.groups}: choose a multiple of the groups"
            )
        if self.coverage_penalty and self.beams == 1:
            raise ValueError(
                f"coverage_penalty is {self.coverage_penalty}, but it has no effect on one beam: "
                "set beams above 1"
            )
        if self.max_length is not None and self.min_length >= self.max_length:
            raise ValueError(
                f"min_length is {self.min_length} and max_length, with the end token, "
                f"{self.max_length}: min_length must be the smaller"
            )
