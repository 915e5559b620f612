"""Greedy and beam search over sentences with the lengths of Multi30k's validation set.

The weights are random, and the same on all sides; so that every translation still has the length of
the real one, the end token is forbidden before that and then forced. Batches are of like length.
CTranslate2 has no such hook: it makes as many tokens a batch, all sentences of a batch the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import flops
from benchmarks.ctranslate import cpu_threads, ctranslate2, fingerprint
from benchmarks.peers import hf_marian
from benchmarks.protocol import Case, Contender
from benchmarks.work import INFERENCE, Call, answering
from manyheads.data.batching.batches import pad
from manyheads.data.text.corpus import read_parallel
from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.models.encoder_decoder import DecoderState
from manyheads.models.presets import PRESETS
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.project.paths import find_data

TITLE = "Translating"
BATCH = 32
BATCHES = 5
BAR = "at least 1.5 times Hugging Face"


@dataclass(frozen=True)
class Sentences:
    """A batch of sources, and how long each translation will be, its end token included."""

    source: Tensor
    present: Tensor
    lengths: list[int]


@dataclass(frozen=True)
class Place:
    """Where a search is: the model's own state, and how far each sentence has to go."""

    state: DecoderState
    left: Tensor  # (sentence,)


class Scripted:
    """A model under the Step protocol whose translations have given lengths."""

    def __init__(self, model: Transformer, lengths: Sequence[int]) -> None:
        self.model = model
        self.lengths = torch.tensor(lengths)

    def start(self, source: Tensor, beams: int, max_length: int) -> Place:
        return Place(self.model.start(source, beams, max_length), self.lengths)

    def step(self, tokens: Tensor, place: Place) -> tuple[Tensor, Place]:
        log_probabilities, state = self.model.step(tokens, place.state)
        _force(log_probabilities, self.model.config.end, place.left == 1)
        return log_probabilities, Place(state, place.left - 1)

    def reorder(self, place: Place, beams: Tensor) -> Place:
        return Place(self.model.reorder(place.state, beams), place.left)

    def keep(self, place: Place, sentences: Tensor) -> Place:
        return Place(self.model.keep(place.state, sentences), place.left[sentences])


def _force(scores: Tensor, end: int, over: Tensor) -> None:
    """Let sentences that are over end, and no others; scores: (sentence, ..., vocabulary)."""
    scores[..., end] = -torch.inf
    if over.any():
        scores[over] = -torch.inf
        scores[over, ..., end] = 0.0


def cases() -> Iterator[Case]:
    for name, vocabulary in (("transformer-tiny", 10_000), ("transformer-base", 16_000)):
        preset = PRESETS[name]
        assert isinstance(preset, TransformerConfig)
        config = replace(preset, vocabulary=vocabulary)
        batches = prepare_batches(config)
        for beams in (1, 4):
            search = f"beam {beams}" if beams > 1 else "greedy"
            yield _case(f"{name}, vocabulary {vocabulary:,}, {search}", config, batches, beams)


def _case(title: str, config: TransformerConfig, batches: list[Sentences], beams: int) -> Case:
    ours_model, threads = Transformer(config), torch.get_num_threads()
    before = fingerprint(ours_model)
    engines = {
        compute: ctranslate2(ours_model, compute, workers=cpu_threads())
        for compute in ("float32", "int8")
    }
    torch.set_num_threads(threads)
    assert fingerprint(ours_model) == before, "an export has changed the model"

    def ours(model: Any, _: torch.dtype) -> object:
        return [search_batch(Scripted(model, b.lengths), b, config, beams) for b in batches]

    def hugging_face(model: Any, _: torch.dtype) -> object:
        return [
            model.generate(
                input_ids=batch.source,
                attention_mask=batch.present,
                num_beams=beams,
                do_sample=False,
                max_new_tokens=max(batch.lengths),
                logits_processor=[_Script(batch.lengths, beams, config.end)],
            )
            for batch in batches
        ]

    def engine(compute: str) -> object:
        threads = torch.get_num_threads()
        found = [
            engines[compute].translate_batch(
                [
                    [str(token) for token in row if token != config.pad]
                    for row in batch.source.tolist()
                ],
                beam_size=beams,
                max_batch_size=BATCH // cpu_threads(),
                min_decoding_length=round(sum(batch.lengths) / BATCH) - 1,
                max_decoding_length=round(sum(batch.lengths) / BATCH) - 1,
            )
            for batch in batches
        ]
        torch.set_num_threads(threads)  # the engine sets OpenMP's number for the whole process
        return found

    sides: list[tuple[str, nn.Module, Call]] = [
        ("manyheads", ours_model, ours),
        ("Hugging Face", hf_marian(config, ours_model.state_dict()), hugging_face),
    ]
    lengths = [
        (len(row[row != config.pad]), length)
        for batch in batches
        for row, length in zip(batch.source, batch.lengths, strict=True)
    ]
    return Case(
        title=f"{title}, batch {BATCH}",
        unit="tokens/s",
        amount=sum(target for _, target in lengths),
        flops=sum(flops.decoding(config, source, target, beams) for source, target in lengths),
        contenders=[
            *(
                Contender(name, precision, answering(model, precision, call))
                for name, model, call in sides
                for precision in INFERENCE
            ),
            *(Contender("CTranslate2", compute, partial(engine, compute)) for compute in engines),
        ],
        bar=BAR,
        fingerprint=partial(fingerprint, ours_model),
    )


class _Script:
    """The same script as a processor of Hugging Face's generate."""

    def __init__(self, lengths: Sequence[int], beams: int, end: int) -> None:
        self.lengths = torch.tensor(lengths).repeat_interleave(beams)
        self.end = end

    def __call__(self, tokens: Tensor, scores: Tensor) -> Tensor:
        # The prompt is one token, so the token to come is number tokens.shape[1].
        _force(scores, self.end, self.lengths == tokens.shape[1])
        return scores


def search_batch(
    model: Scripted, batch: Sentences, config: TransformerConfig, beams: int
) -> object:
    """Translate a batch: greedily, or with so many beams."""
    if beams == 1:
        return greedy_search(model, batch.source, batch.lengths, start=config.start, end=config.end)
    return beam_search(
        model, batch.source, batch.lengths, beams=beams, start=config.start, end=config.end
    )


def prepare_batches(config: TransformerConfig) -> list[Sentences]:
    """Read sentences of Multi30k, in batches of like length from short to long."""
    (train,) = find_data("multi30k/train", None, (".en", ".de"))
    (valid,) = find_data("multi30k/val", None, (".en", ".de"))
    learned, corpus = read_parallel(train, "en", "de"), read_parallel(valid, "en", "de")
    tokenizer = Tokenizer.train([*learned.source, *learned.target], TokenizerConfig(size=10_000))
    pairs = [
        ([*source, config.end], len(target) + 1)
        for source, target in zip(
            tokenizer.encode(corpus.source), tokenizer.encode(corpus.target), strict=True
        )
    ]
    pairs = sorted(pairs[: BATCH * BATCHES], key=lambda pair: len(pair[0]))
    batches = []
    for first in range(0, len(pairs), BATCH):
        chosen = pairs[first : first + BATCH]
        source = pad([tokens for tokens, _ in chosen], config.pad)
        present = (source != config.pad).long()
        batches.append(Sentences(source, present, [length for _, length in chosen]))
    return batches
