"""From a table of texts to a data folder and a recipe that trains as it is printed."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.messy_pairs import plant
from manyheads.data.text.exclusion import normalised
from manyheads.data.text.formats import Pair, read_pairs
from manyheads.errors import DataError, MissingExtraError, UsageError
from manyheads.fit import pace
from manyheads.fit.observer import SilentObserver
from manyheads.fit.run_training import train
from manyheads.own_data import speed, tables, text_recipe
from manyheads.own_data.continued import General
from manyheads.own_data.own_data import prepare
from manyheads.own_data.prepared import Options, Prepared, recipe_path, write
from manyheads.predict.load import load
from manyheads.project.base_recipe import read_recipe

# A small language and its translation, word by word, so that sides and copies can be told apart.
WORDS = {
    "the": "der", "and": "und", "not": "nicht", "is": "ist", "with": "mit", "from": "von",
    "dog": "Hund", "house": "Haus", "water": "Wasser", "bread": "Brot", "night": "Nacht",
    "red": "rot", "cold": "kalt", "old": "alt", "sees": "sieht", "takes": "nimmt", "here": "hier",
    "book": "Buch", "hand": "Hand", "friend": "Freund", "eye": "Auge", "street": "Gasse",
}  # fmt: skip


def sentences(count: int) -> list[tuple[str, str]]:
    """Different sentences of six words each: the digits of a number in base 22."""
    names = list(WORDS)
    pairs = []
    for n in range(count):
        words = [names[(n * 7919 + place * (3 + n // 22**place)) % 22] for place in range(5)]
        words.append(names[n // 22 % 22])
        pairs.append((f"{' '.join(words)} {n}.", f"{' '.join(WORDS[w] for w in words)} {n}."))
    return pairs


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time a step or two instead of ten seconds."""
    monkeypatch.setattr(pace, "BUDGET", 0.05)


def prepared(
    tmp_path: Path, content: str | bytes, name: str = "pairs.tsv", **options: object
) -> Prepared:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    chosen = Options(**({"minutes": 1.0, "hardware": "cpu"} | options))  # type: ignore[arg-type]
    return prepare(str(path), tmp_path / "mine", chosen)


