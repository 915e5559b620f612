"""Each comparison of an engine with torch finds one planted fault, and none where there is none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import manyheads
from manyheads.asks.export_request import ParityRequest
from manyheads.engines.engine_parity import Parity
from manyheads.errors import ManyheadsError
from manyheads.predict.task_pipeline import pipeline_of
from tests import language
from tests.convert.test_convert_encoders import convert
from tests.made import half, trained, write_halves


def captioned(root: Path) -> str:
    """Three images, beside each the text that the captioner writes for it."""
    captioner: Any = manyheads.load("emoji-caption")
    for number in range(3):
        image = half(number % 2, number, height=40, width=40)
        image.save(root / f"{number}.png")
        (root / f"{number}.txt").write_text(captioner(image), "utf-8")
    return str(root)


def photos(root: Path) -> str:
    write_halves(root, count=6)
    return str(root / "halves")


Case = tuple[Callable[[Path], str | Path], Callable[[Path], str | None], str, str | None]
CASES: dict[str, Case] = {
    "classify": (lambda _: trained("classifier"), lambda _: None, "logits", "accuracy"),
    "embed": (lambda root: convert("hf-clip", root), photos, "vectors", None),
    "match": (lambda _: "emoji-search", captioned, "vectors", "text_to_image_1"),
    "caption": (lambda _: "emoji-caption", captioned, "log-probabilities of tokens", "exact"),
    "read": (lambda _: trained("reader"), lambda _: None, "logits", "cer"),
    "translate": (
        lambda _: trained("translator"),
        lambda _: None,
        "log-probabilities of tokens",
        "bleu",
    ),
    "fill": (lambda _: language.trained("fill"), lambda _: None, "logits", "accuracy"),
    "tag": (lambda _: language.trained("tag-encoder"), lambda _: None, "logits", "f1"),
    "generate": (lambda _: language.trained("generate"), lambda _: None, "logits", "accuracy"),
}
SEARCHES = ("caption", "translate", "generate")  # fail before anything is compared


def noise(model: nn.Module, share: float) -> None:
    """Change every weight by a share of the size of its tensor."""
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for each in model.parameters():
            size = each.square().mean().sqrt()
            each.add_(share * size * torch.randn(each.shape, generator=random))


@pytest.mark.parametrize("task", CASES)
def test_planted_faults(task: str, tmp_path: Path) -> None:
    """Equal weights pass; slightly changed numbers, wrong answers and no numbers each fail."""
    model, write, compared, metric = CASES[task]
    folder = model(tmp_path)
    ours, theirs = manyheads.load(folder), manyheads.load(folder)
    (tmp_path / "data").mkdir()
    request = ParityRequest(data=write(tmp_path / "data"), limit=8)

    def parity() -> Parity:
        made = pipeline_of(ours.folder.recipe).parity(ours, theirs, request)
        assert (made.compared, made.metric) == (compared, metric)
        return made

    same = parity()
    assert not [*same.failures("float32")]
    assert (same.difference, same.changed) == (0, 0)
    assert same.inputs in range(3, 9)
    noise(theirs.model, 0.003)
    (failure,) = parity().failures("float32")
    assert f"{compared} differ by up to" in failure
    noise(theirs.model, 3.0)
    wrong = parity()
    assert wrong.changed > 0
    if metric is not None:  # what int8 is judged by
        assert wrong.before == same.before
        (failure,) = wrong.failures("int8")
        assert f"{metric} is " in failure
    noise(theirs.model, torch.nan)
    if task in SEARCHES:
        with pytest.raises(ManyheadsError, match="gives nan instead of probabilities"):
            parity()
    else:
        assert f"{compared} are not all finite" in " ".join(parity().failures("float32"))
