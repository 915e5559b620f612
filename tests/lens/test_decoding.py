"""What each token looked at while a search ran is what one pass over the whole output shows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from manyheads.data.batching.batches import pad
from manyheads.decode.beam import beam_search
from manyheads.decode.coverage import Coverage
from manyheads.decode.greedy import greedy_search
from manyheads.decode.sampling import sample
from manyheads.decode.step import Hypothesis
from manyheads.errors import UsageError
from manyheads.lens.trace.attention_reader import attentions
from manyheads.lens.trace.decoding_trace import decoded
from manyheads.lens.trace.gates import gate_maps
from manyheads.models.causal_lm import CausalConfig
from manyheads.models.presets import build
from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.models.transformer import TransformerConfig
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.attention.softmax_record import CachedRecord
from manyheads.nn.recording.beam_candidates import CandidateRecord
from manyheads.nn.recording.trace import LayerId, Trace, record
from tests import reverser
from tests.small import SEQ2SEQS, TRANSFORMERS, randomise

Config = TransformerConfig | Seq2SeqConfig
MODELS: dict[str, Config] = {
    **{name: TRANSFORMERS[name] for name in ("transformer-base", "rotary", "marian")},
    **SEQ2SEQS,
}
SOURCES = [[3, 4, 5, 6, 7], [8, 9], [5, 3, 9], [4, 4, 8]]
LIMITS = [7, 4, 6, 3]
# Every model in a beam search, a Transformer and an RNN in every search.
CASES = [(name, "beam") for name in MODELS] + [
    (name, kind)
    for name in ("transformer-base", "additive, fed, deep")
    for kind in ("greedy", "coverage", "sample")
]


def search(
    model: Any, config: Config | CausalConfig, kind: str, sources: Sequence[list[int]] = SOURCES
) -> list[list[Hypothesis]]:
    source = pad(sources, config.pad)
    limits = LIMITS[: len(sources)]
    ends: dict[str, Any] = {"start": config.start, "end": config.end}
    if kind == "greedy":
        return [[each] for each in greedy_search(model, source, limits, **ends)]
    if kind == "sample":
        seeds = list(range(len(sources)))
        return sample(model, source, limits, seeds, samples=2, **ends)
    if kind == "coverage":
        covering = Coverage(model, source != config.pad, 0.5)
        options: dict[str, Any] = {"bonus": covering.bonus}
        return beam_search(covering, source, limits, beams=3, n_best=3, **options, **ends)
    return beam_search(model, source, limits, beams=3, n_best=3, **ends)


def chosen(found: Hypothesis, end: int) -> list[int]:
    return [*found.tokens, *([end] if found.finished else [])]


def in_one_pass(model: nn.Module, *tokens: list[int]) -> Trace:
    with record() as trace, torch.no_grad():
        model(*(torch.tensor([row]) for row in tokens))
    return trace


def layer_ids(trace: Trace) -> list[LayerId]:
    return sorted({each.layer_id for each in trace}, key=str)


def assert_alike(found: Trace, expected: Trace) -> None:
    # An RNN that is fed what it saw writes a record a token of its states, in one pass too.
    assert layer_ids(found) == layer_ids(expected)
    for left, right in zip(attentions(found), attentions(expected), strict=True):
        torch.testing.assert_close(left.whole(), right.whole(), atol=1e-5, rtol=0)
    for one, other in zip(gate_maps(found), gate_maps(expected), strict=True):
        assert one.layer_id == other.layer_id
        for name, gate in one.gates.items():
            torch.testing.assert_close(gate, other.gates[name], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_rows_of_steps_are_the_map_of_one_pass(name: str, kind: str) -> None:
    """T4, T17: for every output of every sentence of a padded batch, within 1e-5."""
    config = MODELS[name]
    model: Any = randomise(build(config)).eval()
    plain = search(model, config, kind)
    with record() as trace:
        assert search(model, config, kind) == plain  # looking changes nothing
    for source, hypotheses in zip(SOURCES, plain, strict=True):
        for each in hypotheses:
            output = chosen(each, config.end)
            found = decoded(trace, output, source)
            read = [config.start, *output[:-1]]
            assert_alike(found.trace, in_one_pass(model, source, read))
            assert len(found.candidates) == len(output)


@pytest.mark.parametrize("kind", ["beam", "sample"])
def test_a_language_model_behind_its_prompt(kind: str) -> None:
    """T20: the prompt was read at once, what follows step by step."""
    config = CausalConfig(
        vocabulary=11, dim=8, layers=2, heads=2, ffn_dim=16, max_length=16, dropout=0.0
    )
    model: Any = randomise(build(config)).eval()
    prompts = [[config.start, 4, 5], [config.start, 9, 9]]
    with record() as trace:
        found = search(model, config, kind, prompts)
    for prompt, hypotheses in zip(prompts, found, strict=True):
        for each in hypotheses:
            output = chosen(each, config.end)
            one = decoded(trace, output, prompt)
            assert_alike(one.trace, in_one_pass(model, [*prompt, *output[:-1]]))


@pytest.mark.parametrize("kind", ["distance", "window"])
def test_an_attention_with_a_bias_or_a_mask_of_its_own(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is added in every step, as docs/extending.md does it, is in the map."""
    plain: Any = MultiHeadAttention._attend

    def own(
        self: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, bias: Any, context: Any
    ) -> Tensor:
        places = torch.arange(k.shape[2])
        far = (places[k.shape[2] - q.shape[2] :, None] - places).abs()[None, None]
        if kind == "distance":
            bias = -far.float() * torch.tensor([0.5, 2.0])[:, None, None]
        else:
            mask = far < 2 if mask is None else mask & (far < 2)
        found: Tensor = plain(self, q, k, v, mask, bias, context)
        return found

    monkeypatch.setattr(MultiHeadAttention, "_attend", own)
    test_a_language_model_behind_its_prompt("beam")


