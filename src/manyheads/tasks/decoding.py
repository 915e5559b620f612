"""Texts in, translations out: tokenize, search, put in order again."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import Annotated, Any, ClassVar, Protocol, cast

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor, nn

from manyheads.data.batches import pad
from manyheads.data.tokenizer import Piece, Tokenizers
from manyheads.decode.beam import beam_search
from manyheads.decode.choice import LIKELIEST, Chooser
from manyheads.decode.constraints import (
    Banned,
    ForcedEnd,
    ForcedPrefix,
    MinLength,
    NoRepeatNgram,
    Renormalise,
    Rule,
)
from manyheads.decode.coverage import Coverage
from manyheads.decode.diverse import Diverse
from manyheads.decode.greedy import greedy_search
from manyheads.decode.phrases import Containing
from manyheads.decode.sample import Sampling, sample
from manyheads.decode.step import Hypothesis, Step
from manyheads.errors import UsageError
from manyheads.lens.alignment import Reader
from manyheads.models.reach import reach
from manyheads.streams import stream
from manyheads.tasks.details import OutputToken, behind_space, describe, readings
from manyheads.train.config import Count, NotNegative

ROWS = 256  # sentences x beams decoded at a time
Tokens = Sequence[int]


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """The [decode] table: how a trained translator searches."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    beams: Count = 4  # 1 is greedy
    length_penalty: float = 1.0  # score = log-probability / length ** length_penalty
    early_stopping: bool = False  # stop at `beams` outputs, though a beam might still be better
    coverage_penalty: NotNegative = 0.0  # what is left unread of the source costs; 0.2 is usual
    # Beams in groups that avoid each other's words, for an n-best list of different translations.
    groups: Count = 1
    diversity: NotNegative = 0.0  # what a word costs that another group says at the same place
    # Draw the next token instead of searching for the likeliest translation.
    sample: bool = False
    temperature: Annotated[float, Gt(0)] = 1.0  # below 1 safer, above 1 bolder
    top_k: Count | None = None  # draw from so many of the likeliest tokens
    top_p: Annotated[float, Gt(0), Le(1)] = 1.0  # draw from the likeliest with this probability
    no_repeat_ngram: Annotated[int, Ge(0)] = 0  # no n tokens in a row twice; 0 lets them
    min_length: Annotated[int, Ge(0)] = 0  # tokens, the end not included
    max_length: Count | None = None  # tokens, the end included; None: 2 * source + 16
    forced_end: bool = False  # end at the limit rather than be cut off; Marian's models want it
    banned: tuple[Annotated[int, Ge(0)], ...] = ()  # token ids that never occur
    renormalise: bool = False  # after all of this, let the probabilities sum to 1 again

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other, or that would have no effect."""
        for name in ("length_penalty", "coverage_penalty", "diversity", "temperature"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} is {getattr(self, name)}: it must be a finite number")
        narrowed = [
            f"{name} is {getattr(self, name)}"
            for name, default in (("temperature", 1.0), ("top_k", None), ("top_p", 1.0))
            if getattr(self, name) != default
        ]
        if narrowed and not self.sample:
            raise ValueError(f"{narrowed[0]}, but nothing is drawn: set sample = true")
        if self.sample and (self.groups > 1 or self.coverage_penalty or self.early_stopping):
            raise ValueError(
                "sample is true, but groups, coverage_penalty and early_stopping are parts of a "
                "beam search: leave them out, or sample = false"
            )
        if (self.groups > 1) != (self.diversity > 0):
            raise ValueError(
                f"groups is {self.groups} and diversity {self.diversity}: several groups need a "
                "diversity above 0 to differ, such as 0.5, and a diversity needs several groups"
            )
        if self.beams % self.groups:
            raise ValueError(
                f"beams is {self.beams} and groups {self.groups}: choose a multiple of the groups"
            )
        if self.coverage_penalty and self.beams == 1:
            raise ValueError(
                f"coverage_penalty is {self.coverage_penalty}, but one beam has nothing to rank: "
                "set beams above 1"
            )
        if self.max_length is not None and self.min_length >= self.max_length:
            raise ValueError(
                f"min_length is {self.min_length} and max_length {self.max_length}, the end "
                "included: the one must be below the other"
            )


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of one text, and the search's account of it."""

    text: str
    score: float  # log-probability / length ** length_penalty, and the coverage penalty
    log_probability: float
    tokens: list[int]
    finished: bool  # False: cut off at the length limit
    token_log_probabilities: list[float] = field(default_factory=list)  # the end's included
    details: list[OutputToken] | None = None  # if they were asked for


class SpecialIds(Protocol):
    """The ids that every translating model's config names."""

    @property
    def pad(self) -> int: ...  # noqa: D102
    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102


