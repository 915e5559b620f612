"""One row of one head by hand: q.k, scale, mask, softmax, values."""

import math

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.lens.trace.head_steps import head_steps
from manyheads.nn.attention.attention import MultiHeadAttention, attend
from manyheads.nn.recording.attention_record import AttentionContext
from manyheads.nn.recording.trace import LayerId, Trace, record

SITE = "encoder layer 1 self"


def pass_by_hand() -> Trace:
    """The products 2 ln 3 and 0 at width 4: weights of 3/4 and 1/4; a third key is hidden."""
    q = torch.zeros(1, 2, 3, 4)
    q[0, 1, 1, 0] = 1.0
    k = torch.zeros(1, 2, 3, 4)
    k[0, 1, 0, 0] = 2 * math.log(3)
    k[0, 1, 2, 0] = 9.0
    v = torch.zeros(1, 2, 3, 4)
    v[0, 1, 0, 0], v[0, 1, 1, 0] = 4.0, 8.0
    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    with record(gradients=True) as trace:
        attend(q, k, v, mask, context=AttentionContext(LayerId("encoder")))
    return trace


def test_steps_by_hand() -> None:
    """Values 4 and 8 at weights 3/4 and 1/4 give 5, of which 3 and 2 are theirs."""
    steps = head_steps(pass_by_hand(), SITE, 2, 2)
    assert steps.size == 4
    assert steps.keys == [0, 1, 2]
    assert steps.products == pytest.approx([2 * math.log(3), 0, 9], abs=1e-3)
    assert steps.scores == pytest.approx([math.log(3), 0, 4.5], abs=1e-3)
    assert steps.allowed == [True, True, False]
    assert steps.bias is None
    assert steps.weights == pytest.approx([0.75, 0.25, 0], abs=1e-4)
    assert steps.lengths == pytest.approx([4, 8, 0])
    assert steps.output == pytest.approx([5, 0, 0, 0], abs=1e-3)
    assert steps.shares == pytest.approx([0.6, 0.4, 0], abs=1e-3)
    assert steps.query == [1, 0, 0, 0]
    assert steps.strongest == pytest.approx([2 * math.log(3), 0, 0, 0], abs=1e-3)


def test_they_are_the_map_of_the_module() -> None:
    """Of every head and row of an attention with a bias."""
    attention = MultiHeadAttention(8, 2).eval()
    x, bias = torch.randn(1, 5, 8), torch.randn(1, 2, 5, 5)
    with record(gradients=True) as trace, torch.inference_mode():
        attention(x, bias=bias)
    (found,) = trace
    whole = found.weights()[0]  # type: ignore[attr-defined]
    for head in (1, 2):
        for row in range(1, 6):
            steps = head_steps(trace, "layer 1 self", head, row)
            assert steps.weights == pytest.approx(whole[head - 1, row - 1].tolist(), abs=1e-3)
            assert sum(steps.shares) == pytest.approx(1, abs=1e-2)
            assert steps.bias is not None


@pytest.mark.parametrize(
    ("site", "head", "row", "words"),
    [
        ("encoder layer 9 self", 1, 1, "Layers that have one: encoder layer 1 self"),
        (SITE, 3, 1, "has heads 1 to 2"),
        (SITE, 1, 0, "has rows 1 to 3"),
    ],
)
def test_what_is_not_there_is_refused(site: str, head: int, row: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        head_steps(pass_by_hand(), site, head, row)


def test_a_pass_without_values_is_refused() -> None:
    with record() as trace:
        attend(*torch.zeros(3, 1, 1, 2, 4))
    with pytest.raises(UsageError, match="no softmax attention"):
        head_steps(trace, "layer 1 self", 1, 1)
