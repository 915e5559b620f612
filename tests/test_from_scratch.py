"""The Transformer made of tensors is the package's, and it learns."""

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.nn.layers.positions import sinusoids

PATH = Path(__file__).parents[1] / "examples" / "from_scratch.py"
PAIRS = [([3, 4, 5], [6, 7]), ([5, 3], [7, 8, 6]), ([4], [8])]


@pytest.fixture(scope="module")
def scratch() -> ModuleType:
    """The example, imported."""
    spec = importlib.util.spec_from_file_location("from_scratch", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@torch.no_grad()
def copied(theirs: Any) -> Transformer:
    """Build the package's model of the paper with the weights of the example's, in float64."""
    vocabulary, dim = theirs.embedding.shape
    attention, feed_forward = theirs.encoder[0].attention, theirs.encoder[0].feed_forward
    model = TransformerConfig(
        vocabulary=vocabulary,
        dim=dim,
        heads=len(attention.w_q),
        ffn_dim=len(feed_forward.b_1),
        encoder_layers=len(theirs.encoder),
        decoder_layers=len(theirs.decoder),
        dropout=0.0,
    ).build()
    for each in model.parameters():
        each.fill_(torch.nan)  # a parameter that is forgotten below shows
    model = model.double()
    model.embedding.weight.copy_(theirs.embedding)  # which is the output layer's, too
    layers = zip(theirs.encoder, model.encoder.blocks, strict=True)
    writers = zip(theirs.decoder, model.decoder.blocks, strict=True)
    layer: Any
    block: Any
    for layer, block in [*layers, *writers]:
        norms = [block.around_attention.norm, block.around_feedforward.norm]
        attentions = [(layer.attention, block.attention)]
        if hasattr(layer, "cross"):
            attentions.append((layer.cross, block.cross))
            norms.insert(1, block.around_cross.norm)
        for number, norm in enumerate(norms, 1):
            own = getattr(layer, f"norm_{number}")
            norm.weight.copy_(own.gain)
            norm.bias.copy_(own.bias)
        for own, packed in attentions:  # one matrix: queries of all heads, keys, values
            parts = [part.transpose(1, 2).flatten(0, 1) for part in (own.w_q, own.w_k, own.w_v)]
            packed.qkv.weight.copy_(torch.cat(parts))
            packed.qkv.bias.zero_()  # section 3.2.2 has no biases
            packed.out.weight.copy_(own.w_o.T)
            packed.out.bias.zero_()
        forward, ours = layer.feed_forward, block.feedforward
        for linear, weight, bias in (
            (ours.expand, forward.w_1, forward.b_1),
            (ours.contract, forward.w_2, forward.b_2),
        ):
            linear.weight.copy_(weight.T)
            linear.bias.copy_(bias)
    return model.eval()


def batch(scratch: ModuleType) -> tuple[Tensor, Tensor]:
    """Sources and targets of different lengths, padded."""
    sources, targets = zip(*PAIRS, strict=True)
    return scratch.padded(list(sources)), scratch.padded([[1, *target] for target in targets])


def test_it_computes_what_the_package_computes(scratch: ModuleType) -> None:
    """Logits of every position that is no padding, and the encoder's output, to 1e-6."""
    torch.manual_seed(0)
    theirs = scratch.Transformer(vocabulary=9, d=12, h=3, d_ff=20, n=2).double()
    with torch.no_grad():
        for each in theirs.parameters():  # gains, biases and zeros too
            each.copy_(torch.randn_like(each) / 2)
    ours = copied(theirs)
    source, target = batch(scratch)
    with torch.no_grad():
        torch.testing.assert_close(
            ours.encode(source)[source != 0],
            theirs.encode(source)[0][source != 0],
            rtol=0,
            atol=1e-6,
        )
        expected, logits = theirs(source, target), ours(source, target)
    torch.testing.assert_close(logits[target != 0], expected[target != 0], rtol=0, atol=1e-6)
    assert not torch.allclose(expected, theirs(source.flip(1), target), atol=1e-3)


def test_positions_are_the_packages(scratch: ModuleType) -> None:
    """And by hand: sin 0, cos 0 at first, sin 1, cos 1 then."""
    torch.testing.assert_close(scratch.positional_encoding(40, 16).float(), sinusoids(40, 16))
    first, second = scratch.positional_encoding(2, 2).tolist()
    assert first == [0, 1]
    assert second == pytest.approx([0.841471, 0.540302], abs=1e-6)


def test_the_loss_is_smoothed_cross_entropy(scratch: ModuleType) -> None:
    """Torch's, with padding left out."""
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 3, 5), torch.tensor([[3, 4, 2], [3, 2, 0]])
    expected = nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=0.1
    )
    torch.testing.assert_close(scratch.loss(logits, labels), expected)


