"""Translate texts: tokenize, decode in batches, detokenize."""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, ClassVar, Protocol, cast

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor, nn

from manyheads.data.batching.batches import pad
from manyheads.data.tokenizers.byte_pieces import byte_pieces
from manyheads.data.tokenizers.tokenizer import Piece, TextTokenizer, Tokenizers
from manyheads.decode.beam import beam_search
from manyheads.decode.beam_selection import TOP_K, BeamSelector
from manyheads.decode.constraints import (
    ForcedEnd,
    ForcedPrefix,
    MinLength,
    NoRepeatNgram,
    Renormalise,
    Rule,
    SuppressTokens,
)
from manyheads.decode.coverage import Coverage
from manyheads.decode.diverse import Diverse
from manyheads.decode.greedy import greedy_search
from manyheads.decode.loops import StopLoops, repeated
from manyheads.decode.phrases import PhraseConstraint
from manyheads.decode.sampling import Sampling, sample
from manyheads.decode.step import Hypothesis, Step
from manyheads.decode.utf8 import WholeCharacters
from manyheads.errors import UsageError
from manyheads.lens.measures.alignment_head import AlignmentHead
from manyheads.streams import stream
from manyheads.tasks.token_details import OutputToken, behind_space, describe, readings
from manyheads.train.config import Count

ROWS = 256  # sentences x beams decoded at a time
ROOM = 65_536  # tokens that their outputs may have together: memory, and what a long one holds up
STEEPEST = 10  # length penalty; beyond it, scores of long outputs soon are 0 or infinite
LengthPenalty = Annotated[float, Ge(-STEEPEST), Le(STEEPEST)]
Penalty = Annotated[float, Ge(0), Le(1000)]  # in nats
Temperature = Annotated[float, Ge(1e-4), Le(1000)]
Tokens = Sequence[int]


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """The [decode] table: how a trained translator decodes."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    beams: Count = 4  # 1 is greedy
    length_penalty: float = 1.0  # score = log-probability / length ** length_penalty
    early_stopping: bool = False  # stop at `beams` outputs, even if a beam might become better
    coverage_penalty: Penalty = 0.0  # for source tokens with little attention; 0.2 is usual
    # Groups of beams that avoid each other's tokens, for an n-best list of different translations.
    groups: Count = 1
    diversity: Penalty = 0.0  # penalty for a token that another group has at the same step
    # Sample the next token instead of searching for the most likely translation.
    sample: bool = False
    temperature: Temperature = 1.0  # below 1 sharper, above 1 flatter distributions
    top_k: Count | None = None  # sample from the k most likely tokens
    top_p: Annotated[float, Gt(0), Le(1)] = 1.0  # sample from the smallest set with this mass
    no_repeat_ngram: Annotated[int, Ge(0)] = 0  # never repeat an n-gram of this size; 0 is off
    min_length: Annotated[int, Ge(0)] = 0  # tokens, without the end token
    max_length: Count | None = None  # tokens, with the end token; None: 2 * source + 16
    # Tokens that an output may repeat in a row, more where its source repeats some; 0 is no limit.
    max_loop: Annotated[int, Ge(0)] = 32
    # A text in capitals is translated in sentence case, if the vocabulary does not know capitals.
    recase: bool = True
    forced_end: bool = False  # force the end token at the length limit; Marian models need it
    banned: tuple[Annotated[int, Ge(0)], ...] = ()  # ids of tokens that are never generated
    renormalise: bool = False  # renormalise the probabilities after all rules

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other or have no effect."""
        for name in ("length_penalty", "coverage_penalty", "diversity", "temperature"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} is {getattr(self, name)}: it must be a finite number")
        if abs(self.length_penalty) > STEEPEST:
            raise ValueError(
                f"length_penalty is {self.length_penalty}, an exponent of the length: it must be "
                f"between -{STEEPEST} and {STEEPEST}"
            )
        narrowed = [
            f"{name} is {getattr(self, name)}"
            for name, default in (("temperature", 1.0), ("top_k", None), ("top_p", 1.0))
            if getattr(self, name) != default
        ]
        if narrowed and not self.sample:
            raise ValueError(f"{narrowed[0]}, but sampling is off: set sample = true")
        if self.sample and (self.groups > 1 or self.coverage_penalty or self.early_stopping):
            raise ValueError(
                "sample is true, but groups, coverage_penalty and early_stopping are options of "
                "beam search: leave them out, or set sample = false"
            )
        if (self.groups > 1) != (self.diversity > 0):
            raise ValueError(
                f"groups is {self.groups} and diversity {self.diversity}: several groups need a "
                "diversity above 0, such as 0.5, and a diversity needs several groups"
            )
        if self.beams % self.groups:
            raise ValueError(
                f"beams is {self.beams} and groups {self.groups}: choose a multiple of the groups"
            )
        if self.coverage_penalty and self.beams == 1:
            raise ValueError(
                f"coverage_penalty is {self.coverage_penalty}, but it has no effect on one beam: "
                "set beams above 1"
            )
        if self.max_length is not None and self.min_length >= self.max_length:
            raise ValueError(
                f"min_length is {self.min_length} and max_length, with the end token, "
                f"{self.max_length}: min_length must be the smaller"
            )


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


