"""The coverage penalty: by hand, against brute force, and of the attention that models return."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.coverage import Coverage
from manyheads.decode.step import Hypothesis
from manyheads.errors import UsageError
from manyheads.lens.measures.alignment_head import fallback, layers, read
from manyheads.models.seq2seq import Seq2Seq, Seq2SeqConfig
from manyheads.models.transformer import Transformer
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import active, record
from tests import reverser
from tests.decode.tree import (
    END,
    START,
    Next,
    Prefix,
    Prefixes,
    Tree,
    exhaustive,
    random_tree,
)
from tests.small import SEQ2SEQS, TRANSFORMERS, inputs, randomise

A, B = 2, 3
SOURCE = 3  # tokens of every source in a tree; the second sentence has one less

thorough = settings(deadline=None, derandomize=True, max_examples=30)


class ReadingTree(Tree):
    """A tree that attends to its source, and returns the weights when asked."""

    def step_with_attention(
        self, tokens: Tensor, state: Prefixes
    ) -> tuple[Tensor, Prefixes, Tensor]:
        log_probabilities, state = self.step(tokens, state)
        rows = [
            [attention(source, prefix[1:]) for prefix in prefixes]
            for source, prefixes in zip(state.sources, state.fed, strict=True)
        ]
        return log_probabilities, state, torch.tensor(rows)


def attention(source: int, prefix: Prefix) -> list[float]:
    """What the step behind a prefix reads: random, and nothing of padding."""
    generator = np.random.default_rng([source, len(prefix), *prefix])
    weights = generator.random(SOURCE) ** 3
    if source == 1:
        weights[-1] = 0.0
    return list(weights / weights.sum())


def real(sentences: int) -> Tensor:
    mask = torch.ones(sentences, SOURCE, dtype=torch.bool)
    mask[1:2, -1] = False
    return mask


def covered(
    after: Next, limits: list[int], *, beams: int, penalty: float, n_best: int = 1
) -> list[list[Hypothesis]]:
    model = Coverage(ReadingTree(after), real(len(limits)), penalty)
    return beam_search(
        model,
        torch.arange(len(limits))[:, None].expand(-1, SOURCE),
        limits,
        beams=beams,
        start=START,
        end=END,
        n_best=n_best,
        bonus=model.bonus,
    )


def penalty_of(source: int, hypothesis: Hypothesis, beta: float) -> float:
    """Equation (14) of the paper, loop by loop."""
    tokens = hypothesis.tokens
    steps = len(tokens) + hypothesis.finished
    total = 0.0
    for i in range(SOURCE - (source == 1)):
        total += math.log(
            min(sum(attention(source, tuple(tokens[:j]))[i] for j in range(steps)), 1)
        )
    return beta * total


def test_the_bonus_by_hand() -> None:
    """Read .5, .25 and 2 of three tokens: log .5 + log .25 + log 1 = -2.079; times .2."""
    read = torch.tensor([[[0.5, 0.25, 2.0, 0.0], [1.0, 1.0, 1.0, 0.0]]])
    real = torch.tensor([[True, True, True, False]])  # the fourth is padding
    model = Coverage(ReadingTree(random_tree(0, 3)), real, 0.2)
    state = model.start(torch.tensor([[0, 0, 0, 0]]), 2, 3)
    bonus = model.bonus(replace(state, read=read))
    torch.testing.assert_close(bonus, torch.tensor([[0.2 * math.log(0.125), 0.0]]))
    assert model.bonus(state).isfinite().all()  # nothing read at all is bad, not impossible


@thorough
@given(
    seed=st.integers(0, 10_000),
    longest=st.integers(1, 3),
    beta=st.sampled_from([0.1, 0.5, 2.0]),
)
def test_a_wide_beam_ranks_by_the_equation(seed: int, longest: int, beta: float) -> None:
    """Every output, by log-probability / length + penalty: of a whole source and of a padded."""
    after = random_tree(seed, 3)
    results = covered(after, [longest] * 2, beams=3**longest, penalty=beta, n_best=3**longest)
    for source, found in enumerate(results):
        expected = {
            (*each.tokens, each.finished): each.score + penalty_of(source, each, beta)
            for each in exhaustive(after, source, 3, longest, 1.0)
        }
        assert len(found) == len(expected)
        for each in found:
            score = expected[(*each.tokens, each.finished)]
            assert each.score == pytest.approx(score, abs=1e-4)
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)


@thorough
@given(
    seed=st.integers(0, 10_000),
    limits=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    beams=st.integers(2, 4),
)
def test_a_beams_reading_goes_with_it(seed: int, limits: list[int], beams: int) -> None:
    """Beams change places and sentences leave, and yet every score is that of its own output."""
    after = random_tree(seed, 4)
    results = covered(after, limits, beams=beams, penalty=0.3, n_best=beams)
    for source, found in enumerate(results):
        for each in found:
            length = len(each.tokens) + each.finished
            score = each.log_probability / length + penalty_of(source, each, 0.3)
            assert each.score == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_layer_before_the_last(layers: int) -> None:
    """Of several layers the last but one, of one layer that one; heads are averaged."""
    config = replace(TRANSFORMERS["transformer-base"], decoder_layers=layers)
    model = randomise(Transformer(config)).eval()
    source, target = inputs(config)
    with torch.inference_mode():
        state = model.start(source, 1, 4)
        for token in target.T:
            with record() as trace:
                plain, _ = model.step(token[:, None], state)
            log_probabilities, state, weights = model.step_with_attention(token[:, None], state)
            assert torch.equal(log_probabilities, plain)
            maps = [
                each.weights().mean(dim=1)
                for each in trace
                if isinstance(each, AttentionRecord) and each.layer_id.kind == "cross"
            ]
            assert len(maps) == layers
            assert torch.equal(weights, maps[max(layers - 2, 0)])


@pytest.mark.parametrize("name", ["seq2seq-gru-attention", "dot, fed"])
def test_steps_of_an_rnn_return_what_they_record(name: str) -> None:
    """Token by token; the weights of padding are 0, and those of a step sum to 1."""
    config = SEQ2SEQS[name]
    model = randomise(Seq2Seq(config)).eval()
    source, target = inputs(config)
    with torch.inference_mode():
        state = model.start(source, 1, 4)
        for token in target.T:
            with record() as trace:
                _, state, weights = model.step_with_attention(token[:, None], state)
            (kept,) = [each for each in trace if isinstance(each, AttentionRecord)]
            assert weights is not None
            torch.testing.assert_close(weights, kept.weights()[:, 0])
            torch.testing.assert_close(weights.sum(-1), torch.ones(len(source), 1))
            assert weights[(source == config.pad)[:, None]].eq(0).all()


def test_without_attention_there_is_no_coverage() -> None:
    """A model that reads its source only once says so: by its kind, or by its configuration."""
    with pytest.raises(UsageError, match="no attention over the source"):
        Coverage(Tree(random_tree(0, 3)), real(1), 0.2)
    config = Seq2SeqConfig(vocabulary=9, dim=8, hidden_size=8, attention="none")
    source = torch.tensor([[4, 5, 6]])
    model = Coverage(Seq2Seq(config).eval(), source != config.pad, 0.2)
    with pytest.raises(UsageError, match="no attention over the source"):
        beam_search(model, source, [3], beams=2, start=START, end=END)


def test_coverage_needs_no_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attention is a result of the step: nothing opens a recorder during the search."""
    model, config = reverser.trained(), reverser.CONFIG
    source = reverser.padded(reverser.words(3, seed=4))
    wrapped = Coverage(model, source != config.pad, 0.4)
    plain = model.step_with_attention
    seen: list[object] = []

    def spy(*given: Any) -> Any:
        seen.append(active())
        return plain(*given)

    monkeypatch.setattr(model, "step_with_attention", spy)
    ends: dict[str, Any] = {"start": config.start, "end": config.end, "bonus": wrapped.bonus}
    beam_search(wrapped, source, [5] * 3, beams=3, **ends)
    assert seen
    assert not any(seen)


