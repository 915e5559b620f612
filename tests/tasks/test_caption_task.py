"""The captioning task: what a batch is, what is learned from it, how texts are found and scored."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from torch import Tensor

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.augment.augment import Augmentation
from manyheads.data.batching.batches import CaptionBatch
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import Preprocessing
from manyheads.data.images.pixels import Pixels
from manyheads.data.tokenizers.tokenizer import END, PAD, START, Tokenizer, TokenizerConfig
from manyheads.errors import DataError, UsageError
from manyheads.generation.text_decoding import Translation
from manyheads.models.captioner import Captioner, CaptionerConfig
from manyheads.models.vit import VitConfig
from manyheads.tasks.caption.task import (
    CaptionEvaluateConfig,
    CaptionTask,
    CaptionTrainConfig,
    caption,
    caption_scores,
    language_token,
    references,
)
from manyheads.train.loop import fit
from tests.made import Silent
from tests.squares import captioned, square, texts

PREPROCESSING = Preprocessing(height=8, width=8)


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.train(captioned().texts, TokenizerConfig(size=330), ["en", "ko"])


def task(
    config: CaptionTrainConfig | None = None, data: CaptionedImages | None = None
) -> CaptionTask:
    return CaptionTask(
        data or captioned(),
        data or captioned(),
        tokenizer(),
        PREPROCESSING,
        Augmentation(),
        config or CaptionTrainConfig(batch_size=5),
        CaptionEvaluateConfig(),
        seed=1,
    )


def model(*, seed: int = 0, layers: int = 1, tied: bool = True) -> Captioner:
    torch.manual_seed(seed)
    image = VitConfig(height=8, width=8, patch=4, dim=16, layers=1, heads=2, ffn_dim=32)
    config = CaptionerConfig(
        image=image,
        vocabulary=len(tokenizer()),
        dim=32,
        heads=2,
        ffn_dim=64,
        decoder_layers=layers,
        dropout=0.0,
        tied=tied,
    )
    return config.build()


@cache
def writer() -> Captioner:
    """Random weights, large enough that outputs differ, and the end likely enough to come."""
    net = model(seed=3, layers=2, tied=False)
    with torch.no_grad():
        net.output.weight.mul_(3)
        net.output.weight[END] += 0.4
    return net.eval()


def encoded(text: str) -> list[int]:
    return tokenizer().encode([text])[0]


def target(language: str, text: str) -> list[int]:
    return [START, tokenizer().languages[language], *encoded(text), END]


# --- Batches ------------------------------------------------------------------------------------


def test_a_batch() -> None:
    """All captions of its images: start, language, tokens, end; and whose each is."""
    (batch,) = task().load(0, [np.array([3, 0])])
    pixels = torch.from_numpy(np.asarray(square(3)).copy()).permute(2, 0, 1)
    assert torch.equal(batch.images[0], (pixels.float() / 255 - 0.5) / 0.5)
    assert batch.owners.tolist() == [0, 0, 0, 1, 1, 1]
    expected = [
        target(language, text)
        for number in (3, 0)
        for language, several in texts(number).items()
        for text in several
    ]
    longest = max(map(len, expected))
    assert batch.target.tolist() == [ids + [PAD] * (longest - len(ids)) for ids in expected]
    assert batch.units == 2
    assert task().describe(batch) == "green left, red left"


def test_the_plan_shuffles_the_images_that_have_captions() -> None:
    """An image whose captions are all too long has none; no batch is empty for that."""
    lengths = {number: len(encoded(texts(number)["ko"][0])) for number in range(12)}
    long = max(lengths, key=lambda number: lengths[number])
    data = captioned()
    data = replace(data, texts=[t if n // 3 != long else t * 30 for n, t in enumerate(data.texts)])
    made = task(CaptionTrainConfig(batch_size=1, max_length=30), data)
    assert made.left_out == 3
    plan = made.plan(0)
    assert [len(part) for part in plan] == [1] * 11
    assert sorted(np.concatenate(plan).tolist()) == sorted({*range(12)} - {long})
    assert [part.tolist() for part in plan] != [part.tolist() for part in made.plan(1)]
    halves = [made.plan(0, rank, 2) for rank in (0, 1)]
    for part, *split in zip(plan, *halves, strict=True):
        assert sorted(np.concatenate(split).tolist()) == sorted(part.tolist())


def test_no_caption_is_short_enough() -> None:
    with pytest.raises(DataError, match=r"squares: no caption has at most 2 tokens.*max_length"):
        task(CaptionTrainConfig(max_length=2))


def test_a_language_without_a_token_is_refused() -> None:
    """Before anything is learned, also where only the validation data have it."""
    data = captioned()
    other = replace(data, languages=["fr", *data.languages[1:]])
    with pytest.raises(DataError, match="'fr' is not one that the model writes: en, ko"):
        task(data=other)
    with pytest.raises(DataError, match="'fr' is not one"):
        CaptionTask(
            data,
            other,
            tokenizer(),
            PREPROCESSING,
            Augmentation(),
            CaptionTrainConfig(),
            CaptionEvaluateConfig(),
            seed=1,
        )


def contents(batches: Iterator[CaptionBatch]) -> list[tuple[Any, ...]]:
    return [(batch.target.tolist(), batch.owners.tolist()) for batch in batches]


def test_captions_are_drawn_anew_in_each_epoch() -> None:
    """Two of three, a pure function of seed, epoch and image: resumed or not, in any batch."""
    made = task(CaptionTrainConfig(batch_size=5, captions=2))
    plan = made.plan(2)
    whole = contents(made.load(2, plan))
    assert contents(made.load(2, plan[1:])) == whole[1:]
    assert contents(made.load(3, plan)) != whole
    drawn = {epoch: made._captions(4, epoch) for epoch in range(30)}
    assert all(len(each) == 2 and each[0] != each[1] for each in drawn.values())
    seen = {tuple(ids) for each in drawn.values() for ids in each}
    assert seen == {tuple(target(a, t)) for a, several in texts(4).items() for t in several}
    few = task(CaptionTrainConfig(captions=3))
    assert few._captions(4, 0) == few.targets[4]  # all there are, in their order


# --- The loss -----------------------------------------------------------------------------------


def test_the_loss_by_hand() -> None:
    """-log p of every token behind the language, the end included; padding is nothing."""
    made, net = task(), model().eval()
    (batch,) = made.load(0, [np.array([0, 7])])
    loss = made.loss(net, batch)
    expected, count = 0.0, 0
    for row, owner in enumerate(batch.owners):
        ids = [int(token) for token in batch.target[row] if token != PAD]
        log_probabilities = net(batch.images[owner : owner + 1], torch.tensor([ids[:-1]]))[0]
        log_probabilities = log_probabilities.log_softmax(-1)
        for position, token in enumerate(ids[2:], 1):
            expected -= log_probabilities[position, token].item()
            count += 1
    assert loss.sum.item() == pytest.approx(expected, rel=1e-5)
    assert loss.weight == count


def test_the_loss_of_a_batch_is_the_sum_of_its_images() -> None:
    """So that batches can be added up; and smoothing comes from the recipe."""
    made, net = task(), model().eval()
    (together,) = made.load(0, [np.arange(4)])
    alone = [made.loss(net, batch) for batch in made.load(0, [np.array([i]) for i in range(4)])]
    whole = made.loss(net, together)
    assert whole.sum.item() == pytest.approx(sum(loss.sum.item() for loss in alone), rel=1e-5)
    assert whole.weight == sum(loss.weight for loss in alone)
    smooth = task(CaptionTrainConfig(label_smoothing=0.1)).loss(net, together)
    assert smooth.sum.item() != whole.sum.item()


# --- Scores -------------------------------------------------------------------------------------


def test_references_by_image_and_language() -> None:
    found = references(captioned(2))
    assert found == {
        (number, language): several
        for number in range(2)
        for language, several in texts(number).items()
    }


def test_scores_are_means_of_languages() -> None:
    """By hand: of two English outputs one equals its second caption; Korean is right once of 1."""
    right = {(0, "en"): ["a", "b"], (1, "en"): ["c"], (0, "ko"): ["다"]}
    scores = caption_scores(["b", "x", "다"], right, ["exact"])
    assert {name: score.value for name, score in scores.items()} == {
        "exact": 75.0,
        "exact_en": 50.0,
        "exact_ko": 100.0,
    }
    assert scores["exact"].signature == "exact match, mean of 2 languages"
    one = caption_scores(["b", "x"], {k: v for k, v in right.items() if k[1] == "en"}, ["exact"])
    assert {name: score.value for name, score in one.items()} == {"exact": 50.0}
    assert one["exact"].signature == "exact match"


def test_chrf_with_several_references_is_sacrebleus() -> None:
    """Of another number for each image, in each language by itself."""
    right = {
        (0, "en"): ["a cat sits", "one cat is sitting", "the cat"],
        (1, "en"): ["a dog"],
        (2, "en"): ["two birds", "a pair of birds"],
        (2, "de"): ["zwei Vögel"],
    }
    outputs = ["a cat is sitting", "the dog", "two birds", "ein Vogel"]
    scores = caption_scores(outputs, right, ["chrf", "exact"])
    streams = [
        ["a cat sits", "a dog", "two birds"],
        ["one cat is sitting", None, "a pair of birds"],
        ["the cat", None, None],
    ]
    english = sacrebleu.corpus_chrf(outputs[:3], streams).score  # type: ignore[arg-type]
    german = sacrebleu.corpus_chrf(outputs[3:], [["zwei Vögel"]]).score
    assert scores["chrf_en"].value == pytest.approx(english)
    assert scores["chrf_de"].value == pytest.approx(german)
    assert scores["chrf"].value == pytest.approx((english + german) / 2)
    assert scores["exact_en"].value == pytest.approx(100 / 3)
    assert "nrefs:var" in scores["chrf_en"].signature


# --- Learning -----------------------------------------------------------------------------------


def test_captions_are_learned_by_heart(tmp_path: Path) -> None:
    """Eight images with three captions each: each language is written exactly, by any search."""
    config = CaptionTrainConfig(
        steps=240,
        batch_size=8,
        learning_rate=1e-2,
        warmup=10,
        validate_every=240,
        log_every=240,
        save_every=240,
    )
    made, net = task(config, captioned(8)), model()
    assert made.evaluate(net.eval())["exact"] == 0
    fit(
        net,
        made,
        config,
        tmp_path,
        seed=1,
        environment={},
        save_best=lambda model: None,
        observer=Silent(),
    )
    measured = made.evaluate(net.eval())
    assert measured["exact"] == measured["exact_en"] == measured["exact_ko"] == 100.0
    wanted = list(references(captioned(8)))
    beam = caption(net, tokenizer(), Pixels(captioned(8).images, PREPROCESSING), wanted, BEAM)
    for (number, language), (best, *_) in zip(wanted, beam, strict=True):
        assert best.text in texts(number)[language]  # the language's token weighs nothing


# --- Search -------------------------------------------------------------------------------------

BEAM = DecodeConfig(beams=4)
EVERY = {
    "greedy": DecodeConfig(beams=1),
    "beam": DecodeConfig(beams=3),
    "early stopping": DecodeConfig(beams=3, early_stopping=True),
    "coverage": DecodeConfig(beams=3, coverage_penalty=0.3),
    "diverse": DecodeConfig(beams=4, groups=2, diversity=0.8),
    "no repeats": DecodeConfig(beams=2, no_repeat_ngram=1),
    "forced end": DecodeConfig(beams=2, forced_end=True),
    "shortest": DecodeConfig(beams=2, min_length=8),
    "sample": DecodeConfig(sample=True, temperature=0.8),
    "nucleus": DecodeConfig(sample=True, top_p=0.7, top_k=20),
}
EVERY = {name: replace(decode, max_length=9) for name, decode in EVERY.items()}
every = pytest.mark.parametrize("decode", EVERY.values(), ids=EVERY)
WANTED = [(0, "en"), (3, "ko"), (1, "en"), (0, "ko"), (2, "en")]


@cache
def pixels() -> Tensor:
    return Pixels(captioned(4).images, PREPROCESSING)[np.arange(4)]


def search(
    decode: DecodeConfig, wanted: list[tuple[int, str]] = WANTED, **options: Any
) -> list[list[Translation]]:
    return caption(writer(), tokenizer(), (pixels(), PREPROCESSING), wanted, decode, **options)


def forced(found: Translation, image: int, language: str) -> list[float]:
    """Log-probabilities of an output's tokens under teacher forcing, its end included."""
    ids = [START, tokenizer().languages[language], *found.tokens]
    images = PREPROCESSING.normalise(pixels()[image : image + 1])
    with torch.no_grad():
        scores = writer()(images, torch.tensor([ids]))[0].log_softmax(-1)
    wanted = [*found.tokens, *([END] if found.finished else [])]
    return [scores[place, token].item() for place, token in enumerate(wanted, 1)]


