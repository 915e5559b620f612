"""The recurrent encoder-decoder: what every cell, score and depth promises, at test size."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.decode.step import Hypothesis, Step
from manyheads.errors import UsageError
from manyheads.models.presets import PRESETS, build
from manyheads.models.seq2seq import Memory, Seq2Seq, Seq2SeqConfig
from manyheads.nn.attention.recurrent_attention import ScoreRecord
from manyheads.nn.recording.trace import record
from manyheads.nn.rnn import RecurrentRecord
from manyheads.train.losses import projected_cross_entropy, smoothed_cross_entropy
from tests import reverser
from tests.small import SEQ2SEQS, inputs, randomise

presets = pytest.mark.parametrize("config", SEQ2SEQS.values(), ids=SEQ2SEQS)
LSTM = SEQ2SEQS["seq2seq-lstm-attention"]


def make(config: Seq2SeqConfig) -> Seq2Seq:
    return randomise(Seq2Seq(config)).eval()


def close(actual: Tensor, expected: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


# --- What a decoder may see ---------------------------------------------------------------------


@presets
def test_no_leak_from_the_future(config: Seq2SeqConfig) -> None:
    """T13: whatever comes after position t, the logits of 0..t stay as they are."""
    model = make(config)
    source, target = inputs(config)
    logits = model(source, target)
    for t in range(target.shape[1] - 1):
        changed = target.clone()
        changed[:, t + 1 :] = (changed[:, t + 1 :] - 3 + 5) % 8 + 3  # another token, not special
        after = model(source, changed)
        close(after[:, : t + 1], logits[:, : t + 1], atol=1e-6)
        assert (after[:, t + 1 :] - logits[:, t + 1 :]).abs().max() > 1e-3  # but they do matter


@presets
def test_padding_changes_nothing(config: Seq2SeqConfig) -> None:
    """A sentence gets the same logits alone and padded to the length of a longer neighbour."""
    model = make(config)
    source, target = inputs(config)
    logits = model(source, target)
    alone = model(source[1:, :3], target[1:, :3])  # the second sentence has 3 tokens
    close(logits[1:, :3], alone)
    more = F.pad(source, (0, 4), value=config.pad)
    close(model(more, F.pad(target, (0, 2), value=config.pad))[:, :4], logits)


@presets
def test_every_source_token_matters(config: Seq2SeqConfig) -> None:
    """T3, T4: as one vector or looked at, the source is read as a whole; by its own sentence."""
    model = make(config)
    source, target = inputs(config)
    logits = model(source, target)
    for token in range(3):
        changed = source.clone()
        changed[1, token] = 3 if changed[1, token] != 3 else 4
        difference = (model(changed, target) - logits).abs().amax(-1)
        assert (difference[1] > 1e-6).all()
        assert difference[0].max() < 1e-6


def test_without_attention_the_source_is_one_vector() -> None:
    """T3: what the decoder gets has one size, whatever the length of the source."""
    model = make(SEQ2SEQS["seq2seq-lstm"])
    for length in (1, 9):
        memory = model.start(torch.full((1, length), 5), beams=1, max_length=3)
        assert memory.source.values.shape == (1, 0, 8)
        assert [tuple(each.shape for each in layer) for layer in memory.states] == [
            ((1, 1, 8), (1, 1, 8))
        ]


def test_with_attention_the_states_of_all_tokens_are_kept() -> None:
    """T4: keys and values are the encoder's states, one a source token, kept once a sentence."""
    model = make(LSTM)
    source = torch.tensor([[5, 6, 7, 8], [5, 6, 0, 0]])
    memory = model.start(source, beams=3, max_length=3)
    close(memory.source.values, model.encode(source)[0])
    assert memory.source.keys.shape == memory.source.values.shape == (2, 4, 8)


def test_an_empty_source_gives_numbers() -> None:
    """A source of nothing but padding attends to nothing: zeros, not NaN."""
    for config in SEQ2SEQS.values():
        source, target = inputs(config)
        source[1] = config.pad
        assert make(config)(source, target).isfinite().all()


