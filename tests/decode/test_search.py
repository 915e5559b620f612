"""Greedy and beam search against brute force, and that company changes nothing."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.decode.step import Hypothesis
from manyheads.models.transformer import Transformer
from tests import reverser
from tests.decode.tree import (
    END,
    START,
    Next,
    Tree,
    alike,
    exhaustive,
    from_table,
    log_probability,
    random_tree,
    textbook_beam,
)

A, B = 2, 3  # two tokens beside START and END

thorough = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 10_000)
penalties = st.sampled_from([0.0, 0.6, 1.0, 1.4])


def sources(count: int) -> Tensor:
    """Sentence n has source n, and so a tree of its own."""
    return torch.arange(count)[:, None]


def greedy(after: Next, max_lengths: list[int]) -> list[Hypothesis]:
    model = Tree(after, carries=True)
    return greedy_search(model, sources(len(max_lengths)), max_lengths, start=START, end=END)


def beam(
    after: Next,
    max_lengths: list[int],
    *,
    beams: int,
    length_penalty: float = 1.0,
    n_best: int = 1,
    early_stopping: bool = False,
) -> list[list[Hypothesis]]:
    return beam_search(
        Tree(after),
        sources(len(max_lengths)),
        max_lengths,
        beams=beams,
        start=START,
        end=END,
        length_penalty=length_penalty,
        n_best=n_best,
        early_stopping=early_stopping,
    )


def same(actual: Hypothesis, expected: Hypothesis, tolerance: float = 1e-5) -> None:
    assert actual.tokens == expected.tokens
    assert actual.finished == expected.finished
    assert actual.log_probability == pytest.approx(expected.log_probability, abs=tolerance)
    assert actual.score == pytest.approx(expected.score, abs=tolerance)


# --- By hand ------------------------------------------------------------------------------------

# The likeliest first word leads to a worse sentence: a-end has .5 * .4 = .20, b-end .4 * .9 = .36.
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


def test_greedy_walks_into_the_trap() -> None:
    """T17: always the likeliest next token: a, then the end, with probability .20."""
    (hypothesis,) = greedy(TRAP, [5])
    same(hypothesis, Hypothesis([A], math.log(0.2), math.log(0.2) / 2, finished=True))


def test_two_beams_see_the_better_sentence() -> None:
    """Beam search keeps b alive, and finds .36 before .20."""
    ((best, second),) = beam(TRAP, [5], beams=2, n_best=2)
    same(best, Hypothesis([B], math.log(0.36), math.log(0.36) / 2, finished=True))
    same(second, Hypothesis([A], math.log(0.2), math.log(0.2) / 2, finished=True))


# Three outputs: nothing .4; a a .6 * 1 * .6 = .36; a a b .6 * 1 * .4 * 1 = .24. Their logarithms
# are -0.916, -1.022 and -1.427; with the end token they are 1, 3 and 4 tokens long.
SHORT_OR_LONG = from_table(
    {
        (): {END: 0.4, A: 0.6},
        (A,): {A: 1.0},
        (A, A): {END: 0.6, B: 0.4},
        (A, A, B): {END: 1.0},
    },
    vocabulary=4,
)


@pytest.mark.parametrize(
    ("length_penalty", "outputs", "scores"),
    [
        (0.0, [[], [A, A], [A, A, B]], [-0.916, -1.022, -1.427]),
        # 3^.2 = 1.246 and 4^.2 = 1.320
        (0.2, [[A, A], [], [A, A, B]], [-0.820, -0.916, -1.082]),
        (1.0, [[A, A], [A, A, B], []], [-0.341, -0.357, -0.916]),
        (2.0, [[A, A, B], [A, A], []], [-0.089, -0.114, -0.916]),
    ],
)
def test_length_penalty_by_hand(
    length_penalty: float, outputs: list[list[int]], scores: list[float]
) -> None:
    """score = log-probability / length ** penalty: the larger it is, the longer the output."""
    (found,) = beam(SHORT_OR_LONG, [5], beams=4, length_penalty=length_penalty, n_best=4)
    assert [hypothesis.tokens for hypothesis in found] == outputs
    assert [hypothesis.score for hypothesis in found] == pytest.approx(scores, abs=1e-3)
    assert all(hypothesis.finished for hypothesis in found)


def test_early_stopping_by_hand() -> None:
    """Two outputs are enough: nothing, and a a; a a b, the best of all at 2.0, comes later."""
    (patient,) = beam(SHORT_OR_LONG, [5], beams=2, length_penalty=2.0, n_best=2)
    (hasty,) = beam(SHORT_OR_LONG, [5], beams=2, length_penalty=2.0, n_best=2, early_stopping=True)
    assert [hypothesis.tokens for hypothesis in patient] == [[A, A, B], [A, A]]
    assert [hypothesis.tokens for hypothesis in hasty] == [[A, A], []]


def test_the_limit_cuts_off() -> None:
    """What has not ended at its limit is returned all the same, and says so."""
    endless = from_table({(A,) * n: {A: 1.0} for n in range(9)}, vocabulary=4)
    (hypothesis,) = greedy(endless, [4])
    same(hypothesis, Hypothesis([A] * 4, 0.0, 0.0, finished=False))
    (found,) = beam(endless, [4], beams=2, n_best=2)
    same(found[0], hypothesis)
    assert len(found) == 1  # no second output exists


def test_an_output_may_be_empty() -> None:
    """The end token at once: no tokens, and its probability counts."""
    silent = from_table({(): {END: 0.9, A: 0.1}, (A,): {END: 1.0}}, vocabulary=4)
    expected = Hypothesis([], math.log(0.9), math.log(0.9), finished=True)
    same(greedy(silent, [3])[0], expected)
    same(beam(silent, [3], beams=2)[0][0], expected)


def test_the_model_is_fed_its_own_predictions() -> None:
    """E10: at inference the decoder reads what it said before; no ground truth is in reach."""
    model = Tree(TRAP)
    greedy_search(model, sources(1), [5], start=START, end=END)
    assert model.steps == [[[START]], [[A]]]


def test_finished_sentences_leave_the_batch() -> None:
    """No work on what is done: limits 1, 3 and 2 leave three, two and one sentence a step."""
    endless = from_table({(A,) * n: {A: 0.8, B: 0.2} for n in range(9)}, vocabulary=4)
    model = Tree(endless)
    greedy_search(model, sources(3), [1, 3, 2], start=START, end=END)
    assert [len(tokens) for tokens in model.steps] == [3, 2, 1]
    model = Tree(endless, carries=True)  # a few stay until leaving pays
    greedy_search(model, sources(5), [1, 2, 3, 4, 4], start=START, end=END)
    assert [len(tokens) for tokens in model.steps] == [5, 5, 3, 2]
    model = Tree(random_tree(0, 4))
    beam_search(model, sources(3), [1, 3, 2], beams=16, start=START, end=END)
    assert [len(tokens) for tokens in model.steps] == [3, 2, 1]


# --- Brute force --------------------------------------------------------------------------------


@thorough
@given(seed=seeds, vocabulary=st.integers(3, 4), longest=st.integers(1, 3), penalty=penalties)
def test_a_wide_beam_is_exhaustive(
    seed: int, vocabulary: int, longest: int, penalty: float
) -> None:
    """With V^L beams nothing is ever dropped: beam search returns every output, best first."""
    after, beams = random_tree(seed, vocabulary), vocabulary**longest
    (found,) = beam(after, [longest], beams=beams, length_penalty=penalty, n_best=beams)
    expected = exhaustive(after, 0, vocabulary, longest, penalty)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        same(ours, theirs)


@thorough
@given(
    seed=seeds,
    limits=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    beams=st.integers(1, 4),
    penalty=penalties,
    early=st.booleans(),
)
def test_a_narrow_beam_is_the_textbooks(
    seed: int, limits: list[int], beams: int, penalty: float, early: bool
) -> None:
    """With few beams: the same outputs as lists and loops, and it stops at the same moment."""
    after = random_tree(seed, 4)
    results = beam(
        after, limits, beams=beams, length_penalty=penalty, n_best=beams, early_stopping=early
    )
    for source, (limit, found) in enumerate(zip(limits, results, strict=True)):
        expected = textbook_beam(after, source, limit, beams, penalty, early)
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            same(ours, theirs)


@thorough
@given(seed=seeds, limits=st.lists(st.integers(1, 5), min_size=1, max_size=4), penalty=penalties)
def test_one_beam_is_greedy(seed: int, limits: list[int], penalty: float) -> None:
    """beams = 1 finds the tokens of greedy search, for every sentence of the batch."""
    after = random_tree(seed, 5)
    found = beam(after, limits, beams=1, length_penalty=penalty)
    for (ours,), theirs in zip(found, greedy(after, limits), strict=True):
        assert (ours.tokens, ours.finished) == (theirs.tokens, theirs.finished)
        assert ours.log_probability == pytest.approx(theirs.log_probability, abs=1e-5)


@thorough
@given(
    seed=seeds,
    limits=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    beams=st.integers(1, 5),
    penalty=penalties,
)
def test_what_beam_search_returns_is_what_it_says(
    seed: int, limits: list[int], beams: int, penalty: float
) -> None:
    """Scores belong to their tokens; the n best are different, in order, and within the limit."""
    after = random_tree(seed, 4)
    results = beam(after, limits, beams=beams, length_penalty=penalty, n_best=beams)
    assert len(results) == len(limits)
    for source, (limit, found) in enumerate(zip(limits, results, strict=True)):
        assert 1 <= len(found) <= beams
        scores = [hypothesis.score for hypothesis in found]
        assert scores == sorted(scores, reverse=True)
        outputs = {(*hypothesis.tokens, hypothesis.finished) for hypothesis in found}
        assert len(outputs) == len(found)
        for hypothesis in found:
            full = hypothesis.tokens + [END] * hypothesis.finished
            assert END not in hypothesis.tokens
            assert len(full) <= limit
            assert hypothesis.finished or len(full) == limit
            total = log_probability(after, source, full)
            assert hypothesis.log_probability == pytest.approx(total, abs=1e-5)
            assert hypothesis.score == pytest.approx(total / len(full) ** penalty, abs=1e-5)
            each = [after(source, tuple(full[:t]))[token] for t, token in enumerate(full)]
            assert hypothesis.token_log_probabilities == pytest.approx(each, abs=1e-5)
        best = exhaustive(after, source, 4, limit, penalty)[0].score
        assert scores[0] <= best + 1e-5  # no search finds more than there is


@thorough
@given(seed=seeds, limits=st.lists(st.integers(1, 5), min_size=2, max_size=5))
def test_greedy_takes_the_likeliest_token(seed: int, limits: list[int]) -> None:
    """T17: at every step the argmax, up to the sentence's own end or limit."""
    after = random_tree(seed, 4)
    for source, (limit, found) in enumerate(zip(limits, greedy(after, limits), strict=True)):
        tokens: list[int] = []
        while len(tokens) < limit and END not in tokens:
            row = after(source, tuple(tokens))
            tokens.append(row.index(max(row)))
        assert found.tokens + [END] * found.finished == tokens
        total = log_probability(after, source, tokens)
        assert found.log_probability == pytest.approx(total, abs=1e-5)
        assert found.log_probability == pytest.approx(sum(found.token_log_probabilities))
        assert len(found.token_log_probabilities) == len(tokens)
        assert found.score == pytest.approx(total / len(tokens), abs=1e-5)


