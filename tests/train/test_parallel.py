"""Blocks, recomputed activations, compiled models."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from manyheads.errors import UsageError
from manyheads.models.presets import preset
from manyheads.nn.blocks.block import DecoderBlock, EncoderBlock
from manyheads.nn.vision.residual_block import BasicBlock
from manyheads.train.model_wrapping import blocks, gathered, gradient_sync, prepare
from tests.train.started import run_ranks
from tests.train.test_distribute import losses
from tests.train.toy import config, network

ROOT = Path(__file__).parents[2]


def test_blocks_say_that_they_are() -> None:
    """Of text and of images; not the model itself, which has methods to be called too."""
    translator = preset("transformer-tiny").build()
    assert {type(each) for each in blocks(translator)} == {EncoderBlock, DecoderBlock}
    assert {type(each) for each in blocks(preset("resnet-18").build())} == {BasicBlock}
    assert blocks(network()) == []


@pytest.mark.parametrize("name", ["vit-ti", "resnet-18"])
def test_recomputed_activations_change_nothing(name: str) -> None:
    """The same gradients with dropout, and the same running statistics of batch norm."""
    found = []
    for again in (False, True):
        torch.manual_seed(0)
        model = preset(name).build()
        for part in model.modules():
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=0.1)  # heads begin with zeros
        model = prepare(model, config(checkpoint_activations=again)).train()
        size = 32 if name == "resnet-18" else 224
        torch.manual_seed(1)
        model(torch.randn(2, 3, size, size)).square().sum().backward()
        gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        found.append(gradients | dict(model.named_buffers()))
    plain, recomputed = found
    assert plain.keys() == recomputed.keys()
    assert len(plain) > 10
    assert all(torch.equal(plain[each], recomputed[each]) for each in plain)


def test_nothing_to_recompute() -> None:
    with pytest.raises(UsageError, match="Sequential has no blocks"):
        prepare(network(), config(checkpoint_activations=True))


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(UsageError, match=r"there is no g\+\+ or clang\+\+"):
        prepare(network(), config(compile=True))


def test_only_training_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluation, and what is computed without gradients, runs as it is written."""
    calls = []

    def compiled(forward: Any) -> Any:
        def fast(x: torch.Tensor) -> torch.Tensor:
            calls.append(torch.is_grad_enabled())
            return forward(x)

        return fast

    monkeypatch.setattr(torch, "compile", compiled)
    model = prepare(network(), config(compile=True)).train()
    x = torch.randn(2, next(model.parameters()).shape[1])
    model(x)
    assert calls == [True]
    with torch.no_grad():
        model(x)
    model.eval()(x)
    assert calls == [True]


def test_one_process_gathers_nothing() -> None:
    model = network()
    with gradient_sync(model, now=False), gathered(model):
        assert prepare(model, config()) is model


@pytest.mark.full
def test_compiled_blocks_are_computed_again() -> None:
    """Both settings together; checkpoint's own contexts cannot be compiled."""
    subprocess.run([sys.executable, "-c", AGAIN], check=True, cwd=ROOT)


AGAIN = """
from dataclasses import replace
import torch
from manyheads.models.presets import preset
from manyheads.train.model_wrapping import prepare
from tests.train.toy import config
found = []
for fast in (False, True):
    torch.manual_seed(0)
    model = replace(preset("transformer-tiny"), dropout=0.0).build()
    model = prepare(model, config(compile=fast, checkpoint_activations=True)).train()
    torch.manual_seed(1)
    texts = torch.randint(5, 90, (3, 6)), torch.randint(5, 90, (3, 7))
    loss = model(*texts, None, lambda layer, x: layer(x).square().mean())
    loss.backward()
    found.append([loss.detach(), *(p.grad for p in model.parameters())])
torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4)
"""


@pytest.mark.full
def test_a_compiled_model_learns_the_same(tmp_path: Path) -> None:
    """In a process without jaxtyping's hook, which cannot be compiled."""
    run_ranks("curves", 1, tmp_path, cases=["image"])
    (tmp_path / "compiled").mkdir()
    run_ranks("curves", 1, tmp_path / "compiled", config={"compile": True}, cases=["image"])
    plain = pytest.approx(losses(tmp_path / "image-alone"), rel=1e-4)
    assert losses(tmp_path / "compiled" / "image-alone") == plain


LENGTHS = """
from functools import partial
import torch
from manyheads.models.presets import preset
from manyheads.train.model_wrapping import prepare
from tests.train.toy import config
torch.compile = partial(torch.compile, backend="eager")
model = prepare(preset("transformer-tiny").build(), config(compile=True)).train()
for pairs, source, target in [(n, 20 - n, 3 * n % 11 + 4) for n in range(4, 16)]:
    scored = torch.rand(pairs, target) > 0.3
    readout = lambda layer, x: layer(x).square().sum()
    texts = torch.randint(5, 90, (pairs, source)), torch.randint(5, 90, (pairs, target))
    model(*texts, scored, readout).backward()
    print(torch._dynamo.utils.counters["stats"]["unique_graphs"])
"""


def test_texts_of_other_lengths_are_not_compiled_anew() -> None:
    """Two kinds of blocks, each once for one size and once for all; one more of both is allowed."""
    command = [sys.executable, "-c", LENGTHS]
    graphs = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    first, *_, last = map(int, graphs.stdout.split())
    assert first == 2
    assert last <= 6


@pytest.mark.full
def test_two_ranks_in_bf16_and_with_recomputed_activations(tmp_path: Path) -> None:
    how = {"precision": "bf16", "checkpoint_activations": True}
    for world in (1, 2):
        run_ranks("curves", world, tmp_path, config=how, cases=["text"])
    for way in ("ddp", "fsdp"):
        close = pytest.approx(losses(tmp_path / "text-alone"), rel=1e-2)
        assert losses(tmp_path / f"text-{way}") == close
