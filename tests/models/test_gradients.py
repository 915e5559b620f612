"""What a recorder of gradients keeps: the answer stays, and dL/dA follows from O and V."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from manyheads.models.line_reader import LineReaderConfig
from manyheads.models.presets import PRESETS, build
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.features import FeatureRecord
from manyheads.nn.recording.trace import record
from tests.small import (
    ALL,
    IMAGES,
    SEQ2SEQS,
    TRANSFORMERS,
    VITS,
    Both,
    Images,
    answer,
    inputs,
    randomise,
)


@pytest.mark.parametrize("name", PRESETS)
def test_recorded_with_gradients_is_unrecorded(name: str) -> None:
    """Design: bitwise, for every preset; every model of images but the MLP has features."""
    config = ALL[name]
    model = randomise(build(config)).eval()
    plain = answer(model, inputs(config))
    with record(gradients=True) as trace:
        recorded = answer(model, inputs(config))
    with record() as cheap:
        answer(model, inputs(config))
    assert torch.equal(recorded, plain)
    features = any(isinstance(entry, FeatureRecord) for entry in trace)
    of_images = isinstance(config, Images | Both | LineReaderConfig)
    assert features == (of_images and name != "mlp")
    assert all(getattr(entry, "values", None) is None for entry in cheap)
    assert not any(isinstance(entry, FeatureRecord) for entry in cheap)


@pytest.mark.parametrize(
    "name",
    [
        "transformer-base",
        "vit-b",
        "swin-t",
        "swin as timm pads",
        "cvt-13",
        "coatnet-0",
        "cct-7/3x1",
        "attention pool",
        "linear",
        "additive",
        "fed",
    ],
)
def test_the_gradient_of_a_map_is_that_of_the_formula(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dL/dA = dL/dO V^T: against autograd through an explicit softmax, in double precision."""
    config: Any = {
        **ALL,
        "swin as timm pads": IMAGES["swin as timm pads"],
        "attention pool": VITS["2-D sinusoids, attention pool"],
        "linear": VITS["vit-b"].__class__(**{**vars(VITS["vit-b"]), "attention": "linear"}),
        "additive": SEQ2SEQS["deep decoder, additive"],
        "fed": SEQ2SEQS["dot, fed"],
    }[name]
    model = randomise(build(config)).eval().double()
    given = tuple(x.double() if x.is_floating_point() else x for x in inputs(config))

    with record(gradients=True) as trace:
        score = model(*given)[0].square().sum()
    kept = [e for e in trace if isinstance(e, AttentionRecord)]
    flows = [entry.values for entry in kept]
    assert all(values is not None for values in flows)
    found = []
    for values in flows:
        assert values is not None
        gradients = torch.autograd.grad(score, values.outputs, retain_graph=True)
        found.append(values.join_gradients(gradients) @ values.v.mT)

    maps = explicit_maps(monkeypatch)
    again = model(*given)[0].square().sum()
    torch.testing.assert_close(again, score)
    again.backward()
    expected = []
    for each in maps:
        assert each.grad is not None
        expected.append(each.grad)
    if name == "fed":  # a map a step there, all steps in one here
        expected = [torch.cat(expected, dim=-2)]
    assert len(found) == len(expected) > 0
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right.view_as(left), atol=1e-9, rtol=1e-9)


def explicit_maps(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Replace every attention by the formula, and collect its maps."""
    from manyheads.nn.attention import attention, linear_attention
    from manyheads.nn.attention import recurrent_attention as alignment
    from manyheads.nn.attention.linear_attention import implied_weights
    from manyheads.nn.attention.softmax import attention_weights, normalise

    maps: list[Tensor] = []

    def keep(weights: Tensor) -> Tensor:
        weights.retain_grad()
        maps.append(weights)
        return weights

    def mix(q: Tensor, k: Tensor, v: Tensor, mask: Any, bias: Any, dropout: float) -> Tensor:
        return keep(attention_weights(q, k, mask, bias)) @ v

    def linear(q: Tensor, k: Tensor, v: Tensor, present: Any = None) -> Tensor:
        return keep(implied_weights(q, k, present)) @ v

    def weights(self: Any, scores: Tensor, source: Any) -> Tensor:
        return keep(normalise(scores, source.mask))

    monkeypatch.setattr(attention, "_mix", mix)
    monkeypatch.setattr(linear_attention, "linear_attend", linear)
    monkeypatch.setattr(alignment.GlobalAttention, "weights", weights)
    return maps


def test_two_tokens_by_hand() -> None:
    """T5: q k^T / sqrt(1) = [[ln 3, 0], [0, 0]], so A = [[3/4, 1/4], [1/2, 1/2]]; V = [1, 5]."""
    from manyheads.nn.attention.attention import attend

    q, k = torch.tensor([[[[1.0], [0.0]]]]), torch.tensor([[[[math.log(3)], [0.0]]]])
    v = torch.tensor([[[[1.0], [5.0]]]])
    with record(gradients=True) as trace:
        out = attend(q.requires_grad_(), k, v)
    torch.testing.assert_close(out.flatten(), torch.tensor([2.0, 3.0]))
    (kept,) = trace
    assert isinstance(kept, SoftmaxRecord)
    assert kept.values is not None
    score = 10 * out[0, 0, 0, 0] + out[0, 0, 1, 0]
    (gradient,) = torch.autograd.grad(score, kept.values.outputs)
    by_hand = torch.tensor([[10.0, 50.0], [1.0, 5.0]])
    torch.testing.assert_close(
        (kept.values.join_gradients([gradient]) @ kept.values.v.mT)[0, 0], by_hand
    )


def test_features_of_texts_are_not_kept() -> None:
    """They stand nowhere."""
    config = TRANSFORMERS["transformer-base"]
    with record(gradients=True) as trace:
        build(config)(*inputs(config))
    assert not any(isinstance(entry, FeatureRecord) for entry in trace)


def test_features_lie_on_their_grid() -> None:
    """V2: without the class token, row by row; the last tokens are those before the last block."""
    config = VITS["vit-b"]
    model = randomise(build(config)).eval()
    entered: list[Tensor] = []
    block = model.get_submodule("encoder.blocks.1")
    assert isinstance(block, nn.Module)
    block.register_forward_pre_hook(lambda part, given: entered.append(given[0]))
    with record(gradients=True) as trace:
        model(*inputs(config))
    kept = [entry for entry in trace if isinstance(entry, FeatureRecord)]
    assert [str(entry.layer_id) for entry in kept] == [
        "features layer 1 tokens",
        "features layer 2 tokens",
    ]
    laid = kept[-1].to_map(kept[-1].x)
    assert laid.shape == (2, 8, 2, 3)
    assert torch.equal(laid[:, :, 1, 2], entered[0][:, -1])
