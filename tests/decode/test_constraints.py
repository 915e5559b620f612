"""Rules of a search: by hand, and against models that obey the rule of themselves."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.constraints import (
    ForcedEnd,
    ForcedPrefix,
    MinLength,
    NoRepeatNgram,
    Renormalise,
    Rule,
    SuppressTokens,
    apply_rules,
)
from manyheads.decode.greedy import greedy_search
from manyheads.decode.sampling import sample
from manyheads.decode.step import Hypothesis
from manyheads.errors import ManyheadsError
from tests.decode.tree import END, START, Prefix, Tree, changed, from_table, random_tree

A, B, C = 2, 3, 4
INF = math.inf

thorough = settings(deadline=None, derandomize=True, max_examples=30)
seeds = st.integers(0, 10_000)
many_limits = st.lists(st.integers(1, 6), min_size=1, max_size=3)


def even(sentences: int = 1, beams: int = 1, vocabulary: int = 5) -> Tensor:
    """Log-probabilities that are easy to tell from others: all of them 0."""
    return torch.zeros(sentences, beams, vocabulary)


def nothing(sentences: int = 1, beams: int = 1) -> Tensor:
    """What has been said before the first token."""
    return torch.empty(sentences, beams, 0, dtype=torch.long)


def allowed(rule: Rule, prefix: list[int], sentence: int = 0) -> set[int]:
    """The tokens that a rule leaves for what comes after one prefix."""
    scores = rule(even(), torch.tensor([[prefix]], dtype=torch.long), [sentence])
    return {token for token, score in enumerate(scores[0, 0].tolist()) if score > -INF}


# --- By hand ------------------------------------------------------------------------------------


def test_without_any_allowed_token_an_output_ends() -> None:
    """At no cost, and only there: another beam keeps what its rules leave it."""
    scores = even(1, 2)
    scores[0, 1, C] = -1.0
    scores[0, 0, C] = -INF
    banned = SuppressTokens([START, END, A, B])
    found = apply_rules([banned], scores.clone(), nothing(1, 2), [0], end=END)
    assert found.tolist() == [[[-INF, 0.0, -INF, -INF, -INF], [-INF, -INF, -INF, -INF, -1.0]]]


def test_banned() -> None:
    """At any place, in any beam."""
    assert allowed(SuppressTokens([A, START]), []) == {END, B, C}
    assert SuppressTokens([B])(even(2, 3), nothing(2, 3), [0, 1])[..., B].eq(-INF).all()


def test_renormalise() -> None:
    """After a third of the probability was banned, 1/3 and 1/3 become 1/2 and 1/2."""
    thirds = torch.tensor([[[1 / 3, 1 / 3, 1 / 3]]]).log()
    scores = Renormalise()(SuppressTokens([0])(thirds, nothing(), [0]), nothing(), [0])
    torch.testing.assert_close(scores.exp(), torch.tensor([[[0.0, 0.5, 0.5]]]))


def test_min_length() -> None:
    """Two tokens at least: the end may be the third."""
    rule = MinLength(2, end=END)
    assert END not in allowed(rule, [])
    assert END not in allowed(rule, [A])
    assert END in allowed(rule, [A, B])


@pytest.mark.parametrize(
    ("size", "prefix", "banned"),
    [
        (1, [], set()),
        (1, [A, B], {A, B}),
        (2, [A], set()),
        (2, [A, B, A], {B}),  # a b has been said
        (2, [A, A], {A}),
        (2, [A, B, A, C, A], {B, C}),
        (3, [A, B, C, A, B], {C}),
        (3, [A, B, C, B], set()),
    ],
)
def test_no_repeated_ngrams(size: int, prefix: list[int], banned: set[int]) -> None:
    """What would be said for the second time."""
    assert allowed(NoRepeatNgram(size), prefix) == set(range(5)) - banned


def test_beams_do_not_share_their_ngrams() -> None:
    """What one beam has said, another may say."""
    prefixes = torch.tensor([[[A, B, A], [B, A, B]], [[C, C, C], [A, B, C]]])
    scores = NoRepeatNgram(2)(even(2, 2), prefixes, [0, 1])
    banned = scores.eq(-INF).nonzero().tolist()
    assert banned == [[0, 0, B], [0, 1, A], [1, 0, C]]


def test_forced_prefix() -> None:
    """Each sentence has its own, also after others have left the batch; behind it all is free."""
    rule = ForcedPrefix([[A, B], [], [C]])
    assert allowed(rule, [], 0) == {A}
    assert allowed(rule, [A], 0) == {B}
    assert allowed(rule, [A, B], 0) == set(range(5))
    assert allowed(rule, [], 1) == set(range(5))
    assert allowed(rule, [], 2) == {C}


def test_a_forced_prefix_goes_before_other_rules() -> None:
    """What is asked for is said, banned or repeated; its probability is the model's own."""
    rule = ForcedPrefix([[A, A]], [SuppressTokens([A]), NoRepeatNgram(1)])
    assert allowed(rule, [A]) == {A}
    assert allowed(rule, [A, A]) == set(range(5)) - {A}
    scores = rule(torch.full((1, 1, 5), -1.25), nothing(), [0])
    assert scores[0, 0, A] == -1.25


