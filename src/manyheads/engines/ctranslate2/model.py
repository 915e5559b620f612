"""A translator in CTranslate2: searches as ours do, or refuses what it cannot do the same."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import torch
from torch import nn

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.batching.batches import pad
from manyheads.data.tokenizers.tokenizer import TextTokenizer, byte_pieces
from manyheads.decode.loops import StopLoops, loops
from manyheads.decode.step import Hypothesis
from manyheads.engines.ctranslate2.exporter import Names
from manyheads.engines.engine import EngineModel
from manyheads.errors import UsageError
from manyheads.generation.batched_search import ROWS, Job, batches, search
from manyheads.generation.special_ids import SpecialIds
from manyheads.models.convert.ctranslate2 import library
from manyheads.models.transformer import TransformerConfig
from manyheads.streams import stream

# Hypotheses found before a search ends, in multiples of the beams. Ours ends when no beam can get
# better; of 120 lines of Multi30k 2 differed at 1 and none at 2, beam size 4.
PATIENCE = 2
STEEPEST = 1.0  # above it, longer outputs get better and better, and the two searches end apart
SEEDS = 2**31
Tokens = Sequence[int]
Found = list[list[Hypothesis]]  # outputs of each job, best first
Bytes = dict[int, int]  # of the tokens that are one byte


class CTranslate2Model(EngineModel):
    """An encoder-decoder that searches in CTranslate2.

    What CTranslate2 has no rule for is looked for in its outputs. One that reaches its limit or
    repeats itself is ended there if the search is greedy. All others that break a rule are searched
    again on torch, where the rules apply.
    """

    config: TransformerConfig
    engine: ClassVar[str] = "CTranslate2"

    def __init__(
        self,
        config: TransformerConfig,
        make: Callable[[], Any],
        names: Names,
        reference: Callable[[], nn.Module],
        positions: int | None,
    ) -> None:
        """Load the engine.

        Args:
            config: of the model.
            make: loads CTranslate2's translator.
            names: of the tokens on both sides.
            reference: loads the same model on torch, once, when it is first needed.
            positions: tokens that a text may have; None: any number.
        """
        super().__init__(config)
        self.make = make
        self.translator = make()
        self.source, self.target = names
        self.ids = {name: token for token, name in enumerate(self.target)}
        self.reference = reference
        self.positions = positions

    def search(
        self,
        jobs: list[Job],
        decode: DecodeConfig,
        ids: SpecialIds,
        target: TextTokenizer,
        n_best: int,
        seed: int,
    ) -> Iterator[tuple[list[Job], Found]]:
        """Search or sample; yield batches of jobs with n_best outputs for each, best first.

        The workers have their next batch before they ask for it, and those of long texts come
        first: no worker waits for Python, and the last one ends soon after the others. What is to
        be scored or searched again comes last: it would delay everything else.
        """
        workers = self.translator.num_translators
        rows = sum(job.beams for job in jobs)
        most = min(max(-(-rows // workers), 1), ROWS // workers)
        split = list(batches(jobs, most))[::-1]
        for batch in split:
            check(decode, batch)
            self._check_length(batch)
        started: deque[list[Any]] = deque()
        rest = iter([] if decode.sample else split)
        bytes_of = dict(byte_pieces(target))
        later = []
        for batch in split:
            more = islice(rest, 2 * workers - len(started))
            started += [self._start(each, decode, n_best) for each in more]
            if decode.sample:
                found = [self._sample(job, decode, n_best, seed) for job in batch]
            else:
                found = [self._hypotheses(each.result(), decode) for each in started.popleft()]
            if not _scores_differ(decode, batch):
                found = _shown(found, target, decode, n_best)
                if not _broken(batch, found, decode, bytes_of):
                    yield batch, found
                    continue
            later.append((batch, found))
        for batch, found in later:
            if _scores_differ(decode, batch):
                found = _shown(self._in_order(batch, found, decode), target, decode, n_best)
            again = _broken(batch, found, decode, bytes_of)
            if again and _ends_early(decode, batch):
                again = self._cut(batch, found, again, decode, bytes_of)
            if again:
                model: Any = self.reference()
                some = [batch[number] for number in again]
                source = pad([job.key for job in some], ids.pad)
                real = partial(torch.ne, source, ids.pad)
                better = search(model, source, some, decode, ids, target, n_best, seed, real)
                for number, outputs in zip(again, better, strict=True):
                    found[number] = outputs
            yield batch, found

    def score(self, sources: Sequence[Tokens], outputs: Sequence[Tokens]) -> list[list[float]]:
        """Return the log-probability of each token of each output, and of its end."""
        scored = self.translator.score_batch(
            [[self.source[token] for token in tokens] for tokens in sources],
            [[self.target[token] for token in tokens] for tokens in outputs],
            max_batch_size=32,
            max_input_length=0,
        )
        return [list(each.log_probs) for each in scored]

    def _start(self, jobs: list[Job], decode: DecodeConfig, n_best: int) -> list[Any]:
        """Start the search for some jobs; the results are waited for one by one."""
        beams = jobs[0].beams
        prefixed = any(job.prefix for job in jobs)
        patience = 1.0 if decode.early_stopping or beams == 1 else PATIENCE
        # Outputs that are equal but for white space count once, and a prefix changes their order.
        several = beams > 1 and (n_best > 1 or prefixed)
        return self._run(
            self.translator,
            jobs,
            decode,
            beam_size=beams,
            patience=patience,
            num_hypotheses=round(beams * patience) if several else 1,
            length_penalty=decode.length_penalty,
            asynchronous=True,
        )

    def _sample(self, job: Job, decode: DecodeConfig, samples: int, seed: int) -> list[Hypothesis]:
        """Draw from a generator of the text's own.

        CTranslate2 seeds a generator only where it is made, so with each translator anew.
        """
        library().set_random_seed(stream(seed, "sentence", *job.key) % SEEDS)
        (result,) = self._run(
            self.make(),
            [job],
            decode,
            beam_size=1,
            num_hypotheses=samples,
            sampling_topk=min(decode.top_k or 0, len(self.target)),
            sampling_topp=decode.top_p,
            sampling_temperature=decode.temperature,
        )
        return self._hypotheses(result, decode)

    def _run(self, engine: Any, jobs: list[Job], decode: DecodeConfig, **options: Any) -> list[Any]:
        prefixes = None
        if any(job.prefix for job in jobs):
            prefixes = [[self.target[token] for token in job.prefix] for job in jobs]
        banned = [[self.target[token]] for token in decode.banned]
        return engine.translate_batch(
            [[self.source[token] for token in job.key] for job in jobs],
            target_prefix=prefixes,
            max_input_length=0,
            max_decoding_length=max(job.limit for job in jobs),
            min_decoding_length=decode.min_length,
            no_repeat_ngram_size=decode.no_repeat_ngram,
            suppress_sequences=banned or None,
            return_scores=True,
            return_end_token=True,
            **options,
        )

    def _hypotheses(self, result: Any, decode: DecodeConfig) -> list[Hypothesis]:
        found = []
        for names, score in zip(result.hypotheses, result.scores, strict=True):
            tokens = [self.ids[name] for name in names]
            total = score * max(1, len(tokens)) ** decode.length_penalty
            finished = bool(tokens) and tokens[-1] == self.config.end
            found.append(Hypothesis(tokens[:-1] if finished else tokens, total, score, finished))
        return found

    def _in_order(self, jobs: list[Job], found: Found, decode: DecodeConfig) -> Found:
        """Score outputs by the model's own probabilities, and order them again."""
        flat = [(job.key, each) for job, some in zip(jobs, found, strict=True) for each in some]
        scored = iter(self.score([key for key, _ in flat], [each.tokens for _, each in flat]))
        again = ([_with_terms(each, next(scored), decode) for each in some] for some in found)
        return [sorted(some, key=lambda each: -each.score) for some in again]

    def _cut(
        self, jobs: list[Job], found: Found, again: list[int], decode: DecodeConfig, bytes_of: Bytes
    ) -> list[int]:
        """End greedy outputs where the rules would have; return those that need a search."""
        ended = [n for n in again if bytes_of.keys().isdisjoint(found[n][0].tokens)]
        outputs = [[_end(jobs[n], found[n][0], self.config.end)] for n in ended]
        scored = self._in_order([jobs[n] for n in ended], outputs, decode) if ended else []
        for number, output in zip(ended, scored, strict=True):
            found[number] = output
        return [number for number in again if number not in ended]

    def _check_length(self, jobs: list[Job]) -> None:
        """Refuse what has more tokens than the export has positions."""
        longest = max(max(job.limit, len(job.key)) for job in jobs)
        most = self.positions
        if most is not None and longest > most:
            raise UsageError(
                f"An output may have {longest:,} tokens here (decode.max_length, or a prefix), but "
                f"the export for {self.engine} has {most:,} positions: shorten it, or load the "
                "model with `engine='torch'`."
            )


