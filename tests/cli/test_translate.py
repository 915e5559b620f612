"""The options of `manyheads translate`: how it searches and draws, and what it tells."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.cli.translate import INTO_ENGLISH
from manyheads.data.tokenizers.tokenizer import Tokenizer
from manyheads.predict.load import load
from manyheads.tasks.translate.predictor import Translator
from tests.cli.conftest import Call

SHORT = ["nine", "three four"]


def predictor(folder: Path) -> Translator:
    found = load(folder)
    assert isinstance(found, Translator)
    return found


def test_sampling(call: Call, translator: Path) -> None:
    """Any option of sampling draws; the same seed the same, and what the predictor draws."""
    hot = ("--temperature", "3", "--seed", "7")
    found = call("translate", "--model", translator, *hot, *SHORT)
    assert found.code == 0
    ours = predictor(translator)
    hottest = replace(ours.decode, sample=True, temperature=3.0)
    drawn = ours.translate(SHORT, options=hottest, seed=7)
    assert found.out.splitlines() == [best.text for (best,) in drawn]
    assert call("translate", "--model", translator, *hot, *SHORT) == found
    assert call("translate", "--model", translator, *hot[:2], "--seed", "8", *SHORT) != found
    safe = call("translate", "--model", translator, "--sample", "--top-k", "1", *SHORT)
    greedy = call("translate", "--model", translator, "--beam", "1", *SHORT)
    assert safe == greedy
    assert call("translate", "--model", translator, "--top-p", "0.01", *SHORT) == greedy


def test_an_answer_is_one_line(
    call: Call, translator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a model puts out: back-translations belong to their lines."""
    monkeypatch.setattr(Tokenizer, "decode", lambda _, each: ["a\nb\r"] * len(each))
    assert call("translate", "--model", translator, *SHORT).out == "a b \na b \n"
    best = call("translate", "--model", translator, "--n-best", "2", "nine").out
    assert [line.split("\t")[1] for line in best.splitlines()] == ["a b "]  # equal texts are one


def test_diverse_translations(call: Call, translator: Path) -> None:
    """As many groups as translations; the best is there."""
    found = call("translate", "--model", translator, "--n-best", "3", "--diverse", "5", "nine")
    texts = [line.split("\t")[1] for line in found.out.splitlines()]
    assert "neun" in texts
    assert len(set(texts)) == len(texts) == 3


def test_a_prefix(call: Call, translator: Path) -> None:
    """Every translation begins with it."""
    found = call("translate", "--model", translator, "--prefix", "acht", *SHORT)
    assert [line.split()[0] for line in found.out.splitlines()] == ["acht", "acht"]


def test_search_options_reach_the_search(call: Call, translator: Path) -> None:
    """As the predictor does with the same options."""
    ours = predictor(translator)
    options = replace(ours.decode, length_penalty=3.0, coverage_penalty=2.0, no_repeat_ngram=1)
    wanted = [best.text for (best,) in ours.translate(SHORT, options=options)]
    words = ("--length-penalty", "3", "--coverage", "2", "--no-repeat-ngram", "1")
    assert call("translate", "--model", translator, *words, *SHORT).out.splitlines() == wanted


def test_probabilities(call: Call, translator: Path) -> None:
    """In JSON: each token, its probability, and its characters."""
    found = call("translate", "--model", translator, "--json", "--probabilities", "three four")
    (best,) = json.loads(found.out)["n_best"]
    said = "".join(best["text"][each["begin"] : each["end"]] for each in best["tokens"])
    assert said == best["text"].replace(" ", "")
    for each in best["tokens"]:
        assert each.keys() == {"token", "probability", "begin", "end"}
        assert 0 < each["probability"] <= 1


