"""What is told beside a translation: what was changed of its text, and what is unusual."""

import json
import shutil
from dataclasses import replace
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyheads
from manyheads.asks.translate_request import TranslateRequest
from manyheads.data.text.corpus import Corpus
from manyheads.errors import FolderError, InputWarning
from manyheads.generation.text_decoding import Translation
from manyheads.predict.changed_numbers import changed_numbers
from manyheads.predict.fewer_sentences import fewer_sentences
from manyheads.predict.unusual import measure, unsure_of_text
from manyheads.project.domain import store_domain, stored_domain
from manyheads.recipe_data.pair_splits import corpus_split
from manyheads.tasks.translate import domain_limits as measured
from manyheads.tasks.translate.domain_limits import set_domain, surest_limit, unusual_share
from manyheads.tasks.translate.predictor import Translator
from tests.everyday import table

DATE = "Friday, 20 November 2026"


@cache
def shipped(name: str = "date-en-ko") -> Translator:
    found = manyheads.load(name)
    assert isinstance(found, Translator)
    return found


def notes(text: str, model: Translator | None = None, **options: Any) -> list[str]:
    """The notes on one text, as JSON has them."""
    (answer,) = (model or shipped()).answer(TranslateRequest(texts=(text,), **options))
    told: list[str] = json.loads(json.dumps(answer.to_json())).get("notes", [])
    return told


# --- Unusual texts ------------------------------------------------------------------------------


def test_a_text_of_another_domain_is_told() -> None:
    """With the domain, its words, its characters, and how improbable the translation is."""
    note, unsure = notes("Hello world")
    assert note.startswith("it is unlike what date-en-ko was trained on (dates:train): ")
    assert "characters that the vocabulary does not have: 'H'" in note
    assert "unusual words: 'world', 'Hello'" in note
    assert unsure.startswith("date-en-ko is unsure of this translation: its tokens have a ")


@pytest.mark.parametrize("text", [DATE, "Nov 20 – 22, 2026", "12:30 a.m. on November 20, 2026", ""])
def test_a_usual_text_has_no_notes(text: str) -> None:
    """Nothing is told, so nothing is in the JSON."""
    assert notes(text) == []


def test_a_text_of_another_script_is_told() -> None:
    """Also where its words and characters are known: English, asked of a model of Korean."""
    note, *_ = notes("Return a copy of the list.", shipped("enko-ko-en"), beams=1)
    assert "letters of another script than Hangul" in note


def test_numbers_that_became_others_are_told() -> None:
    """What is written out, or grouped in another way, is the same number."""
    text = "12 people walked 1,200 km in the years '36 and 1894, 30 days in all."
    same = "Zwölf gingen 1.200 km weit, 2036 und 1894, dreißig Tage in allem."
    found = Translation(same, -0.1, -2.0, [], True, [-0.1] * 20)
    before = list(shipped("en-de").notes(text, found))
    wrong = replace(found, text=same.replace("1.200", "1.500").replace("1894", "1984"))
    (note,) = [each for each in shipped("en-de").notes(text, wrong) if each not in before]
    assert note == (
        "its numbers are not those of the text: 1200, 1894, 30 missing, 1500, 1984 instead. "
        "Check the translation."
    )


def test_a_sentence_that_the_translation_does_not_have_is_told() -> None:
    """Counted by the marks at their ends; two that became one with a semicolon are not fewer."""
    text = "Where is the station? I have lost my bag. My name is Anna."
    whole = "Wo ist der Bahnhof? Ich habe meine Tasche verloren; ich heiße Anna."
    found = Translation(whole, -0.1, -2.0, [], True, [-0.1] * 20)
    before = list(shipped("en-de").notes(text, found))
    less = replace(found, text="Wo ist der Bahnhof? Ich heiße Anna")
    (note,) = [each for each in shipped("en-de").notes(text, less) if each not in before]
    assert note == (
        "it has 3 sentences and the translation 2: something may be left out. "
        "`file` translates sentence by sentence."
    )
    assert fewer_sentences("Mr. Smith is here.", "Herr Smith ist da.", "en") is None
    assert fewer_sentences("It is late. Come!", "Komm!", "en") == (2, 1)


