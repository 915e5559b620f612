"""Parallel text in every form: the same pairs come out, and damage is named with its line."""

import csv
import gzip
import io
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.text import formats
from manyheads.data.text.formats import Pair, corpus_files, read_pairs
from manyheads.data.text.lines import LONGEST, Problem, content_hash
from manyheads.errors import DataError, MissingExtraError, NotFoundError, UsageError

PAIRS = [('He said: "go", and went.', "Er sagte: „geh“ und ging."), ("null", "1e5"), ("나", "ich")]


def tmx(units: str, head: str = "") -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{head}'
        f'<tmx version="1.4"><header srclang="en"/><body>\n{units}</body></tmx>\n'
    ).encode()


def unit(**segments: str) -> str:
    variants = "".join(
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for language, text in segments.items()
    )
    return f"<tu>{variants}</tu>\n"


def as_csv(pairs: list[tuple[str, str]]) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([("en", "de"), *pairs])
    return file.getvalue().encode()


def as_parquet(rows: list[dict[str, object]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def as_parquet_table(**columns: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


WRITERS: dict[str, Callable[[list[tuple[str, str]]], bytes]] = {
    "tsv": lambda pairs: "".join(f"{s}\t{t}\n" for s, t in pairs).encode(),
    "csv": as_csv,
    "jsonl": lambda pairs: "".join(
        json.dumps({"de": t, "en": s, "id": n}) + "\n" for n, (s, t) in enumerate(pairs)
    ).encode(),
    "parquet": lambda pairs: as_parquet([{"id": 1, "en": s, "de": t} for s, t in pairs]),
    "tmx": lambda pairs: tmx("".join(unit(de=escaped(t), en_US=escaped(s)) for s, t in pairs)),
}


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def texts(pairs: Iterator[Pair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


# --- The same pairs from every form --------------------------------------------------------------


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("form", WRITERS)
def test_every_form_holds_the_same_pairs(tmp_path: Path, form: str, packed: str) -> None:
    """Quotes, commas, "null" and numbers are text like any other; compressed or not."""
    path = write(tmp_path, f"train.{form}{packed}", WRITERS[form](PAIRS))
    assert texts(read_pairs(path, "en", "de")) == PAIRS
    assert corpus_files(path, "en", "de") == [path]


@pytest.mark.parametrize(("left", "right"), [("", ""), (".gz", ""), (".gz", ".gz")])
def test_two_files_each_compressed_or_not(tmp_path: Path, left: str, right: str) -> None:
    """The stem names both; what is there is read."""
    files = [
        write(tmp_path, f"train.en{left}", "".join(f"{s}\n" for s, _ in PAIRS).encode()),
        write(tmp_path, f"train.de{right}", "".join(f"{t}\n" for _, t in PAIRS).encode()),
    ]
    assert texts(read_pairs(tmp_path / "train", "en", "de")) == PAIRS
    assert corpus_files(tmp_path / "train", "en", "de") == files


def test_a_hash_is_of_the_content(tmp_path: Path) -> None:
    """A registered test split is recognised in a compressed file too."""
    plain, packed = write(tmp_path, "a", b"one\n"), write(tmp_path, "a.gz", b"one\n")
    assert plain.read_bytes() != packed.read_bytes()
    assert content_hash(plain) == content_hash(packed)


sentences = st.text(
    st.characters(exclude_characters="\n\r\t", exclude_categories=["Cs", "Cc"]), min_size=1
).filter(lambda text: text.strip() != "" and not text.startswith("\ufeff"))


@pytest.mark.parametrize("form", WRITERS)
@given(pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5))
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, form: str, pairs: list[tuple[str, str]]
) -> None:
    """Any sentences of any characters come back as they were."""
    if form == "tmx":  # XML has no way to write these two
        pairs = [
            (
                s.replace("\ufffe", "?").replace("\uffff", "?"),
                t.replace("\ufffe", "?").replace("\uffff", "?"),
            )
            for s, t in pairs
        ]
    path = write(tmp_path_factory.getbasetemp(), f"any.{form}", WRITERS[form](pairs))
    assert texts(read_pairs(path, "en", "de")) == pairs


def test_reading_is_streaming(tmp_path: Path) -> None:
    """The first pairs are there before the damage on line 3 is reached."""
    path = write(tmp_path, "a.tsv", b"one\teins\ntwo\tzwei\nthree\n")
    pairs = read_pairs(path, "en", "de")
    assert list(islice(pairs, 2)) == [Pair(1, "one", "eins"), Pair(2, "two", "zwei")]
    with pytest.raises(DataError, match="line 3: no tab"):
        next(pairs)


# --- Columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.tsv", b"7\tone\teins\n", (2, 3)),  # numbers: no header
        ("a.tsv", b"id\ttext\tGerman\n7\tone\teins\n", ("text", "German")),  # names: a header
        ("a.tsv", b"id\ten\tGerman\n7\tone\teins\n", (None, "German")),
        ("a.csv", b"7,one,eins\r\n", (2, 3)),
        ("a.csv", b"id,de,en\r\n7,eins,one\r\n", (None, None)),
        ("a.jsonl", b'{"a": "one", "b": "eins"}\n', ("a", "b")),
        ("a.jsonl", b'{"id": 7, "translation": {"de": "eins", "en": "one"}}\n', (None, None)),
        ("a.parquet", as_parquet([{"a": "one", "b": "eins"}]), ("a", "b")),
        ("a.parquet", as_parquet([{"translation": {"de": "eins", "en": "one"}}]), (None, None)),
    ],
)
def test_where_the_sides_stand(
    tmp_path: Path, name: str, content: bytes, columns: tuple[str | int | None, str | int | None]
) -> None:
    """By language, by another name, by number; one side or both; nested as the hub has them."""
    path = write(tmp_path, name, content)
    assert texts(read_pairs(path, "en", "de", columns=columns)) == [("one", "eins")]


def test_numbers_turn_a_corpus_round(tmp_path: Path) -> None:
    """The same file for the other direction."""
    path = write(tmp_path, "a.tsv", b"one\teins\n")
    assert texts(read_pairs(path, "de", "en", columns=(2, 1))) == [("eins", "one")]
    with pytest.raises(UsageError, match="counted from 1; given: 0, 1"):
        list(read_pairs(path, "de", "en", columns=(0, 1)))


def test_lines_are_where_a_record_begins(tmp_path: Path) -> None:
    """A quoted line break does not shift the numbers behind it, nor is it changed."""
    path = write(tmp_path, "a.csv", b'en,de\r\n"one\r\none",eins\r\n"say ""two""",zwei\r\n')
    assert list(read_pairs(path, "en", "de")) == [
        Pair(2, "one\r\none", "eins"),
        Pair(4, 'say "two"', "zwei"),
    ]


# --- Translation memories ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ({"en": "one", "de": "eins"}, ("one", "eins")),
        ({"DE_AT": "eins", "EN_GB": "one"}, ("one", "eins")),
        ({"en_GB": "colour", "en": "color", "de": "Farbe"}, ("color", "Farbe")),  # exact first
        (
            {"enm": "oon", "en": "one", "de": "eins"},
            ("one", "eins"),
        ),  # Middle English is not English
        (
            {"en": "<hi>o</hi>ne<ph>{1}</ph>", "de": "eins<bpt i='1'>&lt;b&gt;</bpt>"},
            ("one", "eins"),
        ),
        ({"en": "a &amp; b &#233;", "de": "eins"}, ("a & b é", "eins")),
    ],
)
def test_units_of_a_translation_memory(
    tmp_path: Path, segments: dict[str, str], expected: tuple[str, str]
) -> None:
    """Languages with or without a region; codes of a document's format are not text."""
    path = write(tmp_path, "a.tmx", tmx(unit(**segments)))
    assert texts(read_pairs(path, "en", "de")) == [expected]


