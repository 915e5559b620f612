"""Language models small enough to search by hand: next-token probabilities for every prefix.

What comes next depends on the whole prefix, so a search that mixes up its beams or sentences finds
something else.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from manyheads.decode.step import Hypothesis

START, END = 0, 1
Prefix = tuple[int, ...]
Next = Callable[[int, Prefix], list[float]]  # source, prefix -> log-probabilities


@dataclass(frozen=True)
class Prefixes:
    """What every beam of every sentence has been fed so far, the start token included."""

    sources: list[int]
    fed: list[list[Prefix]]
    length: int


class Tree:
    """The Step protocol over a function; a source is one row with one number."""

    def __init__(self, after: Next, *, carries: bool = False) -> None:
        self.after = after
        self.carries = carries  # whether what has ended may stay in the batch
        self.steps: list[list[list[int]]] = []  # the tokens of every step, for tests to look at

    def start(self, source: Tensor, beams: int, max_length: int) -> Prefixes:
        self.max_length = max_length
        sources = source[:, 0].tolist()
        return Prefixes(sources, [[()] * beams for _ in sources], 0)

    def step(self, tokens: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        self.steps.append(tokens.tolist())
        assert tokens.shape == (len(state.sources), len(state.fed[0])), "rows do not fit the state"
        assert state.length < self.max_length, "more tokens than were announced"
        assert self.carries or END not in tokens, "what has ended goes on"
        if state.length == 0:
            assert tokens.eq(START).all(), "a target begins with the start token"
        fed = [
            [(*prefix, token) for prefix, token in zip(prefixes, row, strict=True)]
            for prefixes, row in zip(state.fed, tokens.tolist(), strict=True)
        ]
        log_probabilities = [
            [self.after(source, () if END in prefix else prefix[1:]) for prefix in prefixes]
            for source, prefixes in zip(state.sources, fed, strict=True)
        ]
        return torch.tensor(log_probabilities), replace(state, fed=fed, length=state.length + 1)

    def reorder(self, state: Prefixes, beams: Tensor) -> Prefixes:
        pairs = zip(state.fed, beams.tolist(), strict=True)
        return replace(state, fed=[[row[beam] for beam in chosen] for row, chosen in pairs])

    def keep(self, state: Prefixes, sentences: Tensor) -> Prefixes:
        rows = sentences.tolist()
        return replace(
            state, sources=[state.sources[n] for n in rows], fed=[state.fed[n] for n in rows]
        )


def from_table(table: dict[Prefix, dict[int, float]], vocabulary: int) -> Next:
    """Probabilities as written in a test; what is not written is 0."""

    def after(source: int, prefix: Prefix) -> list[float]:
        row = table.get(prefix, {})
        return [math.log(row[token]) if token in row else -math.inf for token in range(vocabulary)]

    return after


def random_tree(seed: int, vocabulary: int) -> Next:
    """Random probabilities, another for every source and prefix, always the same for a seed."""

    def after(source: int, prefix: Prefix) -> list[float]:
        generator = np.random.default_rng([seed, source, len(prefix), *prefix])
        logits = 2 * generator.standard_normal(vocabulary)
        log_probabilities: list[float] = (logits - np.logaddexp.reduce(logits)).tolist()
        return log_probabilities

    return after


def log_probability(after: Next, source: int, tokens: list[int]) -> float:
    """Sum over the tokens, one after the other."""
    return sum(after(source, tuple(tokens[:t]))[token] for t, token in enumerate(tokens))


def exhaustive(
    after: Next, source: int, vocabulary: int, longest: int, length_penalty: float
) -> list[Hypothesis]:
    """Every output there is, best score first: those that end, and those cut off at the limit."""

    def outputs() -> Iterator[list[int]]:
        going_on = [token for token in range(vocabulary) if token != END]
        for length in range(longest):
            for tokens in product(going_on, repeat=length):
                yield [*tokens, END]
        for tokens in product(going_on, repeat=longest):
            yield list(tokens)

    hypotheses = []
    for tokens in outputs():
        total = log_probability(after, source, tokens)
        score = total / len(tokens) ** length_penalty
        finished = tokens[-1] == END
        hypotheses.append(Hypothesis(tokens[:-1] if finished else tokens, total, score, finished))
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def changed(after: Next, change: Callable[[Prefix, list[float]], list[float]]) -> Next:
    """Another model: what comes next is what `change` makes of it."""
    return lambda source, prefix: change(prefix, after(source, prefix))


def textbook_beam(
    after: Next,
    source: int,
    longest: int,
    beams: int,
    length_penalty: float,
    early_stopping: bool = False,
) -> list[Hypothesis]:
    """Beam search for one sentence, with lists: the rules that `beam_search` documents."""
    living: list[tuple[float, list[int]]] = [(0.0, [])]
    done: list[Hypothesis] = []
    for length in range(1, longest + 1):
        candidates = [
            (total + more, [*tokens, token])
            for total, tokens in living
            for token, more in enumerate(after(source, tuple(tokens)))
        ]
        candidates.sort(key=lambda candidate: -candidate[0])
        living = [(total, tokens) for total, tokens in candidates if tokens[-1] != END][:beams]
        ended = [(total, tokens) for total, tokens in candidates[:beams] if tokens[-1] == END]
        rank = length**length_penalty
        done += [Hypothesis(tokens[:-1], total, total / rank, True) for total, tokens in ended]
        if length == longest:
            done += [Hypothesis(tokens, total, total / rank, False) for total, tokens in living]
        done = sorted(done, key=lambda hypothesis: -hypothesis.score)[:beams]
        if len(done) == beams and (early_stopping or living[0][0] / rank <= done[-1].score):
            break  # enough, or no living beam, at its present length, would get in
    return done


def alike(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    """The same outputs in the same order; scores may be rounded otherwise in another company."""
    assert [(each.tokens, each.finished) for each in found] == [
        (each.tokens, each.finished) for each in expected
    ]
    for one, other in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-6)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-6)
        assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=1e-6)
