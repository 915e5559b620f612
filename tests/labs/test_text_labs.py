"""The quantities of the text experiments by hand, and sentences that follow from numbers."""

import math
from itertools import pairwise

import pytest
import torch

from manyheads.labs.catalogue import find
from manyheads.labs.experiments import basis_lab as basis
from manyheads.labs.experiments import depth_lab as depth
from manyheads.labs.experiments import gates_lab as gates
from manyheads.labs.experiments import heads_lab as heads
from manyheads.labs.experiments import length_lab as length
from manyheads.labs.experiments import loss_lab as loss
from manyheads.labs.experiments import parallel_lab as parallel
from manyheads.labs.experiments import positions_lab as positions
from manyheads.labs.experiments import recall_lab as recall
from manyheads.labs.experiments import scale_lab as scale
from manyheads.labs.symbols import FIRST, Symbols, delayed_recall, looking_back, random_texts
from manyheads.lens.measures.token_losses import losses
from manyheads.models.components import TokenPositions
from manyheads.nn.attention.softmax import attention_weights
from manyheads.nn.layers.positions import sinusoids
from manyheads.tokenwise.token_task import IGNORED

# --- The symbols that text experiments are made of ----------------------------------------------


def test_symbols_are_a_tokenizer() -> None:
    """Back and forth; the special tokens are silent."""
    symbols = Symbols(12)
    assert symbols.encode(["3 11"]) == [[FIRST + 3, FIRST + 11]]
    assert symbols.decode([[1, FIRST + 3, FIRST + 11, 2]]) == ["3 11"]
    assert len(symbols) == 12 + FIRST
    assert [(p.text, p.begin, p.end) for p in symbols.pieces("1 11")] == [("1", 0, 1), ("11", 2, 4)]


def test_remembering() -> None:
    """The answer stands behind the mark, `distance` symbols before the question."""
    texts = delayed_recall([5], 20, 3, seed=1, name="test")
    mark, question = FIRST + 3, FIRST + 4
    for tokens, wanted in zip(texts.sequences, texts.targets, strict=True):
        place = list(tokens).index(mark)
        assert tokens[-1] == question
        assert len(tokens) == place + 1 + 1 + 5 + 1
        assert wanted[-1] == tokens[place + 1] - FIRST
        assert set(wanted[:-1]) == {IGNORED}
    again = delayed_recall([5], 20, 3, seed=1, name="test")
    assert list(again.sequences) == list(texts.sequences)
    assert list(delayed_recall([5], 20, 3, seed=2, name="test").sequences) != list(texts.sequences)


def test_looking_back() -> None:
    """Answers are symbols before, as digits of a number in base `symbols`."""
    (one,) = looking_back([6], 1, 4, [1, 3], seed=1, name="test").sequences
    (wanted,) = looking_back([6], 1, 4, [1, 3], seed=1, name="test").targets
    drawn = [token - FIRST for token in one]
    assert wanted[:3] == [IGNORED] * 3
    assert wanted[3:] == [drawn[t - 1] + 4 * drawn[t - 3] for t in (3, 4, 5)]


def test_random_texts() -> None:
    texts = random_texts(30, [2, 4], 3, seed=1, name="test")
    assert {len(text.split()) for text in texts} == {2, 4}
    assert set(" ".join(texts).split()) == {"0", "1", "2"}


# --- basis --------------------------------------------------------------------------------------


def test_basis_has_the_sinusoids_of_the_house() -> None:
    torch.testing.assert_close(basis.sinusoids(40, 16).float(), sinusoids(40, 16))


def test_a_fourier_basis_is_orthogonal() -> None:
    """T8a: over whole periods; and its columns have full rank and condition 1."""
    table = basis.harmonics(16, 8)
    mean, largest = basis.overlap(table)
    assert largest < 1e-12
    assert mean < 1e-12
    rank, condition = basis.rank_and_condition(table)
    assert rank == 8
    assert condition == pytest.approx(1)


def test_rank_and_condition_by_hand() -> None:
    """Singular values 4 and 2; then a column that is another twice over."""
    assert basis.rank_and_condition(torch.diag(torch.tensor([4.0, 2.0], dtype=torch.float64))) == (
        2,
        2.0,
    )
    twice = torch.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]], dtype=torch.float64)
    assert basis.rank_and_condition(twice)[0] == 1