def test_units_without_both_languages_are_no_pairs(tmp_path: Path) -> None:
    """A memory of three languages: read on, unless no unit is left."""
    path = write(tmp_path, "a.tmx", tmx(unit(en="one", fr="un") + unit(en="two", de="zwei")))
    assert list(read_pairs(path, "en", "de")) == [Pair(4, "two", "zwei")]
    with pytest.raises(DataError, match="no unit has both 'en' and 'ko'; languages: 'en', 'fr'"):
        list(read_pairs(path, "en", "ko"))


@pytest.mark.parametrize(
    "declaration",
    ['<!ENTITY x SYSTEM "secret.txt">', '<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;&x;">'],
    ids=["another file", "unfolding"],
)
def test_entities_are_refused(tmp_path: Path, declaration: str) -> None:
    """Reading a text neither opens other files nor unfolds a small one into a large one."""
    (tmp_path / "secret.txt").write_text("secret")
    content = tmx(unit(en="&x;", de="eins"), head=f"<!DOCTYPE tmx [{declaration}]>\n")
    path = write(tmp_path, "a.tmx", content)
    with pytest.raises(DataError, match=r"a\.tmx, line 2: it declares the entity 'x'"):
        list(read_pairs(path, "en", "de"))


def test_an_entity_of_a_dtd_is_named(tmp_path: Path) -> None:
    """The DTD is not read: its entity would vanish from the text. The next unit is read."""
    head = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
    content = tmx(unit(en="Caf&eacute;", de="Kaffee") + unit(en="two", de="zwei"), head=head)
    path = write(tmp_path, "a.tmx", content)
    with pytest.raises(DataError, match=r"a\.tmx, line 4: the unit has the entity &eacute;"):
        list(read_pairs(path, "en", "de"))
    found: list[Problem] = []
    assert list(read_pairs(path, "en", "de", report=found.append)) == [Pair(5, "two", "zwei")]
    assert [(each.kind, each.line) for each in found] == [("invalid-record", 4)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "cp949", "euc-kr", "cp1252"])
