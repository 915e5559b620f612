"""Vectors of every layer, for every preset, and without a trace in the answer."""

import pytest
import torch
from torch import nn

from manyheads.lens.trace.states import outputs, pooled, record_states
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build
from tests.small import ALL, HYBRIDS, SEQ2SEQS, STAGED, TRANSFORMERS, answer, inputs, randomise


@pytest.mark.parametrize("name", ALL)
def test_looking_never_changes_the_answer(name: str) -> None:
    """Bitwise; and no hook stays."""
    config = ALL[name]
    model = randomise(build(config)).eval()
    given = inputs(config)
    with torch.no_grad():
        plain = answer(model, given)
        with record_states(model) as found:
            watched = answer(model, given)
    assert torch.equal(plain, watched)
    assert found.layers or name == "mlp"
    for part in model.modules():
        assert not part._forward_hooks
        assert not part._forward_pre_hooks


def names(config: ModelConfig) -> list[str]:
    model = randomise(build(config)).eval()
    with record_states(model) as found, torch.no_grad():
        model(*inputs(config))
    return [f"{each.stack}: {each.name}" for each in found.layers]


def test_layers_are_named_by_their_sites() -> None:
    """Both stacks of a text from what goes in on; stages in a row; blocks of convolutions."""
    assert names(TRANSFORMERS["transformer-base"]) == [
        "encoder: embedded",
        "encoder: encoder layer 1",
        "encoder: encoder layer 2",
        "decoder: embedded",
        "decoder: decoder layer 1",
        "decoder: decoder layer 2",
    ]
    assert names(SEQ2SEQS["deep decoder, additive"])[-3:] == [
        "decoder: embedded",
        "decoder: decoder layer 1",
        "decoder: decoder layer 2",
    ]
    assert names(STAGED["swin-t"]) == [
        "stage 1: embedded",
        "stage 1: stage 1 layer 1",
        "stage 1: stage 1 layer 2",
        "stage 2: stage 2 layer 1",
        "stage 2: stage 2 layer 2",
    ]
    assert names(STAGED["coatnet-0"]) == [
        "convolutions: embedded",
        "convolutions: block 1",
        "convolutions: block 2",
        "stage 2: stage 2 layer 1",
        "stage 2: stage 2 layer 2",
    ]
    found = names(next(config for config in HYBRIDS.values() if config.depths))
    assert found[0] == "convolutions: embedded"
    assert found[-3:] == [
        "encoder: embedded",
        "encoder: encoder layer 1",
        "encoder: encoder layer 2",
    ]


def test_tokens_and_their_table() -> None:
    """Source and target are looked up one after the other, here in one table."""
    config = TRANSFORMERS["transformer-base"]
    model, (source, target) = randomise(build(config)).eval(), inputs(config)
    with record_states(model) as found, torch.no_grad():
        model(source, target)
    assert [each.tokens.tolist() for each in found.lookups] == [source.tolist(), target.tolist()]
    assert torch.equal(found.lookups[0].table, found.lookups[1].table)


def test_what_is_kept_is_what_the_layer_answered() -> None:
    """A convolution without blocks is a layer; the mean over places or tokens is its vector."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU())
    images = torch.randn(5, 1, 4, 4)
    given, state = outputs(model, images)
    torch.testing.assert_close(given.x, images)
    torch.testing.assert_close(state.x, model[0](images))
    assert state.name == "convolution 1"
    assert state.is_map
    tokens = torch.arange(6.0).view(1, 3, 2)
    assert pooled(tokens).tolist() == [[2, 3]]
    assert pooled(torch.ones(2, 3, 4, 4)).shape == (2, 3)
