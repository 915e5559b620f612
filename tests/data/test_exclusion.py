"""Held-out lines stay out of training, however they are written."""

from pathlib import Path

import pytest

from manyheads.data.text.exclusion import Exclusion, held_out_texts, normalised
from manyheads.data.text.formats import Pair


def test_case_punctuation_and_spaces_do_not_matter() -> None:
    """Letters and digits of every script do."""
    assert normalised("Wo ist, die  STRASSE?") == normalised("wo ist die Straße")
    assert normalised("한국에 가요!") == "한국에가요"
    assert normalised("1 cat") != normalised("2 cat")


def test_a_pair_goes_by_either_side() -> None:
    """Lines of fewer than three words exclude nothing; what is left out is counted, each time."""
    exclusion = Exclusion.of(["Where is it?", "Thank you.", "Das ist gut."])
    pairs = [
        Pair(1, "where is it", "Wo ist es?"),
        Pair(2, "Thank you.", "Danke."),
        Pair(3, "That is good.", "das ist gut!"),
        Pair(4, "That is fine.", "Das ist fein."),
    ]
    for _ in range(2):
        assert [pair.line for pair in exclusion.filter(pairs)] == [2, 4]
        assert exclusion.left_out == 2


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"refs.tsv": "a b c\tA B C\tD E F\n"}, "refs.tsv"),
        ({"t.en": "a b c\n", "t.de": "A B C\n"}, "t"),
        ({"t.csv": "en,de\na b c,A B C\n"}, "t.csv"),
    ],
)
def test_every_form_of_text(tmp_path: Path, files: dict[str, str], name: str) -> None:
    """References of any number in a line, two files, a table with names."""
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    expected = {cell for text in files.values() for cell in text.replace(",", "\t").split("\n")}
    expected = {cell for line in expected for cell in line.split("\t")} - {"", "en", "de"}
    assert set(held_out_texts(tmp_path / name, "en", "de")) == expected
