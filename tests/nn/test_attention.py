"""The one attention: the formula by hand, the fused kernel against it, heads packed and apart."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from manyheads.errors import UsageError
from manyheads.nn.attention.attention import MultiHeadAttention, _formula_is_faster, attend
from manyheads.nn.attention.per_head import PerHeadAttention
from manyheads.nn.attention.softmax import SoftmaxRecord, attention_weights, normalise
from manyheads.nn.layers.masks import causal_mask, padding_mask
from manyheads.nn.recording.trace import LayerId, record
from tests.small import randomise

LN2, LN3 = math.log(2), math.log(3)


def close(actual: Tensor, expected: Tensor | list[Any], atol: float = 1e-6) -> None:
    """Compare with absolute tolerance only."""
    torch.testing.assert_close(actual, torch.as_tensor(expected), atol=atol, rtol=0)


# --- The formula, by hand -----------------------------------------------------------------------


def test_weights_by_hand() -> None:
    """T5: softmax(QK^T / sqrt(d_k)) on numbers that can be checked on paper."""
    q = torch.tensor([[1.0, 0, 0, 0]])  # d_k = 4, so scores are divided by 2
    k = torch.tensor([[2 * LN3, 0, 0, 0], [0, 5, 5, 5]])
    # dot products 2 ln 3 and 0; divided by 2: ln 3 and 0; exponentials 3 and 1; of a sum of 4
    close(attention_weights(q, k), [[3 / 4, 1 / 4]])


def test_scores_are_divided_by_the_root_of_the_width() -> None:
    """E3: dividing gives 3 : 1 in the example above; multiplying by 2 would give 3^4 : 1."""
    q = torch.tensor([[1.0, 0, 0, 0]])
    k = torch.tensor([[2 * LN3, 0, 0, 0], [0, 5, 5, 5]])
    wrong = (q @ k.T * math.sqrt(4)).softmax(-1)
    close(wrong, [[81 / 82, 1 / 82]])
    assert abs(attention_weights(q, k)[0, 0] - wrong[0, 0]) > 0.2


def test_division_keeps_the_softmax_from_saturating() -> None:
    """T5a: with sqrt(d_k), the largest weight does not grow with the width."""
    torch.manual_seed(0)
    largest = {
        width: attention_weights(torch.randn(500, 1, width), torch.randn(500, 8, width))
        .amax(-1)
        .mean()
        for width in (4, 1024)
    }
    assert abs(largest[4] - largest[1024]) < 0.05
    undivided = (torch.randn(500, 1, 1024) @ torch.randn(500, 1024, 8)).softmax(-1).amax(-1).mean()
    assert undivided > 0.9  # one key takes all, and no gradient is left


def test_shapes_of_the_lecture() -> None:
    """T5: one query of 512 against three keys: (1,512) x (512,3) -> (1,3) -> (1,512)."""
    q, k, v = torch.randn(1, 512), torch.randn(3, 512), torch.randn(3, 512)
    weights = attention_weights(q, k)
    assert weights.shape == (1, 3)
    assert (weights @ v).shape == (1, 512)


def test_the_value_is_an_average_of_the_values() -> None:
    """T4: weights 3/4 and 1/4 on the values 4 and 8 give 3/4 * 4 + 1/4 * 8 = 5."""
    q = torch.tensor([[[[1.0, 0, 0, 0]]]])
    k = torch.tensor([[[[2 * LN3, 0, 0, 0], [0, 5, 5, 5]]]])
    v = torch.tensor([[[[4.0], [8.0]]]])
    close(attend(q, k, v), [[[[5.0]]]])


def test_rows_are_distributions_over_keys() -> None:
    """E8: each row (one query over all keys) sums to 1; columns do not."""
    torch.manual_seed(0)
    weights = attention_weights(torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4))
    assert weights.shape == (2, 3, 5, 7)
    close(weights.sum(-1), torch.ones(2, 3, 5))
    assert (weights.sum(-2) - 1).abs().max() > 0.1


def test_permuted_keys_permute_columns() -> None:
    """E8: keys lie on the last axis, and attention sees them as a set."""
    torch.manual_seed(0)
    q, k, order = torch.randn(3, 4), torch.randn(5, 4), torch.tensor([4, 2, 0, 1, 3])
    close(attention_weights(q, k[order]), attention_weights(q, k)[:, order])


def test_tokens_are_rows() -> None:
    """E8: tokens are rows, so X is multiplied from the right by W, and the weights by V: A V.

    Two tokens of width 2: Q = X W, and K, V likewise; by the softmax of Q K^T / sqrt(2) over keys.
    """
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    attention = MultiHeadAttention(2, 1)
    wq = torch.tensor([[LN3 * math.sqrt(2), 0.0], [0.0, 0.0]])  # X W = W, as X is the identity
    wk, wv = torch.eye(2), torch.tensor([[4.0, 0.0], [8.0, 8.0]])
    with torch.no_grad():
        attention.qkv.weight.copy_(torch.cat((wq, wk, wv), dim=1).T)  # torch stores W^T
        attention.qkv.bias.zero_()
        attention.out.weight.copy_(torch.eye(2))
        attention.out.bias.zero_()
    # Scores (ln 3, 0) and (0, 0): the first token takes 3/4 of itself, the second half of each.
    a = torch.tensor([[3 / 4, 1 / 4], [1 / 2, 1 / 2]])
    close(attention(x)[0], a @ wv)
    close(attention(x)[0], [[5.0, 2.0], [6.0, 4.0]])
    over_queries = a.new_tensor([[LN3, 0.0], [0.0, 0.0]]).softmax(dim=0)  # the wrong axis
    assert (over_queries.sum(dim=-1) - 1).abs().max() > 0.2


def test_a_word_takes_from_its_sentence() -> None:
    """T6: scores ln 6, ln 3 and 0 of "name" for Epoch, name and cat give weights .6, .3 and .1."""
    q = torch.tensor([[1.0]])
    k = torch.tensor([[math.log(6)], [LN3], [0.0]])
    weights = attention_weights(q, k)
    close(weights, [[0.6, 0.3, 0.1]])
    epoch, name, cat = torch.eye(3)
    close((weights @ torch.eye(3))[0], 0.6 * epoch + 0.3 * name + 0.1 * cat)


@pytest.mark.parametrize("tokens", [4, 40])
def test_any_two_tokens_are_one_step_apart(tokens: int) -> None:
    """T19: the last token reads the first in one layer; a convolution of 3 reads its neighbours."""
    attention = randomise(MultiHeadAttention(8, 2))
    x = torch.randn(1, tokens, 8)
    changed = x.clone()
    changed[0, 0] = torch.randn(8)
    assert (attention(changed) - attention(x))[0, -1].abs().max() > 1e-4
    convolution = torch.nn.Conv1d(8, 8, 3, padding=1)
    apart = convolution(changed.mT) - convolution(x.mT)
    assert apart[..., 2:].abs().max() == 0


def test_bias_by_hand() -> None:
    """A bias of ln 2 on equal scores doubles a key's share: 2/3 and 1/3."""
    q, k = torch.ones(1, 4), torch.zeros(2, 4)
    close(attention_weights(q, k, bias=torch.tensor([[LN2, 0.0]])), [[2 / 3, 1 / 3]])


