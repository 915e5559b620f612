"""The encoder and the decoder alone (T20): what may be seen, what is computed, what is cached."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.decode.sampling import Sampling, sample
from manyheads.decode.step import Step
from manyheads.errors import UsageError
from manyheads.models.causal_lm import CausalConfig, CausalLanguageModel
from manyheads.models.masked_lm import MaskedConfig, MaskedLanguageModel
from manyheads.models.presets import build, preset
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.nn.recording.trace import record
from manyheads.train.model_tensors import tensors
from tests.small import randomise

SMALL = {"vocabulary": 11, "dim": 8, "layers": 2, "heads": 2, "ffn_dim": 16, "max_length": 16}
PARTS = {
    "learned": {},
    "sinusoidal": {"positions": "sinusoidal"},
    "post-norm relu": {"norm": "post", "activation": "relu", "positions": "sinusoidal"},
    "rotary swiglu": {"positions": "rotary", "activation": "swiglu"},
}
parts = pytest.mark.parametrize("changes", PARTS.values(), ids=PARTS)


def causal(changes: dict[str, object] | None = None) -> CausalLanguageModel:
    config = CausalConfig(**SMALL | (changes or {}))  # type: ignore[arg-type]
    return randomise(CausalLanguageModel(config)).eval()


def masked(changes: dict[str, object] | None = None) -> MaskedLanguageModel:
    config = MaskedConfig(**SMALL | (changes or {}))  # type: ignore[arg-type]
    return randomise(MaskedLanguageModel(config)).eval()


def close(actual: Tensor, expected: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


TEXTS = torch.tensor([[1, 4, 7, 5, 9], [1, 6, 3, 0, 0]])  # start tokens in front, padding behind


# --- What may be seen ---------------------------------------------------------------------------


@parts
def test_the_causal_model_does_not_see_ahead(changes: dict[str, object]) -> None:
    """T20, T13: another token at place t changes the logits from t on, and none before."""
    model = causal(changes)
    logits = model(TEXTS)
    for t in range(1, 5):
        changed = TEXTS.clone()
        changed[0, t] = 8
        difference = (model(changed) - logits).abs().amax(-1)
        assert difference[0, :t].max() < 1e-6
        assert difference[0, t:].min() > 1e-4
        assert difference[1].max() == 0


@parts
def test_the_masked_model_sees_both_sides(changes: dict[str, object]) -> None:
    """T20: another token at place t changes the logits everywhere in its text, and only there."""
    model = masked(changes)
    logits = model(TEXTS)
    for t in range(5):
        changed = TEXTS.clone()
        changed[0, t] = 8
        difference = (model(changed) - logits).abs().amax(-1)
        assert difference[0].min() > 1e-4
        assert difference[1].max() < 1e-6


@pytest.mark.parametrize("make", [causal, masked])
@parts
def test_padding_changes_nothing(make: object, changes: dict[str, object]) -> None:
    """A text has the same logits alone as beside a longer one."""
    model = make(changes)  # type: ignore[operator]
    close(model(TEXTS)[1:, :3], model(TEXTS[1:, :3]))


@pytest.mark.parametrize("make", [causal, masked])
def test_scored_positions_are_a_selection(make: object) -> None:
    """The output layer is spared the others; what it is asked for stays as it is."""
    model = make()  # type: ignore[operator]
    scored = torch.tensor([[True, False, False, True, False], [False, True, False, False, False]])
    close(model(TEXTS, scored), model(TEXTS)[scored])


# --- The same stacks as the Transformer's -------------------------------------------------------


def transformer(**changes: object) -> Transformer:
    common = {key: value for key, value in SMALL.items() if key != "layers"}
    config = TransformerConfig(
        **common | {"encoder_layers": 2, "decoder_layers": 2, "norm": "pre", "activation": "gelu"},  # type: ignore[arg-type]
    )
    return randomise(Transformer(replace(config, **changes)), seed=1).eval()  # type: ignore[arg-type]


def test_a_masked_model_is_the_encoder_alone() -> None:
    """T20: with the same weights, BERT's vectors are those of a Transformer's encoder."""
    model, whole = masked({"norm": "pre", "positions": "sinusoidal"}), transformer()
    with torch.no_grad():
        for name, tensor in tensors(model).items():
            tensors(whole)[name].copy_(tensor)
    assert torch.equal(F.linear(whole.encode(TEXTS), model.output.weight), model(TEXTS))


def test_a_causal_model_is_the_decoder_alone() -> None:
    """T20: a decoder whose attention to the source adds nothing is a GPT."""
    model, whole = causal({"positions": "sinusoidal"}), transformer()
    own = tensors(whole)
    with torch.no_grad():
        for name, tensor in tensors(model).items():
            own[name.replace("encoder.", "decoder.")].copy_(tensor)
        for block in whole.decoder.blocks:  # x + 0 is what pre-norm makes of it
            block.cross.out.weight.zero_()
            block.cross.out.bias.zero_()
    source = torch.tensor([[4, 2], [5, 2]])
    close(whole(source, TEXTS), model(TEXTS), atol=1e-6)


def test_output_and_embedding_are_one_matrix() -> None:
    """Section 3.4 of Vaswani et al. 2017; counted and stored once."""
    model = causal()
    assert model.output.weight is model.embedding.weight
    assert "output.weight" not in tensors(model)


def test_counts_of_the_papers() -> None:
    """GPT-2 has exactly the published weights' 124,439,808; BERT without its extras 108.9M.

    What BERT's 110M have besides: two segments, a norm after the embedding, a pooler, a
    transformation before and a bias after the output layer.
    """
    with torch.device("meta"):
        gpt, bert = build(preset("gpt2-small")), build(preset("bert-base"))
    assert sum(p.numel() for p in gpt.parameters()) == 124_439_808
    assert sum(p.numel() for p in bert.parameters()) == 108_888_576


def test_looking_never_changes_the_answer() -> None:
    """Design: bitwise; a map for every layer, and a causal one does not look ahead."""
    for model in (causal(), masked()):
        plain = model(TEXTS)
        with record() as trace:
            recorded = model(TEXTS)
        assert torch.equal(plain, recorded)
        assert [str(entry.layer_id) for entry in trace] == [
            "encoder layer 1 self",
            "encoder layer 2 self",
        ]
        ahead = [entry.weights().triu(1).abs().max() > 0 for entry in trace]  # type: ignore[attr-defined]
        assert ahead == [isinstance(model, MaskedLanguageModel)] * 2


# --- Writing on ---------------------------------------------------------------------------------


@parts
@pytest.mark.parametrize("beams", [1, 2])
@torch.inference_mode()
def test_cached_equals_uncached(changes: dict[str, object], beams: int) -> None:
    """Step by step with a cache: the log-probabilities of the whole text under the mask."""
    model = causal(changes)
    assert isinstance(model, Step)
    texts = torch.tensor([[1, 4, 7, 5, 9, 6, 3], [1, 6, 3, 8, 8, 4, 10]])
    expected = model(texts).log_softmax(-1)
    state = model.start(texts[:, :3], beams, 2)  # the cache grows beyond its room, too
    start = torch.ones(2, beams, dtype=torch.long)
    found, state = model.step(start, state)
    for place in range(2, 7):
        for beam in range(beams):
            close(found[:, beam], expected[:, place])
        if place < 6:
            found, state = model.step(texts[:, place + 1, None].expand(2, beams), state)


@torch.inference_mode()
def test_reorder_and_keep() -> None:
    """A beam goes on from another one's past, a sentence without its neighbour; also at first."""
    model = causal()
    texts = torch.tensor([[1, 4, 7], [1, 6, 3]])
    state = model.keep(model.start(texts, 2, 4), torch.tensor([1]))
    first, state = model.step(torch.ones(1, 2, dtype=torch.long), state)
    close(first[0, 0], model(texts)[1, -1].log_softmax(-1))
    _, state = model.step(torch.tensor([[4, 5]]), state)
    state = model.reorder(state, torch.tensor([[1, 1]]))
    found, _ = model.step(torch.tensor([[7, 8]]), state)
    for beam, last in enumerate((7, 8)):
        close(found[0, beam], model(torch.tensor([[1, 6, 3, 5, last]]))[0, -1].log_softmax(-1))