def test_forced_end() -> None:
    """At the limit of each sentence, with certainty."""
    rule = ForcedEnd([3, 2], end=END)
    assert allowed(rule, [A], 0) == set(range(5))
    assert allowed(rule, [A], 1) == {END}
    assert rule(even() - 7, torch.tensor([[[A]]]), [1])[0, 0, END] == 0


def test_what_is_forced_costs_nothing() -> None:
    """a .8 a .8, and then the end, of which the model says .2: only .64 counts."""
    endless = from_table({(A,) * n: {A: 0.8, END: 0.2} for n in range(9)}, vocabulary=3)
    source = torch.tensor([[0]])
    rules = [ForcedEnd([3], end=END)]
    (found,) = greedy_search(Tree(endless), source, [3], start=START, end=END, rules=rules)
    assert (found.tokens, found.finished) == ([A, A], True)
    assert found.log_probability == pytest.approx(math.log(0.64))
    assert found.token_log_probabilities == pytest.approx([math.log(0.8)] * 2 + [0.0])


# --- A rule is another model --------------------------------------------------------------------

Change = Callable[[Prefix, list[float]], list[float]]


def without(banned: set[int], scores: list[float]) -> list[float]:
    return [-INF if token in banned else score for token, score in enumerate(scores)]


def unrepeated(size: int) -> Change:
    def change(prefix: Prefix, scores: list[float]) -> list[float]:
        def repeats(token: int) -> bool:
            said = [*prefix, token]
            ngrams = [tuple(said[n : n + size]) for n in range(len(said) - size + 1)]
            return len(ngrams) > 0 and ngrams[-1] in ngrams[:-1]

        return without({token for token in range(len(scores)) if repeats(token)}, scores)

    return change


def begins_with(given: list[int]) -> Change:
    def change(prefix: Prefix, scores: list[float]) -> list[float]:
        if len(prefix) >= len(given):
            return scores
        return without(set(range(len(scores))) - {given[len(prefix)]}, scores)

    return change


EQUAL: list[tuple[Rule, Change]] = [
    (SuppressTokens([START, A]), lambda prefix, scores: without({START, A}, scores)),
    (
        MinLength(2, end=END),
        lambda prefix, scores: without({END} if len(prefix) < 2 else set(), scores),
    ),
    (NoRepeatNgram(1), unrepeated(1)),
    (NoRepeatNgram(2), unrepeated(2)),
    (ForcedPrefix([[B, B]] * 3), begins_with([B, B])),
]


def alike(ours: Hypothesis, theirs: Hypothesis) -> None:
    assert (ours.tokens, ours.finished) == (theirs.tokens, theirs.finished)
    assert ours.score == pytest.approx(theirs.score, abs=1e-5)
    assert ours.token_log_probabilities == pytest.approx(theirs.token_log_probabilities, abs=1e-5)