def special_ids(model: nn.Module) -> SpecialIds:
    """Say what a model pads with, and what its targets start and end with."""
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
    reader: Reader | None = None,
) -> list[list[Translation]]:
    """Translate texts; return the n_best translations of each, in the order of the texts.

    Texts of like length are decoded together; what a text becomes does not depend on the others.
    An empty text stays empty.

    Args:
        model: an encoder-decoder that offers the Step protocol.
        tokenizers: of its two sides.
        texts: raw texts.
        decode: how to search.
        n_best: translations a text; widens the search if it has fewer beams.
        prefixes: for each text the target tokens that its translations begin with.
        constraints: for each text sequences of target tokens that its translations contain, each
            as often as it is listed. Needs a beam search; a text with constraints gets one more
            beam, and one more token, for every token of theirs.
        seed: of sampling; what is drawn for a text depends on this and the text alone.
        details: describe the tokens of each translation.
        align: with the source token that each comes from; costs one more pass of the model.
        reader: the attention that says so.

    Raises:
        UsageError: constraints without a plain beam search, an alignment or coverage of a model
            without attention, or prefixes, constraints or banned tokens that do not fit.
    """
    assert isinstance(model, Step)
    ids = special_ids(model)
    prefixes = prefixes or [[]] * len(texts)
    constraints = constraints or [[]] * len(texts)
    for what, given in (("prefixes", prefixes), ("constraints", constraints)):
        if len(given) != len(texts):
            raise UsageError(f"{len(texts)} texts, but {what} for {len(given)}: give one for each.")
    if any(map(any, constraints)) and (decode.sample or decode.groups > 1):
        raise UsageError(
            "Constraints need a beam search in one group, but this one "
            f"{'samples' if decode.sample else f'has {decode.groups}'}: leave that out."
        )
    if max(decode.banned, default=0) >= len(tokenizers.target):
        raise UsageError(
            f"Token {max(decode.banned)} is banned, but the last of the target's "
            f"{len(tokenizers.target)} tokens is {len(tokenizers.target) - 1}."
        )
    for what, rows in (("A prefix", prefixes), ("A constraint", chain(*constraints))):
        _check_ids(what, rows, len(tokenizers.target), ids.end)
    if ids.end in decode.banned and not decode.forced_end:
        raise UsageError(
            f"Token {ids.end}, the end, is banned, so that no output could end: set forced_end as "
            "well, or leave it out."
        )
    sources = [[*tokens, ids.end] for tokens in tokenizers.source.encode(texts)]
    most = reach(getattr(model, "config", None))
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
        found = _search(model, source, batch, decode, ids, n_best, seed)
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
                f"{what} has the token {token}: allowed are those from 0 to {vocabulary - 1}, but "
                f"not the end, {end}."
            )


@dataclass(frozen=True, slots=True)
class _Job:
    """One text to translate, and what its search depends on: on nothing of its neighbours."""

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
    """Put together texts of like length whose searches are equally wide."""
    jobs = sorted(jobs, key=lambda job: (job.beams, len(job.source)))
    for beams, group in groupby(jobs, key=lambda job: job.beams):
        alike, rows = list(group), max(1, ROWS // beams)
        yield from (alike[first : first + rows] for first in range(0, len(alike), rows))


def _search(
    model: Step[Any],
    source: Tensor,
    jobs: list[_Job],
    decode: DecodeConfig,
    ids: SpecialIds,
    n_best: int,
    seed: int,
) -> list[list[Hypothesis]]:
    """Choose the search; return the n_best outputs of each text, best first."""
    limits = [job.limit for job in jobs]
    rules = _rules(jobs, decode, ids)
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
    choose: Chooser = LIKELIEST
    if decode.groups > 1:
        choose = Diverse(decode.groups, decode.diversity)
    elif any(job.phrases for job in jobs):
        choose = Containing([job.phrases for job in jobs], limits)
    covering = Coverage(model, source != ids.pad, decode.coverage_penalty)
    return beam_search(
        covering if decode.coverage_penalty else model,
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
        bonus=covering.bonus if decode.coverage_penalty else None,
    )


def _rules(jobs: list[_Job], decode: DecodeConfig, ids: SpecialIds) -> list[Rule]:
    rules: list[Rule] = []
    if decode.banned:
        rules.append(Banned(decode.banned))
    if decode.no_repeat_ngram:
        rules.append(NoRepeatNgram(decode.no_repeat_ngram))
    if decode.min_length:
        rules.append(MinLength(decode.min_length, end=ids.end))
    if decode.forced_end:
        rules.append(ForcedEnd([job.limit for job in jobs], end=ids.end))
    if decode.renormalise:
        rules.append(Renormalise())
    if any(job.prefix for job in jobs):
        rules = [ForcedPrefix([job.prefix for job in jobs], rules)]
    return rules


def _readings(
    model: nn.Module,
    tokenizers: Tokenizers,
    texts: list[str],
    source: Tensor,
    found: list[list[Hypothesis]],
    ids: SpecialIds,
    reader: Reader | None,
) -> list[list[tuple[Piece, float]]]:
    """For every output of every text, in this order: what each of its tokens comes from."""
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
        [(pieces[n][place], share) for place, share in each]
        for n, each in zip(rows, read, strict=True)
    ]
