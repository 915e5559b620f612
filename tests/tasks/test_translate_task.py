"""The translation task: what a batch is, what is learned from it, and how its result is used."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manyheads.asks.decode_config import DecodeConfig
from manyheads.asks.evaluate_request import EvaluateConfig
from manyheads.data.batching.batches import TextBatch
from manyheads.data.text.corpus import Corpus
from manyheads.data.tokenizers.token_store import encode_on_disk
from manyheads.data.tokenizers.tokenizer import (
    END,
    PAD,
    START,
    SpecialTokens,
    Tokenizer,
    TokenizerConfig,
    Tokenizers,
)
from manyheads.errors import DataError
from manyheads.generation.text_decoding import translate
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.tasks.translate.recipe import TranslateTrainConfig
from manyheads.tasks.translate.task import TranslateTask
from manyheads.train.loop import fit
from tests.made import Silent, numbers

SOURCE = ["one two", "three", "four five six seven", "eight nine ten"]
TARGET = ["zwei eins", "drei", "sieben sechs fünf vier", "zehn neun acht"]


@cache
def tokenizer() -> Tokenizer:
    source, target = numbers(100, 0)
    return Tokenizer.train([*source, *target], TokenizerConfig(size=320))


def tokenizers() -> Tokenizers:
    return Tokenizers(tokenizer(), tokenizer())


def task(
    source: list[str] = SOURCE,
    target: list[str] = TARGET,
    config: TranslateTrainConfig | None = None,
    **options: Any,
) -> TranslateTask:
    corpus = Corpus(source, target, "numbers.tsv")
    return TranslateTask(
        corpus,
        corpus,
        tokenizers(),
        config or TranslateTrainConfig(),
        EvaluateConfig(metrics=("exact", "bleu")),
        seed=1,
        **options,
    )


def contents(batches: Iterator[TextBatch]) -> list[tuple[Any, ...]]:
    """All that a batch holds, to be compared."""
    return [
        (batch.source.tolist(), batch.target.tolist(), batch.indices.tolist(), batch.units)
        for batch in batches
    ]


def model(dim: int = 16, *, tied: bool = True) -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        TransformerConfig(
            vocabulary=len(tokenizer()),
            dim=dim,
            heads=2,
            ffn_dim=2 * dim,
            encoder_layers=1,
            decoder_layers=1,
            dropout=0.0,
            tied=tied,
        )
    )


# --- Batches ------------------------------------------------------------------------------------


def test_a_batch() -> None:
    """Source and end; start, target, end; padding behind; units count both sides without it."""
    (batch,) = task().load(0, [np.array([1, 0])])
    ids = tokenizer().encode(["three", "one two", "drei", "zwei eins"])
    longest = max(len(ids[0]), len(ids[1])) + 1
    expected = [row + [PAD] * (longest - len(row)) for row in ([*ids[0], END], [*ids[1], END])]
    assert batch.source.tolist() == expected
    assert batch.target[0, : len(ids[2]) + 2].tolist() == [START, *ids[2], END]
    assert (batch.target[0, len(ids[2]) + 2 :] == PAD).all()
    assert batch.units == sum(map(len, ids)) + 4  # an end each
    assert batch.indices.tolist() == [1, 0]


def test_the_plan_covers_the_pairs_within_the_budget() -> None:
    """A batch holds at most max_tokens a side, padding included: what the tensors show."""
    made = task(*numbers(60, 3), TranslateTrainConfig(max_tokens=64))
    plan = made.plan(0)
    assert sorted(np.concatenate(plan)) == list(range(60))
    for batch in made.load(0, plan):
        assert batch.source.numel() <= 64
        assert batch.target[:, :-1].numel() <= 64


def test_longer_pairs_are_left_out_and_counted() -> None:
    """train.max_length holds for either side; the indices stay those of the file."""
    lengths = [len(ids) + 1 for ids in tokenizer().encode(SOURCE)]
    made = task(config=TranslateTrainConfig(max_length=min(lengths) + 2))
    assert made.left_out > 0
    assert len(made.kept) == 4 - made.left_out
    assert sorted(np.concatenate(made.plan(0))) == made.kept.tolist()


def test_a_corpus_on_disk_gives_the_same_batches(tmp_path: Path) -> None:
    """Where token ids are kept is nobody's business: plan and tensors are the same."""
    source, target = numbers(60, 3)
    pairs = zip(source, target, strict=True)
    store = encode_on_disk(pairs, tokenizers(), tmp_path / "cache", "key")
    held = task(source, target, TranslateTrainConfig(max_tokens=64))
    left = task(source, target, TranslateTrainConfig(max_tokens=64), store=store)
    assert contents(held.load(0, held.plan(0))) == contents(left.load(0, left.plan(0)))


