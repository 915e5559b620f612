"""Requests and answers: what a shell or a program asks of a model, and what it gets back.

A request is validated once, for the command line, for Python and for HTTP. It does not name the
model: a predictor answers it. Errors name parameters in backticks, as they are called here; the
command line writes its options in their place (`cli/flags.py`).

What looking gives back is a `Look`; `lens/view/view.schema.json` describes its JSON.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from annotated_types import Ge, Gt, Le
from PIL import Image
from pydantic import (
    BaseModel,
    ConfigDict,
    InstanceOf,
    Strict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from manyheads.decode.sampling import Sampling
from manyheads.errors import UsageError, nearest
from manyheads.tasks.decode_config import DecodeConfig, LengthPenalty, Penalty, Temperature
from manyheads.tasks.metrics import TEXT_METRICS, TextMetric
from manyheads.train.config import Count

Beams = Annotated[int, Ge(1), Le(1000)]  # each takes the memory of a text
IMAGE_TOKENS = 256  # that an image counts as

T = TypeVar("T")
Several = Annotated[tuple[T, ...], Strict(False)]  # also from a list
AnyPath = Annotated[Path, Strict(False)]  # also from text
# The path of a file, or an image that Pillow opened; JSON has the first.
AnyImage = AnyPath | SkipJsonSchema[InstanceOf[Image.Image]]


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
            raise _usage_error(error, list(type(self).model_fields)) from None


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

    limited: ClassVar[Mapping[str, Literal["beams", "prefix", "tokens", "top"]]] = {}
    """Parameters that make an answer cost more, each with the server's limit that it is under; of
    a text, its length is limited."""

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The inputs."""
        found: tuple[Any, ...] = getattr(self, self.input_field)
        return found

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


