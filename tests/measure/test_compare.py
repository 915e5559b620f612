"""Comparing models, and files of what other systems put out."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from manyheads import load
from manyheads.asks.evaluate_request import TextMetric
from manyheads.comparison import compare
from manyheads.data import split_register as splits
from manyheads.data.split_register import Split
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.measure.stored_model import evaluate
from manyheads.tasks.translate.predictor import Translator
from manyheads.train.checkpoint import sha256
from tests.made import numbers, read_jsonl, write_lines, write_numbers

SOURCE, TARGET = numbers(8, seed=1)  # what write_numbers wrote as validation


def outputs(translator: Path, path: Path) -> str:
    found = load(translator)
    assert isinstance(found, Translator)
    write_lines(path, found(SOURCE))
    return str(path)


def test_a_model_and_its_own_outputs(own_translator: Path, tmp_path: Path) -> None:
    """The same system twice: no difference, by any metric."""
    written = outputs(own_translator, tmp_path / "out.de")
    found = compare(str(own_translator), written, metrics=["chrf"], samples=100)
    assert (found["split"], found["pairs"], found["final"]) == ("valid", 8, False)
    assert list(found["all"]) == ["bleu", "chrf"]
    for each in found["all"].values():
        assert each["difference"] == {"value": 0, "low": 0, "high": 0}
        assert (each["p_bootstrap"], each["p_randomisation"], each["better"]) == (1, 1, None)


def test_a_models_score_is_the_evaluations(own_translator: Path, tmp_path: Path) -> None:
    """And it is logged as one: nothing that was measured goes unseen."""
    other = shutil.copytree(own_translator, tmp_path / "other")
    found = compare(str(own_translator), str(other), samples=100)
    line = read_jsonl(own_translator / "evaluations.jsonl")[-1]
    assert line["value"] == found["all"]["bleu"]["a"]["value"]
    assert evaluate(load(other))["value"] == line["value"]
    assert len(read_jsonl(other / "evaluations.jsonl")) == 3


def test_a_better_system(own_translator: Path, tmp_path: Path) -> None:
    """The references are right, a text that says one thing is not; lower is better of TER."""
    write_lines(tmp_path / "perfect", TARGET)
    write_lines(tmp_path / "bad", ["eins eins eins"] * 8)
    metrics: tuple[TextMetric, ...] = ("ter", "exact")
    found = compare(
        str(tmp_path / "bad"),
        str(tmp_path / "perfect"),
        data=str(tmp_path / "perfect"),
        metrics=metrics,
    )["all"]
    assert list(found) == ["bleu", "chrf", *metrics]
    assert {each["better"] for each in found.values()} == {"b"}
    assert found["ter"]["difference"]["value"] < 0 < found["exact"]["difference"]["value"]
    assert found["exact"]["b"]["value"] == 100


@pytest.mark.parametrize(("wrong", "better"), [(5, None), (8, "b")])
def test_both_tests_must_agree(tmp_path: Path, wrong: int, better: str | None) -> None:
    """B alone is right about some of 60 sentences.

    Five coins fall alike in 2 of 2^5 tosses, which is 0.06; in samples with replacement the five
    are 2.3 standard deviations from none, which is 0.02. Of eight, both are below 0.05.
    """
    right = [f"Satz Nummer {number}" for number in range(60)]
    write_lines(tmp_path / "a", ["falsch"] * wrong + right[wrong:])
    write_lines(tmp_path / "b.de", right)
    a, b = (str(tmp_path / each) for each in ("a", "b.de"))
    found = compare(a, b, data=b, metrics=["exact"])["all"]["exact"]
    assert found["p_bootstrap"] < 0.04
    assert (found["p_randomisation"] > 0.05) == (wrong == 5)
    assert found["better"] == better


def test_two_files_need_references(tmp_path: Path) -> None:
    """Whose ending says the language, and with it the tokenizer."""
    path = tmp_path / "refs.ko"
    write_lines(path, ["나는 학교에 간다.", "너는 집에 있다."])
    with pytest.raises(UsageError, match=r"`data`.*val\.de"):
        compare(str(path), str(path))
    found = compare(str(path), str(path), data=str(path), samples=100)
    assert "tok:ko-mecab" in found["all"]["bleu"]["signature"]


def test_compressed_references(tmp_path: Path) -> None:
    """The language is the ending of what is compressed."""
    path = tmp_path / "refs.ko.gz"
    path.write_bytes(gzip.compress("나는 학교에 간다.\n너는 집에 있다.\n".encode()))
    found = compare(str(path), str(path), data=str(path), samples=100)
    assert "tok:ko-mecab" in found["all"]["bleu"]["signature"]


def test_references_are_one_file(tmp_path: Path) -> None:
    """No pattern, even if it fits one file, or two."""
    for name in ("val1.de", "val2.de"):
        write_lines(tmp_path / name, TARGET)
    path = str(tmp_path / "val1.de")
    for pattern in ("val*.de", "val1*.de"):
        with pytest.raises(UsageError, match="is a pattern: give the name of one file"):
            compare(path, path, data=str(tmp_path / pattern))


def test_another_number_of_lines(own_translator: Path, tmp_path: Path) -> None:
    """Both counts, before anything is translated."""
    before = read_jsonl(own_translator / "evaluations.jsonl")
    write_lines(tmp_path / "short", TARGET[:7])
    with pytest.raises(DataError, match=r"short has 7 lines, .*valid\.\{en,de\} 8"):
        compare(str(own_translator), str(tmp_path / "short"))
    assert read_jsonl(own_translator / "evaluations.jsonl") == before


def test_what_cannot_be_compared(own_translator: Path, classifier: Path, tmp_path: Path) -> None:
    """Neither a model nor a file; a model that does not translate; another pair of languages."""
    with pytest.raises(NotFoundError, match=r"no model 'nothing'.*Nor is it a file"):
        compare(str(own_translator), "nothing")
    with pytest.raises(UsageError, match="does not translate"):
        compare(str(classifier), str(own_translator))
    with pytest.raises(UsageError, match="translate en-de and en-ko"):
        compare(str(own_translator), "date-en-ko")


def test_test_splits_need_final(
    own_translator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule of `evaluate`: by the recipe's name, and by content wherever the file lies."""
    write_lines(tmp_path / "refs.de", TARGET)
    written = str(tmp_path / "refs.de")
    with pytest.raises(UsageError, match="`final=True`"):
        compare(str(own_translator), written, split="test")
    found = compare(str(own_translator), written, split="test", final=True, samples=100)
    assert found["final"] is True
    assert read_jsonl(own_translator / "evaluations.jsonl")[-1]["final"] is True
    monkeypatch.setitem(splits._register(), sha256(Path(written)), Split("secret", test=True))
    with pytest.raises(UsageError, match="is a test split"):
        compare(written, written, data=written)


def test_the_other_models_test_split_needs_final(own_translator: Path, tmp_path: Path) -> None:
    """What one of them must not be chosen by, no comparison may show."""
    other = shutil.copytree(own_translator, tmp_path / "other")
    recipe = other / "recipe.toml"
    text = recipe.read_text(encoding="utf-8")
    write_numbers(tmp_path / "sets")
    own = text.replace('test = "numbers/test"', f'test = "{tmp_path}/sets/numbers/test"')
    recipe.write_text(own, encoding="utf-8")
    manifest = json.loads((other / "manyheads.json").read_text(encoding="utf-8"))
    manifest["sha256"]["recipe.toml"] = sha256(recipe)
    (other / "manyheads.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(UsageError, match="is a test split"):
        compare(str(own_translator), str(other), data=f"{tmp_path}/sets/numbers/test")
