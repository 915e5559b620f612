"""Translate texts: tokenize, decode in batches, detokenize."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.asks.decode_config import DecodeConfig
from manyheads.cancellation import raise_if_cancelled
from manyheads.data.batching.batches import pad
from manyheads.data.tokenizers.tagged_tokenizer import with_tag
from manyheads.data.tokenizers.tokenizer import Piece, TextTokenizer, Tokenizers
from manyheads.decode.loops import repeated
from manyheads.decode.step import Hypothesis, Step
from manyheads.errors import UsageError
from manyheads.generation.batched_search import Job, Searcher, batches, check_search, plan, search
from manyheads.generation.special_ids import SpecialIds, special_ids
from manyheads.generation.token_details import (
    OutputToken,
    attention_over_source,
    behind_space,
    describe,
)
from manyheads.generation.token_scores import token_log_probabilities
from manyheads.lens.measures import alignment_head
from manyheads.lens.measures.alignment_head import AlignmentHead, links

Tokens = Sequence[int]


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of a text, with its scores and tokens."""

    text: str
    score: float  # log-probability / length ** length_penalty, plus the coverage penalty
    log_probability: float
    tokens: list[int]
    finished: bool  # False: cut off at the length limit
    token_log_probabilities: list[float] = field(default_factory=list)  # the end's included
    details: list[OutputToken] | None = None  # if requested

    @property
    def mean_probability(self) -> float:
        """The geometric mean of the probabilities of its tokens, the end included."""
        return math.exp(self.log_probability / max(len(self.token_log_probabilities), 1))

    @classmethod
    def of(
        cls, hypothesis: Hypothesis, text: str, details: list[OutputToken] | None
    ) -> "Translation":
        """Make it of what a search has found, and its text."""
        terms = hypothesis.token_log_probabilities
        return cls(
            text,
            hypothesis.score,
            hypothesis.log_probability,
            hypothesis.tokens,
            hypothesis.finished,
            terms,
            details,
        )


@torch.inference_mode()
def translate(
    model: nn.Module,
    tokenizers: Tokenizers,
    texts: Sequence[str],
    decode: DecodeConfig,
    *,
    n_best: int = 1,
    prefixes: Sequence[Tokens] | None = None,
    constraints: Sequence[Sequence[Tokens]] | None = None,
    seed: int = 1,
    details: bool = False,
    align: bool = False,
    reader: AlignmentHead | None = None,
) -> list[list[Translation]]:
    """Translate texts; return the n_best translations of each, in the order of the texts.

    Texts of similar length are decoded together; the result does not depend on the other texts.
    An empty text stays empty.

    Args:
        model: an encoder-decoder with the Step protocol, or a `Searcher`.
        tokenizers: of its two sides.
        texts: raw texts.
        decode: the decoding options.
        n_best: number of translations per text; raises the number of beams if necessary.
        prefixes: for each text, the target tokens that its translations begin with.
        constraints: for each text, sequences of target tokens that its translations contain, each
            as often as it is listed. Needs beam search; a text with constraints gets one more
            beam, and one more token of length, for every constraint token.
        seed: of sampling; the sample of a text depends only on the seed and the text.
        details: describe the tokens of each translation.
        align: add the aligned source token of each; costs one more forward pass.
        reader: the attention to align with; None: `alignment_head.fallback`.

    Raises:
        UsageError: constraints without a plain beam search, an alignment or coverage penalty for
            a model without attention, a tag that it does not have, or invalid prefixes, constraints
            or banned tokens.
    """
    ids = special_ids(model)
    prefixes = prefixes or [[]] * len(texts)
    constraints = constraints or [[]] * len(texts)
    for what, given in (("prefixes", prefixes), ("constraints", constraints)):
        if len(given) != len(texts):
            raise UsageError(f"{len(texts)} texts, but {len(given)} {what}: give one per text.")
    if decode.tag:
        tokenizers = with_tag(tokenizers, decode.tag)
    target = tokenizers.target
    check_search(decode, prefixes, constraints, vocabulary=len(target), end=ids.end)
    sources = [[*tokens, ids.end] for tokens in tokenizers.source.encode(texts)]
    most = getattr(ids, "token_limit", sys.maxsize)
    jobs = [
        plan(
            decode,
            n,
            source,
            limit=decode.max_length or max(2 * len(source) + 16, decode.min_length + 1),
            most=most,
            n_best=n_best,
            prefix=prefix,
            phrases=phrases,
            max_loop=_repetition(source, decode.max_loop) if decode.max_loop else 0,
        )
        for n, (text, source, prefix, phrases) in enumerate(
            zip(texts, sources, prefixes, constraints, strict=True)
        )
        if text.strip()
    ]
    details = details or align
    empty = Translation("", 0.0, 0.0, [], True, [], [] if details else None)
    results = [[empty] for _ in texts]
    searched = isinstance(model, Searcher)
    find = model.search if isinstance(model, Searcher) else partial(_search, model)
    for batch, found in find(jobs, decode, ids, target, n_best, seed):
        raise_if_cancelled()  # an engine's own search cannot be interrupted
        if details and searched:
            found = _with_probabilities(model, batch, found)
        read = iter(_readings(model, tokenizers, texts, batch, found, reader) if align else ())
        # All of a batch at once: a call of sentencepiece starts threads.
        written = iter(target.decode([each.tokens for some in found for each in some]))
        for job, hypotheses in zip(batch, found, strict=True):
            results[job.number] = [
                Translation.of(
                    h, text, describe(target, text, h, next(read, [])) if details else None
                )
                for h, text in zip(hypotheses, written, strict=False)
            ]
    return results