@pytest.mark.parametrize(("rule", "change"), EQUAL, ids=lambda part: type(part).__name__)
@thorough
@given(seed=seeds, limits=many_limits, beams=st.integers(1, 5))
def test_a_rule_is_another_model(
    rule: Rule, change: Change, seed: int, limits: list[int], beams: int
) -> None:
    """Greedy and beam search find what they find in a model that obeys the rule of itself."""
    after = random_tree(seed, 5)
    obedient = changed(after, change)
    source = torch.arange(len(limits))[:, None]
    ends: dict[str, Any] = {"start": START, "end": END}
    ours = greedy_search(Tree(after), source, limits, rules=[rule], **ends)
    theirs = greedy_search(Tree(obedient), source, limits, **ends)
    for left, right in zip(ours, theirs, strict=True):
        alike(left, right)
    found = beam_search(
        Tree(after), source, limits, beams=beams, n_best=beams, rules=[rule], **ends
    )
    wanted = beam_search(Tree(obedient), source, limits, beams=beams, n_best=beams, **ends)
    for left_best, right_best in zip(found, wanted, strict=True):
        for left, right in zip(left_best, right_best, strict=True):
            alike(left, right)


@thorough
@given(seed=seeds, limits=many_limits, beams=st.integers(1, 4))
def test_with_a_forced_end_everything_ends(seed: int, limits: list[int], beams: int) -> None:
    """No output is cut off, and none is longer than its limit."""
    source = torch.arange(len(limits))[:, None]
    found = beam_search(
        Tree(random_tree(seed, 4)),
        source,
        limits,
        beams=beams,
        start=START,
        end=END,
        n_best=beams,
        rules=[ForcedEnd(limits, end=END)],
    )
    for limit, hypotheses in zip(limits, found, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            assert hypothesis.finished
            assert len(hypothesis.tokens) < limit


def test_rules_apply_in_order() -> None:
    """Normalised before banning, half of the probability is gone; after, none is."""
    halves = from_table({(): {A: 0.5, END: 0.5}}, vocabulary=3)
    totals = []
    orders: list[list[Rule]] = [
        [Renormalise(), SuppressTokens([A])],
        [SuppressTokens([A]), Renormalise()],
    ]
    for rules in orders:
        (found,) = greedy_search(
            Tree(halves), torch.tensor([[0]]), [2], start=START, end=END, rules=rules
        )
        totals.append(found.log_probability)
    assert totals == pytest.approx([math.log(0.5), 0.0], abs=1e-6)


@pytest.mark.parametrize(("size", "said"), [(1, [A, B, A]), (2, [A, B, A, A])])
def test_where_every_token_is_banned_the_output_ends(size: int, said: list[int]) -> None:
    """In every search, behind a forced prefix: no word is made up, and nothing is nan."""
    rules: list[Rule] = [
        ForcedPrefix(
            [[A, B, A]], [NoRepeatNgram(size), SuppressTokens([START, C, END]), Renormalise()]
        )
    ]
    tree, source = Tree(lambda source, prefix: [math.log(0.2)] * 5), torch.zeros(1, 1).long()
    given: dict[str, Any] = {"start": START, "end": END, "rules": rules}
    (greedy,) = greedy_search(tree, source, [9], **given)
    (beams,) = beam_search(tree, source, [9], beams=2, **given)
    (drawn,) = sample(tree, source, [9], [1], samples=3, **given)
    for found in (greedy, *beams, *drawn):
        assert (found.tokens, found.finished) == (said, True)
        assert math.isfinite(found.log_probability)


def test_a_model_of_nan_is_refused() -> None:
    """In every search: no output is made up."""
    tree, source = Tree(lambda source, prefix: [math.nan] * 5), torch.zeros(1, 1).long()
    searches: list[Callable[..., Any]] = [
        lambda **ends: greedy_search(tree, source, [9], **ends),
        lambda **ends: beam_search(tree, source, [9], beams=2, **ends),
        lambda **ends: sample(tree, source, [9], [1], **ends),
    ]
    for search in searches:
        with pytest.raises(ManyheadsError, match="nan instead of probabilities"):
            search(start=START, end=END)


def test_greedy_search_keeps_its_company_with_rules() -> None:
    """What has ended stays in the batch as without rules, so numbers are those without them."""
    limits = [2, 9, 9, 9, 9, 9, 9, 9]
    plain, ruled = Tree(random_tree(3, 5), carries=True), Tree(random_tree(3, 5), carries=True)
    source = torch.arange(8)[:, None]
    greedy_search(plain, source, limits, start=START, end=END)
    greedy_search(ruled, source, limits, start=START, end=END, rules=[SuppressTokens([])])
    assert ruled.steps == plain.steps
