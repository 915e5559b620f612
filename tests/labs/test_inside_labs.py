"""Experiments that look inside shipped models: quantities by hand, verdicts from made numbers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from manyheads.labs.catalogue import find
from manyheads.labs.experiments import counterfactual_lab as counterfactual
from manyheads.labs.experiments import faithful_lab as faithful
from manyheads.labs.experiments import lens_lab as lens
from manyheads.labs.experiments import pruning_lab as pruning
from manyheads.labs.experiments import sinks_lab as sinks
from manyheads.labs.experiments import viewpoints_lab as viewpoints
from manyheads.labs.findings import FAILS, HOLDS, PART, counted, judged, resampled, surely
from manyheads.labs.shipped_models import translated
from manyheads.lens.panels import Interval


def test_ratios_over_inputs() -> None:
    """Sums are divided, not means of ratios; the interval is that of draws of whole inputs."""
    found = resampled(([1.0, 0.0], [1.0, 3.0]))
    assert (found.mean, found.low, found.high) == (0.25, 0.0, 1.0)
    one, other = [5.0, 1.0, 9.0, 3.0], [4.0, 0.0, 8.0, 2.0]
    assert resampled((one, None), (other, None)) == Interval(1.0, 1.0, 1.0)  # in every draw
    assert surely(resampled((one, None), (other, None))) == 1
    assert surely(resampled((other, None), (one, None))) == -1
    assert surely(resampled(([1.0, -1.0], None))) == 0


def test_verdicts() -> None:
    assert [judged(True, True), judged(False, True), judged(False)] == [HOLDS, PART, FAILS]
    assert counted([PART, HOLDS, PART]) == "holds in 1, holds in part in 2"


# --- sinks --------------------------------------------------------------------------------------


def test_shares_of_an_idle_token() -> None:
    """By hand: of the second query 0.75 x 3 of 0.75 x 3 + 0.25 x 1, so 90%."""
    weights = torch.tensor([[[0.5, 0.5], [0.25, 0.75]]])
    weight, norm, uniform = sinks.idle_shares(weights, weights * torch.tensor([1.0, 3.0]), -1)
    assert (weight.item(), norm.item(), uniform) == pytest.approx((62.5, (75 + 90) / 2, 50))


def test_a_query_that_sees_one_key_has_no_choice() -> None:
    weights = torch.tensor([[[1.0, 0.0], [0.25, 0.75]]])
    weight, _, uniform = sinks.idle_shares(weights, weights, 0)
    assert (weight.item(), uniform) == (25.0, 50.0)


@pytest.mark.parametrize(
    ("weight", "norm", "verdict"),
    [(60.0, 40.0, HOLDS), (30.0, 10.0, PART), (90.0, 89.0, PART), (60.0, 70.0, FAILS)],
)
def test_the_verdict_of_sinks(weight: float, norm: float, verdict: str) -> None:
    """More than half, less than half by norm; at the layer with the largest share."""

    def layer(share: float) -> dict[str, list[float]]:
        return {"weight": [share] * 4, "norm": [norm] * 4, "uniform": [20.0] * 4}

    made = {"model": {kind: {"1": layer(5.0), "2": layer(weight)} for kind in sinks.KINDS}}
    table = sinks.rows(made)
    assert [(row[2], row[-1]) for row in table] == [(2, verdict)] * 3
    assert f"{verdict} in 3 of 3 kinds of attention in 1 translators" in sinks.conclude(table)


# --- lens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "bleu", "verdict"),
    [
        ((10, 40, 50, 60), (1, 30, 30, 40), HOLDS),
        ((10, 20, 50, 60), (1, 30, 30, 40), PART),
        ((10, 40, 50, 60), (1, 2, 3, 40), FAILS),  # chrF alone does not do
        ((10, 20, 25, 60), (1, 30, 30, 40), FAILS),
    ],
)
def test_the_verdict_of_lens(
    scores: tuple[float, ...], bleu: tuple[float, ...], verdict: str
) -> None:
    layers = {
        str(n): {"scores": [float(score)] * 3, "BLEU": points}
        for n, (score, points) in enumerate(zip(scores, bleu, strict=True), 1)
    }
    table = lens.rows({"model": {"encoder": layers, "norm": "post"}})
    assert table[0][-1] == verdict
    assert f"{verdict} in 1 of 1 stacks of post-norm models" in lens.conclude(table)


# --- counterfactual -----------------------------------------------------------------------------


def test_words_by_their_first_pieces() -> None:
    """Later pieces and marks are not counted; a list says what a function word is."""
    pieces = ["▁Ein", "▁Rad", "fahrer", "▁und", "▁der", "▁Hund", "."]
    kinds = ["function", "content", "", "function", "function", "content", ""]
    assert counterfactual.kinds_of(pieces, "de") == kinds


@pytest.mark.parametrize(
    ("function", "content", "verdict"), [(7, 2, HOLDS), (9, 8, PART), (2, 7, FAILS)]
)
def test_the_verdict_of_counterfactual(function: int, content: int, verdict: str) -> None:
    """Published are 68% and 21% for all changes together: ten points beside them hold."""
    kept = {
        kind: {"uniform, all": [5] * 4, f"{counterfactual.ANY}, all": [n] * 4}
        for kind, n in zip(counterfactual.PUBLISHED, (function, content), strict=True)
    }
    made = {"model": {"kept": kept, "steps": dict.fromkeys(kept, [10] * 4)}}
    table = counterfactual.rows(made)
    assert [row[2] for row in table] == ["", "68 / 21"]
    assert [row[-1] for row in table] == [FAILS, verdict]  # alone: 5 and 5, not surely more
    text = counterfactual.conclude(table)
    assert (
        f"{verdict} in 1 of 1 comparisons (in all layers: model {function}0% / {content}0%" in text
    )


def test_words_that_stay_under_any_change(root: Path) -> None:
    """At least as many as under each change, and no more than under all of them together."""
    size = find("counterfactual").sizes["smoke"]
    found = counterfactual.measure("multi30k-en-de", size, str(root))
    for kind, kept in found["kept"].items():
        for layers in ("all", "last"):
            alone = [kept[f"{change}, {layers}"] for change in counterfactual.CHANGES]
            for together, each, steps in zip(
                kept[f"{counterfactual.ANY}, {layers}"],
                zip(*alone, strict=True),
                found["steps"][kind],
                strict=True,
            ):
                assert max(each) <= together <= min(sum(each), steps)


# --- faithful -----------------------------------------------------------------------------------


def test_a_token_replaced_by_itself_changes_nothing() -> None:
    """And each other token of a date does change the log-probability of some step."""
    ((source, target),) = translated("date-en-ko", 1, None)
    own, read = target[0, 1:-1], target[:, :-1]
    same = faithful.effects("date-en-ko", source, read, own, source[0])
    assert same.shape == (len(own), source.shape[1] - 1)
    torch.testing.assert_close(same, torch.zeros_like(same), atol=1e-4, rtol=0)
    comma, near = faithful.replacements("date-en-ko")
    other = faithful.effects("date-en-ko", source, read, own, torch.full_like(source[0], comma))
    assert other.max() > 1
    assert not (near[source[0]] == source[0]).any()


def test_integrated_gradients_add_up() -> None:
    """To what the encoder's input changes, with the error of eight points."""
    ((source, target),) = translated("date-en-ko", 1, None)
    own, read = target[0, 1:-1], target[:, :-1]
    shares = faithful.integrated("date-en-ko", source, read, own)
    assert shares.shape == (len(own), source.shape[1])
    assert torch.isfinite(shares).all()
    assert shares.sum() > 0  # the source makes its translation more probable