class SpecialIds(Protocol):
    """The special token ids in the config of every translation model."""

    @property
    def pad(self) -> int: ...  # noqa: D102
    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102


def special_ids(model: nn.Module) -> SpecialIds:
    """Return the special token ids of a model."""
    return cast(SpecialIds, model.config)


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
        model: an encoder-decoder with the Step protocol.
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
            a model without attention, or invalid prefixes, constraints or banned tokens.
    """
    assert isinstance(model, Step)
    ids = special_ids(model)
    prefixes = prefixes or [[]] * len(texts)
    constraints = constraints or [[]] * len(texts)
    for what, given in (("prefixes", prefixes), ("constraints", constraints)):
        if len(given) != len(texts):
            raise UsageError(f"{len(texts)} texts, but {len(given)} {what}: give one per text.")
    if any(map(any, constraints)) and (decode.sample or decode.groups > 1):
        raise UsageError(
            "Constraints need a beam search with one group, but "
            f"{'sample is true' if decode.sample else f'groups is {decode.groups}'}: leave it out."
        )
    if max(decode.banned, default=0) >= len(tokenizers.target):
        raise UsageError(
            f"Token {max(decode.banned)} is banned, but the target vocabulary has "
            f"{len(tokenizers.target)} tokens, 0 to {len(tokenizers.target) - 1}."
        )
    for what, rows in (("A prefix", prefixes), ("A constraint", chain(*constraints))):
        _check_ids(what, rows, len(tokenizers.target), ids.end)
    if ids.end in decode.banned and not decode.forced_end:
        raise UsageError(
            f"Token {ids.end} is the end token: without it no output can end. Do not ban it, or "
            "set forced_end."
        )
    sources = [[*tokens, ids.end] for tokens in tokenizers.source.encode(texts)]
    most = getattr(getattr(model, "config", None), "token_limit", sys.maxsize)
    jobs = [
        _job(n, source, prefix, phrases, decode, n_best, most)
        for n, (text, source, prefix, phrases) in enumerate(
            zip(texts, sources, prefixes, constraints, strict=True)
        )
        if text.strip()
    ]
    details = details or align
    empty = Translation("", 0.0, 0.0, [], True, [], [] if details else None)
    results = [[empty] for _ in texts]
    device = next(model.parameters()).device
    for batch in _batches(jobs):
        source = pad([job.source for job in batch], ids.pad).to(device)
        found = _search(model, source, batch, decode, ids, tokenizers.target, n_best, seed)
        chosen = [texts[job.number] for job in batch]
        read = iter(
            _readings(model, tokenizers, chosen, source, found, ids, reader) if align else []
        )
        for job, hypotheses in zip(batch, found, strict=True):
            decoded = tokenizers.target.decode([hypothesis.tokens for hypothesis in hypotheses])
            results[job.number] = [
                Translation(
                    text,
                    h.score,
                    h.log_probability,
                    h.tokens,
                    h.finished,
                    h.token_log_probabilities,
                    describe(tokenizers.target, text, h, next(read, [])) if details else None,
                )
                for text, h in zip(decoded, hypotheses, strict=True)
            ]
    return results


def _check_ids(what: str, rows: Iterable[Sequence[int]], vocabulary: int, end: int) -> None:
    for token in chain(*rows):
        if not 0 <= token < vocabulary or token == end:
            raise UsageError(
                f"{what} has the token {token}: allowed are 0 to {vocabulary - 1}, except the end "
                f"token {end}."
            )


@dataclass(frozen=True, slots=True)
class _Job:
    """One text to translate, with the parameters of its search."""

    number: int
    source: list[int]
    prefix: Tokens
    phrases: Sequence[Tokens]
    beams: int
    limit: int


def _job(
    number: int,
    source: list[int],
    prefix: Tokens,
    phrases: Sequence[Tokens],
    decode: DecodeConfig,
    n_best: int,
    most: int,
) -> _Job:
    """Plan the search for one text, of at most `most` tokens."""
    beams = n_best if decode.sample else max(decode.beams, n_best)
    beams = -(-beams // decode.groups) * decode.groups  # n_best may ask for more
    needed = sum(map(len, phrases))
    limit = decode.max_length or max(2 * len(source) + 16, decode.min_length + 1)
    limit = min(limit + len(prefix) + needed, most)
    return _Job(number, source, prefix, phrases, beams + needed, limit)


def _batches(jobs: list[_Job]) -> Iterator[list[_Job]]:
    """Batch texts of similar length with equal numbers of beams; a long one gets its own batch."""
    jobs = sorted(jobs, key=lambda job: (job.beams, len(job.source)))
    batch: list[_Job] = []
    longest = 0
    for job in jobs:
        rows, longest = (len(batch) + 1) * job.beams, max(longest, job.limit)
        if batch and (job.beams != batch[0].beams or rows > ROWS or rows * longest > ROOM):
            yield batch
            batch, longest = [], job.limit
        batch.append(job)
    if batch:
        yield batch


def _search(
    model: Step[Any],
    source: Tensor,
    jobs: list[_Job],
    decode: DecodeConfig,
    ids: SpecialIds,
    target: TextTokenizer,
    n_best: int,
    seed: int,
) -> list[list[Hypothesis]]:
    """Sample, or run a greedy or beam search; return n_best outputs per text, best first."""
    limits = [job.limit for job in jobs]
    rules = _rules(jobs, decode, ids, target)
    beams = jobs[0].beams
    if decode.sample:
        drawn = sample(
            model,
            source,
            limits,
            [stream(seed, "sentence", *job.source) for job in jobs],
            start=ids.start,
            end=ids.end,
            sampling=Sampling(decode.temperature, decode.top_k, decode.top_p),
            samples=n_best,
            length_penalty=decode.length_penalty,
            rules=rules,
        )
        return [sorted(each, key=lambda hypothesis: -hypothesis.score) for each in drawn]
    if beams == 1:
        best = greedy_search(
            model,
            source,
            limits,
            start=ids.start,
            end=ids.end,
            length_penalty=decode.length_penalty,
            rules=rules,
        )
        return [[hypothesis] for hypothesis in best]
    choose: BeamSelector = TOP_K
    if decode.groups > 1:
        choose = Diverse(decode.groups, decode.diversity)
    elif any(job.phrases for job in jobs):
        choose = PhraseConstraint([job.phrases for job in jobs], limits)
    bonus = None
    if decode.coverage_penalty:
        model = covering = Coverage(model, source != ids.pad, decode.coverage_penalty)
        bonus = covering.bonus
    return beam_search(
        model,
        source,
        limits,
        beams=beams,
        start=ids.start,
        end=ids.end,
        length_penalty=decode.length_penalty,
        early_stopping=decode.early_stopping,
        n_best=n_best,
        rules=rules,
        choose=choose,
        bonus=bonus,
        # Other tokens of the same text are no other output; white space apart, which nobody sees.
        same=lambda tokens: tuple(target.decode([tokens])[0].split()),
    )


def _rules(
    jobs: list[_Job], decode: DecodeConfig, ids: SpecialIds, target: TextTokenizer
) -> list[Rule]:
    between: list[Rule] = []  # characters
    if decode.no_repeat_ngram:
        between.append(NoRepeatNgram(decode.no_repeat_ngram))
    if decode.min_length:
        between.append(MinLength(decode.min_length, end=ids.end))
    if decode.max_loop:
        most = [_repetition(job.source, decode.max_loop) for job in jobs]
        between.append(StopLoops(most, end=ids.end))
    if decode.forced_end:
        between.append(ForcedEnd([job.limit for job in jobs], end=ids.end))
    limits = [job.limit - decode.forced_end for job in jobs]
    rules: list[Rule] = [
        WholeCharacters(byte_pieces(target), limits, between, banned=decode.banned)
    ]
    if decode.banned:
        rules.insert(0, SuppressTokens(decode.banned))
    if decode.renormalise:
        rules.append(Renormalise())
    if any(job.prefix for job in jobs):
        rules = [ForcedPrefix([job.prefix for job in jobs], rules)]
    return rules


def _repetition(source: Tokens, most: int) -> int:
    """Return how many tokens an output may repeat: a multiple of `most`, so that few differ.

    Two for each token that the source repeats: its translation may be twice as long.
    """
    again = len(source) - len(set(source))  # no more can be repeated in a row
    return most if 2 * again < most else most * (1 + 2 * repeated(source) // most)


def _readings(
    model: nn.Module,
    tokenizers: Tokenizers,
    texts: list[str],
    source: Tensor,
    found: list[list[Hypothesis]],
    ids: SpecialIds,
    reader: AlignmentHead | None,
) -> list[list[tuple[Piece, float]]]:
    """Return the aligned source piece and its weight, for each token of each output."""
    pieces = [
        [replace(each, begin=behind_space(text, each.begin, each.end)) for each in split]
        for text, split in ((text, tokenizers.source.pieces(text)) for text in texts)
    ]
    rows = [n for n, hypotheses in enumerate(found) for _ in hypotheses]
    outputs = [hypothesis.tokens for hypotheses in found for hypothesis in hypotheses]
    lengths = [len(pieces[n]) for n in rows]
    read = readings(
        model, source[rows], lengths, outputs, start=ids.start, padding=ids.pad, reader=reader
    )
    return [
        [(pieces[n][index], share) for index, share in each]
        for n, each in zip(rows, read, strict=True)
    ]
