"""Diverse beam search: groups that avoid each other, against lists and loops."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.decode.beam import beam_search
from manyheads.decode.beam_selection import Diverse
from manyheads.decode.step import Hypothesis
from tests import reverser
from tests.decode.tree import END, START, Next, Tree, alike, from_table, random_tree

A, B, C = 2, 3, 4
thorough = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 10_000)


def diverse(
    after: Next,
    limits: list[int],
    *,
    groups: int,
    size: int,
    penalty: float,
    n_best: int,
    first: int = 0,
) -> list[list[Hypothesis]]:
    """Groups of `size` beams; sentence n has source first + n."""
    return beam_search(
        Tree(after),
        first + torch.arange(len(limits))[:, None],
        limits,
        beams=groups * size,
        start=START,
        end=END,
        n_best=n_best,
        choose=Diverse(groups, penalty),
    )


# The likeliest first word is a for every group, unless it is taken.
ONE_WAY = from_table(
    {
        (): {A: 0.6, B: 0.3, C: 0.1},
        (A,): {END: 0.7, A: 0.3},
        (B,): {END: 0.6, A: 0.4},
        (C,): {END: 1.0},
    },
    vocabulary=5,
)


@pytest.mark.parametrize(
    ("penalty", "outputs"),
    [
        (0.5, [[A]]),  # log .6 - .5 is still more than log .3: both groups say a
        (0.7, [[A], [B]]),  # log .6 - log .3 = .693
    ],
)
def test_two_groups_by_hand(penalty: float, outputs: list[list[int]]) -> None:
    """The second group loses the penalty for an a, because the first has said it."""
    (found,) = diverse(ONE_WAY, [3], groups=2, size=1, penalty=penalty, n_best=2)
    assert [hypothesis.tokens for hypothesis in found] == outputs


def test_two_beams_cost_twice() -> None:
    """Three groups: the third pays for the first, and for the second where both say the same."""
    (found,) = diverse(ONE_WAY, [3], groups=3, size=1, penalty=0.9, n_best=3)
    # Third group: a log .6 - .9 = -1.41, b log .3 - .9 = -2.10, c log .1 = -2.30: again an a.
    assert [hypothesis.tokens for hypothesis in found] == [[A], [B]]
    (found,) = diverse(ONE_WAY, [3], groups=3, size=1, penalty=2.0, n_best=3)
    assert [hypothesis.tokens for hypothesis in found] == [[A], [B], [C]]


def test_scores_are_the_models() -> None:
    """The penalty decides what is said, and is not part of any score."""
    (found,) = diverse(ONE_WAY, [3], groups=2, size=1, penalty=1.0, n_best=2)
    assert [hypothesis.log_probability for hypothesis in found] == pytest.approx(
        [math.log(0.6 * 0.7), math.log(0.3 * 0.6)]
    )


def test_dead_beams_say_nothing() -> None:
    """A beam that has no continuation left takes no word from the groups behind it.

    Two groups of two beams, two words, a and b. The first group can only go on with one a; its
    other beam is dead. So an a costs the second group 1 and a b nothing: its first beam's a is
    worth 1.2 - 1 = .2, the a of the second .5 - 1 = -.5, the b of the second 0.
    """
    a, b, dead = 0, 2, -math.inf  # END is 1
    totals = torch.tensor(
        [[[-1.0, dead, dead], [dead, dead, dead], [1.2, dead, dead], [0.5, dead, 0.0]]]
    )
    prefixes = torch.zeros((1, 4, 0), dtype=torch.long)
    choice = Diverse(groups=2, penalty=1.0)(totals, prefixes, [0], end=END)
    living = [divmod(flat, 3) for flat in choice.living[0].tolist()]
    assert living[0] == (0, a)
    assert living[2:] == [(2, a), (3, b)]
    assert choice.scores.tolist() == [[-1.0, dead, pytest.approx(1.2), 0.0]]


def textbook(
    after: Next, source: int, longest: int, groups: int, size: int, penalty: float
) -> list[list[Hypothesis]]:
    """The outputs of each group: all groups take their step, one after the other."""
    living: list[list[tuple[float, list[int]]]] = [[(0.0, [])] for _ in range(groups)]
    done: list[list[Hypothesis]] = [[] for _ in range(groups)]
    for length in range(1, longest + 1):
        said: list[int] = []
        for group in range(groups):
            if not living[group]:
                continue
            candidates = [
                (total + more, [*tokens, token])
                for total, tokens in living[group]
                for token, more in enumerate(after(source, tuple(tokens)))
            ]
            candidates.sort(key=lambda each: -(each[0] - penalty * said.count(each[1][-1])))
            best = candidates[:size]
            living[group] = [each for each in candidates if each[1][-1] != END][:size]
            said += [tokens[-1] for _, tokens in living[group]]
            for total, tokens in best:
                if tokens[-1] == END:
                    done[group].append(Hypothesis(tokens[:-1], total, total / length, True))
            if length == longest:
                for total, tokens in living[group]:
                    done[group].append(Hypothesis(tokens, total, total / length, False))
            done[group] = sorted(done[group], key=lambda each: -each.score)[:size]
            hope = max(total for total, _ in living[group]) / length
            if len(done[group]) == size and hope <= done[group][-1].score:
                living[group] = []
    return done


@thorough
@given(
    seed=seeds,
    limits=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    groups=st.integers(2, 3),
    size=st.integers(1, 3),
    penalty=st.sampled_from([0.3, 1.0, 4.0]),
)
def test_groups_are_the_textbooks(
    seed: int, limits: list[int], groups: int, size: int, penalty: float
) -> None:
    """All outputs of all groups, each once and in order; others only in the place of equal ones."""
    after = random_tree(seed, 4)
    results = diverse(
        after, limits, groups=groups, size=size, penalty=penalty, n_best=groups * size
    )
    for source, (limit, found) in enumerate(zip(limits, results, strict=True)):
        expected = {
            (*each.tokens, each.finished): each
            for group in textbook(after, source, limit, groups, size, penalty)
            for each in group
        }
        ours = {(*each.tokens, each.finished): each for each in found}
        assert len(ours) == len(found) <= groups * size
        for output, same in expected.items():
            assert ours[output].score == pytest.approx(same.score, abs=1e-5)
        scores = [hypothesis.score for hypothesis in found]
        assert scores == sorted(scores, reverse=True)


@thorough
@given(seed=seeds, limits=st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_the_first_group_is_a_beam_search(seed: int, limits: list[int]) -> None:
    """It finds what it finds alone, so the best translation is no worse for the company."""
    after = random_tree(seed, 4)
    together = diverse(after, limits, groups=3, size=2, penalty=1.0, n_best=6)
    source = torch.arange(len(limits))[:, None]
    alone = beam_search(Tree(after), source, limits, beams=2, start=START, end=END, n_best=2)
    for found, first in zip(together, alone, strict=True):
        outputs = [(each.tokens, each.finished) for each in found]
        assert all((each.tokens, each.finished) in outputs for each in first)


@thorough
@given(seed=seeds, limits=st.lists(st.integers(1, 5), min_size=2, max_size=4))
def test_company_changes_nothing(seed: int, limits: list[int]) -> None:
    """Each sentence gets alone what it gets in a batch."""
    after = random_tree(seed, 4)
    together = diverse(after, limits, groups=2, size=2, penalty=0.7, n_best=4)
    for source, limit in enumerate(limits):
        (alone,) = diverse(after, [limit], groups=2, size=2, penalty=0.7, n_best=4, first=source)
        alike(alone, together[source])


def test_a_real_model_says_more_different_things() -> None:
    """Of four translations of each word, more of the letters at one place differ."""
    model, config = reverser.trained(), reverser.CONFIG
    rows = [row for row in reverser.words(40, seed=3) if len(row) > 2]
    limits = [len(row) + 3 for row in rows]

    def different(penalty: float) -> float:
        results = beam_search(
            model,
            reverser.padded(rows),
            limits,
            beams=4,
            start=config.start,
            end=config.end,
            n_best=4,
            choose=Diverse(4, penalty),
        )
        return sum(len({each.tokens[0] for each in found if each.tokens}) for found in results)

    assert different(20.0) > different(1e-9)