@pytest.mark.parametrize(("rolled", "verdict"), [(9, HOLDS), (1, FAILS)])
def test_the_verdict_of_faithful(rolled: int, verdict: str) -> None:
    """The layer is chosen on even sentences, the others are counted."""
    hits: dict[str, list[float]] = {
        name: [1.0] * 4 for name in (faithful.RELEVANCE, faithful.INTEGRATED, faithful.DIAGONAL)
    }
    hits |= {faithful.RANDOM: [0.5] * 4, f"{faithful.NORMS} 1": [2] * 4}
    hits |= {f"{faithful.ATTENTION} 1": [3, 10] * 2, f"{faithful.ATTENTION} 2": [4, 5] * 2}
    hits |= {f"{faithful.ROLLOUT} 1": [rolled] * 4}
    made: dict[str, Any] = {
        "hits": dict.fromkeys(faithful.REPLACED, hits),
        "steps": dict.fromkeys(faithful.REPLACED, [10] * 4),
    }
    assert faithful.chosen(made)[faithful.ATTENTION] == "attention 2"
    table = faithful.rows({"model": made})
    assert [row[-1] for row in table] == [verdict] * 2
    assert table[0][3] == Interval(50.0, 50.0, 50.0)
    assert f"{verdict} in 2 of 2 comparisons" in faithful.conclude(table)


# --- pruning ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "verdict"),
    [((40.0, 50.0, 10.0), HOLDS), ((20.0, 25.0, 10.0), PART), ((40.0, 5.0, 10.0), FAILS)],
)
def test_the_verdict_of_pruning(left: tuple[float, ...], verdict: str) -> None:
    """Of 60 points; both kinds of self-attention have to do better than cross-attention."""
    scores = {
        title: {"0": [60.0] * 3, "75": [x] * 3}
        for title, x in zip(pruning.NAMES, left, strict=True)
    }
    table = pruning.rows({"model": {"scores": scores}}, 75)
    assert table[0][-1] == verdict
    assert f"{verdict} in 1 of 1 translators" in pruning.conclude(table, 75)


# --- viewpoints ---------------------------------------------------------------------------------


def test_what_a_head_prefers() -> None:
    """By hand: with likenesses 1 and 3, the second token lies one deviation above the mean."""
    likeness = torch.tensor([[9.0, 1.0, 3.0], [1.0, 9.0, 3.0], [1.0, 3.0, 9.0]])
    most = torch.tensor([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [0.0, 0.2, 0.8]])
    even = torch.full((3, 3), 1 / 3)
    found = viewpoints.preference(torch.stack([most, even, even + most]), likeness)
    torch.testing.assert_close(found[:2], torch.tensor([1.0, 0.0]))
    assert 0 < found[2] < 1


@pytest.mark.parametrize(
    ("fresh", "verdict"), [((0.1, 0.2), HOLDS), ((0.1, 0.9), PART), ((0.8, 0.9), FAILS)]
)
def test_the_verdict_of_viewpoints(fresh: tuple[float, ...], verdict: str) -> None:
    """Trained heads are compared with those of every untrained model."""
    made = {
        "trained": dict.fromkeys(viewpoints.PROPERTIES, [0.5] * 3),
        "untrained": [dict.fromkeys(viewpoints.PROPERTIES, [x] * 3) for x in fresh],
    }
    table = viewpoints.rows({"model": made})
    assert [row[-1] for row in table] == [verdict] * 3
    assert f"by colour {verdict} in 1" in viewpoints.conclude(table)