@every
def test_a_text_does_not_depend_on_the_others(decode: DecodeConfig) -> None:
    """Alone, in another order, or in company: the same texts, each in its language."""
    together = search(decode, n_best=2)
    alone = [search(decode, [each], n_best=2)[0] for each in WANTED]
    back = search(decode, WANTED[::-1], n_best=2)[::-1]
    for found, *others in zip(together, alone, back, strict=True):
        assert 1 <= len(found) <= 2
        for other in others:
            assert [each.text for each in found] == [each.text for each in other]
            assert [each.score for each in found] == pytest.approx(
                [each.score for each in other], abs=1e-4
            )


@pytest.mark.parametrize("name", ["greedy", "beam", "coverage", "diverse", "sample", "nucleus"])
def test_the_language_costs_nothing(name: str) -> None:
    """A text has the probability of its own tokens, given the image and the language.

    What the model thinks of a language's token behind the start is not learned. With it, a sum
    over more tokens would be a better mean: long captions would win.
    """
    for (image, language), found in zip(WANTED, search(EVERY[name], n_best=2), strict=True):
        for each in found:
            expected = forced(each, image, language)
            assert each.token_log_probabilities == pytest.approx(expected, abs=1e-4)
            assert each.log_probability == pytest.approx(sum(expected), abs=1e-4)