def test_sampled_subwords_are_planned_by_the_best_ones() -> None:
    """The plan is a pure function of seed, epoch and unsampled lengths; the texts stay."""
    source, target = numbers(60, 3)
    plain, sampled = task(source, target), task(source, target, sampling=0.1)
    plan = sampled.plan(0)
    assert [batch.tolist() for batch in plan] == [batch.tolist() for batch in plain.plan(0)]
    (whole,) = sampled.load(0, [np.arange(60)])
    assert whole.source.shape != next(plain.load(0, [np.arange(60)])).source.shape
    assert tokenizer().decode(whole.source.tolist()) == source
    assert tokenizer().decode(whole.target.tolist()) == target
    assert whole.units == int((whole.source != PAD).sum() + (whole.target[:, 1:] != PAD).sum())


def test_a_resumed_epoch_samples_the_same_subwords() -> None:
    """The rest of an epoch does not depend on whether its beginning was just trained on."""
    source, target = numbers(60, 3)
    made = task(source, target, TranslateTrainConfig(max_tokens=64), sampling=0.1)
    plan = made.plan(2)
    assert contents(made.load(2, plan))[3:] == contents(made.load(2, plan[3:]))
    assert contents(made.load(3, plan)) != contents(made.load(2, plan))


def test_other_special_ids() -> None:
    """A foreign model may start with its padding, and end with 0."""
    made = task(ids=SpecialTokens(pad=500, start=500, end=0))
    (batch,) = made.load(0, [np.array([1, 0])])
    (one, two), (drei, _) = (tokenizer().encode(side[1::-1]) for side in (SOURCE, TARGET))
    longest = max(len(one), len(two)) + 1
    expected = [[*ids, 0] + [500] * (longest - len(ids) - 1) for ids in (one, two)]
    assert batch.source.tolist() == expected
    assert batch.target[0, : len(drei) + 2].tolist() == [500, *drei, 0]


def test_no_pair_is_short_enough() -> None:
    """Says where, what the limit is and what to do."""
    with pytest.raises(DataError, match=r"numbers\.tsv: no pair has at most 1 tokens.*max_length"):
        task(config=TranslateTrainConfig(max_length=1))


def test_a_batch_is_named_by_file_and_lines() -> None:
    """As the message about a loss that is not a number does."""
    (batch,) = task().load(0, [np.array([2, 0])])
    assert task().describe(batch) == "numbers.tsv, lines 1, 3"


# --- The loss -----------------------------------------------------------------------------------


def test_the_loss_by_hand() -> None:
    """-log p of every target token and the end, given what stands before it; padding is nothing."""
    made, net = task(), model().eval()
    (batch,) = made.load(0, [np.array([0, 1])])
    loss = made.loss(net, batch)
    expected, count = 0.0, 0
    for source, target in zip(SOURCE[:2], TARGET[:2], strict=True):
        source_ids = torch.tensor([[*tokenizer().encode([source])[0], END]])
        ids = [START, *tokenizer().encode([target])[0], END]
        log_probabilities = net(source_ids, torch.tensor([ids[:-1]]))[0].log_softmax(-1)
        for position, token in enumerate(ids[1:]):
            expected -= log_probabilities[position, token].item()
            count += 1
    assert loss.sum.item() == pytest.approx(expected, rel=1e-5)
    assert loss.weight == count


