"""Documents: the same structure and every placeholder, whatever the model does."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import manyheads
from manyheads.asks.translate_request import TranslateRequest
from manyheads.cancellation import WorkCancelledError, cancellable
from manyheads.data.documents.glossary import Entry, Glossary
from manyheads.data.documents.placeholders import find, preserves
from manyheads.data.documents.segments import split_document
from manyheads.documents.document_translation import (
    translate_document,
    translate_lines,
    translate_texts,
)
from manyheads.documents.fallbacks import FallbackTranslator, Sentence
from manyheads.generation.text_decoding import Translation
from manyheads.generation.token_details import OutputToken
from manyheads.tasks.translate.predictor import Translator
from tests.pages import assert_same_structure, page
from tests.small import randomise


@pytest.fixture(scope="module")
def translator(translator: Path) -> Translator:
    """Has learned numbers in words, and has never seen a tag."""
    found = manyheads.load(translator)
    assert isinstance(found, Translator)
    return found


@pytest.fixture(scope="module")
def untrained(translator: Translator) -> Translator:
    """The same with random weights."""
    found = manyheads.load(translator.folder.path)
    assert isinstance(found, Translator)
    randomise(found.model, seed=3)
    found.decode = replace(found.decode, beams=1, max_length=12)
    return found


class Hostile(Translator):
    """Answers with what it is given, in turn."""

    def __init__(self, like: Translator, outputs: Sequence[str]) -> None:
        vars(self).update(vars(like))
        self.outputs = outputs

    def translate(self, texts: Sequence[str], **_: Any) -> list[list[Translation]]:
        """Whatever the texts are."""
        chosen = (self.outputs[n % len(self.outputs)] for n in range(len(texts)))
        return [[Translation(output, 0.0, 0.0, [], True, [], [])] for output in chosen]


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("two dogs", "Zwei Hunde.", "Zwei Hunde"),
        ("two dogs.", "Zwei Hunde.", "Zwei Hunde."),
        ("two dogs", "Zwei Hunde", "Zwei Hunde"),
        ("two dogs", "Zwei Hunde ...", "Zwei Hunde ..."),
        ("two dogs!", "Zwei Hunde.", "Zwei Hunde."),
        ("room 3", "3 号室。", "3 号室"),
    ],
)
def test_a_missing_full_stop_stays_missing(
    translator: Translator, source: str, output: str, expected: str
) -> None:
    """Alone as in a document, whatever asks."""
    own = Hostile(translator, [output])
    (answer,) = own.answer(TranslateRequest(texts=(source,)))
    assert own.answers([source]) == [expected]
    assert answer.translation == answer.n_best[0].text == expected
    assert translate_document(own, source).text == expected
    assert translate_lines(own, [source]).lines[0].translation == expected


def test_tokens_of_a_full_stop_that_is_removed(translator: Translator) -> None:
    """They end with the text; what is demanded stays."""
    text = "sechs sieben."

    class Detailed(Translator):
        def __init__(self) -> None:
            vars(self).update(vars(translator))

        def translate(self, texts: Sequence[str], **_: Any) -> list[list[Translation]]:
            details = [
                OutputToken("sechs", 0.5, 0, 5),
                OutputToken(" sieben.", 0.5, 6, 13),
                OutputToken(".", 0.5, 12, 13),
            ]
            return [[Translation(text, 0.0, 0.0, [], True, [], details)] for _ in texts]

    own = Detailed()
    (answer,) = own.answer(TranslateRequest(texts=("six seven",), probabilities=True))
    assert answer.translation == "sechs sieben"
    places = [(each.begin, each.end) for each in answer.n_best[0].tokens or ()]
    assert places == [(0, 5), (6, 12)]
    (begun,) = own.answer(TranslateRequest(texts=("six seven",), prefix=text))
    assert begun.translation == text


LONG = [
    "\n\n".join(f"Line {n} is one of many." for n in range(60)),
    "word " * 4000,  # one sentence that is divided again and again
    "# Title\n\n" + "- **one** of many\n" * 60,
]


@pytest.mark.parametrize("text", LONG, ids=["lines", "one line", "markup"])
@pytest.mark.parametrize("format", ["text", "markdown"])
def test_division_stops_between_its_steps(translator: Translator, text: str, format: str) -> None:
    """Before anything is translated, and nothing after the step that was the last."""
    asked: list[int] = []

    class Asked(Translator):
        def __init__(self) -> None:
            vars(self).update(vars(translator))

        def translate(self, texts: Sequence[str], **_: Any) -> list[list[Translation]]:
            asked.append(len(texts))
            raise WorkCancelledError

    def steps(last: int | None) -> int:
        count = 0

        def is_last() -> bool:
            nonlocal count
            count += 1
            return count == last

        with cancellable(is_last), pytest.raises(WorkCancelledError):
            translate_document(Asked(), text, format=format)
        return count

    whole = steps(None)
    assert asked
    assert whole > 20
    asked.clear()
    assert [steps(last) for last in (1, whole // 2, whole)] == [1, whole // 2, whole]
    assert not asked


# --- The promise --------------------------------------------------------------------------------


def check(source: str, translated: str) -> None:
    """Nothing but words may differ."""
    assert_same_structure(source, translated)
    for before, after in zip(source.split("\n"), translated.split("\n"), strict=True):
        assert preserves(before, find(before), after, source="en", target="de"), (before, after)


@pytest.mark.parametrize("end", [pytest.param("\n", marks=pytest.mark.full), "\r\n"])
def test_200_lines_through_random_weights(untrained: Translator, end: str) -> None:
    """The same structure and every placeholder, and the rest is not what it was."""
    text = page(200, end=end, last=end == "\n")
    found = translate_document(untrained, text)
    check(text, found.text)
    assert len(found.lines) == 200
    assert sum(line.translation != line.source for line in found.lines) > 100
    assert {s.how for line in found.lines for s in line.sentences} >= {"whole", "pieces"}


def test_200_lines_through_a_shipped_model() -> None:
    """The date translator is the smallest that ships, and has never seen such sentences."""
    translator = manyheads.load("date-en-ko")
    assert isinstance(translator, Translator)
    text = page(200).replace("one\t", "Friday, November 20, 2026\t")
    found = translate_document(
        translator, text, options=replace(translator.decode, beams=1, max_length=24)
    )
    check(text, found.text)
    assert found.text.count("2026년 11월 20일 금요일\t") == 20


SNIPPETS = ["one", "two three", "{a}", "%s", "<b>", "</b>", "<br/>", "https://a.example/b", "3.5"]
SNIPPETS += [
    "`x y`",
    "🎉",
    ".",
    ". ",
    "\n",
    "\r\n",
    "\t",
    "  ",
    "- ",
    "| ",
    "US",
    "12",
    "&amp;",
    "«",
]


@st.composite
def hostile(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A document, and outputs that have nothing to do with it."""
    text = "".join(draw(st.lists(st.sampled_from(SNIPPETS), max_size=12)))
    outputs = st.one_of(st.text(max_size=8), st.lists(st.sampled_from(SNIPPETS)).map(" ".join))
    return text, draw(st.lists(outputs, min_size=1, max_size=5))