def test_translation_memories_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    """As their first line names them."""
    text = "é" if encoding == "cp1252" else "나"
    content = tmx(unit(en="one", de=text)).decode().replace("UTF-8", encoding).encode(encoding)
    path = write(tmp_path, "a.tmx", content)
    assert texts(read_pairs(path, "en", "de")) == [("one", text)]


@pytest.mark.parametrize(
    ("encoding", "words"),
    [("foo", "unknown encoding: foo"), ("utf-16", "encoding"), ("cp949", "'cp949' codec")],
)
def test_a_translation_memory_in_another_encoding_than_it_says(
    tmp_path: Path, encoding: str, words: str
) -> None:
    """A line is named, no exception of a decoder is raised."""
    content = tmx(unit(en="one", de="\u00ff")).decode().replace("UTF-8", encoding)
    path = write(tmp_path, "a.tmx", content.encode("latin-1"))
    with pytest.raises(DataError, match=rf"a\.tmx, line \d: not valid XML \(.*{words}"):
        list(read_pairs(path, "en", "de"))


@pytest.mark.parametrize("text", ["<!-- ", "<tu><tuv><seg>", "<tu a='"])
def test_a_translation_memory_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A text, a comment or a tag that never ends does not fill the memory."""
    monkeypatch.setattr(formats, "LONGEST", 10_000)
    path = write(tmp_path, "a.tmx", b"<tmx><body>\n" + text.encode() + b"x" * 20_000)
    with pytest.raises(DataError, match=r"a\.tmx, line 2: .* more than 10,000 characters"):
        list(read_pairs(path, "en", "de"))


# --- Tables without a header ---------------------------------------------------------------------


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_most_rows_say_how_many_columns_there_are(tmp_path: Path, odd: int) -> None:
    """A tab inside a text is found in any line, the first as well, and the others are read."""
    rows = ["7\tone\teins", "8\ttwo\tzwei", "9\tthree\tdrei"]
    rows[odd] += "\tand more"
    path = write(tmp_path, "a.tsv", "".join(f"{row}\n" for row in rows).encode())
    found: list[Problem] = []
    pairs = list(read_pairs(path, "en", "de", columns=(2, 3), report=found.append))
    assert [pair.line for pair in pairs] == [line for line in (1, 2, 3) if line != odd + 1]
    assert [(each.kind, each.line) for each in found] == [("extra-column", odd + 1)]


def test_a_record_with_a_line_that_cannot_be_decoded(tmp_path: Path) -> None:
    """It is reported, and the rest of the record is not taken for the whole."""
    path = write(tmp_path, "a.csv", b'en,de\n"one\n\xfc\nmore",eins\ntwo,zwei\n')
    found: list[Problem] = []
    pairs = list(read_pairs(path, "en", "de", report=found.append))
    assert pairs == [Pair(5, "two", "zwei")]
    assert [(each.kind, each.line) for each in found] == [("invalid-utf8", 3)]


# --- What cannot be read ------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ["one\teins\n", "나는 학교에 간다.\t저는 학생입니다.\n"])
def test_utf_16_is_named(tmp_path: Path, encoding: str, mark: bool, text: str) -> None:
    """As Excel and Notepad save it: not taken for a damaged line in another encoding."""
    content = ("\ufeff" * mark + text * 20).encode(encoding)
    path = write(tmp_path, "a.tsv", content)
    name = encoding[:6].upper()
    with pytest.raises(DataError, match=rf"a\.tsv: it is {name}, not UTF-8\. .* iconv -f {name}"):
        list(read_pairs(path, "en", "de"))
    found: list[Problem] = []
    assert list(read_pairs(path, "en", "de", report=found.append)) == []
    assert [each.kind for each in found] == ["wide-encoding"]


@pytest.mark.parametrize("text", ["a\0b\tc\n", "one\0\teins\0\n" * 200, "\ufeffone\teins\n"])
def test_null_characters_are_not_utf_16(tmp_path: Path, text: str) -> None:
    """They are control characters of a text in UTF-8."""
    assert list(read_pairs(write(tmp_path, "a.tsv", text.encode()), "en", "de"))


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_line_without_an_end(tmp_path: Path, packed: str) -> None:
    """It is not read into memory; the next line is read."""
    content = b"one\teins\n" + b"x" * (3 * LONGEST) + b"\ttwo\nthree\tdrei\n"
    path = write(tmp_path, f"a.tsv{packed}", content)
    with pytest.raises(DataError, match=r"line 2: it has more than 1,048,576 bytes"):
        list(read_pairs(path, "en", "de"))
    found: list[Problem] = []
    pairs = list(read_pairs(path, "en", "de", report=found.append))
    assert pairs == [Pair(1, "one", "eins"), Pair(3, "three", "drei")]
    assert [(each.kind, each.line) for each in found] == [("endless-line", 2)]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.jsonl", "a.parquet", "a.tmx"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, name: str) -> None:
    """Opening a named pipe would wait for ever, a device would never end."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=f"{name} cannot be read: it is a named pipe, not a file"):
        list(read_pairs(tmp_path / name, "en", "de"))
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(DataError, match=f"{name} cannot be read: it is a device, not a file"):
        content_hash(tmp_path / name)


