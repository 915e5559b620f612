"""Relevance against the equations of the paper, written out with whole matrices."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.attribution.gradients import GradientWeightedAttention, weighed
from manyheads.lens.attribution.relevance import (
    onto_grid,
    read_from,
    relevance,
    relevance_for_pool,
    relevance_of_source,
)
from manyheads.lens.view.image_view import POOL
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.recording.attention_record import AttentionContext
from manyheads.nn.recording.token_grid import Axis, TokenGrid
from manyheads.nn.recording.trace import LayerId, Trace, record
from tests.lens import examples
from tests.lens.examples import spread_windows
from tests.small import ALL, IMAGES, VITS, inputs, randomise


def explained(config: ModelConfig) -> tuple[Trace, Tensor]:
    """One example through a small model with random weights, and one of its logits."""
    model = randomise(build(config)).eval()
    with record(gradients=True) as trace:
        answer = model(*(x[:1] for x in inputs(config)))
    return trace, answer.flatten()[-2]


def by_equation_5(trace: Trace, score: Tensor) -> list[tuple[LayerId, Tensor]]:
    """A_bar of every attention, from whole maps."""
    found = []
    for entry in trace:
        if isinstance(entry, SoftmaxRecord):
            assert entry.values is not None
            (out,) = entry.values.outputs
            (gradient,) = torch.autograd.grad(score, out, retain_graph=True, allow_unused=True)
            asked = torch.zeros_like(out) if gradient is None else gradient
            weighed_map = (asked @ entry.values.v.mT * entry.weights()).clamp_min(0)
            if entry.partition is not None:
                weighed_map = spread_windows(entry.partition, weighed_map)
            found.append((entry.layer_id, weighed_map[0].mean(dim=0)))
    return found


def normalised(r: Tensor) -> Tensor:
    """Equations 8 and 9."""
    hat = r - torch.eye(len(r))
    return (hat / hat.sum(dim=-1, keepdim=True)).nan_to_num(0.0) + torch.eye(len(r))


def alone(trace: Trace, score: Tensor) -> list[GradientWeightedAttention]:
    return [each for each in weighed(trace, score) if each.attention.layer_id.stack != POOL]


@pytest.mark.parametrize("name", ["vit-b", "deit-b", "compact-vit-7", "bert-tiny", "gpt-tiny"])
def test_self_attention_is_equation_6(name: str) -> None:
    """R = R + A R from the bottom up; of it the rows that are read, without the identity."""
    trace, score = explained(ALL[name])
    maps = [weights for _, weights in by_equation_5(trace, score) if len(weights) > 1]
    r = torch.eye(len(maps[0]))
    for weights in maps:
        r = r + weights @ r
    start = torch.rand(len(r), generator=torch.Generator().manual_seed(0))
    expected = start @ r - start
    assert expected.abs().max() > 1e-6
    torch.testing.assert_close(relevance(alone(trace, score), start), expected)


def test_the_windows_of_a_stage_are_one_map() -> None:
    """V16: shifted windows too; tokens of the second stage hand on to the four they were."""
    config = IMAGES["swin-t"]
    trace, score = explained(config)
    maps = by_equation_5(trace, score)
    layers = alone(trace, score)
    assert [each.attention.layer_id for each in layers] == [layer_id for layer_id, _ in maps]
    last = [weights for layer_id, weights in maps if layer_id.stack == "stage 2"]
    r = torch.eye(len(last[0]))
    for weights in last:
        r = r + weights @ r
    start = read_from(layers[-1])
    assert torch.allclose(start, torch.full_like(start, 1 / 12))  # the mean of 3 x 4 tokens
    top = relevance(layers[2:], start)
    torch.testing.assert_close(top, start @ r - start)
    # Down to the 6 x 7 tokens of stage 1: row r of 3 holds rows 2r and 2r + 1, the last column one.
    below = torch.eye(42)
    for layer_id, weights in maps:
        if layer_id.stack == "stage 1":
            below = below + weights @ below
    shared = onto_grid(top + start, *(each.attention.query_grid for each in (layers[2], layers[0])))  # type: ignore[arg-type]
    grid = (top + start).view(3, 4)
    assert float(shared.view(6, 7)[3, 5]) == pytest.approx(float(grid[1, 2]) / 4)
    assert float(shared.view(6, 7)[3, 6]) == pytest.approx(float(grid[1, 3]) / 2)
    own = onto_grid(start, *(each.attention.query_grid for each in (layers[2], layers[0])))  # type: ignore[arg-type]
    torch.testing.assert_close(relevance(layers, start), shared @ below - own)


def test_a_learned_query_is_equation_10() -> None:
    """V2: a pool asks the tokens as a decoder asks an encoder, with a query of its own."""
    for config in (ALL["cct-7/3x1"], VITS["2-D sinusoids, attention pool"]):
        trace, score = explained(config)
        *maps, (layer_id, asked) = by_equation_5(trace, score)
        assert layer_id.stack == POOL
        r = torch.eye(asked.shape[1])
        for _, weights in maps:
            r = r + weights @ r
        found = weighed(trace, score)
        expected = (asked @ normalised(r))[0]
        torch.testing.assert_close(relevance_for_pool(found[:-1], found[-1]), expected)


@pytest.mark.parametrize("name", ["transformer-base", "transformer-deep"])
def test_an_encoder_decoder_is_equations_6_to_10(name: str) -> None:
    """T14: the paper's own order, with R of the source, of the target and between them."""
    trace, score = explained(ALL[name])
    maps = by_equation_5(trace, score)
    (sources,) = {len(weights) for layer_id, weights in maps if layer_id.stack == "encoder"}
    (targets,) = {len(weights) for layer_id, weights in maps if layer_id.kind == "cross"}
    ii, tt, ti = torch.eye(sources), torch.eye(targets), torch.zeros(targets, sources)
    for layer_id, weights in maps:
        if layer_id.stack == "encoder":
            ii = ii + torch.matmul(weights, ii)
        elif layer_id.kind == "self":
            ti = ti + torch.matmul(weights, ti)
            tt = tt + torch.matmul(weights, tt)
        else:
            ti = ti + torch.matmul(normalised(tt).T, torch.matmul(weights, normalised(ii)))
    assert ti.abs().max() > 1e-6
    found = weighed(trace, score)
    for start in (*torch.eye(targets), torch.arange(targets) + 0.5):  # each row, and a mixture
        torch.testing.assert_close(relevance_of_source(found, start), start @ ti)


