"""Documents of every format: what is not translated stays byte for byte."""

import gc
import re
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import manyheads
from manyheads.data.documents.document_formats import TEXT_FORMATS, open_document
from manyheads.data.documents.office import Unpacked, table_headers
from manyheads.documents.document_translation import (
    read_content,
    translate_document,
    translate_file,
    translate_texts,
)
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.generation.text_decoding import Translation
from manyheads.tasks.translate.predictor import Translator


class Stub(Translator):
    """Translates with a function."""

    def __init__(self, like: Translator, function: Callable[[str], str]) -> None:
        vars(self).update(vars(like))
        self.function = function

    def translate(self, texts: Sequence[str], **_: Any) -> list[list[Translation]]:
        """Without a model."""
        return [[Translation(self.function(text), 0.0, 0.0, [], True, [], [])] for text in texts]


@pytest.fixture(scope="module")
def like() -> Translator:
    found = manyheads.load("date-en-ko")
    assert isinstance(found, Translator)
    return found


@pytest.fixture(scope="module")
def same(like: Translator) -> Stub:
    """Every translation is its source."""
    return Stub(like, str)


@pytest.fixture(scope="module")
def german(like: Translator) -> Stub:
    """Knows one word."""
    return Stub(like, lambda text: text.replace("dog", "Hund"))


# --- Nothing but words changes ------------------------------------------------------------------

MARKDOWN = r"""A dog|**|*|_|`|``|~~|[|](a.b)|![|]|[a]|[a]: b.c|(|)|\|\*|&amp;|&eacute;|$|$$|> |- |
1. |# |    |===|```|--|:--|<b>|</b>|<br>|<!--|-->|<div>|</div>|[^1]|[^1]: |:::|[!NOTE]|.|. |é|개|中|
+++|x = 3|title: a|🎉|{x1}|<g1>"""
HTML = """A dog|<p>|</p>|<b>|</b>|<br/>|<br|<code>|</code>|<pre>|</pre>|<script>|</script>|<!--|-->|
<![|]>|<!DOCTYPE html>|<?php|?>|&amp;|&|&lt;|&#65;|&shy;|&nbsp;|<|>|< |</|</>|"|'|=|<img alt='|
<style>|<img alt="A dog" src=x>|<p translate=no>|<textarea title='a &lt; b'>|é|.|. |{x1}"""
ENDS = ["\n", "\n\n", "\r\n", "\r", "  \n", "\t", "\0", "\ufeff", "|"]


def texts(signs: str) -> st.SearchStrategy[str]:
    """Texts of some signs, and any others."""
    found = [*signs.replace("\n", "").split("|"), *ENDS]
    parts = st.lists(st.sampled_from(found), max_size=25).map("".join)
    return st.one_of(parts, parts, st.text(max_size=60))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(TEXT_FORMATS)), st.one_of(texts(MARKDOWN), texts(HTML)))
@example("markdown", "---\ntitle: a dog\n---\nA dog\r\nruns.\r\n")
@example("text", "A dog in a blue shirt is standing on\na ladder,  cleaning a window.\n")
@example("text", "0\x08A\x08A")
def test_what_nobody_translates_comes_back(same: Stub, format: str, text: str) -> None:
    """Byte for byte, whatever the text."""
    assert translate_document(same, text, format=format).content == text.encode()


class _Tags(HTMLParser):
    """The structure of a page: its tags with their attributes, and what is no text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[object] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, sorted(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(tag)

    def handle_comment(self, data: str) -> None:
        self.found.append(data)


def structure(format: str, text: str) -> list[object]:
    """What a parser sees besides words."""
    if format == "html":
        return _Tags(text).found
    parser = MarkdownIt("commonmark").enable("table")
    found: list[object] = []
    for token in parser.parse(text):
        inner = token.children or []
        found.append((token.type, token.level, token.info))
        found += [(each.type, each.attrs.get("href")) for each in inner if "text" not in each.type]
    return [each for each in found if "softbreak" not in str(each)]


README = """\
---
title: A dog
---
<div align="center"><h1>Two dogs</h1></div>

# A dog \\#1 #

