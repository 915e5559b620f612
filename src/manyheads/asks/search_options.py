"""How an output is found; shared by the requests for translations, captions and continuations."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from annotated_types import Ge, Gt, Le
from pydantic import TypeAdapter, ValidationError, model_validator

from manyheads.asks.decode_config import DecodeConfig, Temperature
from manyheads.asks.option import ANSWERS, SAMPLING, SEARCH, Option
from manyheads.asks.request import BatchRequest, Limited, TextRequest, usage_error
from manyheads.bounded_numbers import Count

if TYPE_CHECKING:
    from manyheads.decode.sampling import Sampling

Probabilities = Annotated[bool, Option("In JSON: the probability of each token.", ANSWERS)]
Beams = Annotated[int, Ge(1), Le(1000)]  # each takes the memory of a text


class SearchOptions(BatchRequest):
    """How an output is found: by a search for the most probable, or by sampling.

    What is None is as in the model's [decode] table.
    """

    limited: ClassVar[Limited] = {"beams": "beams", "n_best": "beams"}

    n_best: Annotated[Beams, Option("Number of outputs per input.", ANSWERS)] = 1
    beams: Annotated[
        Beams | None,
        Option("Beam size; 1 is greedy search. By default the model's own.", SEARCH, "--beam"),
    ] = None
    sample: Annotated[
        bool, Option("Sample the output instead of searching for the best.", SAMPLING)
    ] = False  # also if one of the next three is given
    temperature: Annotated[
        Temperature | None, Option("Below 1: more probable words; above 1: more varied.", SAMPLING)
    ] = None
    top_k: Annotated[
        Count | None, Option("Sample from this many most probable tokens.", SAMPLING)
    ] = None
    top_p: Annotated[
        Annotated[float, Gt(0), Le(1)] | None,
        Option("Sample from the most probable tokens with this total probability.", SAMPLING),
    ] = None
    seed: Annotated[
        Annotated[int, Ge(0), Le(2**63 - 1)], Option("Random seed for sampling.", SAMPLING)
    ] = 1

    @property
    def width(self) -> int:
        """Outputs that are searched for at a time."""
        return max(self.beams or 1, self.n_best)

    @property
    def samples(self) -> bool:
        """Whether tokens are drawn."""
        narrowed = (self.temperature, self.top_k, self.top_p)
        return self.sample or any(each is not None for each in narrowed)

    @property
    def sampling(self) -> "Sampling | None":
        """The distribution to draw from, if tokens are drawn."""
        from manyheads.decode.sampling import Sampling  # imports torch

        if not self.samples:
            return None
        return Sampling(self.temperature or 1.0, self.top_k, self.top_p or 1.0)

    def decode(self, own: DecodeConfig) -> DecodeConfig:
        """Return a model's own [decode] table with the changes of this request.

        Raises:
            UsageError: settings contradict each other.
        """
        return changed(own, **self.changes(own))

    def changes(self, own: DecodeConfig) -> dict[str, Any]:
        """Parameters that are named as a field of the table replace it."""
        names = type(self).model_fields.keys() & asdict(own).keys()
        values = {name: value for name in names if (value := getattr(self, name)) is not None}
        return values | {"sample": self.samples or own.sample}

    @model_validator(mode="after")
    def _search_or_sample(self) -> Self:
        if self.samples and self.beams is not None:
            raise ValueError(
                "sampling has no beams: leave out `beams`, or what belongs to sampling"
            )
        return self


class SearchRequest(TextRequest, SearchOptions):
    """Write a text for each text."""

    @property
    def cost(self) -> int:
        """Tokens of the texts in each beam."""
        return super().cost * self.width


def changed(decode: DecodeConfig, **changes: Any) -> DecodeConfig:
    """Return a [decode] table with changes.

    Raises:
        UsageError: a value out of its range, or settings that contradict each other.
    """
    try:
        return TypeAdapter(DecodeConfig).validate_python(asdict(decode) | changes)
    except ValidationError as error:
        raise usage_error(error, list(asdict(decode))) from None
