"""Tables that nobody has prepared: what is read, and what is refused with the next step."""

import json
import zipfile
from pathlib import Path

import pytest

from manyheads.data.documents.office import XLSX
from manyheads.errors import DataError, ManyheadsError
from manyheads.own_data.columns import find_roles
from manyheads.own_data.loose_table import read_table

PAIRS = [("The cat sleeps.", "Die Katze schläft."), ("We drink tea.", "Wir trinken Öltee.")]
PAIRS += [("She reads a long letter.", "Sie liest einen langen Brief.")]
ROWS = [list(pair) for pair in PAIRS]


def written(tmp_path: Path, content: str | bytes, name: str = "pairs.tsv") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(separator: str = "\t", end: str = "\n") -> str:
    return "".join(f"{one}{separator}{other}{end}" for one, other in PAIRS)


@pytest.mark.parametrize(
    "content",
    [
        lines(),
        lines(";"),
        lines("|"),
        lines(end="\r\n"),
        lines(end="\r"),
        "\ufeff" + lines(),
        "en\tde\n" + lines(),
        "source;target\n" + lines(";"),
        "English (US)|German\n" + lines("|"),
        "".join(f'"{one}","{other}"\n' for one, other in PAIRS),
        lines().encode("utf-16"),
        lines().encode("utf-16-le"),
        lines().encode("cp1252"),
        # One line in another encoding than the others.
        lines().splitlines(keepends=True)[0].encode()
        + "".join(lines().splitlines(keepends=True)[1:]).encode("cp1252"),
        json.dumps([{"src": one, "tgt": other} for one, other in PAIRS]),
        "".join(json.dumps({"translation": {"en": o, "de": d}}) + "\n" for o, d in PAIRS),
        "".join(json.dumps(pair) + "\n" for pair in PAIRS),
        json.dumps({"version": 1, "data": [{"src": one, "tgt": other} for one, other in PAIRS]}),
        json.dumps(dict(PAIRS), indent=1),
        "sep=;\r\nsource;target\r\n" + lines(";", "\r\n"),
        lines(" => "),
        lines("     "),
    ],
)
def test_the_same_pairs_in_any_form(tmp_path: Path, content: str | bytes) -> None:
    """Header, separator, quotes, line ends and encoding are seen, and are no part of a text."""
    table = read_table(written(tmp_path, content, "pairs.txt"))
    assert [cells for _, cells in table.rows] == ROWS


def test_quoted_cells_with_line_ends_and_escapes(tmp_path: Path) -> None:
    """As spreadsheets and programs write them."""
    rows = [[f"Yes, {n}.\nOr no?", f"Ja, {n}.\nOder nein?"] for n in range(9)]
    text = "".join(f'"{one}","{other}"\n' for one, other in rows)
    assert [cells for _, cells in read_table(written(tmp_path, text, "a.csv")).rows] == rows
    text = "".join(f'"He said \\"no\\", {n}.","Nein, {n}."\n' for n in range(9))
    table = read_table(written(tmp_path, text, "b.csv"))
    assert table.rows[3][1] == ['He said "no", 3.', "Nein, 3."]


def test_a_name_above_labels_is_a_header(tmp_path: Path) -> None:
    """In any language: it is not among the labels."""
    rows = "".join(f"문장이 {n}개 있다,{'긍정' if n % 2 else '부정'}\n" for n in range(30))
    assert read_table(written(tmp_path, "말,기분\n" + rows, "a.csv")).header == ["말", "기분"]
    assert read_table(written(tmp_path, "말이 있다,부정\n" + rows, "a.csv")).header == []


def test_the_korean_encoding_of_windows(tmp_path: Path) -> None:
    """CP949 has all syllables; quotes of Windows-1252, Hangul to CP949, stay quotes."""
    rows = [
        ["Tom did it.", "똠방각하와 펲시를 톰이 했습니다."],
        ["Yes.", "네."],
        ["No.", "아니요."],
    ]
    text = "영어,한국어\r\n" + "".join(f"{one},{other}\r\n" for one, other in rows)
    table = read_table(written(tmp_path, text.encode("cp949"), "말뭉치.csv"))
    assert ([cells for _, cells in table.rows], table.header) == (rows, ["영어", "한국어"])
    assert [each.kind for each in table.findings] == ["encoding", "windows-line-ends", "header"]
    quoted = "It’s “so”\tça\n" * 5
    table = read_table(written(tmp_path, quoted.encode("cp1252"), "quotes.tsv"))
    assert table.rows[0][1] == ["It’s “so”", "ça"]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Good morning.\tДоброе утро.\n", "cp1251"),
        ("Good morning, Tom.\tおはようございます、トム。\n", "cp932"),
        ("Good morning, Tom.\tおはようございます、トム。\n", "euc_jp"),
        ("It is very cold today.\t今天天气很冷，我们在家。\n", "gb18030"),
    ],
)
def test_an_encoding_that_is_not_known(tmp_path: Path, text: str, encoding: str) -> None:
    """Refused with what converts it, in place of pairs of accents and signs."""
    with pytest.raises(DataError, match="iconv -f CP1251 -t UTF-8"):
        read_table(written(tmp_path, (text * 20).encode(encoding), "a.tsv"))