A dog in a blue shirt is **standing with a dog on** a ladder,
cleaning *a dog* with `a dog`. See [the dog](http://a.example/dog "A dog").
3\\. A dog, [dog], ![a dog](dog.png) &amp; <kbd>dog</kbd> at http://a.example/d.

> Where $dog = 3$ and the
> dog runs.

    a dog in code

$$
dog = 4
$$

1. A dog
   and a dog\\\n   and a dog
2. [dog]

| A dog \\| dog | `dog` |
|---|---|
| dog | **a dog** dog |

[dog]: http://a.example/dog "A dog"
"""
PAGE = """\
<!DOCTYPE html><html><head><title>A dog</title><style>dog { color: red }</style>
<script>if (dog < 3) dog("<p>dog</p>");</script></head><!-- dog --><body class="dog">
<h1 id=dog>A <em>dog</em></h1><p>A dog in a <b>blue
  shirt</b> has a <code>dog</code> &amp; a dog.<br>A dog.<p translate="no">dog</p>
<pre>dog</pre><img src="dog.png" alt='A "dog" &amp; a dog'>
<textarea placeholder=dog title="A dog">dog
</textarea><ul><li>A dog<li>Two <span class=notranslate>dog</span></ul></body></html>
"""


@pytest.mark.parametrize(("format", "text"), [("markdown", README), ("html", PAGE)])
@pytest.mark.parametrize("loses", ["nothing", "markup", "order"])
def test_the_structure_stays(like: Translator, format: str, text: str, loses: str) -> None:
    """Whether the model keeps markup, loses it or mixes it up."""
    functions: dict[str, Callable[[str], str]] = {
        "nothing": lambda text: text.replace("dog", "Hund"),
        "markup": lambda text: re.sub(r"[<{][^<>{}]*[>}]", "", text).replace("dog", "Hund"),
        "order": lambda text: " ".join(reversed(text.replace("dog", "Hund").split())),
    }
    found = translate_document(Stub(like, functions[loses]), text, format=format).text
    assert structure(format, found) == structure(format, text)
    assert found.count("Hund") > 8
    for piece in (
        "dog = 3",
        "`dog`",
        "a dog in code",
        "dog {",
        '"<p>dog</p>"',
        "<pre>dog",
        'no">dog',
    ):
        assert found.count(piece) == text.count(piece)


def test_markdown(german: Stub) -> None:
    """Hard-wrapped lines are one sentence; markup stays at its words, code and math as they are."""
    found = translate_document(german, README, format="markdown").text
    assert "**standing with a Hund on** a ladder, cleaning *a Hund* with `a dog`." in found
    assert 'See [the Hund](http://a.example/dog "A dog").' in found
    assert "3\\. A Hund, [Hund][dog], ![a Hund](dog.png) & <kbd>dog</kbd> at" in found
    assert "> Where $dog = 3$ and the Hund runs.\n" in found
    assert "1. A Hund and a Hund\\\n   and a Hund\n2. [Hund][dog]\n" in found
    assert "| A Hund \\| Hund | `dog` |\n|---|---|\n| Hund | **a Hund** Hund |" in found
    assert found.endswith('[dog]: http://a.example/dog "A dog"\n')


def test_html(german: Stub) -> None:
    """Attributes that people read are translated; characters are written as the page needs them."""
    found = translate_document(german, PAGE, format="html").text
    assert (
        "<p>A Hund in a <b>blue shirt</b> has a <code>dog</code> &amp; a Hund.<br>A Hund." in found
    )
    assert "alt='A &quot;Hund&quot; &amp; a Hund'" in found
    assert 'placeholder=dog title="A Hund">dog\n</textarea>' in found
    hyphen = translate_document(german, "<p>A hot&shy;dog.", format="html").text
    assert hyphen == "<p>A hotHund."  # where a word may be divided is no part of it
    swiss = Stub(german, lambda text: text.replace("dog", "Hündli"))
    ascii_page = translate_document(swiss, "<p>A dog", format="html").text
    assert ascii_page == "<p>A H&#252;ndli"  # whatever a browser takes the page for
    (part,) = translate_texts(swiss, ["<p title='A dog'>A dog"], format="html")
    assert part.text == "<p title='A Hündli'>A Hündli"  # a program's text has no encoding
    for page in ("<meta charset=utf-8><p>A dog", "<p>A dog – é"):
        assert "Hündli" in translate_document(swiss, page, format="html").text


def test_a_new_list_is_not_begun(like: Translator) -> None:
    """In German an ordinal number ends with a full stop; at the beginning it would be a list."""
    october = Stub(like, lambda _: "3. Oktober")
    found = translate_document(october, "October 3\n", format="markdown").text
    assert found == "3\\. Oktober\n"


def test_wrapped_lines_of_a_plain_text(german: Stub) -> None:
    """One sentence, if the lines are as full as they can be; lines below each other stay lines."""
    wrapped = "A dog in a blue shirt is standing on a ladder\nand a dog is cleaning the window.\n"
    found = translate_document(german, f"  {wrapped}".replace("\nand", "\n  and"))
    assert found.text == f"  {wrapped}".replace("\n", " ", 1).replace("dog", "Hund")
    assert [line.number for line in found.lines] == [1]
    for text in (f"{wrapped}A dog.\nSo.\n", wrapped.lower(), wrapped.replace("\n", ".\n")):
        lines = text.replace("dog", "Hund").replace(".", "").split("\n")
        found = translate_document(german, text)
        assert found.text.replace(".", "").split("\n") == lines


SIGNS = ["*", "** ", "**a ", "[a](", "<b>a", "- a\n"]


@pytest.mark.parametrize("format", sorted(TEXT_FORMATS))
def test_long_runs_of_signs(like: Translator, format: str) -> None:
    """Four times as many take about four times as long, not sixteen times."""
    stub = Stub(like, lambda text: re.sub(r"[^\w\s]", "", text))

    def seconds(sign: str, count: int) -> float:
        began = time.process_time()
        translate_document(stub, sign * count, format=format)
        return time.process_time() - began

    def linear(sign: str, count: int) -> bool:
        """By the less of two short runs; the long one may be disturbed once."""
        bar = 0.5 + 10 * min(seconds(sign, count // 4) for _ in range(2))
        return any(seconds(sign, count) < bar for _ in range(2))

    # Without the collector, whose work grows with what others left.
    gc.disable()
    try:
        for sign in SIGNS:
            assert linear(sign, 3000), sign
        assert linear("*", 8000)
    finally:
        gc.enable()
        gc.collect()


# --- DOCX and XLSX ------------------------------------------------------------------------------

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LETTER = """\
<w:p><w:r w:rsidR="1"><w:t>Two do</w:t></w:r><w:proofErr w:type="spellEnd"/><w:r>
<w:t>gs</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">A </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>dog</w:t></w:r>
<w:r><w:t xml:space="preserve"> &amp; a </w:t></w:r><w:hyperlink w:id="1"><w:r>
<w:t>dog</w:t></w:r></w:hyperlink><w:r><w:t>.</w:t><w:tab/><w:t>A dog</w:t>
<w:instrText>dog</w:instrText><w:t/></w:r></w:p><w:p/>"""
STRINGS = """\
<si><t>A dog</t></si><si><t>Name of dog</t></si><si><r><t xml:space="preserve">Two </t></r><r>
<rPr><b/></rPr><t>dogs
A dog</t></r><rPh><t>dog</t></rPh></si>"""


def package(**parts: str) -> bytes:
    """An archive with these parts, one of them packed and one not."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("media/dog.png"), b"\x89PNG dog" * 99)
        for name, text in parts.items():
            archive.writestr(name.replace("__", "/") + ".xml", text)
    return content.getvalue()


def docx(body: str = LETTER, *, before: str = "") -> bytes:
    return package(word__document=f"{before}<w:document {_W}><w:body>{body}</w:body></w:document>")


def xlsx() -> bytes:
    return package(
        xl__workbook=f"<workbook {_S}/>",
        xl__sharedStrings=f"<sst {_S}>{STRINGS}</sst>",
        xl__worksheets__sheet1=f'<worksheet {_S}><f>"A dog"</f><is><t>A dog</t></is></worksheet>',
        xl__tables__table1=f'<table {_S}><tableColumn id="1" name="Name of dog"/></table>',
    )


def parts(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


@pytest.mark.parametrize(("content", "name"), [(docx(), "a.docx"), (xlsx(), "a.xlsx")])
def test_an_archive_without_a_translation(same: Stub, content: bytes, name: str) -> None:
    """Is the same archive."""
    assert translate_file(same, content, name).content == content


def test_docx(german: Stub) -> None:
    """Each word keeps the format of its run; runs of the same format are one."""
    found = translate_file(german, docx(), "letter.docx")
    before, after = parts(docx()), parts(found.content)
    document = after.pop("word/document.xml").decode()
    assert before.pop("word/document.xml")
    assert after == before
    assert '<w:r w:rsidR="1"><w:t xml:space="preserve">Two Hunds</w:t></w:r></w:p>' in document
    assert '<w:rPr><w:b/></w:rPr><w:t xml:space="preserve">Hund</w:t></w:r>' in document
    assert "&amp; a </w:t></w:r><w:hyperlink" in document
    assert "<w:instrText>dog</w:instrText>" in document
    assert [line.translation for line in found.lines] == ["Two Hunds", "A Hund & a Hund.", "A Hund"]
    assert (found.unit, found.text) == ("paragraph", "Two Hunds\nA Hund & a Hund.\nA Hund\n")


def test_xlsx(german: Stub) -> None:
    """Texts of cells, but formulas and the headers of tables, which other parts name."""
    found = parts(translate_file(german, xlsx(), "table.xlsx").content)
    strings = found["xl/sharedStrings.xml"].decode()
    assert re.findall(r"<t[^>]*>([^<]*)", strings) == [
        *("A Hund", "Name of dog", "Two ", "Hunds\nA Hund", "dog")
    ]
    assert found["xl/worksheets/sheet1.xml"].count(b"Hund") == 1
    assert b'<f>"A dog"</f>' in found["xl/worksheets/sheet1.xml"]


def test_columns_of_tables() -> None:
    """As XML has them: with references, in either quotation marks, under any prefix."""
    table = (
        '<t:table xmlns:t="urn:t"><t:tableColumn id="1" name="Tom &amp; \'Jo\'"/>'
        "<t:tableColumn name='two' id='2'/><t:other name='three'/></t:table>"
    )
    content = package(xl__workbook="<w/>", xl__tables__table1=table)
    assert table_headers(content, "a.xlsx") == {"Tom & 'Jo'", "two"}


def test_columns_that_never_end() -> None:
    """They are no XML; looking for the end of each took the square of their number."""
    table = '<table name="x">' + "<tableColumn " * 600
    content = package(xl__workbook="<w/>", xl__tables__table1=table)
    with pytest.raises(DataError, match="damaged"):
        table_headers(content, "a.xlsx")


def test_tables_count_as_parts_with_texts() -> None:
    """Their headers are kept in memory: two of 1,000 bytes where 1,500 are allowed."""
    tables = {f"xl__tables__table{n}": "<a>" + "b" * 993 + "</a>" for n in (1, 2)}
    content = package(xl__workbook="<w/>", **tables)
    assert open_document(content, "a.xlsx", "xlsx", Unpacked(part=1000, texts=2000)).texts == {}
    for most in (Unpacked(part=1000, texts=1500), Unpacked(part=999)):
        with pytest.raises(DataError, match="unpacks to more than"):
            open_document(content, "a.xlsx", "xlsx", most)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"A dog", "cannot be unpacked"),
        (docx()[:-30], "cannot be unpacked"),
        (xlsx(), "document of another kind"),
        (docx("<w:p>"), "XML of the document is damaged"),
        (docx(before='<!DOCTYPE d [<!ENTITY a "a">]>'), "document type definition"),
        (docx("<w:p>" * 999 + "</w:p>" * 999), "elements in each other"),
        (docx(f"<w:p><w:r><w:t>{' ' * (65 << 20)}</w:t></w:r></w:p>"), "more than 64 MB"),
    ],
)
def test_archives_that_cannot_be_read(same: Stub, content: bytes, message: str) -> None:
    """Say why, in bounded time and memory."""
    with pytest.raises(DataError, match=message):
        translate_file(same, content, "a.docx")