def test_overlap_by_hand() -> None:
    """Two columns at 45 degrees and one at a right angle to the first."""
    matrix = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    mean, largest = basis.overlap(matrix)
    assert largest == pytest.approx(0.5**0.5)
    assert mean == pytest.approx(2 * 0.5**0.5 / 3)


def test_a_shift_is_a_rotation() -> None:
    """T8a: R is orthogonal, and turns PE(pos) into PE(pos + k)."""
    turn = basis.rotation(5, 8)
    torch.testing.assert_close(turn @ turn.T, torch.eye(8, dtype=torch.float64))
    assert basis.rotation_error(30, 5, 8) < 1e-12
    torch.testing.assert_close(basis.rotation(0, 4), torch.eye(4, dtype=torch.float64))


def test_the_base_need_not_exceed_the_dimension() -> None:
    """E11: base 10 with 64 dimensions has 32 frequencies; base 1 has one."""
    assert basis.of_base(10.0, 64, 64)["frequencies"] == 32
    assert basis.of_base(1.0, 8, 64)["frequencies"] == 1


def test_the_base_sets_the_longest_wavelength() -> None:
    """E11: 2 pi base^((d - 2) / d), so more of it is longer waves, not more frequencies."""
    for base in (10.0, 100.0, 10000.0):
        found = basis.of_base(base, 8, 16)
        assert found["longest"] == pytest.approx(2 * math.pi * base ** (14 / 16))
        assert found["frequencies"] == 8


def test_columns_are_far_from_orthogonal_over_a_sentence() -> None:
    """E11: dimensions do mix; over 50 tokens the slow cosines are nearly one column."""
    mean, largest = basis.overlap(basis.sinusoids(50, 64))
    assert mean > 0.3
    assert largest > 0.999
    assert basis.rank_and_condition(basis.sinusoids(50, 64))[0] < 50


def test_the_sentence_of_basis_follows_its_numbers() -> None:
    row = {"rank": 4, "possible": 4, "mean": 0.0, "largest": 0.0, "condition": 1.0, "fourier": 0.0}
    fine = {10.0: {"frequencies": 8, "nearest": 1.0, "longest": 9.0, "rank": 4}}
    text = basis.conclude({32: row}, fine, 1e-15, 16)
    assert "columns are orthogonal" in text
    assert "all independent (" in text
    assert "still keep" in text
    row |= {"largest": 1.0, "rank": 3}
    same = {10.0: fine[10.0] | {"nearest": 0.0}}
    text = basis.conclude({32: row}, same, 1e-15, 16)
    assert "columns are not orthogonal" in text
    assert "not all independent" in text
    assert "do not keep" in text


# --- scale --------------------------------------------------------------------------------------


def test_entropy_and_gradient_by_hand() -> None:
    """Even weights over two keys: all the entropy, Jacobian of norm 1/2; a certain one: none."""
    even, certain = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    assert scale.entropy(even) == pytest.approx(1)
    assert scale.entropy(certain) == 0
    assert scale.gradient(even) == pytest.approx(0.5)
    assert scale.gradient(certain) == 0


