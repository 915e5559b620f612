"""Translation: sentence pairs, an encoder-decoder, cross-entropy per token, BLEU or exact match."""

import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from torch import nn

from manyheads.asks.decode_config import DecodeConfig
from manyheads.asks.evaluate_request import EvaluateConfig
from manyheads.data.augment.text_noise import TextNoise
from manyheads.data.batching.batches import TextBatch, pad
from manyheads.data.batching.buckets import length_buckets, rank_part
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.text.corpus import Corpus, StreamedCorpus
from manyheads.data.tokenizers.subword_sampling import SubwordSampler
from manyheads.data.tokenizers.token_store import TokenStore, encode_in_memory
from manyheads.data.tokenizers.tokenizer import OURS, Tokenizers
from manyheads.errors import DataError
from manyheads.generation.batched_search import ROWS
from manyheads.generation.output_monitor import OutputMonitor
from manyheads.generation.special_ids import SpecialIds
from manyheads.generation.text_decoding import translate
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.tasks.translate.recipe import TranslateTrainConfig
from manyheads.train.losses import projected_cross_entropy
from manyheads.train.training_task import EXAMPLES, Example, Indices, Loss


class TranslateTask:
    """A Task for the training loop."""

    unit = "tokens"

    def __init__(
        self,
        train: Corpus | StreamedCorpus,
        valid: Corpus,
        tokenizers: Tokenizers,
        config: TranslateTrainConfig,
        evaluate: EvaluateConfig,
        *,
        seed: int,
        ids: SpecialIds = OURS,
        sampling: float = 0.0,
        noise: TextNoise | None = None,
        store: TokenStore | None = None,
        language: str = "",
        general: Corpus | None = None,
    ) -> None:
        """Turn the corpus into token ids.

        `store` has the training corpus as token ids (None: encode it in memory), and its texts if
        segmentations are sampled or `noise` changes pairs. `language` is that of the target, for
        the metrics. `general` are pairs of another kind, scored in each validation too.

        Raises:
            DataError: no pair is short enough.
        """
        self.valid, self.general = valid, general
        self.tokenizers = tokenizers
        self.config = config
        self.metrics = evaluate.metrics
        self.language = language
        self.watch = OutputMonitor(valid.source, valid.target)
        self.examples: Sequence[Example] = ()
        self.seed = seed
        self.train = train
        self.ids = ids
        self.sampling = sampling
        self.noise = noise if noise and noise.changes_pairs else None
        if store is None:
            texts = sampling > 0 or self.noise is not None
            store = encode_in_memory(train.pairs(), tokenizers, texts=texts)
        self.store = store
        # Plus the end token; decoder inputs have a start instead of an end, so the same length.
        source, target = (side.lengths.astype(np.int32) + 1 for side in store.ids)
        self.kept = np.flatnonzero(np.maximum(source, target) <= config.max_length)
        self.left_out = len(store) - len(self.kept)
        if not len(self.kept):
            raise DataError(
                f"{train.origin}: no pair has at most {config.max_length} tokens a side. "
                "Raise train.max_length, or give one sentence a line."
            )
        self.lengths = source[self.kept], target[self.kept]

    def plan(self, epoch: int, rank: int = 0, world: int = 1) -> list[Indices]:
        """Bucket the pairs by the length of their best segmentation."""
        most = self.config.max_tokens
        buckets = length_buckets(*self.lengths, most, seed=self.seed, epoch=epoch)
        return [self.kept[bucket] for bucket in rank_part(buckets, rank, world)]

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[TextBatch]:
        """Pad the planned batches; with sampling, of segmentations drawn for this epoch."""
        segment = self._sampler(epoch) if self.sampling or self.noise else self.store.tokens
        start, end, padding = self.ids.start, self.ids.end, self.ids.pad
        for indices in batches:
            sources, targets = segment(indices)
            source = [[*tokens, end] for tokens in sources]
            target = [[start, *tokens, end] for tokens in targets]
            units = sum(map(len, source)) + sum(map(len, target)) - len(target)
            yield TextBatch(pad(source, padding), pad(target, padding), indices, units)

    def _sampler(self, epoch: int) -> SubwordSampler:
        return SubwordSampler(
            self.store,
            self.tokenizers,
            self.sampling,
            max_length=self.config.max_length - 1,
            seed=self.seed,
            epoch=epoch,
            noise=self.noise,
        )

    def loss(self, model: nn.Module, batch: TextBatch) -> Loss:
        """Sum the label-smoothed cross-entropy over all target tokens (teacher forcing)."""
        batch = batch.to(next(model.parameters()).device)
        wanted = batch.target[:, 1:]
        real = wanted != self.ids.pad
        targets = wanted[real]
        readout = partial(
            projected_cross_entropy,
            targets=targets,
            smoothing=self.config.label_smoothing,
            r_drop=self.config.r_drop,
        )
        source, shifted = batch.source, batch.target[:, :-1]
        if self.config.r_drop:  # every pair twice, with different dropout
            source, shifted, real = (part.repeat(2, 1) for part in (source, shifted, real))
        return Loss(model(source, shifted, real, readout), len(targets), {})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Translate the validation sources greedily, score and monitor the outputs."""
        texts, scores = self._scores(model, self.valid)
        self.examples = [
            Example(self.valid.source[number], texts[number], self.valid.target[number])
            for number in evenly_spaced(len(texts), EXAMPLES)
        ]
        if self.general is not None:
            _, others = self._scores(model, self.general)
            scores |= {f"general_{name}": value for name, value in others.items()}
        return scores | self.watch(texts)

    def _scores(self, model: nn.Module, corpus: Corpus) -> tuple[list[str], dict[str, float]]:
        outputs = translate(model, self.tokenizers, corpus.source, DecodeConfig(beams=1))
        texts = [best[0].text for best in outputs]
        return texts, {
            name: TEXT_METRICS[name](texts, corpus.target, self.language).value
            for name in self.metrics
        }

    def rehearse(self, model: nn.Module) -> float:
        """Return the seconds of a validation with outputs as long as the right ones.

        Timed are up to three batches of sources of similar length; the outputs of a batch are cut
        off halfway between the mean length of the right ones and the longest.
        """
        both = [self.valid, *([self.general] if self.general is not None else [])]
        texts = [text for corpus in both for text in corpus.source]
        right = [text for corpus in both for text in corpus.target]
        source, target = (
            np.array([len(each) + 1 for each in side.encode(lines)])
            for side, lines in zip(self.tokenizers, (texts, right), strict=True)
        )
        groups = np.array_split(source.argsort(), -(-len(source) // ROWS))
        chosen = [groups[number] for number in evenly_spaced(len(groups), 3)]
        began = time.monotonic()
        for group in chosen:
            longest = int(target[group].mean() + target[group].max()) // 2 + 1
            lines = [texts[number] for number in group]
            translate(model, self.tokenizers, lines, DecodeConfig(beams=1, max_length=longest))
        return (time.monotonic() - began) / sum(map(len, chosen)) * len(source)

    def describe(self, batch: TextBatch) -> str:
        """Return the file and line numbers of the pairs."""
        return self.train.describe(batch.indices)
