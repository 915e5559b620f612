"""Looking never changes the answer: every preset, every precision, training and evaluation."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.models.captioner import CaptionerConfig
from manyheads.models.cct import CctConfig
from manyheads.models.coatnet import CoatnetConfig
from manyheads.models.cvt import CvtConfig
from manyheads.models.line_reader import LineReaderConfig
from manyheads.models.matcher import MatcherConfig
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build
from manyheads.models.swin import SwinConfig
from manyheads.models.transformer import TransformerConfig
from manyheads.models.vit import VitConfig
from manyheads.nn.attention import attention
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.blocks import pool
from manyheads.nn.recording.trace import Trace, record
from tests import reverser
from tests.lens.examples import whole_maps
from tests.small import (
    EVERY,
    TRANSFORMERS,
    VITS,
    Both,
    ImageModel,
    Reader,
    Stacked,
    answer,
    inputs,
    randomise,
)

# At test size some presets are the same model: `make full` has it under each name.
FIRST = {config: name for name, config in reversed(EVERY.items())}
presets = pytest.mark.parametrize(
    "config",
    [
        pytest.param(config, id=name, marks=() if FIRST[config] == name else pytest.mark.full)
        for name, config in EVERY.items()
    ],
)


def both(run: Callable[[], Tensor]) -> tuple[Tensor, Tensor, Trace]:
    """Run without and with a recorder, from the same random state."""
    torch.manual_seed(0)
    plain = run()
    torch.manual_seed(0)
    with record() as trace:
        recorded = run()
    assert plain.isfinite().all()
    assert plain.std() > 0
    return plain, recorded, trace


def attentions(config: ModelConfig) -> int:
    if isinstance(config, CaptionerConfig):  # whose pool does not run
        image: Any = config.image
        return attentions(replace(image, pool="mean")) + 2 * config.decoder_layers
    if isinstance(config, MatcherConfig):
        return attentions(config.image) + config.layers
    if isinstance(config, TransformerConfig):
        return config.encoder_layers + 2 * config.decoder_layers
    if isinstance(config, CoatnetConfig):
        return sum(config.layers[config.convolutions :])
    if isinstance(config, SwinConfig | CvtConfig):
        return sum(config.layers)
    pools = isinstance(config, VitConfig | CctConfig) and config.pool in (
        "sequence",
        "attention",
        "map",
    )
    assert isinstance(config, ImageModel | Reader | LineReaderConfig)
    assert isinstance(config.layers, int)
    return config.layers + pools


@presets
@pytest.mark.parametrize(
    ("precision", "grad"),
    [
        ("fp32", False),
        ("bf16 autocast", True),
        ("bf16 weights", False),
        pytest.param("fp32", True, marks=pytest.mark.full),
        pytest.param("bf16 autocast", False, marks=pytest.mark.full),
        pytest.param("bf16 weights", True, marks=pytest.mark.full),
    ],
)
def test_recorded_equals_unrecorded(config: Stacked, precision: str, grad: bool) -> None:
    """T5, design: bitwise equal logits, in evaluation."""
    model, arguments = randomise(build(config)).eval(), inputs(config)
    context: Callable[[], AbstractContextManager[Any]] = nullcontext
    if precision == "bf16 autocast":
        context = lambda: torch.autocast("cpu", torch.bfloat16)  # noqa: E731
    elif precision == "bf16 weights":
        model = model.bfloat16()
        arguments = tuple(x.bfloat16() if x.is_floating_point() else x for x in arguments)
    with context(), torch.set_grad_enabled(grad):
        plain, recorded, trace = both(lambda: answer(model, arguments))
    assert torch.equal(plain, recorded)
    low = precision != "fp32"
    if isinstance(config, MatcherConfig):  # whose vectors are fp32
        low = precision == "bf16 autocast"
    assert plain.dtype == (torch.bfloat16 if low else torch.float32)
    assert len(trace) == attentions(config)


@presets
@pytest.mark.parametrize("attention_dropout", [0.0, 0.2])
def test_recorded_equals_unrecorded_in_training(config: Stacked, attention_dropout: float) -> None:
    """Also with dropout of values and of weights, from the same seed, and so are the gradients."""
    rates: Any = {"dropout": 0.2, "attention_dropout": attention_dropout}
    if isinstance(config, Both):
        rates["image"] = replace(config.image, **rates)
    model = randomise(build(replace(config, **rates)))
    arguments = inputs(config)
    gradients = []

    def run() -> Tensor:
        model.zero_grad()
        out = answer(model.train(), arguments)
        out.square().sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
        return out

    plain, recorded, trace = both(run)
    assert torch.equal(plain, recorded)
    assert len(trace) == attentions(config)
    for left, right in zip(*gradients, strict=True):
        assert left is not None
        assert right is not None
        assert torch.equal(left, right)
    assert not torch.equal(plain, answer(model.eval(), arguments))  # dropout was really on


@presets
def test_recorded_weights_are_those_that_were_used(
    config: Stacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T5: the maps read from a trace, times V, give what the fused kernel answered."""
    seen: list[tuple[Tensor, Tensor]] = []
    attend = attention.attend

    def spy(q: Tensor, k: Tensor, v: Tensor, *rest: Any, **options: Any) -> Tensor:
        out = attend(q, k, v, *rest, **options)
        seen.append((v, out))
        return out

    monkeypatch.setattr(attention, "attend", spy)
    monkeypatch.setattr(pool, "attend", spy)
    model = randomise(build(config)).eval()
    with record() as trace:
        model(*inputs(config))
    assert len(seen) == len(trace) == attentions(config)
    for entry, (v, out) in zip(trace, seen, strict=True):
        assert isinstance(entry, SoftmaxRecord)
        torch.testing.assert_close(entry.weights() @ v, out, atol=1e-5, rtol=0)
        # Where padding is hidden, its own rows are empty; where it is seen, it takes a share.
        hidden = entry.partition is None or not entry.partition.padding_attended
        sums = (whole_maps(entry) if hidden else entry.weights()).sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))  # no empty row here