def test_the_loss_of_a_batch_is_the_sum_of_its_pairs() -> None:
    """So that batches can be added up, whatever is padded to what."""
    made, net = task(), model().eval()
    (together,) = made.load(0, [np.arange(4)])
    alone = [made.loss(net, batch) for batch in made.load(0, [np.array([i]) for i in range(4)])]
    whole = made.loss(net, together)
    assert whole.sum.item() == pytest.approx(sum(loss.sum.item() for loss in alone), rel=1e-5)
    assert whole.weight == sum(loss.weight for loss in alone)


def test_smoothing_comes_from_the_recipe() -> None:
    """[train] label_smoothing changes the loss."""
    net = model().eval()
    (batch,) = task().load(0, [np.arange(4)])
    smooth = task(config=TranslateTrainConfig(label_smoothing=0.1)).loss(net, batch)
    assert smooth.sum.item() != task().loss(net, batch).sum.item()


# --- Learning and using -------------------------------------------------------------------------


def test_overfits_one_batch(tmp_path: Path) -> None:
    """Four sentences are learned by heart, end and word order included."""
    config = TranslateTrainConfig(
        steps=150, learning_rate=1e-2, warmup=10, validate_every=150, log_every=150
    )
    made, net = task(config=config), model(32)
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
    assert measured["exact"] == 100.0
    assert measured["bleu"] == pytest.approx(100.0)
    assert (measured["length_ratio"], measured["empty"]) == (1.0, 0.0)
    assert translate(net, tokenizers(), ["three"], DecodeConfig(beams=1))[0][0].finished


@pytest.mark.parametrize("beams", [1, 3])
def test_outputs_come_in_the_order_of_the_inputs(beams: int) -> None:
    """Sentences are sorted by length on the way; an empty text stays empty."""
    net = model().eval()
    texts = ["one two three four", "", "nine", "   ", "six five"]
    together = translate(net, tokenizers(), texts, DecodeConfig(beams=beams))
    alone = [translate(net, tokenizers(), [text], DecodeConfig(beams=beams))[0] for text in texts]
    assert [found[0].text for found in together] == [found[0].text for found in alone]
    assert [found[0].text for found in together][1::2] == ["", ""]
    assert translate(net, tokenizers(), [], DecodeConfig(beams=beams)) == []


def test_the_length_limit_is_the_sentences_own() -> None:
    """A model that never ends is cut off, and says so; a longer neighbour changes nothing."""
    net = model(tied=False).eval()
    with torch.no_grad():  # of two opposite logits one is positive; all others are 0
        net.output.weight.zero_()
        net.output.weight[40], net.output.weight[41] = torch.arange(16), -torch.arange(16)
    alone = translate(net, tokenizers(), ["one"], DecodeConfig(beams=1))[0][0]
    among = translate(net, tokenizers(), ["one", "one two three four"], DecodeConfig(beams=1))[0][0]
    assert (alone.text, alone.tokens) == (among.text, among.tokens)
    # Products of batches of other sizes are rounded in another order.
    assert alone.token_log_probabilities == pytest.approx(among.token_log_probabilities, abs=1e-5)
    assert alone.log_probability == pytest.approx(among.log_probability, abs=1e-4)
    assert alone.score == pytest.approx(among.score, abs=1e-5)
    assert not alone.finished
    assert not among.finished
    assert len(alone.tokens) == 2 * (len(tokenizer().encode(["one"])[0]) + 1) + 16


def test_n_best_are_different_and_in_order() -> None:
    """The first is the best; more than the beams widens the search."""
    found = translate(model().eval(), tokenizers(), ["two one"], DecodeConfig(beams=2), n_best=3)[0]
    assert len(found) == 3
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert len({tuple(each.tokens) for each in found}) == 3
