"""Language models: what is to be predicted, how it is measured, what they are used for."""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.tokenizer import END, PAD, START, Tokenizer, TokenizerConfig
from manyheads.decode.sampling import Sampling
from manyheads.errors import DataError, UsageError
from manyheads.models.causal_lm import CausalConfig, CausalLanguageModel
from manyheads.models.masked_lm import MaskedConfig, MaskedLanguageModel
from manyheads.tasks.fill.task import MASK, MaskedToken, encode_masked, fill, masked_pieces
from manyheads.tasks.generate.task import NextToken, complete, remaining_positions, token_scores
from manyheads.tokenwise.token_task import IGNORED, TokenTask, TokenTrainConfig, measure
from manyheads.train.loop import fit
from tests.made import Silent, numbers

LINES = ["one two", "three", "four five six seven", "eight nine ten"]


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.train(numbers(200, 0)[0], TokenizerConfig(size=300))


def sentences(lines: list[str] = LINES) -> Sentences:
    return Sentences(lines, "numbers.en")


def causal(dim: int = 16) -> CausalLanguageModel:
    torch.manual_seed(0)
    config = CausalConfig(
        vocabulary=len(tokenizer()), dim=dim, layers=1, heads=2, ffn_dim=2 * dim, dropout=0.0
    )
    return CausalLanguageModel(config).eval()


def masked(dim: int = 16) -> MaskedLanguageModel:
    torch.manual_seed(0)
    config = MaskedConfig(
        vocabulary=len(tokenizer()),
        dim=dim,
        layers=1,
        heads=2,
        ffn_dim=2 * dim,
        dropout=0.0,
        positions="sinusoidal",
    )
    return MaskedLanguageModel(config).eval()


# --- What is to be predicted --------------------------------------------------------------------


def test_the_next_token() -> None:
    """T20: start, text; at each the token behind it, and at the last the end."""
    batch = NextToken(sentences(), tokenizer()).batch(np.array([1, 0]), epoch=0)
    three, one_two = tokenizer().encode(["three", "one two"])
    longest = max(len(three), len(one_two)) + 1
    rows = [[START, *ids] for ids in (three, one_two)]
    assert batch.tokens.tolist() == [row + [PAD] * (longest - len(row)) for row in rows]
    assert batch.scored.tolist() == (batch.tokens != PAD).tolist()
    assert batch.targets.tolist() == [*three, END, *one_two, END]
    assert batch.units == len(three) + len(one_two) + 2


def test_the_hidden_tokens() -> None:
    """Devlin et al. 2019, 3.1: 15% are asked about; 80% of them masked, 10% any token, 10% kept."""
    lines = [" ".join(["four five six seven eight"] * 8)] * 200
    examples = MaskedToken(sentences(lines), tokenizer(), seed=3)
    original = [*tokenizer().encode(lines[:1])[0], END]
    masks, same, asked, random = 0, 0, 0, set()
    for index in range(len(lines)):
        tokens, wanted = examples.example(index, epoch=0)
        assert wanted[-1] == IGNORED  # never the end
        chosen = [place for place, token in enumerate(wanted) if token != IGNORED]
        assert len(chosen) == round(0.15 * (len(original) - 1))
        for place, (token, was) in enumerate(zip(tokens, original, strict=True)):
            if place not in chosen:
                assert token == was
                continue
            assert wanted[place] == was
            asked += 1
            masks += token == MASK
            same += token == was
            random |= {token} - {MASK, was}
    assert masks / asked == pytest.approx(0.8, abs=0.03)
    assert same / asked == pytest.approx(0.1, abs=0.03)
    assert len(random) > 40  # any token, but nothing special
    assert min(random) > MASK


def test_hiding_is_a_pure_function_of_seed_epoch_and_example() -> None:
    """So a resumed run hides what an uninterrupted one does, whatever came before."""
    lines, _ = numbers(30, 5)
    examples = [MaskedToken(sentences(lines), tokenizer(), seed=seed) for seed in (1, 1, 2)]
    forward = [examples[0].example(i, 4) for i in range(30)]
    backward = [examples[1].example(i, 4) for i in reversed(range(30))]
    assert forward == backward[::-1]
    assert forward != [examples[0].example(i, 5) for i in range(30)]
    assert forward != [examples[2].example(i, 4) for i in range(30)]


def test_a_single_token_is_asked_about() -> None:
    """15% of one token is none; at least one is asked about."""
    _, wanted = MaskedToken(sentences(), tokenizer(), masked=0.01).example(1, 0)
    assert sum(token != IGNORED for token in wanted) == 1


def test_a_line_without_tokens_is_left_out() -> None:
    """Of sentencepiece's sign for a space alone nothing is left: no batch may ask about nothing."""
    examples = MaskedToken(sentences(["one two", "▁"]), tokenizer())
    assert (examples.kept.tolist(), examples.left_out) == ([0], 1)


