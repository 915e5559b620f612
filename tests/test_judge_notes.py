"""How notes are judged: figures by hand, and texts that stay as they were judged."""

import pytest

from scripts.judge_notes import FOLDER, PARTS, auroc, read, wilson


def test_interval_by_hand() -> None:
    """5 of 10: 0.5 -+ 1.96 * sqrt(0.025 + 0.0096) / (1 + 0.384), so 23.7% to 76.3%."""
    assert wilson([True] * 5 + [False] * 5) == "5 of 10 = 50.0% [23.7, 76.3]"
    assert wilson([]) == "none of 0"


def test_auroc_by_hand() -> None:
    """Of four pairs two are in order, and one is a tie."""
    assert auroc([0.9, 0.5], [0.5, 0.7]) == pytest.approx(2.5 / 4)


@pytest.mark.parametrize("model", PARTS)
def test_every_text_is_judged_once(model: str) -> None:
    """300 texts of the kinds that were drawn, and as many judgements with their translations."""
    rows = [line.split("\t") for line in read(FOLDER / f"{model}.tsv")[1:]]
    assert len(rows) == sum(count for *_, count in PARTS[model]) == 300
    assert {kind for kind, *_ in rows} == {kind for kind, *_ in PARTS[model]}
    assert {right for _, _, right, _ in rows} == {"0", "1"}
