"""The encoder-decoder Transformer: what every preset promises, at test size."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.nn.layers.positions import sinusoids
from tests import reverser, torch_reference
from tests.small import TRANSFORMERS, inputs, randomise

presets = pytest.mark.parametrize("config", TRANSFORMERS.values(), ids=TRANSFORMERS)
BASE = TRANSFORMERS["transformer-base"]


def make(config: TransformerConfig) -> Transformer:
    return randomise(Transformer(config)).eval()


def close(actual: Tensor, expected: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


# --- What a decoder may see ---------------------------------------------------------------------


@presets
def test_no_leak_from_the_future(config: TransformerConfig) -> None:
    """T13: whatever comes after position t, the logits of 0..t stay as they are."""
    model = make(config)
    source, target = inputs(config)
    logits = model(source, target)
    for t in range(target.shape[1] - 1):
        changed = target.clone()
        changed[:, t + 1 :] = (changed[:, t + 1 :] - 3 + 5) % 8 + 3  # another token, not special
        assert (changed != target)[:, t + 1 :].all()
        after = model(source, changed)
        close(after[:, : t + 1], logits[:, : t + 1], atol=1e-6)
        assert (after[:, t + 1 :] - logits[:, t + 1 :]).abs().max() > 1e-3  # but they do matter


@presets
def test_logits_do_not_depend_on_what_is_asked_further(config: TransformerConfig) -> None:
    """T17: the first t tokens alone give the logits they have in the whole target."""
    model = make(config)
    source, target = inputs(config)
    close(model(source, target[:, :2]), model(source, target)[:, :2])


@presets
def test_padding_changes_nothing(config: TransformerConfig) -> None:
    """A sentence gets the same logits alone and padded to the length of a longer neighbour."""
    model = make(config)
    source, target = inputs(config)
    logits = model(source, target)
    alone = model(source[1:, :3], target[1:, :3])  # the second sentence has 3 tokens
    close(logits[1:, :3], alone)
    more = F.pad(source, (0, 4), value=config.pad)
    close(model(more, F.pad(target, (0, 2), value=config.pad))[:, :4], logits)


def test_every_source_token_matters() -> None:
    """T14: what is not padding is seen, by every target position."""
    model = make(BASE)
    source, target = inputs(BASE)
    logits = model(source, target)
    for token in range(3):
        changed = source.clone()
        changed[1, token] = 3 if changed[1, token] != 3 else 4
        difference = (model(changed, target) - logits).abs().amax(-1)
        assert (difference[1] > 1e-4).all()
        assert difference[0].max() < 1e-6  # and only by the sentence it belongs to


def test_an_empty_source_gives_numbers() -> None:
    """A source of nothing but padding attends to nothing: zeros, not NaN."""
    source, target = inputs(BASE)
    source[1] = BASE.pad
    assert make(BASE)(source, target).isfinite().all()


# --- Embeddings and positions -------------------------------------------------------------------


def test_embeddings_are_scaled() -> None:
    """T7, section 3.4: E[token] * sqrt(d) + PE enters the encoder."""
    config = replace(BASE, encoder_layers=0)
    model = make(config)
    source = torch.tensor([[3, 4, 3]])
    expected = model.embedding.weight[[3, 4, 3]] * math.sqrt(8) + sinusoids(3, 8)
    close(model.encode(source)[0], expected)


def test_tied_embeddings_are_one_matrix() -> None:
    """Section 3.4: both embeddings and the output layer share their weights, through training."""
    model = Transformer(BASE)
    assert model.embedding is model.target_embedding
    assert model.output.weight is model.embedding.weight
    source, target = inputs(BASE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(source, target).square().sum().backward()
    optimizer.step()
    assert torch.equal(model.output.weight, model.embedding.weight)
    untied = Transformer(replace(BASE, tied=False))
    assert len({untied.embedding.weight, untied.target_embedding.weight, untied.output.weight}) == 3


def test_fresh_weights() -> None:
    """Xavier projections, N(0, 1/d) embeddings with a zero pad, zero biases; the seed decides."""
    config = replace(BASE, vocabulary=1000, dim=64, ffn_dim=128)
    torch.manual_seed(0)
    model = Transformer(config)
    assert model.embedding.weight[config.pad].eq(0).all()
    assert model.embedding.weight[1:].std().item() == pytest.approx(64**-0.5, rel=0.05)
    expand = model.get_parameter("encoder.blocks.0.feedforward.expand.weight")
    assert expand.abs().max() <= math.sqrt(6 / (64 + 128))
    assert all(p.eq(0).all() for name, p in model.named_parameters() if name.endswith("bias"))
    torch.manual_seed(0)
    again = Transformer(config).state_dict()
    assert all(torch.equal(value, again[name]) for name, value in model.state_dict().items())


WITHOUT = "Although I did not get 95 in last TOEFL, I could get in the Ph.D program"
WITH = "Although I did get 95 in last TOEFL, I could not get in the Ph.D program"


def contextual(config: TransformerConfig) -> tuple[Tensor, Tensor]:
    """The vectors of both sentences, words in alphabetical order so that they can be compared."""
    ids = {word: number for number, word in enumerate(sorted(set(WITHOUT.split())), start=3)}
    model = make(replace(config, vocabulary=3 + len(ids), max_length=32))
    vectors = []
    for sentence in (WITHOUT, WITH):
        tokens = torch.tensor([ids[word] for word in sentence.split()])
        vectors.append(model.encode(tokens[None])[0, tokens.argsort(stable=True)])
    return vectors[0], vectors[1]


def test_without_positions_both_sentences_are_one_set() -> None:
    """T8: who failed the TOEFL? An unmasked encoder without positions cannot know."""
    assert sorted(WITHOUT.split()) == sorted(WITH.split())
    assert WITHOUT != WITH
    close(*contextual(TRANSFORMERS["no positions"]))


@pytest.mark.parametrize("name", ["transformer-base", "learned positions", "rotary"])
def test_with_positions_the_sentences_differ(name: str) -> None:
    """T8: with positions, "not" and the verbs around it get other vectors."""
    left, right = contextual(TRANSFORMERS[name])
    # No pairing of words could make the two sets equal: each vector is far from all of the others.
    assert torch.cdist(left, right).amin(dim=1).min() > 0.01


def test_a_word_gets_another_vector_in_another_sentence() -> None:
    """T6: self-attention contextualises, beyond what positions do."""
    model = make(TRANSFORMERS["no positions"])
    here, there = (model.encode(torch.tensor([sentence]))[0, 0] for sentence in ([5, 6], [5, 7]))
    assert (here - there).abs().max() > 0.01


def test_learned_positions_end_with_a_message() -> None:
    """T8: a longer input is refused with both numbers."""
    model = make(TRANSFORMERS["learned positions"])
    with pytest.raises(UsageError, match=r"position 17, but only 16"):
        model.encode(torch.full((1, 17), 5))


# --- Parity -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_logits_equal_torch_transformer(norm: str, activation: str) -> None:
    """T7-T15: embeddings, positions, nn.Transformer and the tied output give our logits."""
    pre = norm == "pre"
    theirs = randomise(
        nn.Transformer(
            8, 2, 2, 2, 16, dropout=0.0, activation=activation, batch_first=True, norm_first=pre
        )
    )
    if not pre:  # nn.Transformer puts one more norm behind each stack; the paper does not
        theirs.encoder.norm = theirs.decoder.norm = None
    model = randomise(Transformer(replace(BASE, dropout=0.0)))
    model.encoder = torch_reference.encoder_of(theirs.encoder)
    model.decoder = torch_reference.decoder_of(theirs.decoder)
    source, target = inputs(BASE)
    table = model.embedding.weight
    hidden = source == BASE.pad
    out = theirs(
        table[source] * math.sqrt(8) + sinusoids(5, 8),
        table[target] * math.sqrt(8) + sinusoids(4, 8),
        tgt_mask=torch.ones(4, 4, dtype=torch.bool).triu(1),
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    close(model(source, target), out @ table.T)


def test_the_paper_is_post_norm_with_relu() -> None:
    """E7: post-norm with ReLU is the 2017 Transformer; nothing follows its last LayerNorm."""
    config = TransformerConfig()
    assert (config.norm, config.activation) == ("post", "relu")
    assert isinstance(make(BASE).encoder.norm, nn.Identity)
    vectors = Transformer(BASE).eval().encode(torch.randint(3, 11, (2, 5)))  # fresh: unit norms
    close(vectors.mean(-1), torch.zeros(2, 5))
    close(vectors.var(-1, correction=0), torch.ones(2, 5), atol=1e-3)


# --- Decoding: cached = uncached ----------------------------------------------------------------


@presets
@pytest.mark.parametrize("seed", range(3))
def test_cached_equals_uncached(config: TransformerConfig, seed: int) -> None:
    """T17: start, step, reorder and keep in any order = the whole prefix at once, every time."""
    torch.manual_seed(seed)
    model = make(config)
    source = torch.randint(3, config.vocabulary, (4, 6))
    for sentence, length in enumerate((6, 3, 1, 5)):
        source[sentence, length:] = config.pad
    beams = 3
    with torch.no_grad():
        state = model.start(source, beams, max_length=2)  # room for 2: the cache must grow twice
        prefixes = torch.empty(4, beams, 0, dtype=torch.long)
        tokens = torch.full((4, beams), config.start)
        for step in range(7):
            prefixes = torch.cat((prefixes, tokens[..., None]), dim=2)
            log_probabilities, state = model.step(tokens, state)
            whole = model(source.repeat_interleave(beams, dim=0), prefixes.flatten(0, 1))
            expected = whole[:, -1].log_softmax(-1).unflatten(0, (-1, beams))
            close(log_probabilities, expected)
            if step in (2, 4):  # a sentence is done; the others may also change places
                kept = torch.randperm(len(source))[: len(source) - 1]
                state = model.keep(state, kept)
                source, prefixes = source[kept], prefixes[kept]
            if step % 2:  # beams die and multiply
                origin = torch.randint(0, beams, (len(source), beams))
                state = model.reorder(state, origin)
                prefixes = prefixes.gather(1, origin[..., None].expand_as(prefixes))
            tokens = torch.randint(3, config.vocabulary, (len(source), beams))
    assert len(source) == 2


def test_steps_add_up_to_teacher_forcing() -> None:
    """T13, T17: the input shifted right behind a start token scores what decoding would score."""
    model = make(BASE)
    source, _ = inputs(BASE)
    target = torch.tensor([[5, 6, 7, BASE.end], [8, 3, 9, BASE.end]])
    shifted = torch.cat((torch.full((2, 1), BASE.start), target[:, :-1]), dim=1)
    at_once = model(source, shifted).log_softmax(-1).gather(2, target[..., None])[..., 0]
    state, one_by_one = model.start(source, 1, 4), []
    for fed, wanted in zip(shifted.T, target.T, strict=True):
        log_probabilities, state = model.step(fed[:, None], state)
        one_by_one.append(log_probabilities[:, 0].gather(1, wanted[:, None]))
    close(torch.cat(one_by_one, dim=1), at_once)


def test_the_source_is_projected_once() -> None:
    """T14: keys and values are kept a sentence, not a beam; beams ride on the query axis."""
    model = make(BASE)
    state = model.start(inputs(BASE)[0], beams=3, max_length=4)
    assert all(source.k.shape == (2, 2, 5, 4) for source in state.sources)
    assert all(len(cache.key_storage) == 2 * 3 for cache in state.caches)


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16], ids=["autocast", "weights"])
def test_cached_decoding_in_bf16(weights: torch.dtype) -> None:
    """In bf16 the same answer up to its rounding, and log-probabilities in fp32."""
    model = make(BASE).to(weights)
    source, target = inputs(BASE)
    with (
        torch.no_grad(),
        torch.autocast("cpu", torch.bfloat16, enabled=weights == torch.float32),
    ):
        state = model.start(source, 1, 4)
        for t in range(4):
            log_probabilities, state = model.step(target[:, t : t + 1], state)
            assert log_probabilities.dtype == torch.float32
            expected = model(source, target[:, : t + 1])[:, -1].float().log_softmax(-1)
            close(log_probabilities[:, 0].exp(), expected.exp(), atol=0.1)


# --- Learning -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["transformer-tiny", "pre-norm gelu"])
def test_one_batch_can_be_learned_by_heart(name: str) -> None:
    """The cheapest test of a training step: overfit 8 sentences."""
    torch.manual_seed(0)
    config = replace(TRANSFORMERS[name], vocabulary=10, dim=32, heads=4, ffn_dim=64, dropout=0.0)
    model, sources = Transformer(config), reverser.words(8, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(200):
        optimizer.zero_grad()
        loss = reverser.loss(model, sources)
        loss.backward()
        if loss < 0.05:
            break
        optimizer.step()
    assert loss < 0.05


@presets
def test_every_parameter_learns(config: TransformerConfig) -> None:
    """No part of the model is left out of the computation."""
    model = make(config).train()
    source, target = inputs(config)
    model(source, target).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_room_for_more_positions() -> None:
    """Of formulas alone, and only where there is too little; learned positions stay as they are."""
    config = replace(BASE, max_length=8, positions="sinusoidal")
    assert config.with_positions(20) == replace(config, max_length=20)
    assert config.with_positions(8) is config
    learned = replace(config, positions="learned")
    assert learned.with_positions(20) is learned