def test_thousands_of_digits_are_no_number() -> None:
    """Python reads no number of so many; the others of the text are compared."""
    assert changed_numbers("7" * 5000, "7" * 4999) == ([], [])
    assert changed_numbers(f"{'7' * 5000} and 215", "154") == (["215"], ["154"])


def test_usual_words_of_an_unusual_text_are_not_named() -> None:
    """Of a text that costs too much a character, the words that do."""
    note, *_ = notes("thx, see you l8r", shipped("en-de"), beams=1)
    assert note.endswith("unusual words: 'thx,', 'l8r'. Check the translation.")


@pytest.mark.parametrize(
    "text", ["Du schuldest mir $7.", "Das Buch kostet $12.", "Er wurde 1987 geboren."]
)
def test_numbers_that_training_varied_are_usual(text: str) -> None:
    """The vocabulary of de-en spells $ in bytes, but prices are numbers, which it has learned."""
    assert notes(text, shipped("de-en"), beams=1) == []
    note, *_ = notes("Es waren 7%.", shipped("de-en"), beams=1)  # this it has not
    assert "characters that the vocabulary does not have: '%'" in note


def test_a_word_of_no_language() -> None:
    """One word that is spelled in rare pieces, in a sentence of usual ones."""
    usual = "A man is riding a bicycle in the snow with a red dog."
    assert notes(usual, shipped("multi30k-en-de"), beams=1) == []
    note, *_ = notes(usual.replace("dog", "xqzzvkjwqpxfgq"), shipped("multi30k-en-de"), beams=1)
    assert "unusual words: 'xqzzvkjwqpxfgq.'" in note


@pytest.mark.parametrize(("finished", "mean"), [(True, -1.0), (False, -1.5)])
def test_the_end_token_is_one_of_the_tokens(finished: bool, mean: float) -> None:
    """Two tokens and the end, if the search came to it, share a log-probability of -3."""
    tokenizer = shipped().tokenizers.source
    found = Translation("", 0.0, log_probability=-3.0, tokens=[5, 6], finished=finished)
    assert measure(tokenizer, DATE, found, "LATIN").output == -mean
    told = unsure_of_text("some-model", found) or ""
    assert f"a probability of {exp(mean):.0%} on average, all of it 0.05." in told  # exp(-3)


def test_samples_and_prefixes_are_not_called_unsure() -> None:
    """They are as improbable as they were asked to be."""
    assert notes(DATE, prefix="2031년 1월") == []
    drawn = notes(DATE, sample=True, temperature=9.0, seed=3)
    assert not any("unsure" in note for note in drawn)


def test_python_warns() -> None:
    """A call that returns only the text says it too."""
    with pytest.warns(InputWarning, match=r"^text 2: it is unlike what date-en-ko was trained on"):
        found = shipped()([DATE, "Hello world"])
    assert len(found) == 2