ONE = as_parquet([{"en": "one", "fr": "un"}])
FIVE = as_parquet([{"en": "one", "de": 5}])
NONE = as_parquet([{"en": "one", "de": None}])
LIST = as_parquet([{"en": "one", "de": ["eins"]}])
LATE = as_parquet_table(en=["one"], de=pa.array([10**15], pa.timestamp("ms")))  # the year 33658
EMPTY = as_parquet_table(en=pa.array([], pa.string()), de=pa.array([], pa.string()))
EINS = b'{"en": "one", "de": "eins"}\n'


@pytest.mark.parametrize(
    ("name", "content", "kind", "line", "words"),
    [
        ("a.tsv", b"one\teins\ntwo\n", "missing-column", 2, "no tab"),
        ("a.tsv", b"one\teins\n\tzwei\n", "empty-side", 2, "the source is empty"),
        ("a.tsv", b"one\teins\nt\xfcwo\tzwei\n", "invalid-utf8", 2, "byte 2 of the line, 0xfc"),
        ("a.tsv", b"", "empty-file", 1, "is empty"),
        ("a.csv", b"en,de\none,eins,1\ntwo,zwei\n", "extra-column", 2, "3 fields where 2"),
        ("a.csv", b"English,de\none,eins\n", "missing-column", 1, "'English', 'de'"),
        ("a.csv", b"en,de,de\none,eins,1\n", "missing-column", 1, "two columns are called 'de'"),
        ("a.tsv", b"one\teins\ntwo, o\tr three\tzwei\n", "extra-column", 2, "3 fields where 2"),
        ("a.tsv", b"1\tone\teins\n", "extra-column", 1, "data.source_column"),
        ("a.csv", b"en,de\n", "no-pairs", 1, "it has no pair"),
        ("a.jsonl", b"\n \n", "no-pairs", 1, "it has no pair"),
        ("a.parquet", EMPTY, "no-pairs", 1, "no pair"),
        ("a.csv", b'en,de\none,eins\n"two" 2,zwei\n', "invalid-record", 3, "is not valid CSV"),
        ("a.csv", b'en,de\none,eins\n"two,zwei\n', "invalid-record", 3, "unexpected end"),
        ("a.jsonl", EINS + b'{"en": "two",}\n', "invalid-record", 2, "JSON"),
        ("a.jsonl", EINS + b'{"en": 2, "de": "b"}\n', "missing-column", 2, "'en'"),
        ("a.jsonl", b'{"en": "b", "de": true}\n', "missing-column", 1, "'de'; found: True"),
        ("a.jsonl", b'["one", "eins"]\n', "missing-column", 1, "found: list"),
        ("a.jsonl", b'{"en": "one", "de": null}\n', "missing-column", 1, "no text under 'de'"),
        ("a.jsonl", b'{"en": "one", "de": "\\ud83d"}\n', "invalid-utf8", 1, "a lone surrogate"),
        ("a.jsonl", b"[" * 100_000 + b"\n", "invalid-record", 1, "not valid JSON"),
        ("a.parquet", ONE, "missing-column", 1, "there are en, fr"),
        ("a.parquet", NONE, "empty-side", 1, "target is empty"),
        ("a.parquet", FIVE, "missing-column", 1, "no text under 'de', but int64"),
        ("a.parquet", LIST, "missing-column", 1, "no text under 'de', but list<"),
        ("a.parquet", LATE, "missing-column", 1, "no text under 'de', but timestamp[ms]"),
        ("a.tmx", tmx("<tu><tuv>\n</tu>"), "invalid-record", 4, "mismatched tag"),
        ("a.tmx", tmx("<tu>")[:-8], "invalid-record", 3, "not valid XML"),
    ],
)  # fmt: skip
def test_damage_is_named_with_its_line(
    tmp_path: Path, name: str, content: bytes, kind: str, line: int, words: str
) -> None:
    """A strict reader raises at the first; one that reports goes on and names it the same way."""
    path = write(tmp_path, name, content)
    with pytest.raises(DataError) as caught:
        list(read_pairs(path, "en", "de"))
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    found: list[Problem] = []
    list(read_pairs(path, "en", "de", report=found.append))
    assert [(problem.kind, problem.line) for problem in found] == [(kind, line)]