def test_mask_by_hand() -> None:
    """T13: a masked key gets nothing, and the others share its part: 3 : 1 becomes 3 : 1 again."""
    q = torch.tensor([[1.0, 0, 0, 0]])
    k = torch.tensor([[2 * LN3, 0, 0, 0], [0.0, 0, 0, 0], [9, 9, 9, 9]])
    close(attention_weights(q, k, torch.tensor([[True, True, False]])), [[3 / 4, 1 / 4, 0]])


def test_mask_wins_over_bias() -> None:
    """Mask and bias together: no bias is large enough to open a masked key."""
    q, k = torch.ones(1, 4), torch.zeros(3, 4)
    bias, mask = torch.tensor([[LN2, 0.0, 1000.0]]), torch.tensor([[True, True, False]])
    close(attention_weights(q, k, mask, bias), [[2 / 3, 1 / 3, 0]])


def test_normalise_takes_scores_of_any_origin() -> None:
    """T4: additive scores, v . tanh(Wq + Uk), become weights by the same second half."""
    torch.manual_seed(0)
    query, keys, v = torch.randn(2, 1, 6), torch.randn(2, 4, 6), torch.randn(6)
    scores = torch.tanh(query + keys) @ v  # one query a sentence, four keys
    mask = torch.tensor([[[True, True, True, True]], [[True, True, False, False]]])
    weights = normalise(scores[:, None], mask)
    exponentials = scores[:, None].exp() * mask
    close(weights, exponentials / exponentials.sum(-1, keepdim=True))
    close(normalise(scores[:, None]), scores[:, None].exp() / scores.exp().sum(-1)[:, None, None])


