"""Comparing systems: small cases with known answers, and sacrebleu's own test as the reference."""

from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from manyheads.measure.bootstrap import Interval, bootstrap, compare
from manyheads.measure.text_metrics import Metric, bleu, chrf, exact_match, ter

RIGHT = [f"Satz Nummer {number} ist ganz richtig übersetzt ." for number in range(60)]


def worsened(every: int) -> list[str]:
    """Every so many sentences miss a word."""
    return [
        text.replace("ganz ", "") if number % every == 0 else text
        for number, text in enumerate(RIGHT)
    ]


@pytest.mark.parametrize("metric", [bleu, chrf, ter, exact_match])
def test_identical_systems(metric: Metric) -> None:
    """No difference in any sample: p is 1, by both tests."""
    statistics = metric.statistics(worsened(3), RIGHT)
    found = compare(statistics, statistics, samples=200)
    assert found.difference == Interval(0, 0, 0)
    assert found.p_bootstrap == found.p_randomisation == 1
    assert found.a == found.b


def test_the_interval_of_one_system_is_that_of_a_comparison() -> None:
    """The same draws; and of sentences that are all alike, nothing varies."""
    a, b = (bleu.statistics(worsened(every), RIGHT) for every in (2, 20))
    assert bootstrap(a, samples=200) == pytest.approx(compare(a, b, samples=200).a)
    assert bootstrap(exact_match.statistics(RIGHT, RIGHT)) == Interval(100, 100, 100)


@pytest.mark.parametrize(("metric", "sign"), [(bleu, 1), (chrf, 1), (ter, -1), (exact_match, 1)])
def test_a_clearly_better_system(metric: Metric, sign: int) -> None:
    """The interval does not reach zero, and p is as small as so few samples allow."""
    a, b = (metric.statistics(worsened(every), RIGHT) for every in (2, 20))
    found = compare(a, b, samples=200)
    low, high = sorted((sign * found.difference.low, sign * found.difference.high))
    assert 0 < low < sign * found.difference.value < high
    assert found.p_bootstrap == found.p_randomisation == pytest.approx(1 / 201)
    assert found.difference.value == found.b.value - found.a.value


def test_approximate_randomisation_by_hand() -> None:
    """B alone is right about 5 sentences, so all 5 coins must fall one way: 2 / 2^5.

    The sentences about which both are right do not matter.
    """
    outputs = ["wrong"] * 5 + RIGHT[5:]
    a, b = exact_match.statistics(outputs, RIGHT), exact_match.statistics(RIGHT, RIGHT)
    found = compare(a, b, samples=4000)
    assert found.p_randomisation == pytest.approx(1 / 16, abs=0.012)


def test_the_interval_of_a_share() -> None:
    """Of exact match, the difference is a mean: the bootstrap finds the normal interval."""
    random = np.random.default_rng(0)
    right = random.random((2, 400)) < [[0.5], [0.7]]
    references = ["x"] * 400
    a, b = (
        exact_match.statistics(["x" if yes else "" for yes in row], references) for row in right
    )
    found = compare(a, b).difference
    each = 100.0 * (right[1].astype(float) - right[0])
    margin = 1.96 * each.std() / 20
    assert found.value == pytest.approx(each.mean())
    assert found.low == pytest.approx(each.mean() - margin, abs=0.8)
    assert found.high == pytest.approx(each.mean() + margin, abs=0.8)


def test_p_is_small_as_often_as_it_says() -> None:
    """Of two systems equally good, p falls below 0.05 about once in twenty, not more often."""
    random = np.random.default_rng(1)
    references = ["x"] * 100
    p_values = []
    for _ in range(120):
        a, b = (
            exact_match.statistics(["x" if n < 0.6 else "" for n in random.random(100)], references)
            for _ in "ab"
        )
        found = compare(a, b, samples=100)
        p_values.append((found.p_bootstrap, found.p_randomisation))
    assert (np.array(p_values) < 0.05).mean(axis=0) == pytest.approx([0.05, 0.05], abs=0.05)


def test_sacrebleus_own_tests() -> None:
    """The same samples: its mean and interval are ours, and p of its randomisation is near ours.

    Its p-value of the bootstrap is smaller, because it centres absolute differences.
    """
    random = np.random.default_rng(0)
    references = [" ".join(random.permutation(list("abcdefghijklmnop"))) for _ in range(60)]
    systems = [(name, [without(text, random) for text in references]) for name in "AB"]
    metrics = {"BLEU": BLEU()}
    test: Any = PairedTest
    _, theirs = test(systems, metrics, [references], test_type="bs", n_samples=1000)()
    _, shuffled = test(systems, metrics, [references], test_type="ar", n_samples=1000)()
    found = compare(*(bleu.statistics(outputs, references) for _, outputs in systems))
    their_a, their_b = theirs["BLEU"]
    assert (found.a.value, found.b.value) == pytest.approx((their_a.score, their_b.score))
    assert (found.b.high - found.b.low) / 2 == pytest.approx(their_b.ci, abs=0.05)
    assert found.p_randomisation == pytest.approx(shuffled["BLEU"][1].p_value, abs=0.06)
    assert their_b.p_value < found.p_bootstrap


def without(text: str, random: np.random.Generator) -> str:
    """Leave out a quarter of the words, and so the n-grams around them."""
    return " ".join(word for word in text.split() if random.random() > 0.25)


def test_the_seed() -> None:
    """The same samples each time; other samples from another seed, and much the same answer."""
    a, b = (chrf.statistics(worsened(every), RIGHT) for every in (4, 5))
    assert compare(a, b, samples=100) == compare(a, b, samples=100)
    other = compare(a, b, samples=100, seed=1)
    assert other != compare(a, b, samples=100)
    assert other.difference.value == compare(a, b, samples=100).difference.value