def check(decode: DecodeConfig, jobs: list[Job]) -> None:
    """Refuse what CTranslate2 cannot do, or not as our search does.

    Raises:
        UsageError: an option that it has no equivalent of.
    """
    beams = jobs[0].beams
    searches = not decode.sample and beams > 1
    rules = [each for each in ("no_repeat_ngram", "min_length", "banned") if getattr(decode, each)]
    lacks = {
        "constraints, such as those of a glossary": any(any(job.phrases) for job in jobs),
        "`coverage_penalty`": decode.coverage_penalty,
        "`diversity`": decode.groups > 1,
        "`length_penalty` above 1 in a beam search": searches and decode.length_penalty > STEEPEST,
        # It normalises probabilities behind these rules, which changes the order of the beams.
        " and ".join(f"`{name}`" for name in rules) + " in a beam search": searches
        and bool(rules)
        and not decode.renormalise,
    }
    if wrong := [name for name, given in lacks.items() if given]:
        raise UsageError(
            f"The engine ctranslate2 has no {wrong[0]}: leave it out, or load the model with "
            "`engine='torch'`."
        )


def _ends_early(decode: DecodeConfig, jobs: list[Job]) -> bool:
    """Whether the rules that CTranslate2 lacks do no more than to end an output: if greedy."""
    others = decode.sample or decode.forced_end or decode.renormalise
    return not others and jobs[0].beams == 1 and not any(job.prefix for job in jobs)


