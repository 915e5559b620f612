"""A model computes where its weights are: no tensor on its way is made on another device."""

from dataclasses import fields, replace

import pytest

from manyheads.models.config import ModelConfig
from manyheads.models.presets import build
from tests.small import ALL, EVERY, IMAGES, OTHERS, SEQ2SEQS, inputs

# Recurrent layers ask for the lengths of texts, and so need values.
MODELS: dict[str, ModelConfig] = {
    name: config
    for name, config in {**ALL, **EVERY, **IMAGES}.items()
    if name not in SEQ2SEQS | OTHERS
}
RATES = ("dropout", "attention_dropout", "drop_path")


@pytest.mark.parametrize("name", MODELS)
def test_everything_is_made_where_the_weights_are(name: str) -> None:
    """On torch's device without values, which refuses tensors of another device as a GPU does."""
    config = MODELS[name]
    rates = {each.name: 0.1 for each in fields(config) if each.name in RATES}
    if getattr(config, "attention", None) == "linear":
        del rates["attention_dropout"]  # it forms no map to drop from
    model = build(replace(config, **rates)).to("meta").train()
    model(*(each.to("meta") for each in inputs(config)))