def test_a_recurrent_decoder_is_its_attention() -> None:
    """T4: A of the cross-attention, weighed by the gradient; no other map is there."""
    trace, score = explained(ALL["seq2seq-lstm-attention"])
    (layer,) = weighed(trace, score)
    for row, expected in enumerate(layer.whole()):
        start = torch.eye(layer.attention.shape[0])[row]
        torch.testing.assert_close(relevance_of_source([layer], start), expected)
    assert layer.whole().sum() > 0


def test_two_tokens_by_hand() -> None:
    """A = [[3/4, 1/4], [1/2, 1/2]], V = [1, -5], score = first answer: dL/dA = [[1, -5], [0, 0]].

    So A_bar = [[3/4, 0], [0, 0]], the second token speaks against; R - I is the same.
    """
    weights = torch.tensor([[[0.75, 0.25], [0.5, 0.5]]])
    from manyheads.nn.attention.attention import attend

    kept = examples.record_of(LayerId("encoder", 0, "self"), weights)
    v = torch.tensor([[[[1.0], [-5.0]]]], requires_grad=True)
    with record(gradients=True) as trace:
        out = attend(kept.q, kept.k, v, context=AttentionContext(kept.layer_id))
    (layer,) = weighed(trace, out[0, 0, 0, 0])
    torch.testing.assert_close(layer.whole(), torch.tensor([[0.75, 0.0], [0.0, 0.0]]))
    torch.testing.assert_close(relevance([layer], torch.tensor([1.0, 0.0])), layer.whole()[0])
    assert torch.equal(read_from(layer), torch.tensor([1.0, 0.0]))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("vit-b", [1, 0, 0, 0, 0, 0, 0]),
        ("deit-b", [1, 1, 0, 0, 0, 0, 0, 0]),
        ("mean pool, linear patches", [1] * 6),
        ("patch mean, normed after", [0, *[1] * 6]),
    ],
)
def test_what_the_answer_is_read_from_is_found(name: str, read: Sequence[int]) -> None:
    """V2, V15: by the gradient, so no model has to tell."""
    trace, score = explained({**ALL, **VITS}[name])
    expected = torch.tensor(read) / sum(read)
    assert torch.equal(read_from(alone(trace, score)[-1]), expected)


def test_spreading_keeps_the_sum() -> None:
    """Where a class token is not there yet its share ends; each token is somebody's."""
    image = (12, 12)
    fine = TokenGrid(
        image, Axis(4, stride=3, receptive_field=3), Axis(4, stride=3, receptive_field=3)
    )
    coarse = TokenGrid(image, Axis(2, -3, 6, 9), Axis(2, -3, 6, 9), ("class token",))
    x = torch.tensor([5.0, 1.0, 2.0, 3.0, 4.0])
    found = onto_grid(x, coarse, fine)
    assert found.sum() == 10
    assert onto_grid(x, coarse, coarse) is x
    # Three tokens over one: none is nearest to two of them, and nothing is lost.
    three, one = (TokenGrid((3, 1), Axis(n, first, 1), Axis(1)) for n, first in ((3, 0), (1, 1)))
    assert onto_grid(torch.tensor([1.0, 2.0, 4.0]), three, one).tolist() == [7.0]


def test_a_trace_without_gradients_is_refused() -> None:
    config = ALL["vit-b"]
    model = randomise(build(config)).eval()
    with record() as trace:
        score = model(*(x[:1] for x in inputs(config)))[0, 0]
    with pytest.raises(UsageError, match=r"record\(gradients=True\)"):
        weighed(trace, score)
    with torch.no_grad(), record(gradients=True) as trace:
        score = model(*(x[:1] for x in inputs(config)))[0, 0]
    with pytest.raises(UsageError, match="has no gradient"):
        weighed(trace, score)
