"""DeiT: a ViT with one token and one head more."""

from typing import Any

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.models.deit import Deit, DeitConfig
from manyheads.models.vit import Vit
from tests.small import DEITS, inputs, randomise

CONFIG = DEITS["deit-b"]


def test_two_heads_are_averaged() -> None:
    """V15: at inference, the mean of what both heads say."""
    model, (images,) = randomise(Deit(CONFIG)).eval(), inputs(CONFIG)
    answers = model.answers(images)
    assert answers.labels.shape == answers.teacher.shape == (2, 5)
    assert not torch.equal(answers.labels, answers.teacher)
    torch.testing.assert_close(model(images), (answers.labels + answers.teacher) / 2)


def test_each_head_reads_its_own_token() -> None:
    model, (images,) = randomise(Deit(CONFIG)).eval(), inputs(CONFIG)
    x = model.features(images)
    assert x.shape == (2, 2 + 6, 8)
    answers = model.answers(images)
    torch.testing.assert_close(answers.labels, model.head(x[:, 0]))
    torch.testing.assert_close(answers.teacher, model.teacher_head(x[:, 1]))


def test_with_equal_heads_it_is_a_vit_that_pools_both_tokens() -> None:
    model, (images,) = randomise(Deit(CONFIG)).eval(), inputs(CONFIG)
    model.teacher_head.load_state_dict(model.head.state_dict())
    plain = Vit(CONFIG).eval()
    plain.load_state_dict(
        {name: t for name, t in model.state_dict().items() if "teacher" not in name}
    )
    torch.testing.assert_close(model(images), plain(images))


def test_another_image_size_keeps_both_tokens() -> None:
    """V9: positions of the two tokens stay as they are."""
    model = randomise(Deit(CONFIG)).eval()
    assert model(torch.randn(1, 3, 6, 10)).isfinite().all()
    assert model.positions.table.shape == (2 + 6, 8)


def test_a_fresh_model_finds_all_classes_equally_likely() -> None:
    assert Deit(CONFIG).eval()(*inputs(CONFIG)).eq(0).all()


def test_in_training_the_heads_are_told_apart() -> None:
    """Equation 3: one learns from the labels, the other from the teacher."""
    model = randomise(Deit(CONFIG)).train()
    labels, teacher = model(*inputs(CONFIG))
    assert not torch.equal(labels, teacher)
    torch.testing.assert_close(model.eval()(*inputs(CONFIG)), (labels + teacher) / 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool": "mean"}, "pool is 'mean', .* leave pool \"distilled\""),
        ({"pool_norm": "after"}, "pool_norm is 'after', .* leave pool_norm \"before\""),
        ({"representation": 16}, "representation is 16, .* leave representation out"),
        ({"height": 225}, "225 x 224 pixels .* 16 x 16"),
    ],
)
def test_what_its_heads_would_not_read_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        DeitConfig(**changes)