def test_the_gradient_is_the_jacobians_norm() -> None:
    scores = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    one = torch.eye(1, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(
        lambda s: attention_weights(one, s[:, None])[0], scores
    )
    weights = attention_weights(one, scores[:, None])
    assert scale.gradient(weights) == pytest.approx(jacobian.norm().item())


def test_dot_products_deviate_by_the_root_of_their_width() -> None:
    """T5a."""
    assert scale.measure(64, 32, 256, seed=1)["deviation"] == pytest.approx(8, rel=0.1)


def test_the_sentence_of_scale_follows_its_numbers() -> None:
    def made(plain: float, times: float) -> dict[str, object]:
        one = {"entropy": 0.5, "largest": 0.5}
        return {
            "deviation": 4.0,
            "divided by √d": one | {"gradient": 0.2},
            "plain": one | {"gradient": plain},
            "times √d": one | {"gradient": times},
        }

    text = scale.conclude({4: [made(0.3, 0.3)], 16: [made(0.1, 0.01)]})
    assert "larger than divided by √d at the widths 4, and smaller at the widths 16:" in text
    assert "at 16 it is 0.1 " in text
    assert "smaller still there" in text
    text = scale.conclude({4: [made(0.3, 0.3)], 16: [made(0.4, 0.5)]})
    assert "larger than divided by √d at the widths 4, 16, and smaller at the widths none" in text
    assert "no smaller than leaving it out" in text


# --- loss ---------------------------------------------------------------------------------------


def test_the_table_of_the_lecture() -> None:
    """T16, exactly as printed: .223 .511 .357 .693 .105, mean .378."""
    values = losses(loss.PROBABILITIES)
    assert [f"{value:.3f}" for value in values] == ["0.223", "0.511", "0.357", "0.693", "0.105"]
    assert f"{sum(values) / 5:.3f}" == "0.378"
    assert "0.378 nats (perplexity 1.46), 37% from 'étudiant'" in loss.conclude(
        {"the sentence": loss.of_lecture()}
    )


def test_a_shipped_models_table_is_its_probability_of_the_reference() -> None:
    """The product of p is the probability of all tokens; a model that knows beats guessing."""
    found = loss.of_sentence("date-en-ko", "Friday, 20 November 2026", "2026년 11월 20일 금요일")
    values = losses(tuple(found["probabilities"]))
    assert math.prod(found["probabilities"]) == pytest.approx(math.exp(-sum(values)))
    assert sum(values) / len(values) < 0.1 < found["uniform"]
    assert found["tokens"][-1] == "</s>"


# --- positions ----------------------------------------------------------------------------------


def test_low_dimensions_turn_fast() -> None:
    """E1: pair 0 has wavelength 2 pi, and every next one a longer one, as the formula says."""
    found = positions.wavelengths(16)
    assert found[0] == pytest.approx(2 * math.pi, rel=1e-6)
    assert all(a < b for a, b in pairwise(found))
    assert found[3] == pytest.approx(2 * math.pi * 10000 ** (6 / 16), rel=1e-4)


def test_the_not_pair_has_the_same_words() -> None:
    """T8: the two sentences differ in where "not" stands, and in nothing else."""
    a, b = positions.sentences()
    assert a.tolist() != b.tolist()
    assert sorted(a[0].tolist()) == sorted(b[0].tolist())


@pytest.mark.parametrize(
    ("kind", "causal", "blind"),
    [
        ("none", False, True),
        ("sinusoidal", False, False),
        ("rotary", False, False),
        ("learned", False, False),
        ("none", True, False),
    ],
)
def test_without_positions_both_sentences_are_the_same_set(
    kind: TokenPositions, causal: bool, blind: bool
) -> None:
    """T8: unless a causal mask tells who came first."""
    found = positions.pair(kind, causal, dim=16, seed=1)["apart"]
    assert (found < 1e-5) == blind


def test_apart_by_hand() -> None:
    """As sets: order does not matter, a vector that moved by its own length does."""
    a = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert positions.apart(a, a.flip(0)) == 0
    assert positions.apart(a, torch.tensor([[2.0, 0.0], [0.0, 1.0]])) == pytest.approx(1)


def test_ways_to_number_tokens() -> None:
    """Integers grow, shares change with the length, sinusoids do neither."""
    rows = {name: [*row.values()] for name, row in positions.schemes().items()}
    assert rows["position"] == [10, 1000, 0]
    assert rows["position / length"] == [0.5, 1, 0.25]
    assert rows["sinusoids"][1] == pytest.approx(1, abs=1e-3)
    assert rows["sinusoids"][2] == 0


def test_the_sentence_of_positions_follows_its_numbers() -> None:
    size = find("positions").sizes["smoke"]
    pairs = {"none": [{"apart": 0.0}], "rotary": [{"apart": 0.3}]}
    found = {"none": [{"6": 30.0, "12": 29.0}], "rotary": [{"6": 90.0, "12": 40.0}]}
    text = positions.conclude([6.3, 9.0], pairs, found, size)
    assert "turn fastest" in text
    assert 'same set of vectors with "none";' in text
    assert 'fall by more than 5 points with "rotary" (90% → 40%)' in text
    assert 'and not with "none" (30% → 29%).' in text
    assert "not fastest" in positions.conclude([9.0, 6.3], pairs, found, size)


# --- heads --------------------------------------------------------------------------------------


def test_three_forms_of_multi_head_attention() -> None:
    """T9: b and c are equal; a has h times the weights (biases of W_O aside)."""
    found = heads.cost(16, 4, 5, 1)
    assert found["difference"] < 1e-12
    assert found[heads.PACKED]["parameters"] == 4 * 16 * 16 + 4 * 16
    assert found[heads.PAPER]["parameters"] == found[heads.PACKED]["parameters"]
    assert found[heads.FULL]["parameters"] == 4 * (4 * 16 * 16) + 3 * 4 * 16 + 16


def test_products_by_hand() -> None:
    """One token of width 2: four projections of 2 x 2, a score and its use; sums count too."""
    assert heads.products(2, 2, 1) == 4 * 2 * 4 + 2 * 2 * 2
    assert heads.products(512, 8 * 512, 64) == 8 * heads.products(512, 512, 64)


def test_the_sentence_of_heads_follows_its_numbers() -> None:
    counted = {
        "difference": 0.0,
        "one head": 1.0,
        heads.FULL: {"parameters": 80},
        heads.PAPER: {"seconds": 3.0},
        heads.PACKED: {"parameters": 10, "seconds": 2.0},
    }
    more = {1: [{"accuracy": 40.0, "exact": 9.0}], 4: [{"accuracy": 70.0, "exact": 8.0}]}
    size = find("heads").sizes["smoke"]
    text = heads.conclude(counted, more, more, size)
    assert "8 times the weights" in text
    assert "3 and 2 times the time of one head" in text
    assert "right 40% with one head, and surely more with 4 (at the most 70%, with 4)" in text
    ceiling = {1: more[1], 4: [{"accuracy": 100.0, "exact": 100.0}]}
    assert "100%, with 4, so that more heads could" in heads.conclude(
        counted, ceiling, ceiling, size
    )
    assert "9% with one head, and surely more with no other number (at the most 9%" in text
    seeds = [
        [{"accuracy": a, "exact": a} for a in each]
        for each in ((40.0, 41.0), (50.0, 51.0), (30.0, 80.0))
    ]
    text = heads.conclude(counted, found := dict(zip((1, 2, 4), seeds, strict=True)), found, size)
    assert "surely more with 2 (at the most 55%, with 4)" in text


# --- depth --------------------------------------------------------------------------------------


def test_without_the_connection_x_is_forgotten() -> None:
    """The norm of the sub-layer's answer, and the bare answer."""
    x, said = torch.tensor([[[5.0, 1.0]]]), torch.tensor([[[1.0, 3.0]]])
    found = depth.NoResidual(2).add(x, said)
    torch.testing.assert_close(found, torch.tensor([[[-1.0, 1.0]]]), atol=1e-4, rtol=0)
    assert depth.Bare(2).add(x, said).tolist() == said.tolist()


def test_gradients_are_those_of_each_layer() -> None:
    size = find("depth").sizes["smoke"]
    texts = looking_back([size.length], 4, size.symbols, [2], seed=1, name="test")
    model = depth.tagger("pre", None, 3, size, seed=1)
    found = depth.gradients(model, texts)
    assert len(found) == 3
    batch = texts.batch(texts.kept, epoch=0)
    torch.nn.functional.cross_entropy(model(batch.tokens, batch.scored), batch.targets).backward()
    weights = [p for p in depth.blocks(model)[1].parameters() if p.ndim > 1]
    squares = [p.grad.square().sum().item() for p in weights if p.grad is not None]
    assert len(squares) == 4
    assert found[1] == pytest.approx(math.sqrt(sum(squares)), rel=1e-5)


# --- gates --------------------------------------------------------------------------------------


def test_places_of_a_text() -> None:
    """Noise, mark, kept, noise, question, padding."""
    mark, question = FIRST + 3, FIRST + 4
    tokens = torch.tensor([[FIRST, mark, FIRST + 1, FIRST + 2, question, 0]])
    found = {
        name: mask[0].nonzero()[:, 0].tolist() for name, mask in gates.places(tokens, 3).items()
    }
    assert found == {"noise before": [0], "kept": [2], "noise after": [3], "question": [4]}


def test_what_stays_by_hand() -> None:
    """Half is forgotten twice in the unit that was written into; the other does not count."""
    forget = torch.tensor([[[1.0, 1.0], [0.5, 0.1], [0.5, 0.1]]])
    written = torch.tensor([[[2.0, 0.0], [9.0, 9.0], [9.0, 9.0]]])
    kept = torch.tensor([[True, False, False]])
    assert gates.stays(forget, ~kept, written, kept) == pytest.approx(0.25)


# --- length, recall, parallel -------------------------------------------------------------------


def test_symbols_in_their_places() -> None:
    assert length.right("1 2 3", "1 2 3") == 100
    assert length.right("1 3", "1 2 3") == pytest.approx(100 / 3)
    assert length.right("", "1") == 0
    assert length.right("1 1 1 1", "1") == 100


@pytest.mark.parametrize("lab", [length, recall])
def test_contenders_have_about_as_many_parameters(lab: object) -> None:
    """Within a third of each other."""
    from manyheads.models.presets import build

    assert lab in (length, recall)
    made = (
        length.models(find("length").sizes["full"])
        if lab is length
        else recall.models(find("recall").sizes["full"])
    )
    counts = [sum(p.numel() for p in build(config).parameters()) for config in made.values()]
    assert max(counts) < 4 / 3 * min(counts)


def test_the_sentence_of_length_follows_its_numbers() -> None:
    size = find("length").sizes["smoke"]

    def made(short: float, long: float) -> list[dict[str, dict[str, float]]]:
        return [{"2": {"right": short}, "4": {"right": long}}]

    textbook = {
        length.ONE_VECTOR: made(99, 40),
        length.LOOKING: made(99, 90),
        length.TRANSFORMER: made(99, 80),
    }
    # The smoke size has learned texts of 3 symbols: 2 is the longest of these that is measured.
    text = length.conclude(textbook, size)
    assert "attention does not surely bring more" in text
    assert "90% (LSTM with attention), 80% (Transformer); LSTM with attention keeps most." in text


def test_the_sentence_of_recall_follows_its_numbers() -> None:
    size = find("recall").sizes["smoke"]  # 3 symbols: halfway between guessing and always is 66.7%

    def made(*right: float) -> list[dict[str, dict[str, float]]]:
        return [
            {
                str(distance): {"accuracy": each, "gradient at first": 0.5**distance}
                for distance, each in zip(size.distances, right, strict=True)
            }
        ]

    assert recall.reach(made(100, 66), size.distances, 100 / 3) == 1
    assert recall.reach(made(100, 67), size.distances, 100 / 3) == 4
    assert recall.reach(made(33, 33), size.distances, 100 / 3) == 0
    text = recall.conclude(
        {"RNN": made(100, 90), "attention": made(100, 100)},
        {"RNN": made(100, 40), "attention": made(100, 100)},
        size,
    )
    assert "one distance alone, of 4 symbols, models remember at the most: RNN over none" in text
    assert "all distances from 1 to 4 together: RNN over 4, the longest tried" in text
    assert "over 4 symbols is 0.125 (RNN)" in text


def test_steps_in_a_row() -> None:
    assert parallel.steps_in_a_row("LSTM", 100) == 200
    assert parallel.steps_in_a_row("Transformer", 100) == 2


def test_the_sentence_of_parallel_follows_its_numbers() -> None:
    def made(lstm: float, transformer: float) -> dict[str, dict[str, float]]:
        return {
            name: {"learning": value, "writing": value, "steps": 1.0}
            for name, value in (("LSTM", lstm), ("Transformer", transformer))
        }

    text = parallel.conclude({4: made(2, 1), 8: made(1, 2)}, "a GPU")
    assert "of 4 tokens takes the LSTM 2 times as long as the Transformer" in text
    assert "of 8 tokens 0.5 of the Transformer's time" in text