def table(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{one}\t{other}\n" for one, other in pairs)


def counts(found: Prepared) -> Counter[str]:
    kinds = Counter[str]()
    for each in found.findings:
        kinds[each.kind] += each.count
    return kinds


def rows(found: Prepared, *names: str) -> list[tuple[str, str]]:
    lines = [line for name in names for line in found.files[name].splitlines()]
    return [(one, other) for one, other in (line.split("\t") for line in lines)]


def test_every_planted_fault_is_named_and_mended(tmp_path: Path) -> None:
    """As often as it was planted; what is left are the clean pairs."""
    clean = sentences(400)
    content, planted = plant(clean)
    found = prepared(tmp_path, content, "messy.csv")
    seen = counts(found)
    # A clean pair whose words are of both languages may be missed, and a line without umlauts
    # is valid in both encodings.
    for kind, count in planted.items():
        assert seen[kind] >= count - 1, kind
    kept = rows(found, "train.tsv", "val.tsv", "test.tsv")
    known = {tuple(map(normalised, pair)) for pair in clean}
    entities = {(f'{one} & "so"', f'{other} & "so"') for one, other in clean}
    known |= {tuple(map(normalised, pair)) for pair in entities}
    assert {tuple(map(normalised, pair)) for pair in kept} <= known
    assert not [text for pair in kept for text in pair if "&amp;" in text or "  " in text]


def test_what_is_printed_trains(tmp_path: Path) -> None:
    """The recipe is read as it is, and its folder answers; the input is as it was."""
    content = "English;Deutsch\n" + table(sentences(120)).replace("\t", ";")
    found = prepared(tmp_path, content, "my pairs.csv")
    assert (tmp_path / "my pairs.csv").read_text() == content
    out = tmp_path / "mine"
    write(found, out)
    recipe = tomllib.loads(recipe_path(out).read_text())
    # Each key with a value that is not obvious has its reason behind it.
    assert len(re.findall(r"^\S.* = .*  # ", found.recipe, re.MULTILINE)) > 10
    assert (recipe["data"]["source"], recipe["data"]["target"]) == ("en", "de")
    train(recipe_path(out), "train.steps=4", "train.validate_every=4", out=tmp_path / "run")
    assert isinstance(load(tmp_path / "run")("the dog is old 3."), str)


def test_the_option_that_is_printed_turns_the_table(tmp_path: Path) -> None:
    """As it stands there, in backticks."""
    content = table(sentences(100))
    found = prepared(tmp_path, content)
    (shown,) = [text for line in found.seen for text in re.findall(r"`columns=(.*)` turns", line)]
    turned = prepared(tmp_path, content, columns=shown.split(","))
    assert rows(turned, "val.tsv") == [pair[::-1] for pair in rows(found, "val.tsv")]


def test_sources_that_differ_in_case_are_on_one_side(tmp_path: Path) -> None:
    """No validation source was trained on, whatever its case and marks."""
    pairs = sentences(100)
    twins = [(one.upper().replace(".", " !"), f"{other} ja") for one, other in pairs]
    found = prepared(tmp_path, table(pairs + twins))
    keys = {
        name: {normalised(one) for one, _ in rows(found, f"{name}.tsv")}
        for name in ("train", "val", "test")
    }
    assert keys["train"] & keys["val"] == keys["train"] & keys["test"] == set()
    assert keys["val"] & keys["test"] == set()
    assert counts(found)["near-duplicate"] == 200


def test_too_few_says_what_was_dropped(tmp_path: Path) -> None:
    """Fewer than twenty, or one pair again and again."""
    with pytest.raises(DataError, match=r"3 examples are left; 20 are needed"):
        prepared(tmp_path, table(sentences(3)))
    with pytest.raises(DataError, match=r"1 examples are left of 90 rows \(89 duplicate-pair\)"):
        prepared(tmp_path, table(sentences(1) * 90))


def test_lines_by_turns_in_two_languages_are_no_text(tmp_path: Path) -> None:
    """They are pairs that somebody wrote below each other: said, and how to join them."""
    text = "".join(f"The house is not here {n}.\n나는 집에 {n}번 갔다.\n\n" for n in range(30))
    with pytest.raises(DataError, match=r"en and ko by turns.* paste - - > pairs\.tsv"):
        prepared(tmp_path, text, "both.txt")


def test_an_address_is_downloaded_first(tmp_path: Path) -> None:
    """It is no path."""
    with pytest.raises(UsageError, match="is an address: download"):
        prepare("https://example.org/pairs.tsv", tmp_path / "mine", Options())


def test_turned_pairs_are_one_finding(tmp_path: Path) -> None:
    """Whichever of the two ways of seeing them found a pair: by its words, or by its language."""
    pairs = [("The house is not from here, I see.", "Das Haus ist nicht von hier, ich sehe.")]
    pairs += [("We are with the old friend and you.", "Wir sind mit dem alten Freund und dir.")]
    many = [(f"{one[:-1]} {n}.", f"{other[:-1]} {n}.") for n in range(40) for one, other in pairs]
    # Here so few words speak for a side that only the language tells.
    few = [("Es war doch nur die eine und das.", "It was that one and the other.")]
    found = prepared(tmp_path, table([*many, *((other, one) for one, other in many[:4]), *few]))
    assert [each.kind for each in found.findings].count("swapped-sides") == 1
    assert counts(found)["swapped-sides"] == 5


@pytest.mark.parametrize(
    ("first", "columns"),
    [("", ("de=1", "en=2")), ("de\ten\n", ())],
)
def test_a_table_whose_sides_are_named_wrong(
    tmp_path: Path, first: str, columns: tuple[str, ...]
) -> None:
    """All of it is turned, and said once; no pair is lost, whichever language it shows."""
    pairs = [
        ("The house is not from here, I see.", "Das Haus ist nicht von hier, ich sehe."),
        ("Dogs bark.", "Hunde bellen."),
        ("This is what they have.", "Luisa singt."),
    ]
    many = [(f"{one[:-1]} {n}.", f"{other[:-1]} {n}.") for n in range(40) for one, other in pairs]
    found = prepared(tmp_path, first + table(many), columns=columns)
    assert [(each.kind, each.count) for each in found.findings if "sides" in each.kind] == [
        ("swapped-sides", len(many))
    ]
    kept = rows(found, "train.tsv", "val.tsv", "test.tsv")
    assert sorted(kept) == sorted((other, one) for one, other in many)


@pytest.mark.parametrize(
    ("minutes", "told"), [(0.72, "43 seconds"), (1.04, "62 seconds"), (119.7, "120 minutes")]
)
def test_times_are_told_as_people_do(tmp_path: Path, minutes: float, told: str) -> None:
    assert speed.Draft(data=None, out=tmp_path, minutes=minutes).duration == told


def test_minutes_decide_steps_and_data_bound_them(tmp_path: Path) -> None:
    """Twice the minutes are more steps, until more would only be learned by heart."""
    steps = [
        tomllib.loads(prepared(tmp_path, table(sentences(60)), minutes=minutes).recipe)["train"][
            "steps"
        ]
        for minutes in (1.0, 10_000.0, 20_000.0)
    ]
    assert steps[0] <= steps[1] == steps[2]


def test_a_gpu_that_is_elsewhere_is_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recipe then has steps by passes, and says so."""
    monkeypatch.setattr(speed, "best_device", lambda: torch.device("cpu"))
    found = prepared(tmp_path, table(sentences(60)), hardware="gpu")
    assert "not timed" in found.recipe
    assert any("no GPU" in line for line in found.expect)


def test_labelled_sentences_and_plain_text(tmp_path: Path) -> None:
    """A label is learned as a translation; plain text by a language model."""
    pairs = sentences(80)
    labelled = "text,label\n" + "".join(
        f"{one},{'odd' if n % 2 else 'even'}\n" for n, (one, _) in enumerate(pairs)
    )
    recipe = tomllib.loads(prepared(tmp_path, labelled, "reviews.csv").recipe)
    assert (recipe["task"], recipe["data"]["target"]) == ("translate", "label")
    assert recipe["evaluate"]["metrics"] == ["exact"]
    found = prepared(tmp_path, "".join(f"{one}\n" for one, _ in pairs), "text.txt")
    assert tomllib.loads(found.recipe)["task"] == "generate"
    assert sorted(found.files) == ["test.txt", "train.txt", "val.txt"]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    """Neither what is there, nor the input; `force` replaces the first, never the second."""
    content = table(sentences(30))
    out = tmp_path / "mine"
    write(prepared(tmp_path, content), out)
    with pytest.raises(UsageError, match="exists"):
        prepared(tmp_path, content)
    with pytest.raises(UsageError, match="lies in"):
        prepare(str(out / "train.tsv"), out, Options(), force=True)


# --- Continuing a translator --------------------------------------------------------------------


def test_a_translator_is_continued(tmp_path: Path, translator: Path) -> None:
    """With its vocabulary and sizes; both scores are there before the first step and after."""
    base = read_recipe(translator / "recipe.toml", stored=True)
    languages = base.data.language_pair
    found = prepared(
        tmp_path,
        table(sentences(60)),
        start=str(translator),
        columns=(f"{languages[0]}=1", f"{languages[1]}=2"),
    )
    recipe = tomllib.loads(found.recipe)
    assert recipe["start"] == {"encoder": str(translator), "decoder": str(translator)}
    out = tmp_path / "mine"
    write(found, out)
    said: list[str] = []

    class Heard(SilentObserver):
        def say(self, message: str) -> None:
            said.append(message)

    train(
        read_recipe(recipe_path(out), ["train.steps=2", "train.validate_every=1"]),
        out=tmp_path / "run",
        observer=Heard(),
    )
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == (
        translator / "tokenizer.model"
    ).read_bytes()
    before_after = [line for line in said if "before training" in line]
    assert any(line.startswith("val_chrf") for line in before_after)
    if "general.tsv" in found.files:
        assert any(line.startswith("val_general_chrf") for line in before_after)


def test_general_pairs_are_mixed_in(tmp_path: Path) -> None:
    """Those of the model's own recipe, without the sources that are held out here."""
    found = prepared(tmp_path, _dates(60), start="date-en-ko", columns=("en=1", "ko=2"))
    recipe = tomllib.loads(found.recipe)
    assert len(rows(found, "general.tsv")) == 2000
    assert recipe["data"]["additional"] == ["general.tsv", "train.tsv", "train.tsv"]
    assert recipe["data"]["general"] == "general-val.tsv"
    held = {normalised(one) for one, _ in rows(found, "val.tsv", "test.tsv")}
    assert not held & {normalised(one) for one, _ in rows(found, "general.tsv")}
    assert len(rows(found, "general-val.tsv")) == 300
    assert [line for line in found.expect if "on yours and on the general" in line]


def test_nothing_general_is_promised_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data of the model may be elsewhere."""
    monkeypatch.setattr(tables, "general_pairs", lambda *_: General((), (), "no such file"))
    chosen: dict[str, Any] = {"columns": ("en=1", "ko=2"), "hardware": "gpu"}
    found = prepared(tmp_path, _dates(60), start="date-en-ko", **chosen)
    assert not {"general", "additional"} & tomllib.loads(found.recipe)["data"].keys()
    assert "training ends with the scores before and after, on yours" in found.expect


def _dates(count: int) -> str:
    from manyheads.data.synthetic.dates import generate

    return table([(pair.source, pair.target) for pair in generate("train", size=count)])


def test_without_the_package_that_bleu_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Korean is scored by chrF alone, and the recipe says what is missing."""

    def missing(*_: object) -> None:
        raise MissingExtraError(package="mecab-ko", extra="korean")

    monkeypatch.setattr(text_recipe, "TEXT_METRICS", {"bleu": missing})
    found = prepared(tmp_path, _dates(60), columns=("en=1", "ko=2"), hardware="gpu")
    assert tomllib.loads(found.recipe)["evaluate"]["metrics"] == ["chrf"]
    assert "manyheads[korean]" in found.recipe


def test_another_language_than_the_model(tmp_path: Path) -> None:
    """Refused before anything is measured; swapped columns are turned."""
    pairs = sentences(40)
    with pytest.raises(UsageError, match=r"translates en to ko.* seems to be de"):
        prepared(tmp_path, table(pairs), start="date-en-ko")
    with pytest.raises(UsageError, match="task 'classify'"):
        prepared(tmp_path, table(pairs), start="digits")


def test_terms_of_a_glossary(tmp_path: Path) -> None:
    """Pairs that translate a term otherwise, and terms that no pair has."""
    terms = tmp_path / "terms.tsv"
    terms.write_text("dog\tKöter\nunicorn\tEinhorn\n", encoding="utf-8")
    found = prepared(tmp_path, table(sentences(60)), glossary=terms)
    done = {each.what_was_done: each for each in found.findings if each.kind == "glossary"}
    (no_pair,) = (each for text, each in done.items() if "no pair" in text)
    assert no_pair.examples == ("unicorn",)
    other = next(each for text, each in done.items() if "Köter" in text)
    trained = [one for one, _ in rows(found, "train.tsv")]
    assert other.count == sum(one.split().count("dog") for one in trained)


def test_written_pairs_are_read_by_the_strict_reader(tmp_path: Path) -> None:
    """What the loose reader made is in the strict format."""
    write(prepared(tmp_path, table(sentences(50)).replace("\t", "|")), tmp_path / "mine")
    pairs = list(read_pairs(tmp_path / "mine" / "train.tsv", "en", "de"))
    assert all(isinstance(pair, Pair) for pair in pairs)
    assert len(pairs) == 50 - 2 * 5
