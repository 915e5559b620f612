"""What an open recorder costs: it keeps queries and keys, and computes maps when they are read.

Beside a closed and an open recorder stand the same model without the code that asks for one, which
is what looking costs when nobody looks; and an open recorder whose maps are all read afterwards,
every head of every layer in fp32.

Freed memory is kept, as the command line does: what a trace holds would else be fetched from the
system page by page in every round (docs/decisions/memory.md).
"""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from benchmarks.protocol import Case, Contender
from benchmarks.work import INFERENCE, Call, answering
from manyheads.decode.beam import beam_search
from manyheads.decode.constraints import MinLength
from manyheads.memory import keep_freed_memory
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import PRESETS
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.models.vit import Vit, VitConfig
from manyheads.nn.attention import attention
from manyheads.nn.recording.trace import Trace, record

TITLE = "Looking inside"
VIT = VitConfig()  # B/16, 224 pixels
TRANSLATOR = TransformerConfig()  # base
SEARCHED: ModelConfig = PRESETS["transformer-tiny"]
BATCH = 8
LENGTH = 25
SENTENCES = 32
BEAMS = 4
BAR = "open: 1.05x the time of closed; closed: none"


def cases() -> Iterator[Case]:
    keep_freed_memory()
    images = torch.randn(BATCH, VIT.channels, VIT.height, VIT.width)

    def classify(model: Any, dtype: torch.dtype) -> object:
        return model(images.to(dtype))

    yield from _cases(f"ViT-B/16, batch {BATCH}", Vit(VIT), classify, "img/s", BATCH)

    source = _sentences(TRANSLATOR)

    def translate(model: Any, _: torch.dtype) -> object:
        return model(source, source)

    title = f"transformer-base forward, {SENTENCES} x ({LENGTH} + {LENGTH}) tokens"
    tokens = SENTENCES * 2 * LENGTH
    yield from _cases(title, Transformer(TRANSLATOR), translate, "tokens/s", tokens)

    config = SEARCHED
    assert isinstance(config, TransformerConfig)
    searched = _sentences(config)
    rules = [MinLength(LENGTH - 1, end=config.end)]
    limits = [LENGTH] * SENTENCES

    def search(model: Any, _: torch.dtype) -> object:
        return beam_search(
            model,
            searched,
            limits,
            beams=BEAMS,
            start=config.start,
            end=config.end,
            rules=rules,
        )

    # A trace of a search is read one output at a time, so nothing is read here.
    title = f"transformer-tiny, beam {BEAMS}, {SENTENCES} x ({LENGTH} + {LENGTH}) tokens"
    amount = SENTENCES * LENGTH
    yield from _cases(title, Transformer(config), search, "tokens/s", amount, readable=False)


def _sentences(config: TransformerConfig) -> Tensor:
    return torch.randint(config.end + 1, config.vocabulary, (SENTENCES, LENGTH))


def _cases(
    title: str, model: nn.Module, call: Call, unit: str, amount: int, *, readable: bool = True
) -> Iterator[Case]:
    def without(model: Any, dtype: torch.dtype) -> object:
        with patch.object(attention, "attend", _attend):
            return call(model, dtype)

    def recorded(model: Any, dtype: torch.dtype) -> Trace:
        with record() as trace:
            call(model, dtype)
        return trace

    def read(model: Any, dtype: torch.dtype) -> object:
        trace = recorded(model, dtype)
        return [float(entry.weights()[0, 0, 0, 0]) for entry in trace]  # type: ignore[attr-defined]

    ways: dict[str, Call] = {
        "recorder closed": call,
        "no recorder in the code": without,
        "recorder open": lambda model, dtype: len(recorded(model, dtype)),
    }
    if readable:
        ways["recorder open, all maps read"] = read
    for precision in INFERENCE:
        yield Case(
            title=f"{title}, {precision}",
            unit=unit,
            amount=amount,
            bar=BAR,
            contenders=[
                Contender(name, "", answering(model, precision, way)) for name, way in ways.items()
            ],
        )


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    dropout: float = 0.0,
    **_: object,
) -> Tensor:
    """Answer like `attention.attend`, which also asks for a recorder."""
    return attention._mix(q, k, v, mask, bias, dropout)