# --- A row with nothing to attend ---------------------------------------------------------------

EMPTY = torch.tensor([[True, False, True], [False, False, False]])  # the second query sees nothing


def test_empty_row_gives_zero_weights() -> None:
    """The textbook's softmax over -inf alone is NaN; here it is zeros, as in the kernel."""
    torch.manual_seed(0)
    weights = attention_weights(torch.randn(2, 4), torch.randn(3, 4), EMPTY)
    close(weights.sum(-1), [1.0, 0.0])
    assert weights[1].eq(0).all()
    assert torch.full((3,), -math.inf).softmax(-1).isnan().all()


@pytest.mark.parametrize("bias", [None, torch.zeros(2, 3)], ids=["mask", "mask+bias"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_empty_row_in_the_fused_kernel(bias: Tensor | None, dtype: torch.dtype) -> None:
    """An empty row answers zeros and its gradients are finite: a padded batch cannot turn NaN."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, n, 4, dtype=dtype, requires_grad=True) for n in (2, 3, 3))
    out = attend(q, k, v, EMPTY, None if bias is None else bias.to(dtype))
    assert out[0, 0, 1].eq(0).all()
    assert out[0, 0, 0].ne(0).any()
    out.sum().backward()
    for x in (q, k, v):
        assert x.grad is not None
        assert x.grad.isfinite().all()
    assert q.grad is not None
    assert q.grad[0, 0, 1].eq(0).all()
    assert v.grad is not None
    assert v.grad[0, 0, 1].eq(0).all()  # nobody may see the second key


def test_empty_row_has_finite_gradients_in_the_formula() -> None:
    """The readable formula is differentiable where the textbook's is not."""
    torch.manual_seed(0)
    q = torch.randn(2, 4, requires_grad=True)
    k = torch.randn(3, 4, requires_grad=True)
    (attention_weights(q, k, EMPTY) @ torch.randn(3, 4)).sum().backward()
    assert q.grad is not None
    assert k.grad is not None
    assert q.grad.isfinite().all()
    assert k.grad.isfinite().all()
    assert q.grad[1].eq(0).all()


# --- The fused kernel against the formula --------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("keys", [1, 13, 31, 32])
def test_few_keys_are_columns_where_gradients_are_asked_for(keys: int, dtype: torch.dtype) -> None:
    """The same weights and gradients as a softmax over rows; one query sees nothing."""
    torch.manual_seed(0)
    scores = torch.randn(3, 2, 5, keys, dtype=dtype, requires_grad=True)
    mask = torch.rand(3, 1, 5, keys) > 0.3
    mask[..., 0], mask[0, 0, 2] = True, False
    weights = normalise(scores, mask)
    with torch.no_grad():
        rows = normalise(scores, mask)
    assert weights[0, :, 2].eq(0).all()
    assert weights.masked_select(~mask).eq(0).all()
    digits = torch.finfo(dtype).eps
    torch.testing.assert_close(weights, rows, rtol=2 * digits, atol=digits)
    wanted = scores.detach().double().requires_grad_()
    whole = wanted.masked_fill(~mask, -1e9).softmax(dim=-1).masked_fill(~mask, 0)
    change = torch.randn(whole.shape)
    (ours,) = torch.autograd.grad((weights * change.to(dtype)).sum(), scores)
    (theirs,) = torch.autograd.grad((whole * change).sum(), wanted)
    torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=8 * digits)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    batch=st.integers(1, 3),
    heads=st.integers(1, 3),
    queries=st.integers(1, 5),
    keys=st.integers(1, 5),
    size=st.integers(1, 6),
    masked=st.booleans(),
    biased=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_fused_kernel_is_the_formula(
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    size: int,
    masked: bool,
    biased: bool,
    seed: int,
) -> None:
    """T5: weights @ V equals attend for any shape, mask (with empty rows too) and bias."""
    torch.manual_seed(seed)
    q = torch.randn(batch, heads, queries, size)
    k, v = torch.randn(batch, heads, keys, size), torch.randn(batch, heads, keys, size + 1)
    mask = torch.rand(batch, 1, queries, keys) < 0.6 if masked else None
    bias = torch.randn(1, heads, queries, keys) if biased else None
    close(attend(q, k, v, mask, bias), attention_weights(q, k, mask, bias) @ v, atol=1e-5)


@pytest.mark.parametrize("mask_shape", [(2, 1, 1, 5), (1, 1, 3, 5), (2, 4, 3, 5), (5,)])
@pytest.mark.parametrize("bias_shape", [(1, 4, 3, 5), (2, 1, 1, 5), (3, 5)])
def test_mask_and_bias_broadcast(mask_shape: tuple[int, ...], bias_shape: tuple[int, ...]) -> None:
    """The mask language: anything that broadcasts to (batch, head, query, key)."""
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 3, 6), torch.randn(2, 4, 5, 6), torch.randn(2, 4, 5, 6)
    mask, bias = torch.rand(mask_shape) < 0.6, torch.randn(bias_shape)
    close(attend(q, k, v, mask, bias), attention_weights(q, k, mask, bias) @ v, atol=1e-5)


