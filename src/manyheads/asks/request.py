"""Requests and answers: what a shell or a program asks of a model, and what it gets back.

A request is validated once, for the command line, for Python and for HTTP. It does not name the
model: a predictor answers it. Errors name parameters in backticks, as they are called here; the
command line writes its options in their place (`cli/flags.py`).

What looking gives back is a `Look`; `lens/view/view.schema.json` describes its JSON.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, PlainValidator, Strict, ValidationError
from pydantic.json_schema import SkipJsonSchema

from manyheads.asks.option import Option
from manyheads.errors import UsageError, nearest

IMAGE_TOKENS = 256  # that an image counts as

T = TypeVar("T")
Several = Annotated[tuple[T, ...], Strict(False)]  # also from a list
AnyPath = Annotated[Path, Strict(False)]  # also from text
Without = Annotated[
    Several[str],
    Option(
        "Set a site inside the model to zero, such as 'decoder layer 2 cross head 2'; repeatable.",
        metavar="SITE",
    ),
]


def _opened(image: Any) -> Any:
    """Let an image pass that Pillow opened: whoever has one has imported Pillow."""
    pillow: Any = sys.modules.get("PIL.Image")
    if pillow is None or not isinstance(image, pillow.Image):
        raise ValueError("give the path of an image, or one that Pillow opened")
    return image


# An image that Pillow opened, which JSON cannot hold.
OpenedImage = SkipJsonSchema[Annotated[Any, PlainValidator(_opened)]]
AnyImage = AnyPath | OpenedImage
Limited = Mapping[str, Literal["beams", "prefix", "tokens", "top"]]


class Request(BaseModel):
    """A request; parameters are validated when it is made.

    Raises:
        UsageError: an unknown parameter, or a value of another type or out of its range.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def __init__(self, **parameters: Any) -> None:
        try:
            super().__init__(**parameters)
        except ValidationError as error:
            raise usage_error(error, list(type(self).model_fields)) from None


class Answer(BaseModel):
    """An answer; `model_json_schema()` describes its JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_json(self) -> dict[str, Any]:
        """Give it as plain data; parts that were not asked for are left out."""
        return self.model_dump(mode="json", exclude_none=True)


class BatchRequest(Request):
    """Inputs of a model; each gets an answer of its own, in the same order.

    A type of requests says in these members what a server needs to know of it.
    """

    input_field: ClassVar[str]
    """The parameter that holds the inputs."""

    limited: ClassVar[Limited] = {}
    """Parameters that make an answer cost more, each with the server's limit that it is under; of
    a text, its length is limited."""

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The inputs."""
        return getattr(self, self.input_field)

    def with_inputs(self, inputs: Iterable[Any]) -> Self:
        """Ask the same of other inputs."""
        return type(self)(**dict(self) | {self.input_field: tuple(inputs)})

    @property
    def all_texts(self) -> tuple[str, ...]:
        """Every text to read; a server limits their number and length."""
        return ()

    @property
    def cost(self) -> int:
        """Tokens of work, by estimate."""
        return len(self.inputs)

    @property
    def independent(self) -> bool:
        """Whether an answer depends on its own input alone, not on those beside it."""
        return True


class TextInputs(BatchRequest):
    """Inputs that are texts, whatever the parameter is called."""

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The inputs."""
        return self.inputs

    @property
    def cost(self) -> int:
        """Tokens of the inputs."""
        return estimate_tokens(self.inputs)


class TextRequest(TextInputs):
    """Texts; each gets an answer of its own, in the same order."""

    input_field = "texts"

    texts: Several[str]


class ImageRequest(BatchRequest):
    """Images; each gets an answer of its own, in the same order."""

    input_field = "images"

    images: Several[AnyImage]

    @property
    def cost(self) -> int:
        """Tokens that the images count as."""
        return self.cost_of(len(self.images))

    def cost_of(self, count: int) -> int:
        """Tokens that so many images count as."""
        return IMAGE_TOKENS * count


def estimate_tokens(texts: Sequence[str]) -> int:
    """Estimate the tokens of texts: of Latin letters about three to a token."""
    return sum(len(text.encode("utf-8", "replace")) // 3 + 2 for text in texts)


def usage_error(error: ValidationError, known: list[str]) -> UsageError:
    """Say what is wrong with the first parameter that is."""
    detail = error.errors()[0]
    # Without pydantic's names of the types of a union.
    name = ".".join(part for part in map(str, detail["loc"]) if "[" not in part)
    if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return UsageError(
            f"there is no parameter {name!r}{nearest(name, known)}Parameters: {', '.join(known)}."
        )
    if detail["type"] == "literal_error":
        allowed = re.findall("'([^']*)'", detail["ctx"]["expected"])
        return UsageError(
            f"`{name}` is {detail['input']!r}{nearest(str(detail['input']), allowed)}"
            f"Allowed: {', '.join(allowed)}."
        )
    if detail["type"] == "missing":
        return UsageError(f"`{name}` is missing.")
    if detail["type"] == "tuple_type":
        return UsageError(f"`{name}` is {detail['input']!r}: give several, in a list.")
    reason = detail["msg"].removeprefix("Value error, ")
    about = f"`{name}` = {detail['input']!r:.200}: " if name else ""
    return UsageError(f"{about}{reason[0].lower()}{reason[1:]}.")