def test_a_reader_that_reports_goes_on(tmp_path: Path) -> None:
    """What follows a bad line is read, and two files stay aligned."""
    write(tmp_path, "a.en", b"one\nt\xfco\nthree\n\nfive\nsix\n")
    write(tmp_path, "a.de", b"eins\nzwei\ndrei\nvier\nf\xc3\xbcnf\n")
    found: list[Problem] = []
    pairs = list(read_pairs(tmp_path / "a", "en", "de", report=found.append))
    assert pairs == [Pair(1, "one", "eins"), Pair(3, "three", "drei"), Pair(5, "five", "fünf")]
    assert [(problem.kind, problem.line, problem.side) for problem in found] == [
        ("invalid-utf8", 2, "source"),
        ("empty-side", 4, "source"),
        ("unequal-counts", 6, ""),
    ]


@pytest.mark.parametrize("cut", [-9, 30])
def test_a_compressed_file_that_is_cut_off(tmp_path: Path, cut: int) -> None:
    """As an interrupted download leaves it."""
    content = "".join(f"{n * 7919 % 1000}\t{n}\n" for n in range(1000)).encode()
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(content)[:cut])
    with pytest.raises(DataError, match=r"a\.tsv\.gz, after line \d+: the compressed file is cut"):
        list(read_pairs(path, "en", "de"))
    with pytest.raises(DataError, match="cut off"):
        content_hash(path)