def test_alignment(call: Call, translator: Path) -> None:
    """In JSON: also what each token was made from; an empty text has no tokens."""
    found = call("translate", "--model", translator, "--json", "--align", "three four", "")
    first, empty = (json.loads(line) for line in found.out.splitlines())
    for each in first["n_best"][0]["tokens"]:
        source = each["source"]
        word = first["source"][source["begin"] : source["end"]]
        assert word == source["token"].strip("▁")
        assert 0 < source["share"] <= 1
    assert empty["n_best"][0]["tokens"] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--diverse", "0.5"], "set --n-best, to 4"),
        (["--align"], "add --json"),
        (["--probabilities"], "add --json"),
        (["--temperature", "-1"], "Invalid value for '--temperature'"),
        (["--top-p", "1.5"], "Invalid value for '--top-p'"),
        (["--beam", "4", "--top-k", "5"], "leave out --beam"),
        (["--sample", "--coverage", "0.2"], "options of beam search"),
        (["--beam", "1", "--coverage", "0.2"], "it has no effect on one beam"),
    ],
)
def test_contradictions(call: Call, translator: Path, words: list[str], told: str) -> None:
    """A wrong call, with what to change."""
    code, out, err = call("translate", "--model", translator, *words, "nine")
    assert (code, out) == (2, "")
    assert told in err


def test_evaluate_says_when_no_origin_is_known(call: Call, own_translator: Path) -> None:
    """English and German words for numbers have nothing in common."""
    code, out, err = call("evaluate", "--model", own_translator, "--alignment")
    assert code == 0, err
    assert "alignment: no word of the translations has a known origin" in out
    manifest = json.loads((own_translator / "manyheads.json").read_text(encoding="utf-8"))
    assert "alignment" not in manifest


@pytest.mark.parametrize(
    ("texts", "model", "told"),
    [
        (["Where is the station?", "Thank you."], "en-de", ""),
        (["Hotel"], "en-de", ""),  # of any language
        (["Wo ist der Bahnhof?"], "de-en", "German is translated by de-en; --model"),
        (["오늘 점심 뭐 먹을까?"], "ko-en", "Korean is translated by ko-en; --model"),
        (["Où est la gare ?"], "en-de", "the text looks French, and en-de reads English"),
    ],
)
def test_the_model_is_chosen_by_the_language(
    call: Call, texts: list[str], model: str, told: str
) -> None:
    """And the choice is told; a model that is named is taken."""
    found, named = call("translate", *texts), call("translate", "--model", model, *texts)
    assert found.out == named.out
    assert found.code == named.code == 0
    assert told in found.err
    assert "--model" not in named.err
    assert bool(told) == ("--model" in found.err)


def test_the_language_of_stdin_is_not_guessed(call: Call) -> None:
    """Its lines are read one by one: the first would decide for all."""
    text = "Wo ist der Bahnhof?"
    named = call("translate", "--model", "en-de", text)
    assert call("translate", stdin=text.encode()).out == named.out


def test_the_model_is_chosen_by_the_language_translated_into(call: Call) -> None:
    text = "How much do these shoes cost?"
    found = call("translate", "--to", "ko", text)
    assert found == call("translate", "--model", "en-ko", text)
    assert found.code == 0
    assert call("translate", "--to", "en", "이 가방은 얼마예요?").out.isascii()
    code, _, err = call("translate", "--to", "es", text)
    assert code == 2
    assert "No shipped model translates from en to 'es'" in err
    code, _, err = call("translate", "--to", "en", stdin=b"Hello")
    assert code == 2
    assert "from which language" in err
    code, _, err = call("translate", "--to", "ko", "--model", "en-de", text)
    assert code == 2
    assert "leave out either" in err


def test_texts_of_several_languages_are_refused(call: Call) -> None:
    """Of several scripts; among Latin letters a short text may look like another language."""
    code, _, err = call("translate", "오늘 점심 뭐 먹을까?", "Where is it?", "Hotel")
    assert code == 2
    assert "Some of the texts are in Korean and some are not" in err
    found = call("translate", "World war", "Where is the station?")
    assert found.code == 0
    assert (
        found.out == call("translate", "--model", "en-de", "World war", "Where is the station?").out
    )


def test_models_of_languages_translate_them() -> None:
    translators = [load(name) for name in INTO_ENGLISH.values()]
    assert [getattr(each, "source", None) for each in translators] == [*INTO_ENGLISH]