@settings(max_examples=200, deadline=None)
@given(hostile())
@example(("UShttps://a.example/bhttps://a.example/b\none", [""]))  # a wrapped paragraph
def test_whatever_the_model_says(translator: Translator, given: tuple[str, list[str]]) -> None:
    """Line ends, tags, nothing at all: each sentence has its items, each line its place."""
    text, outputs = given
    glossary = Glossary([Entry("one", "uno"), Entry("US", "USA")])
    found = translate_document(Hostile(translator, outputs), text, glossary=glossary)
    ends = re.compile(r"[\t\r\n]").findall
    assert found.text.removesuffix("\n") == "\n".join(line.translation for line in found.lines)
    assert found.text.endswith("\n") == text.endswith("\n")
    for parts, line in zip(split_document(text, translator.source), found.lines, strict=True):
        copied = "".join(part.text for part in parts if part.kept).removesuffix("\n")
        # Between the lines of a wrapped paragraph, line ends are spaces to a translator.
        assert ends(line.translation) in (ends(line.source), ends(copied))
        for sentence in line.sentences:
            assert preserves(sentence.source, find(sentence.source), sentence.translation)
            if "://" in sentence.source:  # a term inside an address stays as it is
                continue
            wanted = Counter(item.text for item in glossary.find(sentence.source)[0])
            for term, count in wanted.items():
                assert sentence.translation.count(term) >= count


def test_a_line_without_letters_does_not_wrap_the_next(translator: Translator) -> None:
    """The bar says nothing about the script of the lines below, which are two in small letters."""
    text = "| \noneoneoneoneoneoneonehttps://a.example/b\none"
    glossary = Glossary([Entry("one", "uno")])
    found = translate_document(Hostile(translator, [""]), text, glossary=glossary)
    assert found.text == "| \noneoneoneoneoneoneonehttps://a.example/b\nuno"


# --- How sentences get there --------------------------------------------------------------------


def answers(translator: Translator, text: str, *outputs: str, **options: Any) -> list[Sentence]:
    """What becomes of a text's sentences if the model answers with these outputs in turn."""
    found = translate_document(Hostile(translator, outputs), text, **options)
    return [sentence for line in found.lines for sentence in line.sentences]