def test_lengths_are_those_of_the_text() -> None:
    """The language's token is no part of the shortest or the longest one."""
    for decode in (DecodeConfig(beams=1, max_length=3), DecodeConfig(beams=3, max_length=3)):
        for found in search(decode):
            assert all(len(each.tokens) + each.finished <= 3 for each in found)
    assert any(len(found[0].tokens) == 3 for found in search(DecodeConfig(beams=1, max_length=3)))
    for decode in (
        DecodeConfig(beams=1, min_length=5, max_length=6),
        DecodeConfig(beams=3, min_length=5, max_length=6),
    ):
        for found in search(decode):
            assert all(5 <= len(each.tokens) <= 6 for each in found)


@pytest.mark.parametrize(("least", "length"), [(0, 128), (140, 141)])
def test_a_caption_without_an_end_is_cut(least: int, length: int) -> None:
    """After 128 tokens; or, where it must be longer than that, as soon as it may end."""
    net = model().eval()
    with torch.no_grad():
        net.output.weight[END] = 0.0  # so that the end is never the most probable
    decode = DecodeConfig(beams=1, max_loop=0, min_length=least)
    (found,) = caption(net, tokenizer(), (pixels(), PREPROCESSING), [(0, "en")], decode)
    assert (len(found[0].tokens), found[0].finished) == (length, False)


