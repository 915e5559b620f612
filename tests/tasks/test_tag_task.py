"""Tagging: spaces lost and found (T1)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.characters import Characters
from manyheads.models.presets import build
from manyheads.models.tagger import EncoderTaggerConfig, RecurrentTaggerConfig
from manyheads.tasks.tag.task import Spacing, measure, tag
from manyheads.tokenwise.token_task import TokenTask, TokenTrainConfig
from manyheads.train.loop import fit
from tests.made import Silent

LINES = ["나는 밥을 먹는다", "너는 집에 간다", "나는 집에 간다", "우리는 간다"]
CHARACTERS = Characters.learn(LINES, min_count=1)


def examples(lines: list[str] = LINES) -> Spacing:
    return Spacing(Sentences(lines, "korean.txt"), CHARACTERS)


class Fixed(nn.Module):
    """Says that a space follows certain characters, whatever stands around them."""

    def __init__(self, after: str) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))
        self.after = torch.tensor(CHARACTERS.encode(after))

    def forward(self, tokens: Tensor, scored: Tensor) -> Tensor:
        yes = torch.isin(tokens, self.after).float()
        return torch.stack((1 - yes, yes), dim=-1)[scored]


def test_a_batch() -> None:
    """One answer a character; padding is not asked about."""
    batch = examples().batch(np.array([3, 0]), epoch=0)
    assert batch.tokens.shape == (2, 7)
    assert batch.scored.sum(1).tolist() == [5, 7]
    assert batch.targets.tolist() == [0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0]
    assert batch.units == 12


def test_the_measure_by_hand() -> None:
    """A space after every 는 finds 5 of 7 and sets 5: one 는 ends no word, one text is right."""
    found = measure(Fixed("는"), examples(), max_tokens=16)
    # 는 occurs in 나는, 먹는다, 너는, 나는, 우리는; 을 and 에 (3 spaces) are missed.
    precision, recall = 4 / 5, 4 / 7
    assert found["f1"] == pytest.approx(100 * 2 * precision * recall / (precision + recall))
    assert found["exact"] == pytest.approx(25)  # 우리는 간다
    assert found["accuracy"] == pytest.approx(100 * (7 + 6 + 6 + 5 - 4) / 24)


def test_no_space_at_all_is_a_measure_of_nothing() -> None:
    """Neither set nor wanted: no division by zero."""
    assert measure(Fixed(""), examples(["가나다"]), 16)["f1"] == 0


@pytest.mark.parametrize(
    "config",
    [
        RecurrentTaggerConfig(vocabulary=len(CHARACTERS), dim=16, hidden_size=16, cell="rnn"),
        RecurrentTaggerConfig(vocabulary=len(CHARACTERS), dim=16, hidden_size=16, cell="lstm"),
        EncoderTaggerConfig(vocabulary=len(CHARACTERS), dim=16, heads=2, ffn_dim=32),
    ],
    ids=["rnn", "lstm", "encoder"],
)
def test_overfits(config: RecurrentTaggerConfig | EncoderTaggerConfig, tmp_path: Path) -> None:
    """Four sentences are learned by heart on every context; texts come back in order."""
    torch.manual_seed(0)
    model = build(config)
    train = TokenTrainConfig(
        steps=60, learning_rate=1e-2, warmup=5, validate_every=100, log_every=100
    )
    task = TokenTask(examples(), examples(), train, measure, seed=1)
    fit(
        model,
        task,
        train,
        tmp_path,
        seed=1,
        environment={},
        save_best=lambda model: None,
        observer=Silent(),
    )
    assert task.evaluate(model.eval())["f1"] == 100
    texts = ["", "우 리는간다", "나는밥을먹는다"]
    found = tag(model, CHARACTERS, texts)
    assert [[each.character for each in row] for row in found] == [
        list(text.replace(" ", "")) for text in texts
    ]
    assert [round(each.probability) for each in found[1]] == [0, 0, 1, 0, 0]
    alone = tag(model, CHARACTERS, texts[1:2])[0]
    assert [p for _, p in alone] == pytest.approx([p for _, p in found[1]], abs=1e-5)