def test_prompts_of_different_length_are_refused() -> None:
    """Their next tokens do not stand at the same place."""
    with pytest.raises(UsageError, match="same number of tokens"):
        causal().start(TEXTS, 1, 4)


@torch.inference_mode()
def test_every_search_continues_a_prompt() -> None:
    """Greedy, beam and sampled continuations report the log-probability the whole text has."""
    model, prompts = causal(), torch.tensor([[1, 4, 7], [1, 6, 3]])
    greedy = greedy_search(model, prompts, [6, 6], start=1, end=2)
    beams = beam_search(model, prompts, [6, 6], beams=4, start=1, end=2, length_penalty=0.0)
    drawn = sample(model, prompts, [6, 6], [7, 8], start=1, end=2, sampling=Sampling(), samples=3)
    for row, prompt in enumerate(prompts.tolist()):
        assert beams[row][0].log_probability >= greedy[row].log_probability - 1e-5
        for found in (greedy[row], *beams[row], *drawn[row]):
            text = [*prompt, *found.tokens, *([2] if found.finished else [])]
            log_probabilities = model(torch.tensor([text[:-1]]))[0].log_softmax(-1)
            terms = [log_probabilities[i, text[i + 1]].item() for i in range(2, len(text) - 1)]
            assert found.log_probability == pytest.approx(sum(terms), abs=1e-4)
    read = prompts[:1]
    for token in greedy[0].tokens:  # the likeliest, found without a cache
        assert model(read)[0, -1].argmax().item() == token
        read = torch.cat((read, torch.tensor([[token]])), dim=1)