def test_greedy_scores_are_those_of_a_beam_search() -> None:
    """One beam finds the same, and reports the same score under any length penalty."""
    after = from_table({(): {A: 0.9, END: 0.1}, (A,): {B: 1.0}, (A, B): {END: 1.0}}, 4)
    for penalty in (0.0, 0.6, 2.0):
        (found,) = greedy_search(
            Tree(after), sources(1), [5], start=START, end=END, length_penalty=penalty
        )
        ((same_as, *_),) = beam(after, [5], beams=1, length_penalty=penalty)
        assert found.tokens == same_as.tokens == [A, B]
        assert found.score == pytest.approx(math.log(0.9) / 3**penalty)
        assert found.score == pytest.approx(same_as.score)


@thorough
@given(seed=seeds, limits=st.lists(st.integers(1, 5), min_size=2, max_size=5))
def test_company_changes_nothing_in_a_tree(seed: int, limits: list[int]) -> None:
    """Each sentence gets alone what it gets in a batch, whoever leaves first."""
    after = random_tree(seed, 4)
    together = beam(after, limits, beams=3, n_best=3)
    for source, limit in enumerate(limits):
        (alone,) = beam_search(
            Tree(after),
            torch.tensor([[source]]),
            [limit],
            beams=3,
            start=START,
            end=END,
            n_best=3,
        )
        alike(alone, together[source])