@settings(max_examples=100, deadline=None)
@given(place=st.integers(0, len(docx()) - 1), value=st.integers(0, 255))
def test_damaged_archives(same: Stub, place: int, value: int) -> None:
    """An answer or an error that says so."""
    content = bytearray(docx())
    content[place] = value
    with suppress(DataError):
        assert translate_file(same, bytes(content), "a.docx").content == content


# --- Encodings, endings, files ------------------------------------------------------------------


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_other_encodings(german: Stub, size: int, order: str, mark: str) -> None:
    """UTF-16 and UTF-32 are recognised, with their mark or without, and written back."""
    encoding = f"utf-{size}-{order}"
    content = f"{mark}A dog.\r\nTwo 개.\r\n".encode(encoding)
    found = translate_file(german, content, "a.txt").content.decode(encoding)
    assert found == f"{mark}A Hund.\r\nTwo 개.\r\n"
    with pytest.raises(DataError, match=f"a.txt, line 3: .* not valid UTF-{size}"):
        translate_file(german, content + "\ud800".encode(encoding, "surrogatepass"), "a.txt")


def test_a_file_that_is_not_unicode(same: Stub, tmp_path: Path) -> None:
    """Is named with its line."""
    with pytest.raises(DataError, match=r"a\.txt, line 2: byte 0xff is not valid UTF-8"):
        translate_file(same, b"one\n\xff", "a.txt")
    with pytest.raises(NotFoundError, match="missing"):
        read_content(tmp_path / "missing.txt")


def test_formats_by_ending(german: Stub) -> None:
    """Or as they are named; what cannot be read says what to save it as."""
    code = "    A dog"
    assert translate_file(german, code.encode(), "A.MD").text == code
    assert translate_file(german, code.encode(), "a.md", format="text").text == "    A Hund"
    with pytest.raises(UsageError, match=r"Save it as \.docx"):
        translate_file(german, b"", "a.pdf")
    with pytest.raises(UsageError, match="did you mean 'html'"):
        translate_file(german, b"", "a.pdf", format="htm")
    with pytest.raises(UsageError, match="translate_file"):
        translate_document(german, "", format="docx")
