"""manyheads translate --file and --glossary: structure kept, answers exact to the byte."""

import json
from pathlib import Path

import pytest

from manyheads import load
from manyheads.tasks.translate.predictor import Translator
from tests.cli.conftest import Call

TEXT = "- Nine: {x}.\r\n\r\n\tthree four\thttps://a.example/b?c=3\n\n  two"


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "document.txt"
    path.write_bytes(TEXT.encode())
    return path


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text("nine\tNEUN\nfour\tVIER\n", encoding="utf-8")
    return path


def test_a_file(call: Call, translator: Path, document: Path) -> None:
    """To stdout, with the line ends that it had."""
    found = call("translate", "--model", translator, "--file", document)
    assert found.code == 0
    lines = found.out.split("\n")
    assert (lines[0][:2], lines[0][-1], lines[1], lines[3]) == ("- ", "\r", "\r", "")
    assert "{x}" in lines[0]
    predictor = load(translator)
    assert isinstance(predictor, Translator)
    three, two = predictor(["three four", "two"])
    assert lines[2:] == [f"\t{three}\thttps://a.example/b?c=3", "", f"  {two}"]


def test_stdin_and_out(call: Call, translator: Path, document: Path, tmp_path: Path) -> None:
    """The same from stdin into a file."""
    expected = call("translate", "--model", translator, "--file", document).out
    words = ("translate", "--model", translator, "--file", "-", "--out", tmp_path / "out.md")
    assert call(*words, stdin=TEXT.encode()).out == ""
    assert (tmp_path / "out.md").read_bytes() == expected.encode()


def test_out_is_made_room_for_before_the_work(
    call: Call, translator: Path, document: Path, tmp_path: Path
) -> None:
    """A folder that is not there is made; a folder is no file to write."""
    words = ("translate", "--model", translator, "--file", document, "--out")
    assert call(*words, tmp_path / "new" / "out.md").code == 0
    assert (tmp_path / "new" / "out.md").exists()
    refused = call(*words, tmp_path / "new")
    assert (refused.code, refused.out) == (2, "")
    assert "is a folder: name a file" in refused.err


def test_json(call: Call, translator: Path, document: Path) -> None:
    """A line, its sentences, and how each came about."""
    found = call("translate", "--model", translator, "--file", document, "--json")
    lines = [json.loads(line) for line in found.out.splitlines()]
    assert [line["line"] for line in lines] == [1, 2, 3, 4, 5]
    assert lines[4]["sentences"][0]["how"] == "whole"
    assert lines[4]["source"] == "  two"


def test_formats(call: Call, translator: Path, tmp_path: Path) -> None:
    """By the ending, or as it is said; a document that cannot be read says what to save it as."""
    page = b"<style>nine</style><p title='two'>nine"
    (tmp_path / "page.html").write_bytes(page)
    words = ("translate", "--model", translator, "--file")
    found = call(*words, tmp_path / "page.html")
    assert found.out.startswith("<style>nine</style><p title='")
    assert found.out == call(*words, "-", "--format", "html", stdin=page).out != page.decode()
    lines = call(*words, tmp_path / "page.html", "--json").out.splitlines()
    assert [json.loads(line)["sentences"][0]["source"] for line in lines] == ["two", "nine"]
    refused = call(*words, tmp_path / "page.html", "--format", "htm")
    assert (refused.code, refused.out) == (2, "")
    assert "did you mean 'html'?" in refused.err
    (tmp_path / "letter.doc").write_bytes(page)
    refused = call(*words, tmp_path / "letter.doc")
    assert refused.code == 2
    assert "Save it as .docx" in refused.err