# --- A real model -------------------------------------------------------------------------------


def test_batch_of_one_equals_batch_of_64() -> None:
    """Same tokens, scores within 1e-4, greedy and beam, whatever padding the neighbours bring."""
    model, config = reverser.trained(), reverser.CONFIG
    rows = reverser.words(64, seed=12345)
    limits = [len(row) + 3 for row in rows]
    ends: dict[str, Any] = {"start": config.start, "end": config.end}
    found = greedy_search(model, reverser.padded(rows), limits, **ends)
    assert len({tuple(hypothesis.tokens) for hypothesis in found}) > 40  # it is worth comparing
    assert len({len(hypothesis.tokens) for hypothesis in found}) >= 6
    best = beam_search(model, reverser.padded(rows), limits, beams=4, n_best=4, **ends)
    for n, (row, limit) in enumerate(zip(rows, limits, strict=True)):
        source = torch.tensor([row])
        (alone,) = greedy_search(model, source, [limit], **ends)
        same(alone, found[n], tolerance=1e-4)
        if n % 4:
            continue  # beams take longer: every fourth sentence
        (alone_best,) = beam_search(model, source, [limit], beams=4, n_best=4, **ends)
        for left, right in zip(alone_best, best[n], strict=True):
            same(left, right, tolerance=1e-4)