class TextRequest(BatchRequest):
    """Texts; each gets an answer of its own, in the same order."""

    input_field = "texts"

    texts: Several[str]

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The inputs."""
        return self.texts

    @property
    def cost(self) -> int:
        """Tokens of the texts."""
        return estimate_tokens(self.texts)


class SearchOptions(BatchRequest):
    """How an output is found: by a search for the most probable, or by sampling."""

    limited = {"beams": "beams", "n_best": "beams"}

    n_best: Beams = 1  # outputs per input
    beams: Beams | None = None  # of the search, 1 is greedy; the model's own number if None
    sample: bool = False  # also if one of the next three is given
    temperature: Temperature | None = None  # below 1 safer, above 1 bolder
    top_k: Count | None = None  # draw from so many of the most probable tokens
    top_p: Annotated[float, Gt(0), Le(1)] | None = None  # draw from those with this probability
    seed: Annotated[int, Ge(0), Le(2**63 - 1)] = 1  # of sampling

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
    def independent(self) -> bool:
        """Only without sampling: all inputs draw from one generator."""
        return not self.samples

    @property
    def sampling(self) -> Sampling | None:
        """The distribution to draw from, if tokens are drawn."""
        if not self.samples:
            return None
        return Sampling(self.temperature or 1.0, self.top_k, self.top_p or 1.0)

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


class TranslateRequest(SearchRequest):
    """Translate texts; what is None is as in the model's [decode] table."""

    limited = {**SearchRequest.limited, "prefix": "prefix"}

    length_penalty: LengthPenalty | None = None  # above 1 favours long translations
    coverage_penalty: Penalty | None = None  # cost of unread parts of the text, such as 0.2
    # Cost of a word that another of the n_best translations has at this place, such as 0.5.
    diversity: Penalty | None = None
    no_repeat_ngram: Annotated[int, Ge(0)] | None = None  # no n tokens in a row occur twice
    # Translate a text in capitals in sentence case, if the vocabulary does not know capitals.
    recase: bool | None = None
    prefix: str = ""  # what every translation begins with
    probabilities: bool = False  # describe the tokens of each translation
    align: bool = False  # with the token of the text that each comes from

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

    def decode(self, own: DecodeConfig) -> DecodeConfig:
        """Return a model's own [decode] table with the changes of this request.

        Raises:
            UsageError: settings contradict each other.
        """
        names = ("length_penalty", "coverage_penalty", "diversity", "no_repeat_ngram", "recase")
        changes = {name: getattr(self, name) for name in (*names, "temperature", "top_k", "top_p")}
        beams = self.beams or own.beams
        if self.diversity is not None:  # a group of beams for each translation
            changes["groups"] = self.n_best
            beams = -(-beams // self.n_best) * self.n_best
        changes |= {"beams": beams, "sample": self.samples or None}
        return changed(own, **{k: value for k, value in changes.items() if value is not None})


def changed(decode: DecodeConfig, **changes: Any) -> DecodeConfig:
    """Return a [decode] table with changes.

    Raises:
        UsageError: a value out of its range, or settings that contradict each other.
    """
    try:
        return TypeAdapter(DecodeConfig).validate_python(asdict(decode) | changes)
    except ValidationError as error:
        raise _usage_error(error, list(asdict(decode))) from None


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


class GenerateRequest(SearchRequest):
    """Continue texts."""

    limited = {**SearchRequest.limited, "tokens": "tokens"}

    tokens: Annotated[int, Ge(1), Le(10_000)] = 64  # at most

    @property
    def cost(self) -> int:
        """Tokens of the texts in each beam, and those to write."""
        return super().cost + self.tokens * len(self.texts) * self.width


class Continuation(Answer):
    """A prompt and its continuation."""

    text: str
    log_probability: float
    finished: bool  # False: cut off at the limit


class GenerateAnswer(Answer):
    """The continuations of one prompt, best first."""

    prompt: str
    texts: tuple[Continuation, ...]
    notes: tuple[str, ...] | None = None


class FillRequest(TextRequest):
    """Propose tokens for each <mask> of texts."""

    limited = {"top": "top"}

    top: Count = 5  # proposals per mask


class Proposal(Answer):
    """A token for a mask."""

    token: str
    probability: float
    text: str  # filled in


class FillAnswer(Answer):
    """The proposals for each mask of one text, most probable first."""

    text: str
    blanks: tuple[tuple[Proposal, ...], ...]
    notes: tuple[str, ...] | None = None


class TagRequest(TextRequest):
    """Put spaces into Korean texts."""


class TagAnswer(Answer):
    """One text with spaces, and the probability of a space after each character."""

    source: str
    text: str
    characters: tuple[str, ...]
    space: tuple[float, ...]
    notes: tuple[str, ...] | None = None


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


class ClassifyRequest(ImageRequest):
    """Classify images."""

    limited = {"top": "top"}

    top: Count = 5  # classes per image
    # Of matchers only: the classes, in words, and sentences around them, such as "a photo of {}".
    labels: Several[str] = ()
    templates: Several[str] = ()

    def cost_of(self, count: int) -> int:
        """Tokens of so many images, and of each class in each sentence."""
        labels, templates = estimate_tokens(self.labels), estimate_tokens(self.templates)
        written = labels * max(1, len(self.templates)) + templates * len(self.labels)
        return super().cost_of(count) + written

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The classes, and the sentences around them."""
        return (*self.labels, *self.templates)


class ClassProbability(Answer):
    """A class and its probability."""

    label: str
    probability: float


class ClassifyAnswer(Answer):
    """The most probable classes of one image, or why it could not be read."""

    path: str
    classes: tuple[ClassProbability, ...] | None = None
    notes: tuple[str, ...] | None = None  # that the model is unsure; None: nothing
    error: str | None = None


class CaptionRequest(ImageRequest, SearchOptions):
    """Write the text of images: what they show, or what is printed on them."""

    language: str | None = None  # of the text; the model's first if None
    probabilities: bool = False  # describe the tokens of each text

    def cost_of(self, count: int) -> int:
        """Tokens of so many images in each beam."""
        return super().cost_of(count) * self.width


class CaptionToken(Answer):
    """One token of a caption."""

    token: str
    probability: float  # given the image and the tokens before it
    begin: int  # characters of the caption
    end: int


class Caption(Answer):
    """One text for an image."""

    text: str
    score: float
    finished: bool = True  # False: cut off at the length limit
    tokens: tuple[CaptionToken, ...] | None = None  # with probabilities


class CaptionAnswer(Answer):
    """The texts of one image, best first, or why it could not be read."""

    path: str
    text: str | None = None  # the best
    language: str | None = None
    n_best: tuple[Caption, ...] | None = None
    notes: tuple[str, ...] | None = None
    error: str | None = None


class ReadRequest(ImageRequest):
    """Read the text in images, and translate it."""

    to: str | None = None  # language of the translation; None: do not translate
    translator: str | None = None  # name or folder; the shipped one for these languages if None


class ReadAnswer(Answer):
    """The text of one image and its translation, or why it could not be read."""

    path: str
    text: str | None = None  # its lines; an empty one between paragraphs
    language: str | None = None
    to: str | None = None
    translation: str | None = None  # a paragraph a line, an empty one between
    notes: tuple[str, ...] | None = None
    error: str | None = None


class IndexRequest(Request):
    """Add images to an index, and bring those that are in it up to date."""

    images: Several[str] = ()  # images, folders, tables, archives
    image_column: str = "image"  # of tables
    label_column: str | None = None  # of tables: what is shown beside the name of an image
    prune: bool = False  # remove images whose files are gone
    reread: bool = False  # also files whose size and times are as they were

    @model_validator(mode="after")
    def _something_to_do(self) -> Self:
        if not self.images and not self.prune:
            raise ValueError("there are no images to index: name some, or set `prune=True`")
        return self


class UnreadableImage(Answer):
    """An image that could not be indexed, and why."""

    path: str
    error: str


class IndexAnswer(Answer):
    """What has changed in an index."""

    images: int  # that are in the index now
    added: int
    changed: int  # images with another content than before
    unchanged: int
    removed: int
    embedded: int  # contents that the model was run on; the vectors of the others were there
    gone: int  # images in the index whose files are not there any more
    unreadable: tuple[UnreadableImage, ...] = ()


class ImageSearchRequest(BatchRequest):
    """Find images of an index by words, or by an image that they resemble."""

    input_field = "queries"
    limited = {"top": "top"}

    queries: Several[str]  # texts, or paths of images
    top: Count = 10  # images per query
    kind: Literal["text", "image"] | None = None  # None: a file that is an image is one

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The queries."""
        return self.queries

    @property
    def cost(self) -> int:
        """Tokens of the queries."""
        return estimate_tokens(self.queries)


class FoundImage(Answer):
    """An image that was found."""

    path: str
    score: float  # cosine of the angle between its vector and that of the query, -1 to 1
    label: str | None = None
    gone: bool | None = None  # True: its file is not there any more


class ImageSearchAnswer(Answer):
    """The images for one query, best first, or why it could not be answered."""

    query: str
    kind: Literal["text", "image"]
    images: tuple[FoundImage, ...] | None = None
    error: str | None = None


class EvaluateRequest(Request):
    """Measure a model on a split of its recipe, or on other data."""

    data: str | None = None  # files instead of the recipe's own
    remote: bool = False  # read data by the addresses that the recipe names
    split: str = "valid"  # of the recipe
    final: bool = False  # allow a test split, which is measured once, after all was chosen
    among: str | None = None  # of matchers only: images to search among, besides those measured
    # Of translators only:
    metrics: Several[str] = ()  # besides those of the recipe
    by_length: bool = False
    group: str | None = None  # column of the table, by name or number, that says a pair's group
    references: str | None = None  # a .tsv file: in each line a source and all its translations
    timing: bool = False
    outputs: AnyPath | None = None  # where to write the translations, one a line
    alignment: bool = False  # how well attention tells where words come from

    @model_validator(mode="after")
    def _known_metrics(self) -> Self:
        for name in self.metrics:
            if name not in TEXT_METRICS:
                raise ValueError(
                    f"there is no metric {name!r}{nearest(name, TEXT_METRICS)}"
                    f"Metrics: {', '.join(TEXT_METRICS)}"
                )
        return self

    @property
    def text_metrics(self) -> tuple[TextMetric, ...]:
        """The metrics, as the names that `TEXT_METRICS` has."""
        return tuple(known for name in self.metrics for known in TEXT_METRICS if known == name)

    @property
    def more_than_scores(self) -> bool:
        """Whether it asks for what only translators can be measured by."""
        more = (self.by_length, self.group, self.references, self.timing, self.outputs)
        return bool(self.metrics or self.alignment or any(more))


class ComparisonInputs(Request):
    """What an engine is compared on: validation data, other data, or texts without answers."""

    data: str | None = None  # files instead of the recipe's validation data
    remote: bool = False  # read these by the address that the recipe names
    texts: Several[str] = ()  # instead of data; without right answers, so no metric
    limit: Count = 500  # inputs at most, from all over the data

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.data is not None and self.texts:
            raise ValueError("`data` or `texts`, not both")
        return self


class ParityRequest(ComparisonInputs):
    """Compare an engine with torch."""

    # Numbers of examples of the validation data that the export was made with, such as those that
    # it was calibrated on: they are not compared.
    left_out: tuple[int, ...] = ()


class ExportRequest(ComparisonInputs):
    """Write a stored model in the format of an engine, if it then answers as on torch."""

    to: str  # the name of an exporter
    quantization: str | None = None  # one of the exporter's; its first if None
    calibrate: AnyPath | None = None  # folder of images, for int8 of image models
    runtime: AnyPath | None = None  # of "web": folder of onnxruntime-web's npm package
    out: AnyPath | None = None  # where to write it; the model's own folder if None
    force: bool = False  # keep it although it fails the parity check, and mark it


class LookRequest(Request):
    """Run a model on a text or an image with a recorder open."""

    # A text, the path of an image, or one that Pillow opened; JSON has the first two.
    given: str | SkipJsonSchema[InstanceOf[Image.Image]]
    kind: Literal["text", "image"] | None = None  # None: as the model reads it, or a file is
    integrated: bool | None = None  # integrate gradients; None: where it costs little
    # Of image models:
    target: str | None = None  # class to explain; the most probable if None
    baseline: Literal["black", "mean", "blur"] = "black"  # what gradients are integrated from
    language: str | None = None  # of a captioner: that of the text
    # Of translators and captioners: a text of one's own in place of the model's.
    reference: str | None = None
    # Of text models:
    word: str | None = None  # word whose vector is compared between sentences
    also: Several[str] = ()  # more sentences with this word


def estimate_tokens(texts: Sequence[str]) -> int:
    """Estimate the tokens of texts: of Latin letters about three to a token."""
    return sum(len(text.encode("utf-8", "replace")) // 3 + 2 for text in texts)


def _usage_error(error: ValidationError, known: list[str]) -> UsageError:
    """Say what is wrong with the first parameter that is."""
    detail = error.errors()[0]
    name = ".".join(map(str, detail["loc"]))
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
    given = f"`{name}` = {detail['input']!r}: " if name else ""
    return UsageError(f"{given}{reason[0].lower()}{reason[1:]}.")
