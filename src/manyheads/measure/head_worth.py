"""What every head is worth: the score that is lost without it, on a file.

A head's output is replaced by zeros. Intervals are of the paired bootstrap: the same sentences or
images with and without the head. Source: Michel et al. 2019, "Are Sixteen Heads Really Better than
One?", section 3; the order in which several are taken out is that of the single losses.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from manyheads.asks.heads_request import HeadsRequest
from manyheads.cancellation import raise_if_cancelled
from manyheads.errors import UsageError
from manyheads.lens.panels import Cell, Table
from manyheads.measure.bootstrap import Interval, bootstrap, compare
from manyheads.measure.text_metrics import Statistics
from manyheads.nn.editing.edits import edit
from manyheads.nn.editing.seam import HEAD, site_name
from manyheads.nn.recording.trace import LayerId
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.task_pipeline import pipeline_of

LEVELS = 8  # numbers of heads that are taken out together
Report = Callable[[int, int], None]  # how many of how many measurements are done


class Scorer(NamedTuple):
    """How a task scores a model, once and again."""

    metric: str
    data: str
    examples: int
    score: Callable[[], Statistics]


@dataclass(frozen=True)
class HeadWorth:
    """One head, and the loss of score without it."""

    site: str  # "decoder layer 2 cross head 2"
    loss: Interval


@dataclass(frozen=True)
class Without:
    """Several heads taken out together."""

    heads: int
    score: Interval


@dataclass(frozen=True)
class HeadReport:
    """The heads of a model on a file."""

    model: str
    data: str
    examples: int
    metric: str
    score: Interval  # of the whole model
    heads: list[HeadWorth]  # from the least loss to the largest
    without: list[Without]  # the heads of least loss first

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON types; intervals become value, low and high."""
        plain = asdict(self)
        for one in [plain, *plain["heads"], *plain["without"]]:
            for key, value in one.items():
                if isinstance(value, Interval):
                    one[key] = value._asdict()
        return plain

    @property
    def tables(self) -> list[Table]:
        """The loss without each head, and the score without several."""
        rows: list[list[Cell]] = [[each.site, *_cells(each.loss)] for each in self.heads]
        several: list[list[Cell]] = [[each.heads, *_cells(each.score)] for each in self.without]
        columns = ["from", "to"]
        return [
            Table(f"{self.metric} lost without one head", ["head", "loss", *columns], rows),
            Table(
                f"{self.metric} without several, least loss first; the whole model has "
                f"{self.score.value:.2f}",
                ["heads", self.metric, *columns],
                several,
            ),
        ]


def head_worth(predictor: Predictor, request: HeadsRequest, report: Report) -> HeadReport:
    """Measure a model without each of its heads.

    Raises:
        UsageError: the model has no heads, or its task has no measure for this.
    """
    prepare = pipeline_of(predictor.folder.recipe).part("evaluation", "scorer")
    if prepare is None:
        raise UsageError(
            f"{predictor.folder.name}: heads are measured of translators and classifiers of images."
        )
    scorer: Scorer = prepare(predictor, request)
    with predictor.engine.running():
        return _measured(predictor.folder.name, scorer, request.samples, report)


def _measured(name: str, scorer: Scorer, samples: int, report: Report) -> HeadReport:
    with edit() as seen:
        whole = scorer.score()
    heads = [
        (site, number + 1)
        for site, count in seen.passed.items()
        if site.kind.endswith(f" {HEAD}")
        for number in range(count)
    ]
    if not heads:
        raise UsageError(f"{name} has no attention heads.")
    levels = sorted({len(heads) * (n + 1) // LEVELS for n in range(LEVELS)} - {0})
    steps = 1 + len(heads) + len(levels)
    done = iter(range(1, steps + 1))
    report(next(done), steps)

    def without(some: Sequence[tuple[LayerId, int]]) -> Statistics:
        raise_if_cancelled()
        with edit() as changes:
            for site, head in some:
                changes.site(site_name(site, head)).zero()
            found = scorer.score()
        report(next(done), steps)
        return found

    losses = {each: compare(without([each]), whole, samples=samples).difference for each in heads}
    order = sorted(heads, key=lambda head: losses[head].value)
    return HeadReport(
        name,
        scorer.data,
        scorer.examples,
        scorer.metric,
        bootstrap(whole, samples=samples),
        [HeadWorth(site_name(*head), losses[head]) for head in order],
        [Without(n, bootstrap(without(order[:n]), samples=samples)) for n in levels],
    )


def _cells(interval: Interval) -> list[Cell]:
    return [round(each, 3) for each in interval]