@pytest.mark.parametrize(
    ("encoder_layers", "decoder_layers", "begins_with"),
    [(1, 1, [0]), (2, 2, [0, 1]), (3, 1, [2]), (3, 2, [1, 2]), (1, 2, [0, 0]), (2, 3, [0, 0, 1])],
)
def test_decoder_layers_begin_with_encoder_layers(
    encoder_layers: int, decoder_layers: int, begins_with: list[int]
) -> None:
    """T3: the top layer begins with the top layer's last state, cell and all."""
    config = replace(LSTM, encoder_layers=encoder_layers, decoder_layers=decoder_layers)
    model = make(config)
    source, _ = inputs(config)
    _, last = model.encode(source)
    memory = model.start(source, beams=1, max_length=3)
    assert len(memory.states) == len(begins_with)
    for layer, origin in zip(memory.states, begins_with, strict=True):
        for given, expected in zip(layer, last[origin], strict=True):
            assert torch.equal(given[:, 0], expected)


# --- Decoding: step by step = at once -----------------------------------------------------------


@presets
@pytest.mark.parametrize("seed", range(2))
def test_steps_equal_teacher_forcing(config: Seq2SeqConfig, seed: int) -> None:
    """T17: start, step, reorder and keep in any order = the whole prefix at once, every time."""
    torch.manual_seed(seed)
    model = make(config)
    source = torch.randint(3, config.vocabulary, (4, 6))
    for sentence, length in enumerate((6, 3, 1, 5)):
        source[sentence, length:] = config.pad
    beams = 3
    with torch.no_grad():
        state = model.start(source, beams, max_length=7)
        prefixes = torch.empty(4, beams, 0, dtype=torch.long)
        tokens = torch.full((4, beams), config.start)
        for step in range(7):
            prefixes = torch.cat((prefixes, tokens[..., None]), dim=2)
            log_probabilities, state = model.step(tokens, state)
            whole = model(source.repeat_interleave(beams, dim=0), prefixes.flatten(0, 1))
            close(log_probabilities, whole[:, -1].log_softmax(-1).unflatten(0, (-1, beams)))
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
    assert isinstance(state, Memory)


def test_it_decodes_through_the_protocol() -> None:
    """The searches know no model."""
    assert isinstance(make(LSTM), Step)


@presets
def test_company_changes_nothing(config: Seq2SeqConfig) -> None:
    """Greedy and beam: a sentence is decoded alike alone, in a batch and in another order."""
    model = make(config)
    torch.manual_seed(3)
    sources = [torch.randint(3, config.vocabulary, (length,)).tolist() for length in (5, 1, 7, 3)]
    limits = [6, 4, 8, 5]

    def padded(rows: list[list[int]]) -> Tensor:
        longest = max(map(len, rows))
        return torch.tensor([row + [config.pad] * (longest - len(row)) for row in rows])

    def greedy(rows: list[int]) -> list[list[Hypothesis]]:
        batch = padded([sources[row] for row in rows])
        found = greedy_search(
            model, batch, [limits[row] for row in rows], start=config.start, end=config.end
        )
        return [[each] for each in found]

    def beam(rows: list[int]) -> list[list[Hypothesis]]:
        return beam_search(
            model,
            padded([sources[row] for row in rows]),
            [limits[row] for row in rows],
            beams=3,
            start=config.start,
            end=config.end,
            n_best=3,
        )

    for search in (greedy, beam):
        alone = [search([row])[0] for row in range(4)]
        for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
            for row, together in zip(order, search(order), strict=True):
                assert [each.tokens for each in together] == [each.tokens for each in alone[row]]
                for left, right in zip(together, alone[row], strict=True):
                    assert left.log_probability == pytest.approx(right.log_probability, abs=1e-4)


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16], ids=["autocast", "weights"])
@pytest.mark.parametrize("name", ["seq2seq-rnn", "seq2seq-gru-attention", "additive, fed, deep"])
def test_bf16(name: str, weights: torch.dtype) -> None:
    """In bf16 the same answer up to its rounding, and log-probabilities in fp32."""
    config = SEQ2SEQS[name]
    model = make(config)
    source, target = inputs(config)
    expected = model(source, target).log_softmax(-1).exp()
    model = model.to(weights)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, weights == torch.float32):
        at_once = model(source, target)
        assert at_once.dtype == torch.bfloat16
        close(at_once.float().log_softmax(-1).exp(), expected, atol=0.1)
        state = model.start(source, 1, 4)
        for t in range(4):
            log_probabilities, state = model.step(target[:, t : t + 1], state)
            assert log_probabilities.dtype == torch.float32
            close(log_probabilities[:, 0].exp(), expected[:, t], atol=0.1)