def test_a_real_model() -> None:
    """The scores differ by the penalty of what teacher forcing reads, in any batch."""
    model, config = reverser.trained(), reverser.CONFIG
    rows = reverser.words(8, seed=9)
    ends: dict[str, Any] = {"start": config.start, "end": config.end}

    def search(rows: list[list[int]]) -> list[list[Hypothesis]]:
        source = reverser.padded(rows)
        wrapped = Coverage(model, source != config.pad, 0.4)
        limits = [len(row) + 3 for row in rows]
        return beam_search(wrapped, source, limits, beams=4, n_best=4, bonus=wrapped.bonus, **ends)

    for row, found in zip(rows, search(rows), strict=True):
        for ours, alone in zip(found, search([row])[0], strict=True):
            assert ours.tokens == alone.tokens
            assert ours.score == pytest.approx(alone.score, abs=1e-4)
            steps = len(ours.tokens) + ours.finished
            target = [config.start, *ours.tokens][:steps]
            with record() as trace, torch.inference_mode():
                model(torch.tensor([row]), torch.tensor([target]))
            maps = layers(trace)
            weights = read(maps, fallback(maps))[0]
            got = weights.sum(0).clamp(max=1.0).log().sum().item()
            score = ours.log_probability / steps + 0.4 * got
            assert ours.score == pytest.approx(score, abs=1e-3)
