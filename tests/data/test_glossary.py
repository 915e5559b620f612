"""Glossaries: which terms are found, what they become, and what a file may not contain."""

from pathlib import Path

import pytest

from manyheads.data.documents.glossary import Entry, Glossary, with_terms
from manyheads.data.documents.placeholders import find
from manyheads.errors import DataError


def glossary(**terms: str) -> Glossary:
    return Glossary([Entry(term.replace("_", " "), target) for term, target in terms.items()])


def found(terms: Glossary, text: str) -> list[tuple[str, str]]:
    return [(text[item.begin : item.end], item.whole) for item in terms.find(text)[0]]


def test_words_and_cases() -> None:
    """Whole words; small letters stand for capitals too, capitals only for themselves."""
    terms = glossary(dog="Hund", US="USA", red_shirt="Rothemd")
    assert found(terms, "Dog, dogs, DOG, hotdog, dog") == [
        ("Dog", "Hund"),
        ("DOG", "Hund"),
        ("dog", "Hund"),
    ]
    assert found(terms, "US us Us") == [("US", "USA")]
    assert found(terms, "a Red\xa0 shirt") == [("Red\xa0 shirt", "Rothemd")]
    assert found(glossary(cat="minou"), "Cat and cat") == [("Cat", "Minou"), ("cat", "minou")]


def test_korean_attaches_particles() -> None:
    """A term is found with a particle behind it."""
    assert found(glossary(개="dog"), "개가 짖는다") == [("개", "dog")]


def test_overlaps_are_reported() -> None:
    """The first and longest counts; what it hides is named."""
    terms = glossary(New_York="NY", New="Neu", York_Times="YT", York="Eboracum")
    items, overlaps = terms.find("The New York Times")
    assert [item.text for item in items] == ["NY"]
    assert overlaps == {("New York", "New"), ("New York", "York Times")}
    assert terms.find("New times in York")[1] == set()


def test_terms_among_other_items() -> None:
    """A term may contain a number, but is not looked for in a tag or a URL."""
    text = "Windows 11 at http://windows.example and <b title='windows'>"
    terms = Glossary([Entry("windows 11", "Fenster 11"), Entry("windows", "Fenster")])
    items = with_terms(find(text), terms.find(text)[0])
    assert [(item.kind, item.text) for item in items] == [
        ("term", "Fenster 11"),
        ("url", "http://windows.example"),
        ("tag", "<b title='windows'>"),
    ]


def test_items_that_touch_do_not_overlap() -> None:
    """A term between tags is one, and so is a term that begins where another ends."""
    text = "<b>dog</b>"
    items = with_terms(find(text), glossary(dog="Hund").find(text)[0])
    assert [item.text for item in items] == ["<b>", "Hund", "</b>"]
    items, overlaps = Glossary([Entry("(a)", "(x)"), Entry("(b)", "(y)")]).find("(a)(b)")
    assert [item.text for item in items] == ["(x)", "(y)"]
    assert overlaps == set()


def test_many_entries() -> None:
    """The longest term that fits, among many that begin alike."""
    terms = Glossary([Entry(f"word{n} of a kind", str(n)) for n in range(20_000)])
    assert found(terms, "Be word999 of a kind.") == [("word999 of a kind", "999")]
    assert found(terms, "Be word99999 of a kind.") == []


def test_no_entries() -> None:
    """Nothing to find."""
    assert Glossary([]).find("anything") == ([], set())


def test_read(tmp_path: Path) -> None:
    """Term, tab, translation; empty lines and Windows line ends do not matter."""
    path = tmp_path / "terms.tsv"
    path.write_bytes("\ufeffdog\tHund\r\n\r\n red  shirt \t Rothemd\n".encode())
    assert list(Glossary.read(path).entries.values()) == [
        Entry("dog", "Hund"),
        Entry("red shirt", "Rothemd"),
    ]


def test_semicolons(tmp_path: Path) -> None:
    """What a spreadsheet writes in many countries; with a tab in the line, they are text."""
    path = tmp_path / "terms.csv"
    path.write_text("dog;Hund\na; b\tc; d\n", encoding="utf-8")
    assert list(Glossary.read(path).entries.values()) == [
        Entry("dog", "Hund"),
        Entry("a; b", "c; d"),
    ]


@pytest.mark.parametrize("line", ["dog Hund", "a;b;c", "dog\t", "\tHund", "a\tb\tc"])
def test_bad_lines_are_named(tmp_path: Path, line: str) -> None:
    """With their number."""
    path = tmp_path / "terms.tsv"
    path.write_text(f"cat\tKatze\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"terms\.tsv, line 2: .* is not a term, a tab"):
        Glossary.read(path)


def test_contradictions() -> None:
    """One term cannot have two translations; twice the same is no contradiction."""
    with pytest.raises(DataError, match="'dog' as 'Hund' and as 'Köter'"):
        Glossary([Entry("dog", "Hund"), Entry("dog", "Köter")])
    assert len(Glossary([Entry("dog", "Hund"), Entry("dog", "Hund")]).entries) == 1
    with pytest.raises(DataError, match="write both"):
        Glossary([Entry("dog", " ")])
