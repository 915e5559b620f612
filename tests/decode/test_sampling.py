"""Sampling: the right frequencies, the right nucleus, and the same draw in any company."""

import math
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.decode.constraints import SuppressTokens
from manyheads.decode.sampling import Sampling, keep_top_k, keep_top_p, sample
from manyheads.decode.step import Hypothesis
from manyheads.streams import generator
from tests import reverser
from tests.decode.tree import (
    END,
    START,
    Next,
    Tree,
    alike,
    from_table,
    log_probability,
    random_tree,
)

A, B = 2, 3
thorough = settings(deadline=None, derandomize=True, max_examples=30)
seeds = st.integers(0, 10_000)
PLAIN = Sampling()


def draw(
    after: Next,
    limits: list[int],
    *,
    samples: int = 1,
    sampling: Sampling = PLAIN,
    seed: int = 1,
) -> list[list[Hypothesis]]:
    """Sentence n has source n and seed 100 * seed + n."""
    return sample(
        Tree(after),
        torch.arange(len(limits))[:, None],
        limits,
        [100 * seed + n for n in range(len(limits))],
        start=START,
        end=END,
        sampling=sampling,
        samples=samples,
    )


def kept(scores: Tensor) -> list[int]:
    return scores.isfinite().nonzero()[:, 0].tolist()


# --- The distribution ---------------------------------------------------------------------------

FOUR = torch.tensor([0.15, 0.5, 0.05, 0.3]).log()


@pytest.mark.parametrize(
    ("k", "tokens"), [(1, [1]), (2, [1, 3]), (3, [0, 1, 3]), (9, [0, 1, 2, 3])]
)
def test_top_k_by_hand(k: int, tokens: list[int]) -> None:
    """.5, .3, .15, .05, in this order; more than there are is all."""
    assert kept(keep_top_k(FOUR, k)) == tokens


@pytest.mark.parametrize(
    ("p", "tokens"),
    [
        (0.01, [1]),  # the likeliest is always there
        (0.49, [1]),
        (0.51, [1, 3]),  # .5 is not enough: the nucleus reaches p
        (0.79, [1, 3]),
        (0.81, [0, 1, 3]),
        (0.94, [0, 1, 3]),
        (0.96, [0, 1, 2, 3]),
    ],
)
def test_top_p_by_hand(p: float, tokens: list[int]) -> None:
    """The fewest tokens with at least p together: .5, .8, .95, 1."""
    assert kept(keep_top_p(FOUR, p)) == tokens
    assert kept(keep_top_p(FOUR + 3, p)) == tokens  # log-probabilities up to a constant will do


def test_temperature_by_hand() -> None:
    """.8 and .2 at temperature 1/2: .64 and .04 of .68; at 2: .894 and .447 of 1.342."""
    scores = torch.tensor([0.8, 0.2]).log()
    for temperature, expected in ((0.5, 0.64 / 0.68), (1.0, 0.8), (2.0, 0.8**0.5 / 1.34164)):
        likelier = Sampling(temperature)(scores).log_softmax(0).exp()[0].item()
        assert likelier == pytest.approx(expected, abs=1e-5)


def test_temperature_comes_before_the_nucleus() -> None:
    """.5 and .3 are .68 of a hot distribution (temperature 2), and .8 of the model's."""
    assert kept(Sampling(1.0, top_p=0.7)(FOUR)) == [1, 3]
    assert kept(Sampling(2.0, top_p=0.7)(FOUR)) == [0, 1, 3]


def test_top_k_comes_before_top_p() -> None:
    """Of the two likeliest, .5 is 62%: enough for p = .6, which of all four needs both."""
    assert kept(Sampling(top_k=2, top_p=0.6)(FOUR)) == [1]
    assert kept(Sampling(top_p=0.6)(FOUR)) == [1, 3]


# --- The draw -----------------------------------------------------------------------------------

TRAP = from_table(
    {
        (): {A: 0.5, B: 0.4, END: 0.1},
        (A,): {END: 0.4, A: 0.3, B: 0.3},
        (B,): {END: 0.9, A: 0.1},
        (A, A): {END: 1.0},
        (A, B): {END: 1.0},
        (B, A): {END: 1.0},
    },
    vocabulary=4,
)
OUTPUTS = {(): 0.1, (A,): 0.2, (A, A): 0.15, (A, B): 0.15, (B,): 0.36, (B, A): 0.04}


@pytest.mark.parametrize(
    ("sampling", "outputs"),
    [
        (Sampling(), OUTPUTS),
        # The end and b are half of what remains without a; the same one step later.
        (Sampling(top_k=1), {(A,): 1.0}),
        (
            Sampling(top_p=0.85),
            {(A,): 5 / 9 * 0.4, (A, A): 5 / 9 * 0.3, (A, B): 5 / 9 * 0.3, (B,): 4 / 9},
        ),
    ],
    ids=str,
)
def test_frequencies(sampling: Sampling, outputs: dict[tuple[int, ...], float]) -> None:
    """Of 4,000 draws each output has its share, within four standard deviations."""
    count = 4000
    (found,) = draw(TRAP, [5], samples=count, sampling=sampling)
    counts = Counter(tuple(hypothesis.tokens) for hypothesis in found)
    assert counts.keys() == outputs.keys()
    for output, p in outputs.items():
        assert abs(counts[output] - count * p) <= 4 * math.sqrt(count * p * (1 - p))