# --- Looking ------------------------------------------------------------------------------------


@presets
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_recorded_equals_unrecorded(config: Seq2SeqConfig, dropout: float) -> None:
    """Looking never changes the answer: logits and gradients are bitwise equal."""
    model = randomise(Seq2Seq(replace(config, dropout=dropout))).train()
    arguments = inputs(config)

    def run() -> list[Tensor]:
        torch.manual_seed(0)
        model.zero_grad()
        logits = model(*arguments)
        logits.square().sum().backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        assert all(gradient is not None for gradient in gradients)
        return [logits.detach(), *(gradient for gradient in gradients if gradient is not None)]

    plain = run()
    with record() as trace:
        recorded = run()
    assert len(trace) > 0
    assert all(torch.equal(left, right) for left, right in zip(plain, recorded, strict=True))
    assert plain[0].std() > 0


@presets
def test_sites(config: Seq2SeqConfig) -> None:
    """T2, T4: both directions of every layer, and one map of the whole target over the source."""
    source, target = inputs(config)
    with record() as trace:
        make(config)(source, target)
    directions = ("forward", "backward") if config.bidirectional else ("forward",)
    encoder = [
        f"encoder layer {layer + 1} {direction}"
        for layer in range(config.encoder_layers)
        for direction in directions
    ]
    decoder = [f"decoder layer {layer + 1} forward" for layer in range(config.decoder_layers)]
    steps = target.shape[1] if config.input_feeding else 1  # fed, it reads one token at a time
    seen = [str(entry.layer_id) for entry in trace if isinstance(entry, RecurrentRecord)]
    assert seen == encoder + decoder * steps
    maps = [entry for entry in trace if isinstance(entry, ScoreRecord)]
    assert len(maps) == (config.attention != "none")
    for entry in maps:
        assert str(entry.layer_id) == f"decoder layer {config.decoder_layers} cross"
        weights = entry.weights()
        assert weights.shape == (2, 1, 4, 5)
        close(weights.sum(-1), torch.ones(2, 1, 4))
        assert weights[1, ..., 3:].eq(0).all()  # the second sentence has 3 tokens


@pytest.mark.parametrize("name", ["seq2seq-lstm-attention", "additive, fed, deep"])
def test_the_map_grows_one_row_a_step(name: str) -> None:
    """T4: what decoding records step by step are the rows of the map of the whole target."""
    config = SEQ2SEQS[name]
    model = make(config)
    source, target = inputs(config)
    with record() as whole:
        model(source, target)
    (at_once,) = (entry for entry in whole if isinstance(entry, ScoreRecord))
    state = model.start(source, 1, 4)
    with record() as steps:
        for t in range(4):
            _, state = model.step(target[:, t : t + 1], state)
    rows = [entry.weights() for entry in steps if isinstance(entry, ScoreRecord)]
    assert len(rows) == 4
    close(torch.cat(rows, dim=2), at_once.weights())


# --- The output layer, learning -----------------------------------------------------------------