def test_whole(translator: Translator) -> None:
    """An output with all that it needs is taken as it is."""
    assert answers(translator, "a dog", "ein Hund")[0] == Sentence("a dog", "ein Hund", "whole")


def test_guided_by_attention(translator: Translator) -> None:
    """Without its tags the sentence is an easy one; they go where the model read."""
    plain = translator("nine three")
    (sentence,) = translate_document(translator, "nine <b>three</b>").lines[0].sentences
    assert sentence.how == "guided"
    assert re.sub("</?b>", "", sentence.translation) == plain


def test_numbers_are_demanded_of_the_search(translator: Translator) -> None:
    """It finds a translation with the number in it, though it has never seen one."""
    (sentence,) = translate_document(translator, "two 57 three").lines[0].sentences
    assert sentence.how in ("whole", "guided", "pieces")
    assert "57" in sentence.translation


def test_pieces(translator: Translator) -> None:
    """What is between the items is translated, with the signs and spaces around it left alone."""
    found = answers(translator, "Two dogs, {a}: (one)!", "{b}")
    assert found[0].how == "kept"
    assert found[0].translation == "Two dogs, {a}: (one)!"


def test_kept(translator: Translator) -> None:
    """If the model has nothing to say, the sentence stays, and the document tells."""
    document = translate_document(Hostile(translator, [""]), "A\n\nTwo {a} dogs.")
    assert document.text == "A\n\nTwo {a} dogs."
    assert document.lines[2].sentences[0].how == "kept"
    assert any("line 3" in note and "'Two {a} dogs.'" in note for note in document.notes)


def test_outputs_fit_into_a_line(translator: Translator) -> None:
    """No line ends, no control characters, no full stop where there was none, no new bullet."""
    assert answers(translator, "one two", "eins\n\tzwei\x07.")[0].translation == "eins zwei"
    assert answers(translator, "One.", "Eins.")[0].translation == "Eins."
    assert answers(translator, "one two", "- eins")[0].how == "kept"


def test_a_placeholder_alone_says_nothing(translator: Translator) -> None:
    """All items are there, but the words are gone."""
    assert answers(translator, "Two {a} dogs.", "{a}.")[0].how == "kept"


def test_too_many_numbers_to_demand(translator: Translator) -> None:
    """Each needs a beam more: then the words between them are translated."""
    text = " ".join(f"three {number}" for number in range(100, 120))
    (sentence,) = translate_document(translator, text, longest=4000).lines[0].sentences
    assert sentence.how == "pieces"


def test_a_glossary_is_honoured(translator: Translator) -> None:
    """By the search, or by hand; overlapping entries are reported where they are."""
    glossary = Glossary([Entry("three", "TROIS"), Entry("three four", "TQ"), Entry("four", "Q")])
    document = translate_document(translator, "nine three.\nthree four\nfour", glossary=glossary)
    for line, term in zip(document.lines, ("TROIS", "TQ", "Q"), strict=True):
        assert term in line.translation
    told = "line 2: 'three four': glossary: 'three four' and 'three' overlap"
    assert any(note.startswith(told) for note in document.notes)
    found = answers(translator, "nine three nine", "neun", glossary=glossary)
    assert found[0] == Sentence("nine three nine", "neun TROIS neun", "pieces")


def test_sentences_longer_than_training_are_divided(translator: Translator) -> None:
    """At `longest` tokens or at the training's limit; nothing is cut off."""
    text = ", ".join(["one two three"] * 40)
    short = translate_document(translator, text, longest=16)
    assert len(short.lines[0].sentences) > 10
    for sentence in short.lines[0].sentences:
        assert translator.source_length(sentence.source) <= 16
    assert short.notes[0].startswith("line 1: 'one two three, one")
    assert f"divided into {len(short.lines[0].sentences)} parts" in short.notes[0]
    encoded = translator.tokenizers.source.encode(["one"])[0]
    assert translator.source_length("one") == len(encoded) + 1
    assert translator.longest == 256


