"""Greedy and beam search: 32 sentences of 25 tokens, 25 tokens out of each.

The weights are random, so the end token is forbidden on both sides: every search takes 25 steps.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import flops
from benchmarks.peers import hf_marian
from benchmarks.protocol import Case, Contender
from benchmarks.work import INFERENCE, Call, answering
from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.models.presets import PRESETS
from manyheads.models.transformer import DecoderState, Transformer, TransformerConfig

TITLE = "Translating"
BATCH = 32
LENGTH = 25


class Endless:
    """A model under the Step protocol that never ends a sentence."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def start(self, source: Tensor, beams: int, max_length: int) -> DecoderState:
        return self.model.start(source, beams, max_length)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        log_probabilities, state = self.model.step(tokens, state)
        log_probabilities[..., self.model.config.end] = -torch.inf
        return log_probabilities, state

    def reorder(self, state: DecoderState, beams: Tensor) -> DecoderState:
        return self.model.reorder(state, beams)

    def keep(self, state: DecoderState, sentences: Tensor) -> DecoderState:
        return self.model.keep(state, sentences)


def cases() -> Iterator[Case]:
    for name, vocabulary in (("transformer-tiny", 10_000), ("transformer-base", 16_000)):
        preset = PRESETS[name]
        assert isinstance(preset, TransformerConfig)
        config = replace(preset, vocabulary=vocabulary)
        for beams in (1, 4):
            search = f"beam {beams}" if beams > 1 else "greedy"
            yield _case(f"{name}, vocabulary {vocabulary:,}, {search}", config, beams)


def _case(title: str, config: TransformerConfig, beams: int) -> Case:
    source = torch.randint(config.end + 1, config.vocabulary, (BATCH, LENGTH))
    present = torch.ones_like(source)

    def ours(model: Any, _: torch.dtype) -> object:
        return _search(Endless(model), source, config, beams)

    def hugging_face(model: Any, _: torch.dtype) -> object:
        return model.generate(
            input_ids=source,
            attention_mask=present,
            num_beams=beams,
            do_sample=False,
            min_new_tokens=LENGTH,
            max_new_tokens=LENGTH,
        )

    sides: list[tuple[str, nn.Module, Call]] = [
        ("manyheads", Transformer(config), ours),
        ("Hugging Face", hf_marian(config), hugging_face),
    ]
    return Case(
        title=f"{title}, batch {BATCH}",
        unit="tokens/s",
        amount=BATCH * LENGTH,
        flops=BATCH * flops.decoding(config, LENGTH, LENGTH, beams),
        contenders=[
            Contender(name, precision, answering(model, precision, call))
            for name, model, call in sides
            for precision in INFERENCE
        ],
    )


def _search(model: Endless, source: Tensor, config: TransformerConfig, beams: int) -> object:
    limits = [LENGTH] * len(source)
    if beams == 1:
        return greedy_search(model, source, limits, start=config.start, end=config.end)
    return beam_search(model, source, limits, beams=beams, start=config.start, end=config.end)