@pytest.mark.parametrize("config", TRANSFORMERS.values(), ids=TRANSFORMERS)
def test_sites_of_a_transformer(config: TransformerConfig) -> None:
    """T12-T14: encoder layers, then for each decoder layer itself and the source."""
    with record() as trace:
        build(config)(*inputs(config))
    expected = [f"encoder layer {n + 1} self" for n in range(config.encoder_layers)]
    for n in range(config.decoder_layers):
        expected += [f"decoder layer {n + 1} self", f"decoder layer {n + 1} cross"]
    assert [str(entry.layer_id) for entry in trace] == expected


def test_sites_of_a_vit() -> None:
    """M1: images go through the same encoder, so the layer_ids have the same names."""
    with record() as trace:
        build(VITS["vit-b"])(*inputs(VITS["vit-b"]))
    assert [str(entry.layer_id) for entry in trace] == [
        "encoder layer 1 self",
        "encoder layer 2 self",
    ]


def test_maps_of_a_padded_batch() -> None:
    """T13, T14: no map looks at padding or ahead; cross maps are target x source."""
    config = TRANSFORMERS["transformer-base"]
    source, target = inputs(config)  # 5 source tokens, of which the second sentence has 3; 4 target
    with record() as trace:
        build(config)(source, target)
    maps = {
        str(entry.layer_id): entry.weights() for entry in trace if isinstance(entry, SoftmaxRecord)
    }
    assert maps["encoder layer 1 self"].shape == (2, 2, 5, 5)
    assert maps["encoder layer 1 self"][1, ..., 3:].eq(0).all()
    assert maps["decoder layer 1 self"].shape == (2, 2, 4, 4)
    assert maps["decoder layer 1 self"].triu(1).eq(0).all()
    assert maps["decoder layer 1 cross"].shape == (2, 2, 4, 5)
    assert maps["decoder layer 1 cross"][1, ..., 3:].eq(0).all()


def test_recording_a_search() -> None:
    """T17: decoding is recorded step by step and finds the same."""
    model, config = reverser.trained(), reverser.CONFIG
    source = reverser.padded([[3, 4, 5], [6, 7, 8, 9]])

    def greedy() -> Any:
        return greedy_search(model, source, [9, 9], start=config.start, end=config.end)

    def beam() -> Any:
        return beam_search(model, source, [9, 9], beams=3, start=config.start, end=config.end)

    for search in (greedy, beam):
        plain = search()
        with record() as trace:
            assert search() == plain
        encoder = [entry for entry in trace if entry.layer_id.stack == "encoder"]
        assert len(encoder) == config.encoder_layers
        decoder = [entry for entry in trace if entry.layer_id.stack == "decoder"]
        steps = len(decoder) / (2 * config.decoder_layers)
        assert steps == int(steps) >= 5  # four letters and the end
        assert len(trace) == len(encoder) + len(decoder) + steps  # and a record of candidates each
