"""Translation."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import model_validator

from manyheads.asks.decode_config import DecodeConfig, LengthPenalty, Penalty
from manyheads.asks.option import ANSWERS, SEARCH, Option
from manyheads.asks.request import Answer, Limited, Without, estimate_tokens
from manyheads.asks.search_options import Probabilities, SearchRequest
from manyheads.bounded_numbers import Natural


class TranslateRequest(SearchRequest):
    """Translate texts; what is None is as in the model's [decode] table."""

    limited: ClassVar[Limited] = {**SearchRequest.limited, "prefix": "prefix"}

    length_penalty: Annotated[
        LengthPenalty | None,
        Option("Above 1 favours long translations, below 1 short ones.", SEARCH),
    ] = None
    coverage_penalty: Annotated[
        Penalty | None,
        Option("Cost of source text that was not attended to: 0.2, say.", SEARCH, "--coverage"),
    ] = None
    diversity: Annotated[
        Penalty | None,
        Option(
            "With several translations: cost of a word that another one has, such as 0.5.",
            SEARCH,
            "--diverse",
        ),
    ] = None
    no_repeat_ngram: Annotated[
        Natural | None, Option("Never repeat a sequence of this many tokens.", SEARCH)
    ] = None
    min_length: Annotated[Natural | None, Option("Write at least this many tokens.", SEARCH)] = None
    prefix: Annotated[str, Option("Text that every translation begins with.", SEARCH)] = ""
    tag: Annotated[
        str | None, Option("Translate as this tag of the model says, such as formal.", SEARCH)
    ] = None
    recase: Annotated[
        bool | None,
        Option(
            "Translate a text in capitals in sentence case, if the model knows no capitals; on by "
            "default.",
            SEARCH,
            negative=True,
        ),
    ] = None
    without: Without = ()
    probabilities: Probabilities = False
    align: Annotated[
        bool, Option("In JSON: the source token that each output token comes from.", ANSWERS)
    ] = False

    @property
    def cost(self) -> int:
        """Tokens of the texts, each with the prefix, in each beam."""
        prefix = estimate_tokens((self.prefix,)) if self.prefix else 0
        return super().cost + prefix * len(self.texts) * self.width

    @model_validator(mode="after")
    def _several_differ(self) -> Self:
        if self.diversity is not None and self.n_best == 1:
            raise ValueError(
                "`diversity` makes several translations differ: set `n_best`, to 4 for example"
            )
        return self

    def changes(self, own: DecodeConfig) -> dict[str, Any]:
        """Different translations have a group of beams each."""
        changes = super().changes(own)
        if self.diversity is not None:
            changes["groups"] = self.n_best
            changes["beams"] = -(-(self.beams or own.beams) // self.n_best) * self.n_best
        return changes


class SourceToken(Answer):
    """The token of a text that an output token comes from."""

    token: str
    begin: int  # characters of the text
    end: int
    share: float  # of the output token's attention


class TranslatedToken(Answer):
    """One token of a translation."""

    token: str
    probability: float  # given the text and the tokens before it
    begin: int  # characters of the translation
    end: int
    source: SourceToken | None = None  # with align


class TranslatedText(Answer):
    """One translation of a text."""

    text: str
    score: float
    finished: bool  # False: cut off at the length limit
    tokens: tuple[TranslatedToken, ...] | None = None  # with probabilities or align


class TranslateAnswer(Answer):
    """The translations of one text, best first."""

    source: str
    translation: str  # the best
    n_best: tuple[TranslatedText, ...]
    notes: tuple[str, ...] | None = None  # what was changed, and what is unusual; None: nothing