def test_a_compressed_file_that_is_none(tmp_path: Path) -> None:
    """Only its name ends so."""
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(b"one\teins\n")
    with pytest.raises(DataError, match=r"it is not compressed with gzip\. Rename or compress it"):
        list(read_pairs(path, "en", "de"))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """Named; a parquet file that is none, too."""
    with pytest.raises(NotFoundError, match=r"no file .*a\.csv"):
        list(read_pairs(tmp_path / "a.csv", "en", "de"))
    with pytest.raises(DataError, match=r"b\.parquet cannot be read as parquet"):
        list(read_pairs(write(tmp_path, "b.parquet", b"PAR1 no"), "en", "de"))


@pytest.mark.parametrize("nested", [False, True])
def test_parquet_that_is_not_utf8(tmp_path: Path, nested: bool) -> None:
    """The row and the byte, as of any other text; those before and after it are read."""
    table = {
        "en": pa.array(["one", "two", "three"]),
        "de": pa.array([b"eins", b"zw\xfci", b"drei"]).view(pa.string()),
    }
    if nested:
        table = {"translation": pa.StructArray.from_arrays(list(table.values()), list(table))}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(table), path)
    with pytest.raises(DataError, match=r"a\.parquet, row 2: byte 3 of the text, 0xfc"):
        list(read_pairs(path, "en", "de"))
    found: list[Problem] = []
    pairs = list(read_pairs(path, "en", "de", report=found.append))
    assert pairs == [Pair(1, "one", "eins"), Pair(3, "three", "drei")]
    assert [(each.kind, each.line, each.text) for each in found] == [
        ("invalid-utf8", 2, "zw\\xfci")
    ]


# --- The hub ------------------------------------------------------------------------------------


def test_the_hub_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact command."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'manyheads\[datasets\]'"):
        list(read_pairs("hub:owner/name", "en", "de"))


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("hub:owner/name", ("owner/name", None, "train")),
        ("hub:owner/name:test", ("owner/name", None, "test")),
        ("hub:owner/name:de-en:test", ("owner/name", "de-en", "test")),
    ],
)
def test_names_on_the_hub(
    monkeypatch: pytest.MonkeyPatch, name: str, asked: tuple[str, str | None, str]
) -> None:
    """Repository, configuration, split: given to `datasets.load_dataset`, streamed.

    The package is not among those tested with; this stand-in has its signature.
    """
    calls = []

    def load_dataset(
        path: str, name: str | None = None, *, split: str, streaming: bool
    ) -> list[dict[str, dict[str, str]]]:
        calls.append((path, name, split))
        assert streaming
        return [{"translation": {"en": "one", "de": "eins"}}]

    stand_in = types.ModuleType("datasets")
    stand_in.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", stand_in)
    assert list(read_pairs(name, "en", "de")) == [Pair(1, "one", "eins")]
    assert calls == [asked]
    with pytest.raises(UsageError, match="hub:owner/name:configuration:split"):
        list(read_pairs(f"{name}:a:b:c", "en", "de"))
