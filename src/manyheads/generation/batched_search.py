"""Search for outputs in batches: greedy, beam or sampled, under the rules of a [decode] table.

What is read, texts or images, is a tensor with one row an output; the model encodes it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.tokenizers.tokenizer import TextTokenizer, byte_pieces
from manyheads.decode.beam import beam_search
from manyheads.decode.beam_selection import TOP_K, BeamSelector, Diverse
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
from manyheads.decode.greedy import greedy_search
from manyheads.decode.loops import StopLoops
from manyheads.decode.phrases import PhraseConstraint
from manyheads.decode.sampling import Sampling, sample
from manyheads.decode.step import Hypothesis, Step
from manyheads.decode.utf8 import WholeCharacters
from manyheads.errors import UsageError
from manyheads.generation.special_ids import SpecialIds
from manyheads.streams import stream

ROWS = 256  # outputs x beams decoded at a time
ROOM = 65_536  # tokens that they may have together: memory, and what a long one holds up
Tokens = Sequence[int]


@dataclass(frozen=True, slots=True)
class Job:
    """One output to find, with the parameters of its search."""

    number: int  # among the inputs
    key: Tokens  # numbers that identify the input: its sample depends on them alone
    prefix: Tokens  # that the output begins with
    phrases: Sequence[Tokens]  # that it contains
    beams: int
    limit: int  # tokens, with the end token
    max_loop: int  # tokens that it may repeat in a row; 0 is no limit


@runtime_checkable
class Searcher(Protocol):
    """A model whose engine searches by itself, in place of the Step protocol."""

    def search(
        self,
        jobs: list[Job],
        decode: DecodeConfig,
        ids: SpecialIds,
        target: TextTokenizer,
        n_best: int,
        seed: int,
    ) -> Iterator[tuple[list[Job], list[list[Hypothesis]]]]:
        """Search for all jobs, in batches and in any order; `key` is the source.

        Yield the jobs of a batch with n_best outputs for each, best first, as `search` returns.

        Raises:
            UsageError: the engine has no equivalent of an option, which is named.
        """

    def reference(self) -> nn.Module:
        """Return the model on torch, for what the engine does not tell, such as alignment."""


def plan(
    decode: DecodeConfig,
    number: int,
    key: Tokens,
    *,
    limit: int,
    most: int,
    n_best: int,
    prefix: Tokens = (),
    phrases: Sequence[Tokens] = (),
    max_loop: int = 0,
) -> Job:
    """Plan one search.

    Args:
        decode: the [decode] table.
        number: of the input.
        key: that identifies it.
        limit: tokens of the output besides its prefix and phrases.
        most: tokens that the model can write.
        n_best: outputs wanted; more than the beams widen the search.
        prefix: tokens that the output begins with.
        phrases: sequences of tokens that it contains.
        max_loop: see `Job`.
    """
    beams = n_best if decode.sample else max(decode.beams, n_best)
    beams = -(-beams // decode.groups) * decode.groups  # n_best may ask for more
    needed = sum(map(len, phrases))
    limit = min(limit + len(prefix) + needed, most)
    return Job(number, key, prefix, phrases, beams + needed, limit, max_loop)


def check_search(
    decode: DecodeConfig,
    prefixes: Sequence[Tokens],
    constraints: Sequence[Sequence[Tokens]],
    *,
    vocabulary: int,
    end: int,
) -> None:
    """Refuse what no search can do.

    Raises:
        UsageError: constraints without a plain beam search, tokens outside the vocabulary, or a ban
            of the end token.
    """
    if any(map(any, constraints)) and (decode.sample or decode.groups > 1):
        raise UsageError(
            "Constraints need a beam search with one group, but "
            f"{'sample is true' if decode.sample else f'groups is {decode.groups}'}: leave it out."
        )
    if max(decode.banned, default=0) >= vocabulary:
        raise UsageError(
            f"Token {max(decode.banned)} is banned, but the target vocabulary has "
            f"{vocabulary} tokens, 0 to {vocabulary - 1}."
        )
    for what, rows in (("A prefix", prefixes), ("A constraint", chain(*constraints))):
        for token in chain(*rows):
            if not 0 <= token < vocabulary or token == end:
                raise UsageError(
                    f"{what} has the token {token}: allowed are 0 to {vocabulary - 1}, except the "
                    f"end token {end}."
                )
    if end in decode.banned and not decode.forced_end:
        raise UsageError(
            f"Token {end} is the end token: without it no output can end. Do not ban it, or "
            "set forced_end."
        )


def batches(jobs: list[Job], most: int = ROWS) -> Iterator[list[Job]]:
    """Batch inputs of similar length with equal numbers of beams; a long one gets its own batch.

    Args:
        jobs: to be batched.
        most: outputs x beams in a batch.
    """
    jobs = sorted(jobs, key=lambda job: (job.beams, len(job.key)))
    batch: list[Job] = []
    longest = 0
    for job in jobs:
        rows, longest = (len(batch) + 1) * job.beams, max(longest, job.limit)
        if batch and (job.beams != batch[0].beams or rows > most or rows * longest > ROOM):
            yield batch
            batch, longest = [], job.limit
        batch.append(job)
    if batch:
        yield batch


def search(
    model: Step[Any],
    source: Tensor,
    jobs: list[Job],
    decode: DecodeConfig,
    ids: SpecialIds,
    target: TextTokenizer,
    n_best: int,
    seed: int,
    real: Callable[[], Tensor],
    given: int = 0,
) -> list[list[Hypothesis]]:
    """Sample, or run a greedy or beam search; return n_best outputs per input, best first.

    Args:
        model: with the Step protocol.
        source: one row a job: token ids, padded, or images.
        jobs: with equal numbers of beams.
        decode: the [decode] table.
        ids: of special tokens.
        target: what turns tokens into text.
        n_best: outputs per input.
        seed: of sampling.
        real: makes a mask (job, source part), True where nothing is padding: for the coverage
            penalty.
        given: first tokens of every prefix that cost nothing, and are no part of `min_length`.
    """
    limits = [job.limit for job in jobs]
    rules = _rules(jobs, decode, ids, target, given)
    beams = jobs[0].beams
    if decode.sample:
        drawn = sample(
            model,
            source,
            limits,
            [stream(seed, "sentence", *job.key) for job in jobs],
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
        model = covering = Coverage(model, real(), decode.coverage_penalty)
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
    jobs: list[Job], decode: DecodeConfig, ids: SpecialIds, target: TextTokenizer, given: int
) -> list[Rule]:
    between: list[Rule] = []  # characters
    if decode.no_repeat_ngram:
        between.append(NoRepeatNgram(decode.no_repeat_ngram))
    if decode.min_length:
        between.append(MinLength(decode.min_length + given, end=ids.end))
    if decode.max_loop:
        between.append(StopLoops([job.max_loop for job in jobs], end=ids.end))
    if decode.forced_end:
        between.append(ForcedEnd([job.limit for job in jobs], end=ids.end))
    limits = [job.limit - decode.forced_end for job in jobs]
    rules: list[Rule] = [SuppressTokens(decode.banned)] if decode.banned else []
    rules.append(WholeCharacters(byte_pieces(target), limits, between, banned=decode.banned))
    if decode.renormalise:
        rules.append(Renormalise())
    if any(job.prefix for job in jobs):
        rules = [ForcedPrefix([job.prefix for job in jobs], rules, given=given)]
    return rules
