"""Writing parallel text: what is written is read again, and never over something else."""

from pathlib import Path

import pytest

from manyheads.data.text.formats import Pair, read_pairs
from manyheads.data.text.write import outputs, writing
from manyheads.errors import DataError, UsageError

PAIRS = [Pair(1, 'say "one", please', "eins\u2028zwei"), Pair(2, " null ", "한국어")]


@pytest.mark.parametrize(
    "name", ["a", "a.gz", "a.tsv", "a.tsv.gz", "a.csv", "a.csv.gz", "a.jsonl", "a.jsonl.gz"]
)
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    """Every form, compressed or not; a.gz means a.en.gz and a.de.gz."""
    with writing(tmp_path / name, "en", "de") as write:
        for pair in PAIRS:
            write(pair)
    stem = name if "." in name.removesuffix(".gz") else "a"
    assert [pair[1:] for pair in read_pairs(tmp_path / stem, "en", "de")] == [p[1:] for p in PAIRS]
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {path.name for path in outputs(tmp_path / name, "en", "de")}


def test_a_text_that_the_form_cannot_hold(tmp_path: Path) -> None:
    """Refused with the way out, and nothing half-written stays."""
    for name, text in (("a", "one\ntwo"), ("a.tsv", "one\ttwo"), ("a", "one\r")):
        with (
            pytest.raises(DataError, match=r"line 7: .*\.csv or \.jsonl"),
            writing(tmp_path / name, "en", "de") as write,
        ):
            write(Pair(7, text, "eins"))
    assert list(tmp_path.iterdir()) == []
    with writing(tmp_path / "a.csv", "en", "de") as write:
        write(Pair(7, "one\ntwo", "eins\tzwei"))
    (pair,) = read_pairs(tmp_path / "a.csv", "en", "de")
    assert pair == Pair(2, "one\ntwo", "eins\tzwei")


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """Not even one of two files."""
    (tmp_path / "a.de").write_text("mine")
    with (
        pytest.raises(UsageError, match=r"a\.de exists"),
        writing(tmp_path / "a", "en", "de"),
    ):
        pass
    assert (tmp_path / "a.de").read_text() == "mine"
    with pytest.raises(UsageError, match=r"\.tmx files can be read, but not written"):
        outputs(tmp_path / "a.tmx", "en", "de")
