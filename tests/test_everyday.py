"""The everyday sentences that translators are judged by: the form of the two tables."""

import pytest

from manyheads.data.text.exclusion import normalised
from tests.everyday import COLUMNS, table


@pytest.mark.parametrize("name", COLUMNS)
def test_sixty_different_sentences(name: str) -> None:
    """Each has all its translations; in English, 30 and more have eight words and more."""
    rows = table(name)
    assert len(rows) == 60
    assert all(all(row) for row in rows)
    assert len({normalised(row[1]) for row in rows}) == 60
    if name == "english":
        assert sum(len(row[1].split()) >= 8 for row in rows) >= 30
