"""A model computes where its weights are: no tensor on its way is made on another device."""

from dataclasses import fields, replace

import pytest
import torch

from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build
from tests.small import ALL, EVERY, IMAGES, SEQ2SEQS, inputs

MODELS: dict[str, ModelConfig] = {**ALL, **EVERY, **IMAGES, **SEQ2SEQS}
RATES = ("dropout", "attention_dropout", "drop_path")


@pytest.mark.parametrize("name", MODELS)
def test_everything_is_made_where_the_weights_are(name: str) -> None:
    """Tensors that are made without saying where lie on a device without values here.

    They cannot be mixed with those of the model, as on a machine with a GPU.
    """
    config = MODELS[name]
    rates = {each.name: 0.1 for each in fields(config) if each.name in RATES}
    if getattr(config, "attention", None) == "linear":
        del rates["attention_dropout"]  # it forms no map to drop from
    model = build(replace(config, **rates)).train()
    given = inputs(config)
    with torch.device("meta"):
        model(*given)
        model.eval()(*given)