def test_learned_positions_limit_captions() -> None:
    """Of start, language and text."""
    config = replace(model().config, positions="learned", max_length=6)
    torch.manual_seed(0)
    net = config.build().eval()
    with torch.no_grad():
        net.output.weight[END] = 0.0
    for decode in (DecodeConfig(beams=1), DecodeConfig(beams=2), DecodeConfig(sample=True)):
        (found,) = caption(net, tokenizer(), (pixels(), PREPROCESSING), [(0, "en")], decode)
        assert len(found[0].tokens) + 1 <= 6


def test_samples() -> None:
    """They depend on the seed, the image and the language alone."""
    decode = DecodeConfig(sample=True, max_length=9)
    first, again, other = (search(decode, n_best=4, seed=seed) for seed in (5, 5, 6))
    assert first == again != other
    for found in first:
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
    assert len({each.text for each in first[0]}) > 1
    twice = search(decode, [(1, "en"), (1, "en"), (1, "ko")])
    assert twice[0] == twice[1]
    assert twice[0] != twice[2]


def test_n_best_widens_the_search() -> None:
    found = search(DecodeConfig(beams=1, max_length=9), [(0, "en")], n_best=5)[0]
    assert len(found) == 5
    assert [each.score for each in found] == sorted((e.score for e in found), reverse=True)
    assert len({each.text for each in found}) == 5


def test_details_cover_the_text() -> None:
    """Each token with its characters and its probability; the language is not among them."""
    (found,) = search(DecodeConfig(beams=2, max_length=9), [(0, "en")], details=True)
    details = found[0].details
    assert details is not None
    assert len(details) == len(found[0].tokens) + found[0].finished
    assert [each.probability for each in details] == pytest.approx(
        np.exp(found[0].token_log_probabilities).tolist()
    )
    for each in details:
        assert 0 <= each.begin <= each.end <= len(found[0].text)


def test_what_no_search_can_do_is_refused() -> None:
    with pytest.raises(DataError, match="'fr' is not one that the model writes: en, ko"):
        search(BEAM, [(0, "fr")])
    with pytest.raises(UsageError, match="Token 999 is banned"):
        search(DecodeConfig(banned=(999,)))
    with pytest.raises(UsageError, match="is the end token"):
        search(DecodeConfig(banned=(END,)))
    assert search(BEAM, []) == []


# --- The vocabulary -----------------------------------------------------------------------------


def test_languages_have_tokens_that_no_text_has() -> None:
    """Behind the special ones, in their order; what looks like one in a text is text."""
    made = tokenizer()
    assert list(made.languages) == ["en", "ko"]
    assert language_token(made, "ko") == made.languages["ko"]
    tokens = made.encode(["<en> red <ko>"])[0]
    assert not set(made.languages.values()) & set(tokens)
    assert made.decode([tokens]) == ["<en> red <ko>"]
    assert made.decode([[made.languages["en"], *encoded("red left")]]) == ["red left"]
    assert Tokenizer.train(captioned().texts, TokenizerConfig(size=330)).languages == {}
    codes = ["pt-BR", "zh_Hans"]
    assert list(Tokenizer.train(["a b"] * 9, TokenizerConfig(size=300), codes).languages) == codes
