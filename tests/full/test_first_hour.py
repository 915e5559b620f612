"""The whole first hour in both languages, the training too."""

import re

import pytest
import torch

from scripts.first_hour import LANGUAGES, cells, run

pytestmark = pytest.mark.full


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_cell_runs(language: str) -> None:
    """What is printed is what the page shows; of the numbers never seen most are right."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        ran = list(run(cells(language), {}))
    finally:
        torch.set_num_threads(threads)
    compared = [each for each in ran if each.expected is not None]
    assert [each.printed for each in compared] == [each.expected for each in compared]
    (trained,) = (each.printed for each in ran if "manyheads.train(" in each.cell.text)
    score = re.match(r"(\d+)%", trained)
    assert score is not None
    assert int(score[1]) >= 60
    (answers,) = (each.printed for each in ran if "mine(english(n))" in each.cell.text)
    assert len(answers.splitlines()) == 6