@pytest.mark.parametrize(
    ("first", "is_header"),
    [
        ("en\tde", True),
        ("Source text\tTarget text", True),
        ("Englisch\tDeutsch", True),
        ("영어\t독일어", True),
        ("no\tnein", False),  # "no" is also the code of Norwegian
        ("Hi.\tHallo.", False),
        ("Yes, of course I will\tJa, natürlich mache ich das", False),
    ],
)
def test_a_header_is_no_pair(tmp_path: Path, first: str, is_header: bool) -> None:
    """And a pair is no header, however short it is."""
    table = read_table(written(tmp_path, f"{first}\n{lines()}"))
    assert bool(table.header) is is_header
    assert len(table.rows) == len(PAIRS) + (not is_header)


@pytest.mark.parametrize(("first", "is_header"), [("Nr.", True), ("번호", True), ("0", False)])
def test_a_name_above_numbers_is_a_header(tmp_path: Path, first: str, is_header: bool) -> None:
    """In whatever language the columns are named."""
    numbered = [f"{number}\t{row}" for number, row in enumerate((2 * lines()).splitlines(), 1)]
    text = "\n".join([f"{first}\tAlpha\tBeta", *numbered])
    table = read_table(written(tmp_path, text))
    assert table.header == ([first, "Alpha", "Beta"] if is_header else [])


def test_a_quote_without_an_end_swallows_nothing(tmp_path: Path) -> None:
    """Every line behind it is still a row."""
    content = f'en;de\n"never closed;nie\n{lines(";") * 10}'
    table = read_table(written(tmp_path, content, "pairs.csv"))
    assert sum(cells in ROWS for _, cells in table.rows) == 10 * len(PAIRS)
    counts = {each.kind: each.count for each in table.findings}
    assert counts == {"open-quote": 1, "header": 1}


def test_what_divides_most_lines_is_the_separator(tmp_path: Path) -> None:
    """Not what stands most often in one of them."""
    text = "".join(f"one, two {n};eins, zwei {n}\n" for n in range(9))
    table = read_table(written(tmp_path, f"{text}a;b;c;d\n", "pairs.csv"))
    assert next(cells for _, cells in table.rows) == ["one, two 0", "eins, zwei 0"]


def test_two_files_by_their_stem(tmp_path: Path) -> None:
    """Line N of one is the translation of line N of the other; else both counts are said."""
    for number, code in enumerate(("de", "en")):
        text = "".join(f"{pair[1 - number]}\n" for pair in PAIRS)
        (tmp_path / f"train.{code}").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "train", ["en", "de"])
    assert (table.header, [cells for _, cells in table.rows]) == (["en", "de"], ROWS)
    (tmp_path / "train.de").write_text("eins\n", encoding="utf-8")
    with pytest.raises(ManyheadsError, match=r"1 and 3 lines|3 and 1 lines"):
        read_table(tmp_path / "train", ["en", "de"])


def test_a_translation_memory(tmp_path: Path) -> None:
    """In the two languages that most units have."""
    units = "".join(
        f'<tu><tuv xml:lang="EN-US"><seg>{one}</seg></tuv><tuv xml:lang="DE"><seg>{other}</seg>'
        "</tuv></tu>"
        for one, other in PAIRS
    )
    text = f'<?xml version="1.0"?><tmx version="1.4"><header/><body>{units}</body></tmx>'
    table = read_table(written(tmp_path, text, "memory.tmx"))
    assert (table.header, [cells for _, cells in table.rows]) == (["en", "de"], ROWS)


