"""Shared parts of the comparisons of an engine with torch: what on, how long, and how far apart."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.data.even_sample import evenly_spaced
from manyheads.engines.engine import engine_name
from manyheads.errors import NotFoundError, UsageError
from manyheads.predict.base_predictor import Predictor

P = TypeVar("P", bound=Predictor)
T = TypeVar("T")


def data_to_compare(
    read: Callable[[EvaluateRequest], tuple[T, Mapping[str, Any]]],
    request: ParityRequest,
    what: str = "images",
) -> tuple[T, Mapping[str, Any]]:
    """Read the recipe's validation data, or those that were given, and the line about them.

    Raises:
        NotFoundError: they are not here.
        UsageError: texts were given, which these data are compared without.
    """
    if request.texts:
        raise UsageError(f"`texts` is for models that read texts: give {what} as `data`.")
    return _recipes_or_given(read, request, f"{what} as `data`,")


def pairs_to_compare(
    read: Callable[[EvaluateRequest], tuple[T, Mapping[str, Any]]], request: ParityRequest
) -> tuple[T, Mapping[str, Any]]:
    """Do the same for a translator, which could also be given texts alone.

    Raises:
        NotFoundError: they are not here.
    """
    return _recipes_or_given(read, request, "pairs as `data`, or `texts`,")


def _recipes_or_given(
    read: Callable[[EvaluateRequest], tuple[T, Mapping[str, Any]]],
    request: ParityRequest,
    instead: str,
) -> tuple[T, Mapping[str, Any]]:
    try:
        return read(EvaluateRequest(data=request.data))
    except NotFoundError as error:
        if request.data is not None:
            raise
        raise NotFoundError(f"{error} Or give other {instead} to compare the engine on.") from None


def examples_to_compare(count: int, request: ParityRequest) -> np.ndarray:
    """Choose examples from all over the data, without those that the export was made with."""
    left_out = request.left_out if request.data is None else ()
    rest = np.setdiff1d(np.arange(count), left_out)
    return rest[evenly_spaced(len(rest), request.limit)]


def run_both(reference: P, exported: P, run: Callable[[P], T]) -> tuple[T, T, dict[str, float]]:
    """Run both, and time them."""
    found, seconds = [], {}
    for each in (reference, exported):
        began = time.perf_counter()
        with each.engine.running():
            found.append(run(each))
        seconds[engine_name(each.engine)] = time.perf_counter() - began
    return found[0], found[1], seconds


def relative_difference(ours: Tensor, theirs: Tensor) -> float:
    """Return the largest difference, as a share of the largest value."""
    return float((ours - theirs).abs().max() / ours.abs().max())