def _search(
    model: nn.Module,
    jobs: list[Job],
    decode: DecodeConfig,
    ids: SpecialIds,
    target: TextTokenizer,
    n_best: int,
    seed: int,
) -> Iterator[tuple[list[Job], list[list[Hypothesis]]]]:
    """Search with the model's steps, as a `Searcher` does by itself."""
    assert isinstance(model, Step)
    for batch in batches(jobs):
        source = _padded(model, batch, ids)
        real = partial(torch.ne, source, ids.pad)
        yield batch, search(model, source, batch, decode, ids, target, n_best, seed, real)


def _padded(model: nn.Module, jobs: list[Job], ids: SpecialIds) -> Tensor:
    """Return the sources (job, token), padded, where the model is."""
    return pad([job.key for job in jobs], ids.pad).to(next(model.parameters()).device)


def _with_probabilities(
    model: nn.Module, jobs: list[Job], hypotheses: list[list[Hypothesis]]
) -> list[list[Hypothesis]]:
    """Add the log-probabilities of tokens, which an engine's own search does not give."""
    sources = [job.key for job, some in zip(jobs, hypotheses, strict=True) for _ in some]
    outputs = [each.tokens for some in hypotheses for each in some]
    terms = iter(token_log_probabilities(model, sources, outputs))
    return [
        [replace(h, token_log_probabilities=next(terms)[: len(h.tokens) + h.finished]) for h in row]
        for row in hypotheses
    ]


def _repetition(source: Tokens, most: int) -> int:
    """Return how many tokens an output may repeat: a multiple of `most`, so that few differ.

    Two for each token that the source repeats: its translation may be twice as long.
    """
    again = len(source) - len(set(source))  # no more can be repeated in a row
    return most if 2 * again < most else most * (1 + 2 * repeated(source) // most)


def _readings(
    model: nn.Module,
    tokenizers: Tokenizers,
    texts: Sequence[str],
    jobs: list[Job],
    found: list[list[Hypothesis]],
    reader: AlignmentHead | None,
) -> list[list[tuple[Piece, float]]]:
    """Return the aligned source piece and its weight, for each token of each output.

    Runs the model on source and output once more, as in training, and records its attention. The
    end token of the source is left out: it often gets attention without being aligned.
    """
    ids = special_ids(model)
    split = tokenizers.source.pieces
    pieces = [
        [replace(each, begin=behind_space(text, each.begin, each.end)) for each in split(text)]
        for text in (texts[job.number] for job in jobs)
    ]
    reference: Any = getattr(model, "reference", None)  # of another engine: the torch model
    attends = model if reference is None else reference()
    source = _padded(attends, jobs, ids)
    rows = [n for n, hypotheses in enumerate(found) for _ in hypotheses]
    outputs = [hypothesis.tokens for hypotheses in found for hypothesis in hypotheses]
    maps = attention_over_source(attends, source[rows], outputs, start=ids.start, padding=ids.pad)
    weights = alignment_head.read(maps, reader or alignment_head.fallback(maps))
    return [
        [(pieces[n][column], share) for _, column, share in links(row, len(tokens), len(pieces[n]))]
        for n, row, tokens in zip(rows, weights, outputs, strict=True)
    ]
