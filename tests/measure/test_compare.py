"""Comparing models, and files of what other systems put out."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from manyheads import comparison, load
from manyheads.asks.evaluate_request import TextMetric
from manyheads.comparison import compare
from manyheads.data import split_register as splits
from manyheads.data.split_register import Split
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.files import sha256
from manyheads.measure import bootstrap
from manyheads.measure.stored_model import evaluate
from manyheads.measure.text_metrics import Statistics
from manyheads.tasks.translate.predictor import Translator
from tests.made import (
    numbers,
    read_jsonl,
    trained,
    write_hashes,
    write_lines,
    write_numbers,
)

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
    with pytest.raises(UsageError, match=r"not of one task \(classify, translate"):
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


def test_several_systems_against_the_first(tmp_path: Path) -> None:
    """Each pair as if alone; a p-value just below the level is none of two (Holm)."""
    right = [f"word {number}" for number in range(400)]
    files = {"a": 40, "b": 50, "c": 60}  # wrong lines
    for name, wrong in files.items():
        lines = [*("x",) * wrong, *right[wrong:]]
        write_lines(tmp_path / f"{name}.de", lines)
    write_lines(tmp_path / "right.de", right)
    names = [str(tmp_path / f"{name}.de") for name in files]
    data = str(tmp_path / "right.de")
    found = compare(*names, data=data, metrics=["exact"], samples=200)["all"]["exact"]
    assert [each["value"] for each in found["scores"]] == [90.0, 87.5, 85.0]
    alone = compare(names[0], names[2], data=data, metrics=["exact"], samples=200)["all"]["exact"]
    assert found["pairs"][1]["p_bootstrap"] == alone["p_bootstrap"]
    assert alone["pairs"] == [{key: alone[key] for key in alone["pairs"][0]}]
    assert found["pairs"][1]["difference"]["value"] == pytest.approx(-5.0)
    assert found["pairs"][1]["better"] == "a"


@pytest.mark.parametrize(
    ("p", "better"),
    [((0.03, 0.04), [None, None]), ((0.02, 0.04), ["b", "b"]), ((0.06, 0.001), [None, "b"])],
)
def test_holm(
    p: tuple[float, float], better: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least p-value of two is compared with half the level, the next with the level."""
    given = iter(p)

    def compared(*_: object, **__: object) -> bootstrap.Comparison:
        interval, value = bootstrap.Interval(1.0, 0.0, 2.0), next(given)
        return bootstrap.Comparison(interval, interval, interval, value, value)

    monkeypatch.setattr(bootstrap, "compare", compared)
    table = [Statistics.mean(np.array([1.0]), "")] * 3
    found = comparison._compare("accuracy", table, 100, 1)
    assert [each["better"] for each in found["pairs"]] == better


def test_classifiers(classifier: Path, tmp_path: Path) -> None:
    """By the images that each gets right; the score is that of the evaluation."""
    worse = tmp_path / "worse"
    shutil.copytree(classifier, worse)
    weights = load_file(worse / "model.safetensors")
    save_file({name: -tensor for name, tensor in weights.items()}, worse / "model.safetensors")
    write_hashes(worse / "manyheads.json")
    found = compare(str(classifier), str(worse), str(classifier), samples=100)
    assert found["examples"] == evaluate(str(classifier))["images"]
    accuracy = found["all"]["accuracy"]
    for path, score in zip((classifier, worse), accuracy["scores"], strict=False):
        assert score["value"] == pytest.approx(evaluate(str(path))["all"]["accuracy"]["value"])
    assert accuracy["pairs"][1]["difference"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert accuracy["pairs"][1]["better"] is None
    page = comparison.comparison_page(found)
    assert page.count("<tr>") == 2 * 4  # two metrics, with a head and three systems each
    assert "no clear difference" in page
    with pytest.raises(UsageError, match="`metrics` are those of translators"):
        compare(str(classifier), str(worse), metrics=["bleu"])


def test_readers() -> None:
    """By the mistakes in each line."""
    model = str(trained("reader"))
    found = compare(model, model, samples=100)["all"]
    for metric, scores in found.items():
        expected = pytest.approx(evaluate(model)["all"][metric]["value"])
        assert [each["value"] for each in scores["scores"]] == [expected, expected]
        assert scores["better"] is None


def test_a_task_without_scores_of_examples(tmp_path: Path) -> None:
    """Scores side by side, and no test."""
    write_lines(tmp_path / "lines.txt", ["오늘은 날씨가 좋다.", "내일 다시 만나자."])
    model, data = "korean-spacing-lstm", str(tmp_path / "lines.txt")
    found = compare(model, model, data=data)["all"]
    line = evaluate(model, data=data)["all"]
    assert found.keys() == line.keys()
    for metric, scores in found.items():
        assert scores["scores"] == [{"value": line[metric]["value"]}] * 2
        assert scores["pairs"] == []