def test_longer_lines_are_left_out_and_counted() -> None:
    """The indices stay those of the file."""
    lengths = [len(ids) + 1 for ids in tokenizer().encode(LINES)]
    examples = NextToken(sentences(), tokenizer(), sorted(lengths)[1])
    assert examples.left_out == 2
    assert sorted(np.concatenate(examples.plan(99, seed=1, epoch=0))) == [0, 1]
    with pytest.raises(DataError, match=r"numbers\.en: no line has at most 1 tokens.*max_length"):
        NextToken(sentences(), tokenizer(), 1)


# --- Measuring ----------------------------------------------------------------------------------


def test_the_loss_by_hand() -> None:
    """-log p of every token and the end given those before; the same as the scores of the texts."""
    model, examples = causal(), NextToken(sentences(), tokenizer())
    task = TokenTask(examples, examples, TokenTrainConfig(max_tokens=16), measure, seed=1)
    total = sum(
        token.log_probability
        for found in token_scores(model, tokenizer(), LINES)
        for token in found
    )
    assert list(map(len, task.plan(0, 1, 2))) == [len(batch) // 2 for batch in task.plan(0)]
    losses = [task.loss(model, batch) for batch in task.load(0, task.plan(0))]
    assert len(losses) > 1
    assert sum(loss.sum.item() for loss in losses) == pytest.approx(-total, rel=1e-5)
    count = sum(loss.weight for loss in losses)
    assert count == sum(len(ids) + 1 for ids in tokenizer().encode(LINES))
    measured = task.evaluate(model)
    assert measured["loss"] == pytest.approx(-total / count, rel=1e-5)
    assert measured["perplexity"] == pytest.approx(math.exp(-total / count), rel=1e-4)


def test_knowing_nothing_is_a_perplexity_of_the_vocabulary() -> None:
    """All tokens equally likely: as good as rolling a die with that many sides."""
    for model, examples in (
        (causal(), NextToken(sentences(), tokenizer())),
        (masked(), MaskedToken(sentences(), tokenizer())),
    ):
        with torch.no_grad():
            model.output.weight.zero_()
        assert measure(model, examples, 64)["perplexity"] == pytest.approx(len(tokenizer()), 1e-4)


def test_the_measure_hides_the_same_tokens_every_time() -> None:
    """Or the losses of two validations could not be compared."""
    model = masked()
    results = [
        measure(model, MaskedToken(sentences(), tokenizer()), max_tokens) for max_tokens in (8, 99)
    ]
    assert results[0] == pytest.approx(results[1], rel=1e-4)


def learned(kind: str, folder: Path) -> CausalLanguageModel | MaskedLanguageModel:
    """Four sentences by heart."""
    config = TokenTrainConfig(
        steps=120, learning_rate=1e-2, warmup=10, validate_every=200, log_every=200
    )
    model = causal(32) if kind == "causal" else masked(32)
    examples = (
        NextToken(sentences(), tokenizer())
        if kind == "causal"
        else MaskedToken(sentences(), tokenizer(), masked=0.3, seed=1)
    )
    task = TokenTask(examples, examples, config, measure, seed=1)
    fit(
        model,
        task,
        config,
        folder,
        seed=1,
        environment={},
        save_best=lambda model: None,
        observer=Silent(),
    )
    return model.eval()


# --- Using --------------------------------------------------------------------------------------


def test_a_learned_text_is_continued(tmp_path: Path) -> None:
    """Prompts of several lengths at once, each as if alone; sampling repeats with its seed."""
    model = learned("causal", tmp_path)
    assert isinstance(model, CausalLanguageModel)
    prompts = ["eight", "four five", "four"]
    found = complete(model, tokenizer(), prompts)
    wanted = ["eight nine ten", "four five six seven", "four five six seven"]
    assert [best.text for best, *_ in found] == wanted
    assert all(best.finished for best, *_ in found)
    two = complete(model, tokenizer(), ["four"], tokens=2)[0][0]
    assert not two.finished
    assert len(two.tokens) == 2
    beams = complete(model, tokenizer(), ["four"], beams=2, n_best=3)[0]
    assert beams[0].text == wanted[2]
    assert len({each.text for each in beams}) == 3
    warm = Sampling(temperature=3.0)
    drawn = [
        complete(model, tokenizer(), ["", ""], sampling=warm, n_best=2, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({each.text for both in drawn[0] for each in both}) > 1


def test_a_draw_depends_on_seed_and_prompt_alone() -> None:
    """Not on the place among other prompts; the same prompt twice is drawn the same."""
    warm = Sampling(temperature=3.0)

    def drawn(*prompts: str) -> list[list[str]]:
        found = complete(causal(), tokenizer(), prompts, tokens=6, sampling=warm, n_best=3)
        return [[each.text for each in best] for best in found]

    (alone,) = drawn("two")
    assert len(set(alone)) > 1
    assert drawn("one", "two", "two three", "two")[1::2] == [alone, alone]


@pytest.mark.parametrize("options", [{"tokens": 0}, {"n_best": 0}, {"beams": -1}])
def test_impossible_numbers(options: dict[str, int]) -> None:
    """Said before anything is computed."""
    with pytest.raises(UsageError, match="must be at least 1"):
        complete(causal(), tokenizer(), ["one"], **options)  # type: ignore[arg-type]


def test_positions_that_were_learned_end() -> None:
    """What is written stops where they do; a longer prompt is refused."""
    config = CausalConfig(vocabulary=len(tokenizer()), dim=8, layers=1, heads=2, max_length=6)
    model = CausalLanguageModel(config).eval()
    assert remaining_positions(config, 4) == 3  # positions 4 and 5 are read; the third token is not
    prompt = tokenizer().decode([[50, 51, 52]])[0]
    length = len(tokenizer().encode([prompt])[0]) + 1
    (best,) = complete(model, tokenizer(), [prompt], tokens=50)[0]
    assert best.finished or len(best.tokens) == remaining_positions(config, length)
    with pytest.raises(UsageError, match="only 6 positions"):
        complete(model, tokenizer(), ["one two three four five six seven eight nine"])


def test_a_blank_is_filled(tmp_path: Path) -> None:
    """From both sides; the likeliest first; of two blanks, each on its own."""
    model = learned("masked", tmp_path)
    assert isinstance(model, MaskedLanguageModel)
    ((best, *others),) = fill(model, tokenizer(), "four five <mask> seven")
    assert best.text == "four five six seven"
    assert len(others) == 4
    assert best.probability > others[0].probability
    first, second = fill(model, tokenizer(), "<mask> nine <mask>", top=2)
    assert first[0].text == second[0].text  # both blanks hold their likeliest token
    assert first[1].text.split()[1:] == first[0].text.split()[1:]
    assert second[1].text.split()[:2] == second[0].text.split()[:2]
    (all_there_are,) = fill(model, tokenizer(), "<mask>", top=10_000)
    # No padding, start, end or mask, and no byte that is part of a character.
    assert len(all_there_are) == len(tokenizer()) - 4 - 128
    assert not any("\ufffd" in each.text for each in all_there_are)
    with pytest.raises(UsageError, match=r"no mask in 'one two'.*<mask>"):
        fill(model, tokenizer(), "one two")
    with pytest.raises(UsageError, match="top is 0"):
        fill(model, tokenizer(), "<mask>", top=0)


@pytest.mark.parametrize(
    ("text", "around"),
    [
        ("one <mask> two", ("one", "▁two")),
        ("<mask> two", ("", "▁two")),
        ("one<mask>", ("one", "")),
        ("<mask>", ("", "")),
    ],
)
def test_blanks_in_a_text(text: str, around: tuple[str, str]) -> None:
    """The mask takes the space in front of it along; what follows keeps its own."""
    tokens = encode_masked(tokenizer(), text)
    place = tokens.index(MASK)
    assert tokens[:place] == (tokenizer().encode([around[0]])[0] if around[0] else [])
    behind = "".join(tokenizer().piece(token) for token in tokens[place + 1 :])
    assert behind == around[1]
    assert tokens.count(MASK) == 1


@pytest.mark.parametrize("text", ["one <mask> two", "<mask> two <mask>", "one<mask>", "one  two"])
def test_tokens_know_their_characters(text: str) -> None:
    """Blanks too, which were written with another sign on the way; all but spaces is covered."""
    pieces = masked_pieces(tokenizer(), text)
    for piece in pieces:
        assert (text[piece.begin : piece.end] == "<mask>") == (piece.id == MASK)
    covered = "".join(text[piece.begin : piece.end] for piece in pieces)
    assert covered == text.replace(" ", "")


def test_a_private_character_is_no_blank() -> None:
    """Even the one that stands for blanks in other texts."""
    text = "\ue000 one <mask>\ue001"
    pieces = masked_pieces(tokenizer(), text)
    assert [text[p.begin : p.end] for p in pieces if p.id == MASK] == ["<mask>"]
    covered = "".join(text[piece.begin : piece.end] for piece in pieces)
    assert covered == text.replace(" ", "")
    assert MASK not in encode_masked(tokenizer(), "one \ue000 two")


@pytest.mark.parametrize("learned", ["\ue000", "one \ue000 two", "\ue000\ue001"])
def test_a_vocabulary_with_private_characters(learned: str) -> None:
    """No blank is lost in a token that was learned."""
    lines = [*numbers(200, 0)[0], *[learned] * 50]
    knowing = Tokenizer.train(lines, TokenizerConfig(size=310))
    assert encode_masked(knowing, "<mask> one <mask> two<mask><mask>").count(MASK) == 4
    assert MASK not in encode_masked(knowing, learned)


def test_several_blanks_and_none() -> None:
    """Next to each other, or not at all."""
    assert encode_masked(tokenizer(), "<mask><mask> <mask>") == [MASK] * 3
    assert encode_masked(tokenizer(), "one two") == tokenizer().encode(["one two"])[0]
