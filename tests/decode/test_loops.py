"""An output that only repeats itself is ended; one that repeats a little is not."""

import math

import pytest
import torch

from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.decode.loops import EVERY, StopLoops, repeated
from tests.decode.tree import END, START, Next, Prefix, Tree

A, B, C = 2, 3, 4


def ends(prefix: list[int], most: int) -> bool:
    """Whether only the end is left behind a prefix."""
    scores = torch.full((1, 1, 5), -1.25)
    left = StopLoops([most], end=END)(scores, torch.tensor([[prefix]]), [0])[0, 0].tolist()
    assert left[END] == -1.25  # as the model has it
    return left.count(-math.inf) == 4


@pytest.mark.parametrize(
    ("prefix", "most", "stops"),
    [
        ([A] * 7, 6, True),
        ([A] * 7, 7, False),  # six are repeated, the first is not
        ([A, B] * 7, 12, True),
        ([A, B] * 7, 13, False),
        ([C] + [A, B] * 10, 18, True),  # what came before does not matter
        ([A, B] * 10 + [C], 6, False),  # nor what has ended
        (list(range(17)) * 3 + [0] * 5, 6, False),  # a long unit is no loop
        ([A] * 8, 6, False),  # looked at only now and then
    ],
)
def test_by_hand(prefix: list[int], most: int, stops: bool) -> None:
    """So many tokens in a row, each as one a period before it."""
    assert (len(prefix) % EVERY == 0) is (prefix != [A] * 8)
    assert ends(prefix, most) is stops


def test_every_sentence_has_its_own_limit() -> None:
    """And every beam its own repetition."""
    prefixes = torch.tensor([[[A] * 7, [A, B, C, A, C, B, B]]] * 2)
    scores = StopLoops([6, 60], end=END)(torch.zeros(2, 2, 5), prefixes, [0, 1])
    stopped = scores.eq(-math.inf).any(dim=-1).tolist()
    assert stopped == [[True, False], [False, False]]


def endless(source: int, prefix: Prefix) -> list[float]:
    """Again and again the same, until the end is forced."""
    row = [0.01, 0.02, 0.9, 0.04, 0.03]
    return [math.log(each) for each in row]


def test_a_search_ends() -> None:
    """Greedy search at the limit of repetition; a beam search prefers what does not repeat."""
    rule = StopLoops([14], end=END)
    source, after = torch.tensor([[0]]), endless
    (greedy,) = greedy_search(Tree(after), source, [400], start=START, end=END, rules=[rule])
    assert (greedy.tokens, greedy.finished) == ([A] * 21, True)
    tree: Next = after
    (best,) = beam_search(
        Tree(tree), source, [400], beams=2, start=START, end=END, rules=[rule], n_best=2
    )
    assert all(each.finished and len(each.tokens) < 40 for each in best)


@pytest.mark.parametrize(
    ("tokens", "most"),
    [
        ([], 0),
        ([1, 2, 3], 0),
        ([1, 2, 1], 1),
        ([7] * 40, 39),
        ([1, 2] * 20, 38),
        ([*range(30), *range(30)], 0),
        ([*range(30), *[5, 6, 7] * 20, *range(30)], 57),
    ],
)
def test_repeated(tokens: list[int], most: int) -> None:
    """Tokens in a row that equal the one a period before."""
    assert repeated(tokens) == most