def test_without_limits_unknown_characters_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that was never measured."""
    monkeypatch.setattr(shipped(), "domain", None)
    assert notes("Hello world") == [
        "it is unlike what date-en-ko was trained on (dates:train): characters that the vocabulary "
        "does not have: 'H'. Check the translation."
    ]
    assert notes("nothing usual at all") == []


# --- Limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["date-en-ko", "enko-en-ko", "enko-ko-en", "multi30k-en-de"])
def test_shipped_translators_have_limits(name: str) -> None:
    """Of their validation texts: few right translations are noted, and more wrong ones."""
    found = shipped(name).domain
    assert found is not None
    assert found.noted_right is not None
    assert found.noted_wrong is not None
    assert found.noted_right < 7
    assert found.noted_wrong > 2 * found.noted_right
    assert found.texts >= 1000


def test_the_limit_follows_what_is_right() -> None:
    """By hand: the lowest limit that one right translation of twenty and two thirds may exceed."""
    output = np.array([0.1] * 18 + [0.5, 0.6] + [0.4, 0.7, 0.8, 0.9])
    right = np.array([True] * 20 + [False] * 4)
    # Above 0.5 lie 0.6 (right) and three wrong ones; above 0.4 two of twenty right ones.
    assert surest_limit(output, right) == 0.5
    # A model that is never wrong: nothing but the usual share of its texts.
    assert surest_limit(output, right | True) == np.quantile(output, 0.996)
    # One that is always wrong is always unsure.
    assert surest_limit(output, right & False) == 0.0


def test_everyday_sentences_of_narrow_models_are_noted() -> None:
    """Of sentences of another kind than a model was trained on nearly all are."""
    rows = table("english")
    for name in ("enko-en-ko", "multi30k-en-de"):
        model = shipped(name)
        texts = [row[1] for row in rows]
        found = model.translate(texts, beams=1)
        noted = [model.unusual(text, best) for text, (best, *_) in zip(texts, found, strict=True)]
        assert sum(noted) > 50


def test_limits_are_set_from_validation_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all of their own texts keep them, others do not."""
    model = shipped()
    monkeypatch.setattr(model, "domain", None)
    recipe: Any = model.folder.recipe
    dates = corpus_split("valid", recipe.data)
    corpus = Corpus(dates.source[:60], dates.target[:60], origin="dates", hashes=("",))
    found = [best for best, *_ in model.translate(corpus.source)]
    assert set_domain(model, corpus, found, "dates") is None  # too few to tell
    assert unusual_share(model, corpus, found) is None
    monkeypatch.setattr(measured, "LEAST", 50)
    monkeypatch.setattr(model, "domain", set_domain(model, corpus, found, "dates"))
    assert model.domain is not None
    assert (model.domain.texts, model.domain.unknown) == (60, 0.0)
    limits = (model.domain.text, model.domain.output)
    assert list(limits) == [round(limit, 3) for limit in limits]  # thousandths, rounded up
    share = unusual_share(model, corpus, found)
    assert share is not None
    assert share <= 100 * 8 / 60  # at most one a limit, and one right one of twenty
    assert "unusual words: 'chthonic'" in notes("chthonic")[0]


def test_limits_are_kept_with_the_model(tmp_path: Path) -> None:
    """In manyheads.json; a damaged entry is told."""
    own_translator = shutil.copytree(shipped().folder.path, tmp_path / "own")
    model = manyheads.load(own_translator)
    assert stored_domain(model.folder) == shipped().domain
    ours = shipped().domain
    assert ours is not None
    limits = ours.model_copy(update={"data": "d", "text": 1.0})
    store_domain(model.folder, limits)
    again = manyheads.load(own_translator)
    assert isinstance(again, Translator)
    assert again.domain == limits
    path = own_translator / "manyheads.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(manifest | {"domain": {"data": 3}}), encoding="utf-8")
    with pytest.raises(FolderError, match=r"manyheads\.json, domain\.data"):
        manyheads.load(own_translator)


# --- Capitals -----------------------------------------------------------------------------------


def test_capitals_are_translated_in_sentence_case() -> None:
    """And come back in capitals, which a note tells; spans stay where they are."""
    model = shipped("multi30k-en-de")
    (plain,), (capitals,) = model.translate(
        ["Two dogs are playing in the snow.", "TWO DOGS ARE PLAYING IN THE SNOW."],
        beams=1,
        details=True,
    )
    assert capitals.text == plain.text.upper() == "ZWEI HUNDE SPIELEN IM SCHNEE."
    assert capitals.score == pytest.approx(plain.score, abs=1e-4)
    assert [(each.begin, each.end) for each in capitals.details or []] == [
        (each.begin, each.end) for each in plain.details or []
    ]
    (note,) = notes("TWO DOGS ARE PLAYING IN THE SNOW.", model, beams=1)
    assert note == (
        "it is written in capitals, which the model does not know: it was translated in sentence "
        "case. `recase=False` leaves it as it is."
    )