def _end(job: Job, output: Hypothesis, end: int) -> Hypothesis:
    """End a greedy output at its limit, or where it has repeated itself for too long."""
    tokens = output.tokens[: job.limit]
    finished = output.finished and len(output.tokens) < job.limit
    for length in range(job.max_loop + 1, len(tokens)) if job.max_loop else ():
        rule = StopLoops([job.max_loop], end=end)
        scores = rule(torch.zeros(1, 1, end + 2), torch.tensor(tokens[:length])[None, None], [0])
        if scores[0, 0, end + 1] < 0:  # nothing but the end is left
            return Hypothesis(tokens[:length], 0.0, 0.0, finished=True)
    return Hypothesis(tokens, 0.0, 0.0, finished)


def _scores_differ(decode: DecodeConfig, jobs: list[Job]) -> bool:
    """Whether CTranslate2's scores are not the model's: of samples, rules and prefixes."""
    ruled = decode.no_repeat_ngram or decode.min_length or decode.banned
    prefixed = any(job.prefix for job in jobs)
    return bool(decode.sample or prefixed or (ruled and not decode.renormalise))


def _with_terms(output: Hypothesis, terms: list[float], decode: DecodeConfig) -> Hypothesis:
    terms = terms[: len(output.tokens) + output.finished]
    total = sum(terms)
    score = total / max(1, len(terms)) ** decode.length_penalty
    return Hypothesis(output.tokens, total, score, output.finished, terms)


def _shown(found: Found, target: TextTokenizer, decode: DecodeConfig, n_best: int) -> Found:
    """Keep so many outputs of each job; equal ones count once, unless they are samples."""
    if n_best > 1 and not decode.sample:
        found = [_different(each, target) for each in found]
    return [each[:n_best] for each in found]


def _different(found: list[Hypothesis], target: TextTokenizer) -> list[Hypothesis]:
    """Keep the first of outputs with the same text, as our search does."""
    texts = target.decode([each.tokens for each in found])
    kept: dict[tuple[str, ...], Hypothesis] = {}
    for text, each in zip(texts, found, strict=True):
        kept.setdefault(tuple(text.split()), each)
    return list(kept.values())


def _broken(jobs: list[Job], found: Found, decode: DecodeConfig, bytes_of: Bytes) -> list[int]:
    """Return which of the jobs have an output that breaks a rule that CTranslate2 lacks."""
    return [
        number
        for number, (job, each) in enumerate(zip(jobs, found, strict=True))
        if not all(_within_rules(job, one, decode, bytes_of) for one in each)
    ]


def _within_rules(job: Job, output: Hypothesis, decode: DecodeConfig, bytes_of: Bytes) -> bool:
    """Whether our rules would have let this output be, and counted it the same."""
    tokens = output.tokens
    # An end that is forced costs nothing.
    if not output.finished or len(tokens) + 1 > job.limit - decode.forced_end:
        return False
    if job.max_loop and loops(tokens, job.max_loop):
        return False
    try:
        bytes(bytes_of.get(token, ord(" ")) for token in tokens).decode()
    except UnicodeDecodeError:
        return False
    return True