def test_scores_are_those_of_teacher_forcing() -> None:
    """T16, T17: what search reports is what the model gives the whole output at once."""
    model, config = reverser.trained(), reverser.CONFIG
    rows = reverser.words(8, seed=5)
    results = beam_search(
        model, reverser.padded(rows), [10] * 8, beams=3, start=config.start, end=config.end
    )
    for row, (hypothesis,) in zip(rows, results, strict=True):
        wanted = hypothesis.tokens + [config.end] * hypothesis.finished
        shifted = torch.tensor([[config.start, *wanted[:-1]]])
        log_probabilities = model(torch.tensor([row]), shifted).log_softmax(-1)[0]
        total = log_probabilities[range(len(wanted)), wanted].sum().item()
        assert hypothesis.log_probability == pytest.approx(total, abs=1e-4)


def test_search_leaves_the_model_as_it_was() -> None:
    """Nothing is stored in a model while it decodes."""
    model, config = reverser.trained(), reverser.CONFIG
    before = {name: value.clone() for name, value in model.state_dict().items()}
    attributes = set(vars(model))
    source = reverser.padded(reverser.words(3, seed=1))
    greedy_search(model, source, [8] * 3, start=config.start, end=config.end)
    beam_search(model, source, [8] * 3, beams=2, start=config.start, end=config.end)
    assert set(vars(model)) == attributes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_learned_positions_decode_up_to_their_end() -> None:
    """A model with learned positions decodes as many tokens as it has positions."""
    torch.manual_seed(0)
    model = Transformer(replace(reverser.CONFIG, positions="learned", max_length=8)).eval()
    (found,) = greedy_search(model, torch.tensor([[3, 4]]), [8], start=1, end=9)
    assert len(found.tokens) <= 8


def test_of_equal_outputs_the_best_stays_and_the_next_fill_up() -> None:
    """Equal is what begins alike: the best of each kind, and then what the beams had beaten."""
    filled = merged = 0
    for seed in range(20):
        options: dict[str, Any] = {"beams": 3, "start": START, "end": END, "n_best": 3}
        (plain,) = beam_search(Tree(random_tree(seed, 5)), sources(1), [4], **options)
        (found,) = beam_search(
            Tree(random_tree(seed, 5)), sources(1), [4], same=lambda x: tuple(x[:1]), **options
        )
        kinds = {tuple(each.tokens[:1]): each for each in reversed(plain)}  # the first of each kind
        ours = {tuple(each.tokens[:1]): each for each in found}
        assert len(ours) == len(found) <= 3
        assert ours.items() >= kinds.items()
        assert found[0] == plain[0]
        assert [each.score for each in found] == sorted((h.score for h in found), reverse=True)
        merged += len(kinds) < len(plain)
        filled += len(found) > len(kinds)
    assert merged
    assert filled