def test_capitals_may_be_left() -> None:
    """By an option, and where something is demanded of the translation in its own case."""
    model = shipped("multi30k-en-de")
    text = "TWO DOGS"
    off = replace(model.decode, recase=False, beams=1, max_length=8)
    ((left, *_),) = model.translate([text], options=off)
    with_case = replace(off, recase=True)
    ((prefixed, *_),) = model.translate([text], options=with_case, prefixes=["Zwei"])
    assert prefixed.text.startswith("Zwei")
    tokens = model.tokenizers.target.encode(["Hunde"])
    ((demanded, *_),) = model.translate([text], options=with_case, constraints=[tokens])
    assert "Hunde" in demanded.text
    ((changed, *_),) = model.translate([text], options=with_case)
    assert changed.text.isupper()
    assert left.text != changed.text
    assert not any("capitals" in note for note in notes(text, model, recase=False, beams=1))


# --- Long texts ---------------------------------------------------------------------------------


def test_endless_texts_are_shortened() -> None:
    """To twice what training had, at a space; what was left out is told, also in JSON."""
    model = shipped()
    text = f"{DATE} " * 5000
    source = model.read_source(text)
    assert text.startswith(source.text)
    assert text[len(source.text)] == " "
    tokens = len(model.tokenizers.source.encode([source.text])[0]) + 1
    assert model.most - 40 < tokens <= model.most == 2 * model.longest
    first, *_ = notes(text)
    assert first.startswith(
        f"only the first {len(source.text):,} of {len(text):,} characters were translated: a text "
        f"may have {model.most} tokens."
    )


def test_a_text_longer_than_any_in_training_is_told() -> None:
    """It is translated as a whole."""
    told = notes("November 20, 2026, " * 70)
    assert told[0].startswith("it has ")
    assert "more than any in training (256): `file` translates long lines" in told[0]
    assert not any("only the first" in note for note in told)


@pytest.mark.parametrize("length", [1, 510, 511, 512, 4000])
def test_what_fits_is_left_alone(length: int) -> None:
    """The end token counts; without a space the cut is at a token."""
    model = shipped()
    text = "漢" * (length // 3) + "x" * (length % 3)  # a token a byte, and the space in front
    source = model.read_source(text)
    tokens = len(model.tokenizers.source.encode([source.text])[0]) + 1
    assert tokens <= model.most
    whole = len(model.tokenizers.source.encode([text])[0]) + 1 <= model.most
    assert (source.left_out == 0) is whole
    assert text == source.text + text[len(source.text) :]


@pytest.mark.parametrize(
    ("source", "translation", "target", "told"),
    [
        ("It is 27.", "Es ist da.", "de", (["27"], [])),
        ("It is 27.", "Es ist siebenundzwanzig.", "de", ([], [])),
        ("I am 25 years old.", "저는 스물다섯 살이에요.", "ko", ([], [])),
        ("It's 7:30.", "7시 반이에요.", "ko", ([], [])),
        ("It is 27.", "Son veintisiete.", "es", ([], [])),  # whose words are not known
        ("It is 3.", "Es ist da.", "de", ([], [])),  # may be a word
        ("오늘은 9월 27일이에요.", "Today is in September.", "en", (["27"], [])),
        ("5만 원", "50,000 won", "en", ([], [])),
        ("15 people", "27 Leute", "de", (["15"], ["27"])),
        ("Come at 5 pm.", "Kommen Sie um 15 Uhr.", "de", (["5"], ["15"])),
        ("Come at 5 pm.", "Kommen Sie um 17 Uhr.", "de", ([], [])),
        ("5시까지 와 주세요.", "Please come by 5 o'clock.", "en", ([], [])),
        ("It takes 3 hours, come at 5:00 pm.", "Cela prend 3 heures, à 17 h.", "fr", ([], [])),
        ("Ich habe 3 Uhren und komme um halb fünf.", "3 watches, at 4:30.", "en", ([], [])),
        ("Ich traf die 3 am Freitag.", "I met the 3 at 4:30.", "en", ([], [])),
        ("It is 6:30.", "Es ist halb 7 Uhr.", "de", ([], [])),
        ("7:30 to 9:00", "7:30 bis 10:00", "de", (["9"], ["10"])),
        ("8시간 걸려요.", "It takes 18 hours.", "en", ([], [])),  # no hour of a day
    ],
)
def test_numbers_that_are_gone_or_others(
    source: str, translation: str, target: str, told: tuple[list[str], list[str]]
) -> None:
    assert changed_numbers(source, translation, target) == told
