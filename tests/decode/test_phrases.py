"""Phrases that an output must contain: the automaton, the banks, and search against brute force."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from manyheads.decode.beam import beam_search
from manyheads.decode.constraints import ForcedEnd, ForcedPrefix, Rule, SuppressTokens
from manyheads.decode.phrases import PhraseConstraint, Phrases, _candidates, share_out
from manyheads.decode.step import Hypothesis
from manyheads.errors import UsageError
from tests import reverser
from tests.decode.tree import END, START, Next, Tree, alike, exhaustive, from_table, random_tree

A, B, C = 2, 3, 4
thorough = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 10_000)
words = st.lists(st.integers(A, C), min_size=1, max_size=3)
demands = st.lists(words, max_size=3)


def occurrences(phrase: list[int], tokens: list[int]) -> int:
    """How often a phrase occurs without overlapping itself, from left to right."""
    count = place = 0
    while place + len(phrase) <= len(tokens):
        found = tokens[place : place + len(phrase)] == phrase
        count += found
        place += len(phrase) if found else 1
    return count


def contains(tokens: list[int], phrases: list[list[int]]) -> bool:
    return all(occurrences(phrase, tokens) >= phrases.count(phrase) for phrase in phrases)


def search(
    after: Next,
    phrases: list[list[list[int]]],
    limits: list[int],
    *,
    beams: int,
    n_best: int = 1,
    rules: list[Rule] | None = None,
    first: int = 0,
) -> list[list[Hypothesis]]:
    """Sentence n has source first + n."""
    return beam_search(
        Tree(after),
        first + torch.arange(len(limits))[:, None],
        limits,
        beams=beams,
        start=START,
        end=END,
        n_best=n_best,
        rules=rules or [],
        choose=PhraseConstraint(phrases, limits),
    )


# --- How far an output has come -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("phrases", "tokens", "met"),
    [
        ([[A, B]], [], 0),
        ([[A, B]], [A], 1),
        ([[A, B]], [A, C], 0),  # begun and left: nothing
        ([[A, B]], [A, A, B], 2),
        ([[A, A, B]], [A, A, A], 2),  # the last two may still become the phrase
        ([[A, B], [B, C]], [A, B], 3),  # one whole, and the other on its way
        ([[A, B], [B, C]], [A, B, C], 4),  # different phrases may share a token
        ([[A, B], [A, B]], [A, B], 2),  # listed twice: once is half
        ([[A, B], [A, B]], [A, B, A, B], 4),
        ([[A, A], [A, A]], [A, A, A], 3),  # a phrase does not share a token with itself
        ([[A], [A, B]], [A], 2),
        ([[], [A]], [B], 0),  # an empty phrase is no demand
    ],
)
def test_tokens_met_by_hand(phrases: list[list[int]], tokens: list[int], met: int) -> None:
    """Whole phrases, and the longest that is on its way."""
    wanted = Phrases(phrases)
    assert wanted.met(wanted.progress(tokens)) == met


@thorough
@given(phrases=demands, tokens=st.lists(st.integers(A, C), max_size=9))
def test_everything_is_met_when_it_is_there(phrases: list[list[int]], tokens: list[int]) -> None:
    """The automaton against looking everywhere."""
    wanted = Phrases(phrases)
    met = wanted.met(wanted.progress(tokens))
    assert wanted.size == sum(map(len, phrases))
    assert 0 <= met <= wanted.size
    assert (met == wanted.size) == contains(tokens, phrases)


@thorough
@given(phrases=demands, tokens=st.lists(st.integers(A, C), max_size=6), data=st.data())
def test_a_helpful_token_helps(
    phrases: list[list[int]], tokens: list[int], data: st.DataObject
) -> None:
    """As many tokens as are not yet met are enough, whatever was said: one more each step."""
    wanted = Phrases(phrases)
    progress = wanted.progress(tokens)
    while wanted.met(progress) < wanted.size:
        steps = {token: wanted.after(progress, token) for token in wanted.helpful(progress)}
        better = [after for after in steps.values() if wanted.met(after) > wanted.met(progress)]
        assert better
        progress = data.draw(st.sampled_from(better))


# --- Banks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beams", "waiting", "slots"),
    [
        (6, [9, 9, 9], [2, 2, 2]),
        (8, [9, 9, 9], [2, 2, 4]),  # the rest to those who have met most
        (6, [9, 9, 0], [2, 4, 0]),  # nobody there: to the bank below
        (6, [9, 1, 1], [4, 1, 1]),
        (6, [0, 1, 9], [0, 1, 5]),  # the lowest has no use for its share: back to the top
        (6, [1, 1, 1], [1, 1, 1]),
        (2, [9, 9, 9], [0, 0, 2]),
        (3, [5], [3]),
    ],
)
def test_shares_by_hand(beams: int, waiting: list[int], slots: list[int]) -> None:
    """Equal shares, and none of them idle."""
    assert share_out(beams, waiting) == slots


@thorough
@given(beams=st.integers(1, 20), waiting=st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_no_beam_is_idle_while_somebody_waits(beams: int, waiting: list[int]) -> None:
    """All beams are shared out, or all candidates have one."""
    slots = share_out(beams, waiting)
    assert sum(slots) == min(beams, sum(waiting))
    assert all(0 <= slot <= count for slot, count in zip(slots, waiting, strict=True))


# --- Search -------------------------------------------------------------------------------------

# Left alone, the model says a b.
FLUENT = from_table(
    {
        (): {A: 0.9, C: 0.1},
        (A,): {B: 0.8, C: 0.15, END: 0.05},
        (C,): {A: 0.5, END: 0.5},
        (A, B): {END: 0.9, C: 0.1},
        (A, C): {END: 0.6, B: 0.4},
        (C, A): {END: 0.5, B: 0.5},
        (A, B, C): {END: 1.0},
        (A, C, B): {END: 1.0},
        (C, A, B): {END: 1.0},
    },
    vocabulary=5,
)


@pytest.mark.parametrize(
    ("phrases", "tokens"),
    [
        ([], [A, B]),
        ([[C]], [A, B, C]),  # .9 * .8 * .1 = .072 of 4, against a c: .9 * .15 * .6 = .081 of 3
        ([[C, A]], [C, A]),  # .1 * .5 * .5 = .025 of 3; c a b .025 of 4 is better still
        ([[A, C]], [A, C]),
        ([[C], [A, B]], [A, B, C]),
    ],
)
def test_a_phrase_finds_its_place(phrases: list[list[int]], tokens: list[int]) -> None:
    """Where the model finds it likeliest: as brute force would have it."""
    ((found, *_),) = search(FLUENT, [phrases], [5], beams=20)
    outputs = exhaustive(FLUENT, 0, 5, 4, 1.0)
    best = next(each for each in outputs if contains(each.tokens, phrases))
    assert found.tokens == best.tokens
    assert found.score == pytest.approx(best.score, abs=1e-5)


@thorough
@given(seed=seeds, limit=st.integers(2, 4), phrases=st.lists(words, min_size=1, max_size=2))
def test_a_wide_beam_is_exhaustive(seed: int, limit: int, phrases: list[list[int]]) -> None:
    """With V^L beams: the best of all outputs that have everything in time for their end."""
    phrases = [[min(token, B) for token in phrase] for phrase in phrases]  # four tokens are enough
    assume(sum(map(len, phrases)) < limit)
    # The room that is kept for them is that of one phrase after the other: see below.
    assume(phrases[0] == phrases[-1] or not set(phrases[0]) & set(phrases[-1]))
    after, beams = random_tree(seed, 4), min(4**limit, 150)
    (found,) = search(after, [phrases], [limit], beams=beams, n_best=5)
    outputs = exhaustive(after, 0, 4, limit, 1.0)
    expected = [each for each in outputs if contains(each.tokens[: limit - 1], phrases)][:5]
    assert [each.tokens for each in found] == [each.tokens for each in expected]
    assert [each.score for each in found] == pytest.approx([each.score for each in expected])


def test_phrases_that_share_tokens_may_share_them() -> None:
    """b a a has both a and a a; but with room for three only, b could not come first."""
    after = random_tree(0, 4)
    for limit in (4, 5):
        outputs = exhaustive(after, 0, 4, limit, 1.0)
        best = next(each for each in outputs if contains(each.tokens[: limit - 1], [[A], [A, A]]))
        assert best.tokens[:3] == [B, A, A]
        ((found,),) = search(after, [[[A], [A, A]]], [limit], beams=150)
        assert contains(found.tokens, [[A], [A, A]])
        assert (found.tokens == best.tokens) == (limit == 5)


@thorough
@given(
    seed=seeds,
    phrases=st.lists(demands, min_size=1, max_size=3),
    room=st.integers(1, 5),
    beams=st.integers(1, 8),
)
def test_phrases_are_always_there(
    seed: int, phrases: list[list[list[int]]], room: int, beams: int
) -> None:
    """However few the beams and however little room there is: in every output of the n best."""
    limits = [sum(map(len, each)) + room for each in phrases]
    results = search(random_tree(seed, 5), phrases, limits, beams=beams, n_best=beams)
    for wanted, limit, found in zip(phrases, limits, results, strict=True):
        assert found
        for hypothesis in found:
            assert contains(hypothesis.tokens, wanted)
            assert len(hypothesis.tokens) + hypothesis.finished <= limit


@thorough
@given(seed=seeds, phrases=st.lists(demands, min_size=2, max_size=4), beams=st.integers(1, 6))
def test_company_changes_nothing(seed: int, phrases: list[list[list[int]]], beams: int) -> None:
    """Each sentence gets alone what it gets in a batch; without phrases, plain beam search."""
    after = random_tree(seed, 5)
    limits = [sum(map(len, each)) + 3 for each in phrases]
    together = search(after, phrases, limits, beams=beams, n_best=beams)
    for n, (each, limit) in enumerate(zip(phrases, limits, strict=True)):
        (alone,) = search(after, [each], [limit], beams=beams, n_best=beams, first=n)
        alike(alone, together[n])
        if not each:
            source = torch.tensor([[n]])
            (plain,) = beam_search(
                Tree(after), source, [limit], beams=beams, start=START, end=END, n_best=beams
            )
            alike(plain, together[n])


@thorough
@given(seed=seeds, phrase=words)
def test_behind_a_forced_prefix(seed: int, phrase: list[int]) -> None:
    """Both are there, and the prefix is in front."""
    limit = len(phrase) + 5
    rules: list[Rule] = [ForcedPrefix([[B, A, B]]), ForcedEnd([limit], end=END)]
    ((found,),) = search(random_tree(seed, 5), [[phrase]], [limit], beams=4, rules=rules)
    assert found.tokens[:3] == [B, A, B]
    assert contains(found.tokens, [phrase])
    assert found.finished


@pytest.mark.parametrize(
    "end", [ForcedEnd([4], end=END), SuppressTokens([START])], ids=["end", "cut"]
)
def test_the_impossible_is_not_demanded(end: Rule) -> None:
    """A phrase that a rule forbids is missing; there is an output all the same."""
    ((found,),) = search(random_tree(1, 5), [[[A]]], [4], beams=3, rules=[SuppressTokens([A]), end])
    assert A not in found.tokens
    assert found.finished == isinstance(end, ForcedEnd)


def test_candidates_by_hand() -> None:
    """Two beams, two phrases of one word, p and q, of which the second beam has said p.

    The four best of all, the best of each beam, and p or q where they help. No beam may end, so
    there are none that have everything. No other word is looked at, whatever finite score it has.
    """
    x, a, b, p, q = 0, 2, 3, 4, 5  # END is 1
    totals = torch.full((2, 6), -20.0)
    for token, score in {a: -0.1, b: -0.2, p: -9.0, q: -9.5, END: -8.0}.items():
        totals[0, token] = score
    for token, score in {a: -3.0, b: -4.0, p: -7.0, q: -6.0, END: -0.05, x: -30.0}.items():
        totals[1, token] = score
    wanted = Phrases([[p], [q]])
    found = _candidates(totals, [[a], [p]], wanted, END)
    assert [(*divmod(each.flat, 6), each.met) for each in found] == [
        (0, a, 0),
        (0, b, 0),
        (1, a, 1),
        (1, b, 1),
        (1, q, 2),
        (0, p, 1),
        (0, q, 1),
    ]
    # Two places: one for the bank of both words, the other for the best of the bank of one.
    constraint = PhraseConstraint([[[p], [q]]], [9])
    prefixes = torch.tensor([[[a], [p]]])
    choice = constraint(totals[None], prefixes, [0], end=END)
    assert not choice.complete
    assert [divmod(flat, 6) for flat in choice.living[0].tolist()] == [(1, a), (1, q)]


def test_too_little_room() -> None:
    """Says what is needed."""
    with pytest.raises(UsageError, match=r"Output 2 may have 4 tokens.*phrases of 4"):
        PhraseConstraint([[[A]], [[A, B], [C, C]]], [4, 4])


def test_a_real_model() -> None:
    """Words spelled backwards, most with a pair of letters that is not in them."""
    model, config = reverser.trained(), reverser.CONFIG
    rows = reverser.words(12, seed=4)
    phrases = [[[3 + n % 7, 3 + n % 5]] if n % 3 else [] for n in range(12)]
    limits = [len(row) + 6 for row in rows]
    results = beam_search(
        model,
        reverser.padded(rows),
        limits,
        beams=6,
        start=config.start,
        end=config.end,
        choose=PhraseConstraint(phrases, limits),
    )
    for wanted, (found,) in zip(phrases, results, strict=True):
        assert contains(found.tokens, wanted)
        assert found.finished
