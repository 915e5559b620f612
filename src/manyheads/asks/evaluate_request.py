"""Measuring a model."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, cast, get_args

from pydantic import model_validator

from manyheads.asks.option import Option
from manyheads.asks.request import AnyPath, Request, Several
from manyheads.bounded_numbers import Count
from manyheads.errors import nearest

TextMetric = Literal["bleu", "chrf", "ter", "exact", "bleu_lc_tok"]
METRICS: tuple[TextMetric, ...] = get_args(TextMetric)
Data = Annotated[
    str | None, Option("Other data than the recipe's: two files NAME.en, NAME.de; .tsv; images.")
]
Remote = Annotated[bool, Option("Read data by addresses that the model's recipe names.")]


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """The [evaluate] table of every task."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    limit: Count | None = None  # validation examples of a run, from all over the data; None: all


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig(ValidationConfig):
    """The [evaluate] table of what writes texts: the metrics; the first is the main one."""

    metrics: tuple[TextMetric, ...] = ("bleu",)

    def __post_init__(self) -> None:
        if not self.metrics:
            raise ValueError(f"metrics is empty: name at least one of {', '.join(METRICS)}")


class EvaluateRequest(Request):
    """Measure a model on a split of its recipe, or on other data."""

    data: Data = None
    remote: Remote = False
    split: Annotated[str, Option("Split of the recipe: train, valid, test.")] = "valid"
    final: Annotated[bool, Option("Allow a test split: measure it once, after all choices.")] = (
        False
    )
    limit: Count | None = None  # examples, from all over the data
    # Of translators only:
    metrics: Annotated[
        Several[str],
        Option(
            "Additional metric: bleu, chrf, ter, exact, bleu_lc_tok. Repeatable.", name="--metric"
        ),
    ] = ()
    by_length: Annotated[bool, Option("Scores by the length of the source.")] = False
    group: Annotated[
        str | None,
        Option("The first metric by group: a column of the data, such as 3.", metavar="COLUMN"),
    ] = None
    references: Annotated[
        str | None,
        Option("Further right answers: in each line a source and its translations.", metavar="TSV"),
    ] = None
    timing: Annotated[bool, Option("Speed, all together and one at a time.")] = False
    alignment: Annotated[
        bool, Option("How well attention says where words come from; on valid, choose the head.")
    ] = False
    # Of matchers only:
    among: Annotated[
        str | None,
        Option("Matchers: images to search among, besides those measured.", metavar="IMAGES"),
    ] = None
    # Of classifiers only:
    mirrored: Annotated[
        bool, Option("Classifiers: average the logits of each image and its mirror image.")
    ] = False
    outputs: Annotated[
        AnyPath | None,
        Option(
            "Write every input with its truth, answer, probability and score there: outputs.jsonl, "
            "answers.txt, and index.html, the worst first.",
            metavar="FOLDER",
        ),
    ] = None

    @model_validator(mode="after")
    def _known_metrics(self) -> Self:
        for name in self.metrics:
            if name not in METRICS:
                raise ValueError(
                    f"there is no metric {name!r}{nearest(name, METRICS)}"
                    f"Metrics: {', '.join(METRICS)}"
                )
        return self

    @property
    def text_metrics(self) -> tuple[TextMetric, ...]:
        """The metrics, as names that are known."""
        return cast(tuple[TextMetric, ...], self.metrics)

    @property
    def more_than_scores(self) -> bool:
        """Whether it asks for what only translators can be measured by."""
        more = (self.by_length, self.group, self.references, self.timing)
        return bool(self.metrics or self.alignment or any(more))
