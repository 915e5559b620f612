"""Scores of recurrent attention by hand, their masks, and what a recorder keeps."""

import math

import pytest
import torch
from torch import Tensor, nn

from manyheads.nn.attention.recurrent_attention import (
    AdditiveScore,
    DotScore,
    GeneralScore,
    GlobalAttention,
    NoAttention,
    ScoreRecord,
)
from manyheads.nn.recording.trace import LayerId, record
from tests.small import randomise

ScoreType = type[AdditiveScore] | type[DotScore] | type[GeneralScore]
SCORES: dict[str, ScoreType] = {
    "additive": AdditiveScore,
    "dot": DotScore,
    "general": GeneralScore,
}
scores = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)


def close(actual: Tensor, expected: Tensor, atol: float = 1e-6) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


def fill(layer: nn.Linear, values: list[list[float]]) -> None:
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(values))


STATE = torch.tensor([[[1.0, 2.0]]])  # s
STATES = torch.tensor([[[3.0, -1.0], [0.0, 1.0]]])  # h_1, h_2


def test_dot_by_hand() -> None:
    """T4: s . h, without a square root: Luong et al. 2015, 3.1."""
    score = DotScore(2)
    assert score(STATE, score.project(STATES)).tolist() == [[[1.0, 2.0]]]


def test_general_by_hand() -> None:
    """T4: s . W h: W exchanges the dimensions of h, then doubles the first."""
    score = GeneralScore(2)
    fill(score.w, [[0.0, 2.0], [1.0, 0.0]])  # W h = (2 h_2, h_1)
    assert score(STATE, score.project(STATES)).tolist() == [[[-2.0 + 6.0, 2.0 + 0.0]]]


def test_additive_by_hand() -> None:
    """T4: v . tanh(W s + U h): Bahdanau et al. 2015, A.1.2."""
    score = AdditiveScore(2)
    fill(score.w, [[1.0, 0.0], [0.0, 0.5]])  # W s = (1, 1)
    fill(score.u, [[-1.0, 0.0], [0.0, 2.0]])  # U h = (-3, -2) and (0, 2)
    fill(score.v, [[1.0, -2.0]])
    expected = [math.tanh(-2) - 2 * math.tanh(-1), math.tanh(1) - 2 * math.tanh(3)]
    close(score(STATE, score.project(STATES)), torch.tensor([[expected]]))


@pytest.mark.parametrize("name", SCORES)
def test_the_attentional_vector_by_hand(name: str) -> None:
    """T4: weights are a softmax over keys, the value is the mean of the states: tanh(W [c; s])."""
    attention = randomise(GlobalAttention(SCORES[name](2), 2, 3))
    mask = torch.ones(1, 1, 1, 2, dtype=torch.bool)
    source = attention.project(STATES, mask)
    first, second = attention.score(STATE, source.keys)[0, 0].exp().tolist()
    context = (first * STATES[:, :1] + second * STATES[:, 1:]) / (first + second)
    layer = attention.combine
    expected = (torch.cat((context, STATE), dim=-1) @ layer.weight.T + layer.bias).tanh()
    close(attention(STATE, source)[0], expected)


def example(score: ScoreType) -> tuple[GlobalAttention, Tensor, Tensor, Tensor]:
    """An attention, 4 queries over 5 keys, and a mask that hides 2 keys of the second sentence."""
    torch.manual_seed(0)
    attention = randomise(GlobalAttention(score(6), 6, 3))
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    return attention, torch.randn(2, 4, 6), torch.randn(2, 5, 6), mask


@scores
def test_padding_is_not_seen(score: ScoreType) -> None:
    """T4: a sentence gets the same alone and padded, whatever stands on the padding."""
    attention, query, memory, mask = example(score)
    out, _ = attention(query, attention.project(memory, mask))
    alone, _ = attention(query[1:], attention.project(memory[1:, :3], mask[1:, ..., :3]))
    close(out[1:], alone)
    memory[1, 3:] = 1e3
    assert torch.equal(attention(query, attention.project(memory, mask))[0], out)


@scores
def test_nothing_to_attend_to(score: ScoreType) -> None:
    """An empty row of the mask gives a context of zeros, not NaN."""
    attention, query, memory, mask = example(score)
    none = torch.zeros_like(mask)
    out, _ = attention(query, attention.project(memory, none))
    nothing, _ = attention(query, attention.project(torch.zeros_like(memory), none))
    assert out.isfinite().all()
    assert torch.equal(out, nothing)


@scores
def test_queries_do_not_see_each_other(score: ScoreType) -> None:
    """All positions of a target at once, or beams, are as good as one after another."""
    attention, query, memory, mask = example(score)
    source = attention.project(memory, mask)
    together, _ = attention(query, source)
    for each in range(4):
        close(attention(query[:, each : each + 1], source)[0], together[:, each : each + 1])


@scores
def test_the_map_is_what_was_used(score: ScoreType) -> None:
    """T4: the recorded weights, times the states, give the context of the same answer."""
    attention, query, memory, mask = example(score)
    attention.layer_id = LayerId("decoder", 1, "cross")
    source = attention.project(memory, mask)
    plain, used = attention(query, source)
    with record() as trace:
        recorded, _ = attention(query, source)
    assert torch.equal(plain, recorded)
    (entry,) = trace
    assert isinstance(entry, ScoreRecord)
    assert str(entry.layer_id) == "decoder layer 2 cross"
    assert not entry.scores.requires_grad
    weights = entry.weights()
    assert weights.shape == (2, 1, 4, 5)
    close(weights[:, 0], used)  # what a decoding step returns
    close(weights.sum(-1), torch.ones(2, 1, 4))
    assert weights[1, ..., 3:].eq(0).all()
    context = weights[:, 0] @ memory
    close(attention.combine(torch.cat((context, query), dim=-1)).tanh(), plain)


def test_a_map_of_half_precision_is_in_fp32() -> None:
    """Maps are computed in fp32, whatever the model computes in."""
    attention, query, memory, mask = example(GeneralScore)
    attention = attention.bfloat16()
    with record() as trace:
        attention(query.bfloat16(), attention.project(memory.bfloat16(), mask))
    (entry,) = trace
    assert isinstance(entry, ScoreRecord)
    assert entry.weights().dtype == torch.float32


def test_without_attention_the_source_is_not_read() -> None:
    """T3: tanh(W s), and nothing to record."""
    attention = randomise(NoAttention(2, 3))
    mask = torch.ones(1, 1, 1, 2, dtype=torch.bool)
    with record() as trace:
        out, _ = attention(STATE, attention.project(STATES, mask))
    close(out, attention.combine(STATE).tanh())
    assert torch.equal(out, attention(STATE, attention.project(100 * STATES, mask))[0])
    assert not list(trace)