def test_a_workbook(tmp_path: Path) -> None:
    """Shared and inline texts, a cell left out, and a header."""
    path = tmp_path / "pairs.xlsx"
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    shared = "".join(f"<si><t>{one}</t></si>" for one, _ in PAIRS)
    rows = '<row><c t="inlineStr"><is><t>en</t></is></c><c r="C1" t="inlineStr"><is><t>de</t></is>'
    rows += "</c></row>" + "".join(
        f'<row><c r="A{n + 2}" t="s"><v>{n}</v></c><c r="C{n + 2}" t="inlineStr"><is><t>{other}</t>'
        "</is></c></row>"
        for n, (_, other) in enumerate(PAIRS)
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(XLSX.main, f"<workbook {space}/>")
        archive.writestr("xl/sharedStrings.xml", f"<sst {space}>{shared}</sst>")
        archive.writestr(
            "xl/worksheets/sheet1.xml",
            f"<worksheet {space}><sheetData>{rows}</sheetData></worksheet>",
        )
    table = read_table(path)
    assert [cells for _, cells in table.rows] == [[one, "", other] for one, other in PAIRS]
    roles = find_roles(table, ())
    assert roles.target is not None
    assert (roles.source.number, roles.target.number) == (0, 2)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"", "is empty"),
        ("a.tsv", b"\n \n", "is empty"),
        ("a.csv", b"en,de\n", "has a header and no row .header."),
        ("a.bin", bytes(range(256)) * 40, "no text"),
        ("a.zip", b"PK\x03\x04" + bytes(50), "ZIP archive"),
        ("a.txt", b"%PDF-1.7 ...", "PDF"),
        ("a.tsv", b"x " * (1 << 20), "endless-line"),
        ("a.bz2", b"BZh91AY" + bytes(50), "bunzip2"),
        ("a.po", b'# of an app\nmsgid ""\nmsgstr ""\n', "po2csv"),
        ("a.yaml", b"- en: Yes.\n  de: Ja.\n", "YAML"),
        ("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\nYes.\n", "subtitles"),
        ("coco.json", b'{"images": [{"id": 1}], "annotations": [{"id": 1}]}', "COCO"),
        ("keys.json", b'{"menu.open": "Open the file", "menu.quit": "Quit"}', "one JSON object"),
        ("a.html", b"<!DOCTYPE html><html><p>a\tb", "HTML"),
        ("a.json", b'{"data":\n [1, 2]}', "one JSON object .data."),
        ("a.xlsx", b"PK\x03\x04" + bytes(50), "a.xlsx"),
        ("a.tmx", b"<tmx><body/></tmx>", "two languages"),
    ],
)
def test_refused_with_the_next_step(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    """Never an error of a library, and never a table of nonsense."""
    with pytest.raises(ManyheadsError, match=message):
        read_table(written(tmp_path, content, name))


def test_nothing_there_names_what_lies_beside(tmp_path: Path) -> None:
    """Of three languages, two must be named."""
    for code in ("en", "de", "fr"):
        (tmp_path / f"val.{code}").write_text("a\n")
    with pytest.raises(ManyheadsError, match=r"val\.de, .*val\.en, .*val\.fr"):
        read_table(tmp_path / "val")


# --- Columns ------------------------------------------------------------------------------------

MORE = [
    ("We go home now.", "Wir gehen jetzt nach Hause."),
    ("It is not on the table.", "Es ist nicht auf dem Tisch."),
]


def test_the_two_columns_with_sentences(tmp_path: Path) -> None:
    """Not the number, the path or the domain; the languages are seen."""
    rows = [*PAIRS, *MORE] * 8
    content = "".join(
        f"{n}\t{one}\ta/{n}.txt\t{other}\t{'web' if n % 2 else 'talk'}\n"
        for n, (one, other) in enumerate(rows)
    )
    roles = find_roles(read_table(written(tmp_path, content)), ())
    assert roles.target is not None
    assert (roles.source.number, roles.source.language) == (1, "en")
    assert (roles.target.number, roles.target.language) == (3, "de")


def test_columns_that_are_named(tmp_path: Path) -> None:
    """By name or number, in any order, with a language where it is not seen."""
    table = read_table(written(tmp_path, "en\tde\n" + lines()))
    roles = find_roles(table, ("2", "nds=en"))
    assert roles.target is not None
    assert (roles.source.number, roles.target.number) == (1, 0)
    assert roles.target.language == "nds"
    with pytest.raises(ManyheadsError, match=r"no column 'fr'.*en, de"):
        find_roles(table, ("en", "fr"))


def test_labels_are_few_and_often(tmp_path: Path) -> None:
    """A text and a class each."""
    rows = [one for one, _ in [*PAIRS, *MORE]]
    content = "text,label\n" + "".join(
        f'"{text} {n}",{"good" if n % 3 else "bad"}\n' for n in range(6) for text in rows
    )
    roles = find_roles(read_table(written(tmp_path, content, "reviews.csv")), ())
    assert roles.target is None
    assert roles.label is not None
    assert (roles.source.number, roles.label.number) == (0, 1)