def test_the_rate_rises_and_falls(scratch: ModuleType) -> None:
    """By hand for d = 4 and 100 steps of warm-up: 0.5 / 10 at the top."""
    rates = [scratch.learning_rate(step, 4, 100) for step in (50, 100, 400)]
    assert rates == pytest.approx([0.025, 0.05, 0.025])


def test_two_steps_learn(scratch: ModuleType) -> None:
    """Every parameter has changed, and all changes are finite; the search gives ids."""
    torch.manual_seed(0)
    model = scratch.Transformer(vocabulary=9, d=8, h=2, d_ff=16, n=1)
    before = {name: each.detach().clone() for name, each in model.named_parameters()}
    losses = scratch.train(model, PAIRS, steps=2, batch=4)
    assert len(losses) == 2
    for name, each in model.named_parameters():
        assert each.isfinite().all()
        assert not torch.equal(each, before[name]), name
    answers = scratch.translate(model, [source for source, _ in PAIRS], most=5)
    assert len(answers) == 3
    assert all(len(answer) <= 5 and set(answer) <= set(range(9)) - {2} for answer in answers)


def test_it_learns_three_pairs_by_heart(scratch: ModuleType) -> None:
    """So training, the shift of the target and the search fit together."""
    torch.manual_seed(0)
    model = scratch.Transformer(vocabulary=9, d=32, h=2, d_ff=32, n=1)
    scratch.train(model, PAIRS, steps=120, batch=12)
    sources, targets = zip(*PAIRS, strict=True)
    assert scratch.translate(model, list(sources)) == list(targets)


def test_a_vocabulary_gives_texts_back(scratch: ModuleType) -> None:
    """Digits one by one, words whole, the space with what follows it."""
    texts = ["Fri 20 Nov 2026", "2026년 11월 20일 금요일"]
    vocabulary = scratch.Vocabulary(texts)
    assert vocabulary.tokens[:2] == [" 1", " 2"]
    assert [vocabulary.decode(vocabulary.encode(text)) for text in texts] == texts
    assert vocabulary.decode(vocabulary.encode("Fri 20 Xyz")) == "Fri 20"


def test_the_command_trains_and_translates(
    scratch: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two steps: the loss, the score and the three dates are printed."""
    monkeypatch.setattr(sys, "argv", ["from_scratch.py", "--steps", "2"])
    threads = torch.get_num_threads()
    try:
        scratch.main()
    finally:
        torch.set_num_threads(threads)
    lines = capsys.readouterr().out.splitlines()
    assert "step 2: loss" in lines[1]
    assert "of 500 dates" in lines[2]
    assert lines[-1].startswith("Nov 20, 2026, 15:05 -> ")


def test_the_model_is_made_of_tensors() -> None:
    """Of torch.nn it takes Module, ModuleList and Parameter; softmax and logsumexp are torch's."""
    tree = ast.parse(PATH.read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id == "nn"
    }
    assert used == {"Module", "ModuleList", "Parameter"}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert "manyheads" not in "".join(ast.unparse(each) for each in imports)