def test_candidates_are_the_likeliest_next_tokens() -> None:
    """T17: with their probabilities; of a greedy search the first one was taken."""
    model, config = reverser.trained(), reverser.CONFIG
    with record() as trace:
        ((best,), *_) = search(model, config, "greedy", [[3, 4, 5]])
    output = chosen(best, config.end)
    found = decoded(trace, output)
    assert [each[0].token for each in found.candidates] == output
    logits = model(torch.tensor([[3, 4, 5]]), torch.tensor([[config.start, *output[:-1]]]))
    values, tokens = logits[0].softmax(-1).topk(5)
    assert [[each.token for each in step] for step in found.candidates] == tokens.tolist()
    ours = torch.tensor([[each.probability for each in step] for step in found.candidates])
    torch.testing.assert_close(ours, values)


def test_every_record_knows_its_step_and_whose_it_is() -> None:
    """After beams were put in another order and sentences have left."""
    config = MODELS["transformer-base"]
    model: Any = randomise(build(config)).eval()
    with record() as trace:
        search(model, config, "beam")
    steps = [entry.decode_step for entry in trace if isinstance(entry, CachedRecord)]
    assert {each.step for each in steps} == set(range(1, max(LIMITS) + 1))
    assert len(steps[0].sentences) == 4
    last = steps[-1]
    assert last.sentences.tolist() == [0]
    assert last.read.shape == (1, 3, 7)
    assert (last.read[..., 0] == config.start).all()
    first = next(entry for entry in trace if isinstance(entry, SoftmaxRecord))
    assert first.decode_step is not None
    assert first.decode_step.step == 0


def test_only_what_is_new_is_kept() -> None:
    """A step keeps one key a beam, not a copy of the cache that beams were sorted into."""
    config = replace(TRANSFORMERS["transformer-base"], vocabulary=50, dim=32, ffn_dim=8)
    model: Any = build(config).eval()
    with record() as trace:
        search(model, config, "beam", [SOURCES[0]] * 4)
    kept = [entry for entry in trace if isinstance(entry, CachedRecord)]
    rows = max(len(entry.k) for entry in kept)
    for entry in kept:
        assert entry.k.shape[2] == entry.q.shape[2] == 1
        assert entry.k.untyped_storage().nbytes() <= rows * 3 * config.dim * 4  # q, k and v


def test_several_searches_in_one_trace() -> None:
    config = MODELS["transformer-base"]
    model: Any = randomise(build(config)).eval()
    with record() as trace:
        one = search(model, config, "beam", [SOURCES[0]])
        other = search(model, config, "greedy", [SOURCES[1]])
    for source, (best, *_) in ((SOURCES[0], one[0]), (SOURCES[1], other[0])):
        output = chosen(best, config.end)
        expected = in_one_pass(model, source, [config.start, *output[:-1]])
        assert_alike(decoded(trace, output, source).trace, expected)


def test_what_was_not_recorded_is_refused() -> None:
    config = MODELS["transformer-base"]
    model: Any = randomise(build(config)).eval()
    with record() as trace:
        search(model, config, "greedy")
    with pytest.raises(UsageError, match="4 sentences were searched"):
        decoded(trace, [5])
    with pytest.raises(UsageError, match=r"came by the output \[5, 5, 5, 5, 5, 5, 5, 5\]"):
        decoded(trace, [5] * 8, SOURCES[0])
    with pytest.raises(UsageError, match="came by the output"):
        decoded(trace, [5], [9, 9, 9])
    with record(budget=10_000) as small:
        search(model, config, "greedy")
    assert 0 < len(small) < len(trace)
    assert small.kept <= 10_000
    with pytest.raises(
        UsageError, match=rf"{len(small)} records fitted its 10,000 bytes, \d+ more"
    ):
        decoded(small, [5], SOURCES[0])


def test_a_search_that_nobody_records_is_not_followed() -> None:
    """No cost when off: the model itself is searched."""
    from manyheads.decode.traced_decoder import traced_step

    model: Any = build(MODELS["transformer-base"])
    assert traced_step(model) is model
    with record() as trace:
        assert traced_step(model) is not model
    assert not any(isinstance(entry, CandidateRecord) for entry in trace)
