"""What an open recorder costs a forward pass: it keeps queries and keys, and computes nothing."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from benchmarks.protocol import Case, Contender
from benchmarks.work import INFERENCE, Call, answering
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.models.vit import Vit, VitConfig
from manyheads.nn.trace import record

TITLE = "Looking inside"
BATCH = 8
LENGTH = 25
SENTENCES = 32


def cases() -> Iterator[Case]:
    images = torch.randn(BATCH, 3, 224, 224)
    config = TransformerConfig()
    source = torch.randint(config.end + 1, config.vocabulary, (SENTENCES, LENGTH))

    def classify(model: Any, dtype: torch.dtype) -> object:
        return model(images.to(dtype))

    def translate(model: Any, _: torch.dtype) -> object:
        return model(source, source)

    yield from _cases(f"ViT-B/16, batch {BATCH}", Vit(VitConfig()), classify, "img/s", BATCH)
    title = f"transformer-base forward, {SENTENCES} x ({LENGTH} + {LENGTH}) tokens"
    tokens = SENTENCES * 2 * LENGTH
    yield from _cases(title, Transformer(config), translate, "tokens/s", tokens)


def _cases(title: str, model: nn.Module, call: Call, unit: str, amount: int) -> Iterator[Case]:
    def recorded(model: Any, dtype: torch.dtype) -> object:
        with record() as trace:
            call(model, dtype)
        return len(trace)

    for precision in INFERENCE:
        yield Case(
            title=f"{title}, {precision}",
            unit=unit,
            amount=amount,
            bar="1.05x the time",
            contenders=[
                Contender("recorder closed", "", answering(model, precision, call)),
                Contender("recorder open", "", answering(model, precision, recorded)),
            ],
        )