@pytest.mark.parametrize("sampling", [Sampling(1e-39), Sampling(1e-39, top_k=3, top_p=0.9)])
def test_near_temperature_0_the_best_is_drawn(sampling: Sampling) -> None:
    """Too near for fp32: the others are infinitely unlikely, and the best one is not."""
    assert kept(sampling(FOUR)) == [1]
    (found,) = draw(TRAP, [5], samples=20, sampling=sampling)
    assert {tuple(hypothesis.tokens) for hypothesis in found} == {(A,)}


def test_the_reported_probability_is_the_models() -> None:
    """However hot it was drawn."""
    (found,) = draw(TRAP, [5], samples=50, sampling=Sampling(temperature=3.0))
    for hypothesis in found:
        assert hypothesis.log_probability == pytest.approx(
            math.log(OUTPUTS[tuple(hypothesis.tokens)]), abs=1e-5
        )
        assert sum(hypothesis.token_log_probabilities) == hypothesis.log_probability


@thorough
@given(
    seed=seeds,
    limits=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    samples=st.integers(1, 4),
)
def test_what_is_drawn_is_what_it_says(seed: int, limits: list[int], samples: int) -> None:
    """As many as were asked for, each within its limit, with the scores of its own tokens."""
    after = random_tree(seed, 4)
    results = draw(after, limits, samples=samples, seed=seed)
    for source, (limit, found) in enumerate(zip(limits, results, strict=True)):
        assert len(found) == samples
        for hypothesis in found:
            full = hypothesis.tokens + [END] * hypothesis.finished
            assert END not in hypothesis.tokens
            assert len(full) <= limit
            assert hypothesis.finished or len(full) == limit
            total = log_probability(after, source, full)
            assert hypothesis.log_probability == pytest.approx(total, abs=1e-5)
            assert hypothesis.score == pytest.approx(total / len(full), abs=1e-5)
            assert len(hypothesis.token_log_probabilities) == len(full)


@thorough
@given(seed=seeds, limits=st.lists(st.integers(1, 5), min_size=2, max_size=5))
def test_company_changes_nothing(seed: int, limits: list[int]) -> None:
    """A sentence draws alone what it draws in a batch; its first sample is what it was."""
    after = random_tree(seed, 4)
    together = draw(after, limits, samples=3)
    for source, limit in enumerate(limits):
        (alone,) = sample(
            Tree(after), torch.tensor([[source]]), [limit], [100 + source], start=START, end=END
        )
        alike(alone, together[source][:1])


def test_the_largest_number_draws_what_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 - 2^-53 is the largest number below 1: it must not fall behind the last token's place."""

    class Largest:
        def random(self) -> float:
            return 1 - 2**-53

    monkeypatch.setattr("manyheads.decode.sampling.generator", lambda *_: Largest())
    ((found,),) = draw(from_table({(): {A: 0.5, END: 0.5}, (A,): {END: 1.0}}, 4), [3])
    assert found.tokens == [A]  # not b, which has no probability


def test_a_draw_by_hand() -> None:
    """A number of the stream "sample" j of a seed falls into the part of its token: a .3, b .7.

    The stream is part of what a seed means: another name would draw other outputs.
    """
    row = {A: 0.3, B: 0.7}
    after = from_table({(): row, (A,): row, (B,): row}, vocabulary=4)
    (found,) = draw(after, [2], samples=5)
    for j, hypothesis in enumerate(found):
        numbers = generator(100, "sample", j).random(2)
        assert hypothesis.tokens == [A if number < 0.3 else B for number in numbers]
    assert len({tuple(hypothesis.tokens) for hypothesis in found}) > 1


def test_another_seed_draws_another() -> None:
    """The same seed the same, another something else."""
    after = random_tree(0, 6)
    first, again, other = (draw(after, [5] * 8, samples=2, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_rules_hold_when_drawing() -> None:
    """What is banned is not drawn."""
    found = sample(
        Tree(random_tree(3, 4)),
        torch.tensor([[0]]),
        [6],
        [0],
        start=START,
        end=END,
        samples=64,
        rules=[SuppressTokens([A, START])],
    )
    assert {token for hypothesis in found[0] for token in hypothesis.tokens} == {B}


def test_a_real_model_in_any_batch() -> None:
    """64 words together or one by one: the same tokens, whatever padding the neighbours bring."""
    model, config = reverser.trained(), reverser.CONFIG
    rows = reverser.words(64, seed=12345)
    ends: dict[str, Any] = {"start": config.start, "end": config.end}
    limits = [len(row) + 3 for row in rows]
    found = sample(model, reverser.padded(rows), limits, list(range(64)), **ends)
    assert len({tuple(each.tokens) for (each,) in found}) > 40
    for n in range(0, 64, 4):
        ((alone,),) = sample(model, torch.tensor([rows[n]]), [limits[n]], [n], **ends)
        assert alone.tokens == found[n][0].tokens
        assert alone.log_probability == pytest.approx(found[n][0].log_probability, abs=1e-4)