def test_other_seeds_draw_other_documents(untrained: Translator) -> None:
    """With sampling, a document depends on the seed, and on nothing else."""
    options = replace(untrained.decode, sample=True)
    text = "one two three\nfour five six\n"
    drawn = [
        translate_document(untrained, text, options=options, seed=seed).text for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_texts_one_by_one(translator: Translator) -> None:
    """Texts that happen to look like a fence of code are texts."""
    found = translate_lines(translator, ["```", "nine", "", "```", "two"])
    expected = ["```", translator("nine"), "", "```", translator("two")]
    assert [line.translation for line in found.lines] == expected
    assert found.text == "".join(f"{text}\n" for text in expected)


@pytest.mark.parametrize("text", ["", "\n", "\n\n \t\r\n", "\ufeff", "3.5"])
def test_documents_without_words(translator: Translator, text: str) -> None:
    """Come back as they are."""
    assert translate_document(translator, text).text == text


# --- Notes --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dates() -> Translator:
    """Has limits of what is usual."""
    found = manyheads.load("date-en-ko")
    assert isinstance(found, Translator)
    return found


def test_sentences_have_the_notes_of_the_translator(dates: Translator) -> None:
    """The same as without a document; of a text, its structure and its alternatives."""
    strange = "Hello world"
    ((best,),) = dates.translate([strange])
    expected = list(dates.notes(strange, best))
    assert len(expected) == 2
    for text in (f"3 May 2024\n\n{strange}\n", f"<p>3 May 2024</p>\n\n<p>{strange}</p>"):
        format = "html" if "<" in text else "text"
        document = translate_document(dates, text, format=format)
        assert document.notes == tuple(f"line 3: {strange!r}: {note}" for note in expected)
        (alone, usual) = translate_texts(dates, [text, "3 May 2024"], format=format)
        assert (alone.text, alone.notes) == (unescape(document.text), document.notes)
        assert usual.notes == ()
    assert translate_lines(dates, ["3 May 2024", strange], first=8).notes == tuple(
        f"line 9: {strange!r}: {note}" for note in expected
    )


def test_what_is_never_lost_is_not_unusual(dates: Translator) -> None:
    """A placeholder is unknown to the model, and is put back as it was."""
    document = translate_document(dates, "{Zq} 3 May 2024")
    assert "{Zq}" in document.text
    assert document.notes == ()
    ((best,),) = dates.translate(["{Zq} 3 May 2024"])
    assert any("'Z'" in note for note in dates.notes("{Zq} 3 May 2024", best))


def test_pieces_have_notes(dates: Translator) -> None:
    """What is noted of a part is noted of its sentence."""

    class Words(Hostile):
        """Has nothing to say about more than a word."""

        def translate(self, texts: Sequence[str], **_: Any) -> list[list[Translation]]:
            outputs = ["" if " " in text else text for text in texts]
            return [[Translation(output, 0.0, 0.0, [], True, [], [])] for output in outputs]

    (sentence,) = translate_document(Words(dates, []), "Hello {a} world").lines[0].sentences
    assert sentence.how == "pieces"
    assert any("'H'" in note for note in sentence.notes)
    assert any("world" in note for note in sentence.notes)


def test_demanded_numbers_do_not_hide_that_a_translation_is_unsure(dates: Translator) -> None:
    """Two dates in a row are none that it has learned; a number is demanded that it left out."""
    text = "<b>Friday, 20 November 2026</b>, 3 May 2022"
    (sentence,) = translate_document(dates, text).lines[0].sentences
    assert sentence.how == "guided"
    assert any("unsure" in note for note in sentence.notes)


def test_notes_of_a_long_document_are_a_summary(dates: Translator) -> None:
    """How many there are of each kind, and the first; their number does not grow with the text."""
    expected = []
    for count in (5, 6, 40):
        text = "3 May 2024\n" + "Hello world\n" * count + "{0} or %s\n"
        document = translate_document(dates, text)
        told = [note for note in document.notes if note.startswith("line ")]
        unlike = [note for note in told if "unlike what" in note]
        assert [_line(note) for note in unlike] == [2, 3, 4, 5, 6]
        assert count + 2 in map(_line, told)
        assert {_line(note) for note in told if "unsure" in note} >= {2, 3, 4, 5, 6}
        expected.append([note for note in document.notes if note not in told])
    kind = "it is unlike what date-en-ko was trained on (dates:train). The first 5:"
    assert [[note for note in notes if kind in note] for notes in expected] == [
        [],
        [f"6 of 8 sentences: {kind}"],
        [f"40 of 42 sentences: {kind}"],
    ]


def _line(note: str) -> int:
    return int(note.split(":")[0].split()[1])


@pytest.mark.parametrize(
    ("demand", "pieces"),
    [
        ("Hund", ["\u2581Hund"]),
        ("ein großer Hund", ["\u2581ein", "\u2581großer", "\u2581Hund"]),
        ("12", ["\u25811", "2"]),
        ("7", ["7"]),  # as also behind a bracket, say
    ],
)
def test_tokens_that_are_demanded(demand: str, pieces: list[str]) -> None:
    """All of them, but a space in front that is a token of its own."""
    own = manyheads.load("multi30k-en-de")
    assert isinstance(own, Translator)
    target = own.tokenizers.target
    found = FallbackTranslator(own, Glossary(()), own.decode, 1).tokens(demand)
    assert [target.piece(token) for token in found] == pieces
