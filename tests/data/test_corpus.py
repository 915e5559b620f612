"""The strict reader: it changes nothing, and what it cannot read it names."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from manyheads.data.text.corpus import Corpus, read_lines, read_parallel
from manyheads.data.text.encoding import unicode_encoding
from manyheads.errors import DataError, NotFoundError


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


# --- What is part of the text, and what is not --------------------------------------------------


def test_two_files_are_aligned_by_line(tmp_path: Path) -> None:
    """Line N of one file is the translation of line N of the other; hashes identify the files."""
    write(tmp_path, "train.en", b"one\ntwo\n")
    write(tmp_path, "train.de", b"eins\nzwei\n")
    corpus = read_parallel(tmp_path / "train", "en", "de")
    assert (corpus.source, corpus.target, len(corpus)) == (["one", "two"], ["eins", "zwei"], 2)
    assert corpus.hashes == tuple(
        hashlib.sha256(text).hexdigest() for text in (b"one\ntwo\n", b"eins\nzwei\n")
    )


def test_a_tsv_file_holds_both_sides(tmp_path: Path) -> None:
    """Source, tab, target."""
    path = write(tmp_path, "pairs.tsv", b"one\teins\ntwo\tzwei\n")
    corpus = read_parallel(path, "en", "de")
    assert (corpus.source, corpus.target) == (["one", "two"], ["eins", "zwei"])
    assert len(corpus.hashes) == 1


def test_a_dot_in_the_name_is_part_of_the_name(tmp_path: Path) -> None:
    """The languages are appended, not put in place of what looks like a suffix."""
    write(tmp_path, "news.2016.en", b"one\n")
    write(tmp_path, "news.2016.de", b"eins\n")
    assert read_parallel(tmp_path / "news.2016", "en", "de").source == ["one"]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),  # no line end at the end
        (b"one\r\ntwo\r\n", ["one", "two"]),  # Windows
        (b"\xef\xbb\xbfone\ntwo\n", ["one", "two"]),  # a byte order mark
        (b"one\r\r\n", ["one\r"]),  # only the \r of the line end goes
        (b"o\rne\n", ["o\rne"]),
        ("a\u2028b\nc\u2029d\n".encode(), ["a\u2028b", "c\u2029d"]),  # separators of Unicode
        (b"a\x0cb\nc\x0bd\n", ["a\x0cb", "c\x0bd"]),  # form feed, vertical tab
        (b"a\x1cb\x1dc\x1ed\xc2\x85e\n", ["a\x1cb\x1dc\x1ed\x85e"]),  # str.splitlines splits here
        (b'"quoted" and "open\nnext\n', ['"quoted" and "open', "next"]),  # csv would join these
        (b"null\nNA\nNone\n1e5\n", ["null", "NA", "None", "1e5"]),  # csv would change these
        (b"  two spaces  \n", ["  two spaces  "]),
        ("한국어\n🙂\n".encode(), ["한국어", "🙂"]),
    ],
)
def test_a_line_is_what_stands_between_line_feeds(
    tmp_path: Path, content: bytes, lines: list[str]
) -> None:
    """Only a byte order mark and the end of a line are not part of the text."""
    assert read_lines(write(tmp_path, "text", content))[0] == lines


@given(
    lines=st.lists(
        st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1)
        .filter(lambda line: line.strip() != "")
        .filter(lambda line: not line.startswith("\ufeff")),
        min_size=1,
    )
)
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    """Any lines of any characters come back as they were."""
    path = tmp_path_factory.getbasetemp() / "any-lines"
    content = "".join(f"{line}\r\n" for line in lines).encode()
    assume(unicode_encoding(content) == "utf-8")  # null characters only
    path.write_bytes(content)
    assert read_lines(path)[0] == lines


# --- What cannot be read ------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_invalid_utf8_is_named_by_line_and_byte(tmp_path: Path, mark: bytes) -> None:
    """A Latin-1 ß on line 2: file, line, byte of the line, value, remedy."""
    path = write(tmp_path, "train.de", mark + b"gut\nein Gru\xdf an\nalle\n")
    with pytest.raises(DataError) as caught:
        read_lines(path)
    message = str(caught.value)
    assert str(path) in message
    assert "line 2" in message
    assert "byte 8 of the line, 0xdf" in message
    assert "iconv" in message


def test_a_cut_off_character_is_not_valid(tmp_path: Path) -> None:
    """A file that ends within a character: the byte named is where the character begins."""
    path = write(tmp_path, "train.ko", "안녕".encode()[:-1])
    with pytest.raises(DataError, match="line 1: byte 4 of the line, 0xeb"):
        read_lines(path)


def test_unequal_counts(tmp_path: Path) -> None:
    """Both files and both counts are named."""
    write(tmp_path, "train.en", b"one\ntwo\nthree\n")
    write(tmp_path, "train.de", b"eins\nzwei\n")
    with pytest.raises(DataError) as caught:
        read_parallel(tmp_path / "train", "en", "de")
    assert f"{tmp_path / 'train.en'} has 3 lines" in str(caught.value)
    assert f"{tmp_path / 'train.de'} has 2" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"", r"train\.en is empty"), (b"\n", r"train\.en, line 1: the source is empty")],
)
def test_an_empty_file(tmp_path: Path, content: bytes, complaint: str) -> None:
    """No text at all is not a corpus of nothing."""
    write(tmp_path, "train.en", content)
    write(tmp_path, "train.de", b"eins\n")
    with pytest.raises(DataError, match=complaint):
        read_parallel(tmp_path / "train", "en", "de")


def test_an_empty_side_of_a_pair(tmp_path: Path) -> None:
    """The file and the first such line; how to see all of them."""
    write(tmp_path, "train.en", b"one\n\nthree\n  \nfive\n\n")
    write(tmp_path, "train.de", b"eins\nzwei\ndrei\nvier\nfuenf\nsechs\n")
    with pytest.raises(DataError, match=r"train\.en, line 2: the source is empty.*check-data"):
        read_parallel(tmp_path / "train", "en", "de")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"one\teins\ntwo zwei\n", "line 2: no tab"),
        (b"one\teins\n\ttwo\n", "line 2: the source is empty"),
        (b"one\teins\ntwo\t \n", "line 2: the target is empty"),
    ],
)
def test_a_bad_line_in_a_tsv_file(tmp_path: Path, content: bytes, complaint: str) -> None:
    """File, line and what is wrong with it."""
    path = write(tmp_path, "pairs.tsv", content)
    with pytest.raises(DataError, match=complaint) as caught:
        read_parallel(path, "en", "de")
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """One side alone is not enough."""
    write(tmp_path, "train.en", b"one\n")
    with pytest.raises(NotFoundError, match=r"train\.de"):
        read_parallel(tmp_path / "train", "en", "de")


def test_a_folder_is_not_a_text_file(tmp_path: Path) -> None:
    """What the system says about a file is passed on with its name."""
    with pytest.raises(DataError, match=f"{tmp_path} cannot be read"):
        read_lines(tmp_path)


def test_pairs_are_named_by_where_they_stand(tmp_path: Path) -> None:
    """A header and a line break within quotes: not every pair is one line."""
    path = write(tmp_path, "a.csv", b'en,de\none,eins\n"two\ntwo",zwei\nthree,drei\n')
    corpus = read_parallel(path, "en", "de")
    assert corpus.source == ["one", "two\ntwo", "three"]
    assert corpus.describe([0, 1, 2]) == f"{path}, lines 2, 3, 5"


def test_pairs_are_named_as_the_user_knows_them() -> None:
    """File and line numbers from 1, in order, and not hundreds of them."""
    corpus = Corpus(["x"] * 20, ["y"] * 20, "train.tsv")
    assert corpus.describe([4]) == "train.tsv, line 5"
    assert corpus.describe([7, 0, 3]) == "train.tsv, lines 1, 4, 8"
    assert corpus.describe(range(20)) == "train.tsv, lines 1, 2, 3, 4, 5, 6, 7, 8, ..."


def test_a_corpus_in_memory_is_its_own_sample() -> None:
    """Nothing is drawn; `StreamedCorpus` draws."""
    corpus = Corpus(["a", "b"], ["c", "d"], "here")
    assert corpus.sample(1) == (["a", "b"], ["c", "d"])
    assert list(corpus.pairs()) == [("a", "c"), ("b", "d")]
