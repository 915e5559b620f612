"""Shared parts of the comparisons of an engine with torch: what on, how long, and how far apart."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.data.even_sample import Selectable, evenly_spaced
from manyheads.engines.engine import engine_name
from manyheads.engines.engine_parity import Parity
from manyheads.errors import NotFoundError, UsageError
from manyheads.predict.base_predictor import Predictor

P = TypeVar("P", bound=Predictor)
S = TypeVar("S", bound=Selectable)
T = TypeVar("T")


def data_to_compare(
    read: Callable[[EvaluateRequest], tuple[T, Mapping[str, Any]]],
    request: ParityRequest,
    what: str = "images",
    *,
    or_texts: bool = False,
) -> tuple[T, Mapping[str, Any]]:
    """Read the recipe's validation data, or those that were given, and the line about them.

    Raises:
        NotFoundError: they are not here.
        UsageError: texts were given, which these data are compared without.
    """
    if request.texts and not or_texts:
        raise UsageError(f"`texts` is for models that read texts: give {what} as `data`.")
    try:
        return read(EvaluateRequest(data=request.data))
    except NotFoundError as error:
        if request.data is not None:
            raise
        instead = f"{what} as `data`, {'or `texts`, ' * or_texts}to compare the engine on."
        raise NotFoundError(f"{error} Or give other {instead}") from None


def images_to_compare(
    read: Callable[[EvaluateRequest], tuple[S, Mapping[str, Any]]], request: ParityRequest
) -> tuple[S, Mapping[str, Any]]:
    """Read images, as `data_to_compare` does, and choose some, as `examples_to_compare` does."""
    images, head = data_to_compare(read, request)
    return images.select(examples_to_compare(len(images), request)), head


def examples_to_compare(count: int, request: ParityRequest) -> np.ndarray:
    """Choose examples from all over the data, without those that the export was made with."""
    left_out = request.left_out if request.data is None else ()
    rest = np.setdiff1d(np.arange(count), left_out)
    return rest[evenly_spaced(len(rest), request.limit)]


def compare_engines(
    reference: P,
    exported: P,
    run: Callable[[P], T],
    *,
    answers: Callable[[T], Iterable[Any]],
    difference: Callable[[T, T], float],
    score: Callable[[T], float] | None = None,
    metric: str | None = None,
    inputs: int | None = None,
    **report: Any,
) -> Parity:
    """Run both on the same inputs, and compare what they return.

    Args:
        reference: the model on torch.
        exported: the same model on the engine.
        run: answers all inputs; it is timed.
        answers: the answers in what was returned, one for each input.
        difference: between the numbers that were returned, as `Parity` has it.
        score: measures what was returned; None: nothing tells right from wrong.
        metric: what `score` returns.
        inputs: their number; None: that of the answers.
        report: further fields of `Parity`.
    """
    ours, theirs, seconds = run_both(reference, exported, run)
    before, after = (None, None) if score is None else (score(ours), score(theirs))
    differ = [one != other for one, other in zip(answers(ours), answers(theirs), strict=True)]
    return Parity(
        inputs=inputs or len(differ),
        difference=difference(ours, theirs),
        changed=float(np.mean(differ)),
        metric=None if score is None else metric,
        before=before,
        after=after,
        seconds=seconds,
        **report,
    )


def run_both(reference: P, exported: P, run: Callable[[P], T]) -> tuple[T, T, dict[str, float]]:
    """Run both, and time them."""
    results, seconds = [], {}
    for predictor in (reference, exported):
        began = time.perf_counter()
        with predictor.engine.running():
            results.append(run(predictor))
        seconds[engine_name(predictor.engine)] = time.perf_counter() - began
    return results[0], results[1], seconds


def relative_difference(ours: Tensor, theirs: Tensor) -> float:
    """Return the largest difference, as a share of the largest value."""
    return float((ours - theirs).abs().max() / ours.abs().max())