def test_gradients_of_kernel_and_formula_agree() -> None:
    """T5: not only the answer but what training sees."""
    torch.manual_seed(0)
    tensors = [torch.randn(1, 2, n, 4, requires_grad=True) for n in (3, 5, 5)]
    q, k, v = tensors
    mask = torch.rand(1, 1, 3, 5) < 0.6
    weight = torch.randn(1, 2, 3, 4)
    fused = torch.autograd.grad((attend(q, k, v, mask) * weight).sum(), tensors)
    plain = torch.autograd.grad(((attention_weights(q, k, mask) @ v) * weight).sum(), tensors)
    for left, right in zip(fused, plain, strict=True):
        close(left, right, atol=1e-5)


def test_attention_dropout_is_off_unless_asked_for() -> None:
    """Dropping weights leaves the kernel's fast path, so the default is 0 and training is exact."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2)
    x = torch.randn(1, 4, 8)
    assert attention.dropout == 0.0
    assert torch.equal(attention.train()(x), attention.eval()(x))
    dropping = MultiHeadAttention(8, 2, dropout=0.5)
    dropping.load_state_dict(attention.state_dict())
    assert not torch.equal(dropping.train()(x), attention(x))
    assert torch.equal(dropping.eval()(x), attention(x))


# --- Heads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [1, 2, 4, 8])
@pytest.mark.parametrize("masked", [False, True])
def test_packed_heads_equal_the_papers_heads(heads: int, masked: bool) -> None:
    """T9: h projections 8 -> 8/h (form b) and one packed projection (form c) are the same."""
    packed = randomise(MultiHeadAttention(8, heads))
    x = torch.randn(2, 5, 8)
    mask = torch.rand(2, 5, 5) < 0.6 if masked else None
    expected = PerHeadAttention.of(packed)(x, x, mask)
    close(packed(x, None if mask is None else mask[:, None]), expected, atol=1e-5)


@pytest.mark.parametrize("queries", [1, 3, 7])
@pytest.mark.parametrize("masked", [False, True])
def test_cross_attention_with_another_length(queries: int, masked: bool) -> None:
    """T14, E2: keys and values keep the source's length, whatever the target's is."""
    packed = randomise(MultiHeadAttention(8, 2))
    x, source = torch.randn(2, queries, 8), torch.randn(2, 5, 8)
    mask = torch.rand(2, queries, 5) < 0.6 if masked else None
    keys = packed.project(source)
    assert keys.k.shape == keys.v.shape == (2, 2, 5, 4)
    expected = PerHeadAttention.of(packed)(x, source, mask)
    close(
        packed.cross_attend(x, keys, None if mask is None else mask[:, None]), expected, atol=1e-5
    )


def test_self_attention_is_attention_over_oneself() -> None:
    """T6, T14: the same parameters, read in two ways."""
    packed = randomise(MultiHeadAttention(8, 2))
    x = torch.randn(2, 5, 8)
    close(packed.cross_attend(x, packed.project(x)), packed(x), atol=1e-6)


def test_output_projection_takes_all_heads() -> None:
    """E14: W_O has h * d_k = D inputs, not d_k; and E9: parameters do not depend on the heads."""
    sizes = set()
    for heads in (1, 2, 4):
        attention = MultiHeadAttention(8, heads)
        assert attention.out.in_features == heads * (8 // heads) == 8
        sizes.add(sum(parameter.numel() for parameter in attention.parameters()))
    assert sizes == {4 * 8 * 8 + 4 * 8}  # T9 c: four matrices D x D and four biases


def test_more_heads_give_more_maps() -> None:
    """E9: at equal width and cost, two heads are two relations; one head has a single mixed one.

    With the same weights, the scores of the one head are the sum of both heads' scores over the
    square root of 2, as sqrt(d) grows with the width of a head.
    """
    one = randomise(MultiHeadAttention(8, 1))
    two = MultiHeadAttention(8, 2)
    two.load_state_dict(one.state_dict())
    x = torch.randn(1, 4, 8)
    maps, multiplications = [], []
    for attention in (one, two):
        with record() as trace, FlopCounterMode(display=False) as counted:
            attention(x)
        (found,) = trace.records
        assert isinstance(found, SoftmaxRecord)
        maps.append(found.weights()[0])
        multiplications.append(counted.get_total_flops())
    (mixed,), (first, second) = maps
    assert (first - second).abs().max() > 0.1
    close(mixed, ((first.log() + second.log()) / 2**0.5).softmax(dim=-1), atol=1e-6)
    # In and out: 4 tokens x 8 x (24 + 8); scores and values: 4 x 4 tokens x 8, each; times two.
    assert multiplications == [2 * (4 * 8 * 32 + 2 * 4 * 4 * 8)] * 2


def test_tokens_are_a_set_to_self_attention() -> None:
    """T8: without positions, permuting the tokens permutes the answers and changes nothing else."""
    attention = randomise(MultiHeadAttention(8, 2))
    x, order = torch.randn(1, 5, 8), torch.tensor([3, 0, 4, 1, 2])
    close(attention(x[:, order]), attention(x)[:, order], atol=1e-6)


def test_masks_reach_the_heads() -> None:
    """T13: padding and causality are one boolean mask, combined with &."""
    attention = randomise(MultiHeadAttention(8, 2))
    x = torch.randn(2, 4, 8)
    tokens = torch.tensor([[5, 6, 7, 8], [5, 6, 0, 0]])
    mask = causal_mask(4) & padding_mask(tokens, pad=0)
    out = attention(x, mask)
    close(out[:, :2], attention(x[:, :2], causal_mask(2)), atol=1e-6)
    close(
        out[1, 3], attention.cross_attend(x[1:, 3:], attention.project(x[1:, :2]))[0, 0], atol=1e-6
    )


def test_heads_must_divide_the_width() -> None:
    """An error names what was given."""
    with pytest.raises(UsageError, match=r"dim 10 cannot be split into 4 heads"):
        MultiHeadAttention(10, 4)


# --- The record ---------------------------------------------------------------------------------


def test_record_computes_the_map_in_fp32() -> None:
    """T6: maps are computed when read, in fp32, from the queries and keys that were kept."""
    torch.manual_seed(0)
    q = torch.randn(1, 2, 3, 4, dtype=torch.bfloat16)
    k = torch.randn(1, 2, 5, 4, dtype=torch.bfloat16)
    mask, bias = torch.rand(1, 1, 3, 5) < 0.7, torch.randn(1, 2, 3, 5, dtype=torch.bfloat16)
    weights = SoftmaxRecord(LayerId("encoder"), q, k, mask, bias=bias).weights()
    assert weights.dtype == torch.float32
    close(weights, attention_weights(q.float(), k.float(), mask, bias.float()))


@pytest.mark.parametrize(
    ("batch", "queries", "keys", "dtype", "learning", "expected"),
    [
        (1, 4, 64, torch.float32, False, True),  # a decoding step
        (1, 5, 64, torch.float32, False, False),
        (1, 4, 512 * 512 // 4, torch.float32, False, True),
        (1, 4, 512 * 512 // 4 + 1, torch.float32, False, False),
        (16, 512, 512, torch.bfloat16, False, True),  # all maps together: 4 million numbers
        (17, 512, 512, torch.bfloat16, False, False),
        (17, 512, 512, torch.bfloat16, True, True),
        (1, 512, 512, torch.float32, True, False),
    ],
)
def test_which_kernel_computes(
    batch: int, queries: int, keys: int, dtype: torch.dtype, learning: bool, expected: bool
) -> None:
    """The limits measured in docs/decisions/fused-kernel.md; no other device than a CPU has any."""
    q = torch.empty((), dtype=dtype).expand(batch, 1, queries, 8).requires_grad_(learning)
    k = torch.empty((), dtype=dtype).expand(batch, 1, keys, 8)
    assert _formula_is_faster(q, k) == expected
    assert not _formula_is_faster(q.to("meta"), k.to("meta"))
    with torch.no_grad():
        without = _formula_is_faster(q, k)
    assert without == (expected and batch < 17)