def test_archives_are_not_shown(
    call: Call, translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal is no place for them; it says so before the work."""
    (tmp_path / "a.docx").write_bytes(b"")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    found = call("translate", "--model", translator, "--file", "a.docx")
    assert found.code == 2
    assert "add --out" in found.err


def test_glossary(call: Call, translator: Path, document: Path, terms: Path) -> None:
    """In documents and in texts."""
    for words in (["--file", str(document)], ["nine {x}", "three four"]):
        found = call("translate", "--model", translator, "--glossary", terms, *words)
        assert found.code == 0
        assert "NEUN" in found.out
        assert "VIER" in found.out
    assert len(found.out.splitlines()) == 2
    found = call(
        "translate", "--model", translator, "--glossary", terms, "--json", stdin=b"nine\n\nfour\n"
    )
    lines = [json.loads(line) for line in found.out.splitlines()]
    assert [line["line"] for line in lines] == [1, 2, 3]


def test_glossary_answers_one_line_a_text(call: Call, translator: Path, terms: Path) -> None:
    """Whatever line ends a text holds, line N answers text N, as without a glossary."""
    texts = ["nine\ntwo", "four\r\nnine", "two"]
    found = call("translate", "--model", translator, "--glossary", terms, *texts)
    assert found.out.count("\n") == 3
    assert "NEUN" in found.out.split("\n")[0]


@pytest.mark.parametrize("more", [[], ["--workers", "2"]])
def test_notes_of_a_file(call: Call, tmp_path: Path, more: list[str]) -> None:
    """On stderr a summary, in JSON beside each sentence; as many processes as there may be."""
    words = ("translate", "--model", "date-en-ko", "--file", "days.txt", *more)
    (tmp_path / "days.txt").write_text("3 May 2024\n" + "Hello world\n" * 7, encoding="utf-8")
    told = call(*words).err.splitlines()
    kind = "it is unlike what date-en-ko was trained on (dates:train)"
    assert told[0] == f"manyheads: 7 of 8 sentences: {kind}. The first 5:"
    unsure = told.index(
        "manyheads: 7 of 8 sentences: date-en-ko is unsure of this translation. The first 5:"
    )
    for first in (1, unsure + 1):
        assert [line.split("'")[0] for line in told[first : first + 5]] == [
            f"manyheads: line {number}: " for number in range(2, 7)
        ]
    assert len(told) == 12
    lines = [json.loads(line) for line in call(*words, "--json").out.splitlines()]
    notes = [each["notes"] for line in lines for each in line["sentences"]]
    assert notes[0] == []
    assert all(own[0].startswith(kind) for own in notes[1:])


def test_notes_count_all_of_stdin(
    call: Call, translator: Path, terms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from the beginning again where texts are translated in several steps."""
    monkeypatch.setattr("manyheads.predict.stream.AT_A_TIME", 2)
    monkeypatch.setattr(
        "manyheads.documents.fallbacks.placeholders.preserves", lambda *_, **__: False
    )
    words = ("translate", "--model", translator, "--glossary", terms)
    found = call(*words, stdin=b"two\n" * 5)
    lines = [line for line in found.err.splitlines() if "line " in line]
    assert [f"line {n}:" in line for n, line in enumerate(lines, 1)] == [True] * 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--file", "document.txt", "nine"], "not both"),
        (["--out", "x", "nine"], "add --file"),
        (["--format", "html", "nine"], "add --file"),
        (["--file", "document.txt", "--out", "document.txt"], "choose another name"),
        (["--file", "document.txt", "--n-best", "2"], "leave out --n-best"),
        (
            ["--file", "document.txt", "--without", "encoder layer 1 state"],
            "--without is for texts",
        ),
        (["--glossary", "terms.tsv", "--prefix", "Ein", "nine"], "leave out"),
        (["--file", "missing.md"], "no file missing.md"),
        (["--glossary", "missing.tsv", "nine"], "no file missing.tsv"),
    ],
)
def test_wrong_calls(
    call: Call, translator: Path, document: Path, terms: Path, words: list[str], message: str
) -> None:
    """Exit code 2, and what to do instead."""
    found = call("translate", "--model", translator, *words)
    assert (found.code, found.out) == (2, "")
    assert message in found.err


def test_a_document_that_is_not_text(call: Call, translator: Path, tmp_path: Path) -> None:
    """Named with its line; the glossary as well."""
    (tmp_path / "bad.txt").write_bytes(b"one\n\xfe\n")
    found = call("translate", "--model", translator, "--file", "bad.txt")
    assert (found.code, found.out) == (1, "")
    assert "bad.txt, line 2" in found.err
    (tmp_path / "bad.tsv").write_text("one eins\n", encoding="utf-8")
    found = call("translate", "--model", translator, "--glossary", "bad.tsv", "nine")
    assert found.code == 1
    assert "bad.tsv, line 1" in found.err


def test_long_lines_are_remarked_on(call: Call, translator: Path) -> None:
    """Translated as ever, with a warning that tells of --file."""
    long = "nine " * 300
    found = call("translate", "--model", translator, "--beam", "1", "three", long)
    assert found.code == 0
    assert len(found.out.splitlines()) == 2
    assert "text 2: it has" in found.err
    assert "--file" in found.err
    assert "text 1" not in found.err
