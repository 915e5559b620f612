"""Every preset can be looked into: nothing changes, maps are the formula, positions are known."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from manyheads.lens.trace.attention_reader import Attention, attentions, examples
from manyheads.lens.trace.gates import gate_maps
from manyheads.lens.trace.grids import Crop
from manyheads.lens.view.image_view import image_view
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import PRESETS, build
from manyheads.nn.attention.linear_attention import ImpliedRecord
from manyheads.nn.attention.recurrent_attention import ScoreRecord
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import Trace, record
from manyheads.nn.rnn import RecurrentRecord
from tests.small import (
    ALL,
    IMAGES,
    SEQ2SEQS,
    TRANSFORMERS,
    VITS,
    Images,
    answer,
    inputs,
    randomise,
)

# Presets that neither attend nor have cells.
SILENT = ("mlp", "vgg-", "resnet-", "bit-", "airbench")


def traced(config: ModelConfig, examples: int = 2) -> tuple[Tensor, Trace]:
    model = randomise(build(config)).eval()
    with record() as trace, torch.no_grad():
        found = answer(model, [x[:examples] for x in inputs(config)])
    return found, trace


@pytest.mark.parametrize("name", PRESETS)
def test_recorded_is_unrecorded(name: str) -> None:
    """Design: bitwise, for every preset; something is recorded of all that attends or has cells."""
    config = ALL[name]
    recorded, trace = traced(config)
    with torch.no_grad():
        plain = answer(randomise(build(config)).eval(), inputs(config))
    assert plain.std() > 0
    assert torch.equal(recorded, plain)
    assert (len(trace) > 0) == (not name.startswith(SILENT))


# Beside the presets: what only recipes select, such as windows that are padded.
FORMULAS: dict[str, ModelConfig] = {
    **ALL,
    **{f"seq2seq: {name}": config for name, config in SEQ2SEQS.items()},
    **{f"transformer: {name}": config for name, config in TRANSFORMERS.items()},
    **IMAGES,
    "linear": replace(VITS["vit-b"], attention="linear"),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_maps_are_the_formula_in_double_precision(name: str) -> None:
    """T5: softmax(QK^T / sqrt(d)) of what was recorded, within 1e-6; of two padded sentences.

    Of windows with bias and mask; of the scores of an RNN; and of linear attention the map that
    is implied, phi(q) phi(k)^T with its rows divided by their sums.
    """
    _, trace = traced(FORMULAS[name])
    for entry in trace:
        if not isinstance(entry, AttentionRecord):
            continue
        mask = torch.tensor(True) if entry.mask is None else entry.mask
        if isinstance(entry, ImpliedRecord):
            q, k = (nn.functional.elu(each.double()) + 1 for each in (entry.q, entry.k))
            scores = (q @ k.mT) * mask
            expected = scores / scores.sum(-1, keepdim=True)
        else:
            if isinstance(entry, ScoreRecord):
                scores = entry.scores.double()
            else:
                assert isinstance(entry, SoftmaxRecord)
                scores = entry.q.double() @ entry.k.double().mT / math.sqrt(entry.q.shape[-1])
                scores = scores + (0.0 if entry.bias is None else entry.bias.double())
            hidden = scores.masked_fill(~mask, -math.inf)
            expected = nn.functional.softmax(hidden, dim=-1).nan_to_num(0.0)
        torch.testing.assert_close(entry.weights().double(), expected, atol=1e-6, rtol=0)
        if isinstance(entry, SoftmaxRecord) and entry.partition is not None:
            assert_spread(entry, expected)


def assert_spread(entry: SoftmaxRecord, expected: Tensor) -> None:
    """The whole map has each window's weights where its tokens stand, and nothing elsewhere."""
    assert entry.partition is not None
    index = entry.partition.token_index()
    found = torch.stack([Attention(entry, n).whole() for n in range(examples(entry))])
    whole = torch.zeros(found.shape, dtype=torch.float64)
    for row, weights in enumerate(expected):
        window = index[row % len(index)].tolist()
        for query, one in enumerate(window):
            for key, other in enumerate(window):
                if one >= 0 and other >= 0:
                    whole[row // len(index), :, one, other] = weights[:, query, key]
    torch.testing.assert_close(found.double(), whole, atol=1e-6, rtol=0)


def test_all_kinds_of_maps_are_compared() -> None:
    """The test above has something to compare of each kind: masks, biases, windows, scores."""
    entries = [entry for name in FORMULAS for entry in traced(FORMULAS[name])[1]]
    found = [entry for entry in entries if isinstance(entry, AttentionRecord)]
    softmax = [entry for entry in found if isinstance(entry, SoftmaxRecord)]
    assert any(isinstance(entry, ImpliedRecord) for entry in found)
    scores = [entry for entry in found if isinstance(entry, ScoreRecord)]
    assert any(entry.mask is not None and not entry.mask.all() for entry in scores)
    cross = [entry for entry in softmax if entry.layer_id.kind == "cross"]
    assert any(entry.mask is not None and not entry.mask.all() for entry in cross)
    windowed = [entry for entry in softmax if entry.partition is not None]
    assert any(entry.bias is not None for entry in windowed)
    assert any(entry.mask is not None and not entry.mask.all() for entry in windowed)


@pytest.mark.parametrize("name", [*IMAGES, *(n for n in ALL if n.startswith("hybrid"))])
def test_every_model_of_images_that_attends_is_described(name: str) -> None:
    """Boxes tile the crop; every map has a label a token; rows are what whole maps say."""
    config = IMAGES[name] if name in IMAGES else ALL[name]
    assert isinstance(config, Images)
    _, trace = traced(config, examples=1)
    crop = Crop(3, 5, 3 + 2 * config.width, 5 + 3 * config.height)
    view = image_view(trace, width=99, height=99, crop=crop, classes=[("a", 1.0)])
    whole = attentions(trace)
    assert [found.site for found in view.maps] == [str(found.layer_id) for found in whole]
    for found, expected in zip(view.maps, whole, strict=True):
        torch.testing.assert_close(torch.tensor(found.weights), expected.whole(), atol=6e-5, rtol=0)
        assert len(found.rows) == expected.whole().shape[1]
        assert len(found.columns) == expected.whole().shape[2]
    for grid in view.grids:
        assert len(grid.boxes) == grid.rows * grid.columns
        area = sum(high * wide for _, _, high, wide in grid.boxes)
        assert area == pytest.approx(6 * config.width * config.height, rel=1e-2)
        assert grid.boxes[0][:2] == [crop.top, crop.left]
    assert (not view.overlays) == any("rollout is not defined" in note for note in view.notes)
    for overlay in view.overlays:
        grid = view.grids[overlay.grid]
        assert len(overlay.weights) == grid.rows * grid.columns
        if not grid.extra:
            assert sum(overlay.weights) == pytest.approx(1, abs=1e-3)


def test_rollout_is_defined_where_tokens_stay() -> None:
    """One grid from first to last; where it changes, or keys are fewer, the reason is said."""

    def reason(config: Images) -> str | None:
        view = image_view(traced(config, 1)[1], width=8, height=8, classes=[])
        return None if view.overlays else view.notes[-1]

    assert reason(IMAGES["vit: vit-b"]) is None
    assert reason(IMAGES["deit: deit-b"]) is None
    assert reason(IMAGES["cct: cct-7/3x1"]) is None
    assert "the tokens change on the way: 6 x 7" in str(reason(IMAGES["swin-t"]))
    assert "16 queries with 4 keys" in str(reason(IMAGES["cvt-13"]))
    assert "goes to padding" in str(reason(IMAGES["swin as timm pads"]))


@pytest.mark.parametrize("name", SEQ2SEQS)
def test_recurrent_translators_show_alignment_and_gates(name: str) -> None:
    """T2, T4: a map of target x source where there is attention, gates of every layer."""
    config = SEQ2SEQS[name]
    _, trace = traced(config, examples=1)
    found = [each.layer_id for each in attentions(trace) if each.layer_id.kind == "cross"]
    expected = (
        [] if config.attention == "none" else [f"decoder layer {config.decoder_layers} cross"]
    )
    assert list(map(str, found)) == expected
    kept = {str(entry.layer_id) for entry in trace if isinstance(entry, RecurrentRecord)}
    directions = 1 + config.bidirectional
    assert len(kept) == directions * config.encoder_layers + config.decoder_layers
    gates = {str(each.layer_id) for each in gate_maps(trace)}
    assert gates == (set() if config.cell == "rnn" else kept)  # a plain RNN has no gates