@presets
def test_scored_positions_and_fused_loss(config: Seq2SeqConfig) -> None:
    """The trainer asks for real positions only, and for a loss instead of logits."""
    model = make(config)
    source, target = inputs(config)
    scored = torch.tensor([[True, True, True, True], [True, True, False, False]])
    logits = model(source, target)
    close(model(source, target, scored), logits[scored])
    wanted = target[scored]
    expected = smoothed_cross_entropy(logits[scored], wanted, 0.1)

    def readout(layer: torch.nn.Linear, x: Tensor) -> Tensor:
        return projected_cross_entropy(layer, x, targets=wanted, smoothing=0.1)

    close(model(source, target, scored, readout), expected, atol=1e-4)


def test_tied_embeddings_are_one_matrix() -> None:
    """One matrix for both embeddings and the output; of two vocabularies, the target's."""
    model = Seq2Seq(LSTM)
    assert model.embedding is model.target_embedding
    assert model.output.weight is model.embedding.weight
    two = Seq2Seq(replace(LSTM, target_vocabulary=13))
    assert two.embedding.weight.shape == (11, 6)
    assert two.output.weight is two.target_embedding.weight
    assert two(*inputs(LSTM)).shape == (2, 4, 13)
    untied = Seq2Seq(replace(LSTM, tied=False))
    assert len({untied.embedding.weight, untied.target_embedding.weight, untied.output.weight}) == 3


@presets
def test_every_parameter_learns(config: Seq2SeqConfig) -> None:
    """No part of the model is left out of the computation."""
    model = make(config).train()
    model(*inputs(config)).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    "name", ["seq2seq-rnn", "seq2seq-gru", "seq2seq-lstm-attention", "dot, fed"]
)
def test_one_batch_can_be_learned_by_heart(name: str) -> None:
    """The cheapest test of a training step: overfit 8 words to be spelled backwards."""
    torch.manual_seed(0)
    config = replace(SEQ2SEQS[name], vocabulary=10, dim=24, hidden_size=32, dropout=0.0)
    model, sources = Seq2Seq(config), reverser.words(8, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    source, shifted, target = reverser.batch(sources)
    real = target != config.pad
    for _ in range(150):
        optimizer.zero_grad()
        loss = smoothed_cross_entropy(model(source, shifted, real), target[real], 0.0) / real.sum()
        loss.backward()
        if loss < 0.05:
            break
        optimizer.step()
    assert loss < 0.05


# --- Configs ------------------------------------------------------------------------------------


def test_build_knows_it() -> None:
    """A Config decides the model."""
    with torch.device("meta"):
        model = build(PRESETS["seq2seq-gru-attention"])
    assert isinstance(model, Seq2Seq)
    assert sum(parameter.numel() for parameter in model.parameters()) > 8_000_000


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda: replace(LSTM, hidden_size=9), r"hidden_size is 9.*choose an even number"),
        (
            lambda: replace(LSTM, attention="none", input_feeding=True),
            r'attention is "none": choose "additive", "dot" or "general"',
        ),
    ],
    ids=["odd", "nothing to feed"],
)
def test_what_cannot_be_built_is_refused(
    changed: Callable[[], Seq2SeqConfig], message: str
) -> None:
    """With the value, the reason and the remedy."""
    with pytest.raises(UsageError, match=message):
        changed()
    assert replace(LSTM, hidden_size=9, bidirectional=False).hidden_size == 9


def test_tokens_enter_with_unit_variance() -> None:
    """T7: the embedding's rows have norm 1 for the tied output; the encoder reads them scaled."""
    torch.manual_seed(0)
    model = Seq2Seq(replace(LSTM, vocabulary=500, dim=64)).eval()
    assert model.embedding.weight[1:].norm(dim=1).mean().item() == pytest.approx(1.0, abs=0.05)
    with record() as trace:
        model.encode(torch.arange(3, 203)[None])
    entry = next(iter(trace))
    assert isinstance(entry, RecurrentRecord)
    assert entry.x.std().item() == pytest.approx(1.0, abs=0.05)
