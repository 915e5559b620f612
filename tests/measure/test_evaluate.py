"""Measuring: what is logged, and test splits that are touched once."""

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from manyheads import load
from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.data import split_register as splits
from manyheads.data.images.pixels import Pixels, predict_logits
from manyheads.data.split_register import Split
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.files import sha256
from manyheads.measure.score import images_to_measure
from manyheads.measure.stored_model import evaluate
from manyheads.measure.text_metrics import TEXT_METRICS, bleu
from manyheads.project.model_facts import describe
from manyheads.recipe_data.pair_splits import read_corpus
from manyheads.recipe_data.text_data import PairData
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.translate.evaluation import by_group
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe
from tests.made import CLASSES, half, numbers, read_jsonl, write_lines
from tests.remarks import remarks


def log(folder: Path) -> list[dict[str, Any]]:
    return read_jsonl(folder / "evaluations.jsonl")


@pytest.fixture
def translate(own_translator: Path) -> Translator:
    found = load(own_translator)
    assert isinstance(found, Translator)
    return found


@pytest.fixture
def classify(own_classifier: Path) -> Classifier:
    found = load(own_classifier)
    assert isinstance(found, Classifier)
    return found


def test_a_line_of_the_log(translate: Translator) -> None:
    """Data, split, content, metric, value, signature, how it was decoded, when, final or not."""
    line = evaluate(translate)
    assert log(translate.folder.path)[-1] == line
    assert line["data"] == "numbers/valid"  # as in the recipe, wherever it is
    assert (line["split"], line["registered"], line["final"]) == ("valid", [], False)
    assert len(line["sha256"]) == 2
    assert (line["metric"], line["pairs"], line["beams"]) == ("bleu", 8, 4)
    assert line["all"]["bleu"] == {"value": line["value"], "signature": line["signature"]}
    assert "tok:13a" in line["signature"]
    assert line["date"].startswith("20")


def test_the_value_is_that_of_the_outputs(translate: Translator) -> None:
    """The stored model, its own search, the metric as in the paper's tool."""
    source, target = numbers(8, seed=1)  # what write_numbers wrote as validation
    assert evaluate(translate)["value"] == bleu(translate(source), target).value


def test_images(classify: Classifier) -> None:
    """Accuracy is the headline, the loss stands beside it."""
    line = evaluate(classify)
    assert (line["metric"], line["images"]) == ("accuracy", 8)
    assert set(line["all"]) == {"accuracy", "ece", "loss"}
    assert line["data"] == "8 images of halves"  # held out of what the recipe names
    # The two splits together are all images: count by hand what the model gets right.
    right = [classify(half(number % 2, number)) == CLASSES[number % 2] for number in range(40)]
    train = evaluate(classify, split="train")
    assert train["images"] == 32
    assert 32 * train["value"] + 8 * line["value"] == pytest.approx(100 * sum(right))


def test_images_and_their_mirror_images(classify: Classifier) -> None:
    """The mean of the logits of both, as one computes it here (Jordan 2024)."""
    images, _ = images_to_measure(cast(ClassifyRecipe, classify.folder.recipe), EvaluateRequest())
    images = images.relabel(classify.labels)
    pixels = Pixels(images, classify.preprocessing)[np.arange(len(images))]
    ways = (pixels, pixels.flip(3))
    logits = [predict_logits(classify.model, classify.preprocessing, each) for each in ways]
    expected = F.cross_entropy(
        torch.stack(logits).mean(dim=0), torch.from_numpy(images.labels)
    ).item()
    line = evaluate(classify, mirrored=True)
    assert line["mirrored"] is True
    assert line["all"]["loss"]["value"] == pytest.approx(expected, rel=1e-5)
    plain = evaluate(classify)
    measured = describe(str(classify.folder.path))["measured"]
    assert measured[f"{plain['data']} loss"] == round(plain["all"]["loss"]["value"], 2)
    assert f"{plain['data']}, mirrored loss" in measured
    assert "mirrored" not in plain
    assert plain["all"]["loss"]["value"] != pytest.approx(expected, rel=1e-4)


def test_a_folder_that_cannot_be_written_to(translate: Translator) -> None:
    """As an installed wheel's may be: the result is still an answer."""
    path = translate.folder.path / "evaluations.jsonl"
    path.unlink()
    path.mkdir()
    with remarks(r"not logged.*evaluations\.jsonl"):
        assert evaluate(translate)["pairs"] == 8


def test_a_shipped_model_stays_as_it_is(tmp_path: Path) -> None:
    """The package's folder is not its user's to write to: the result is an answer, no more."""
    write_lines(tmp_path / "mine.tsv", ["November 20\t11월 20일", "2026-11-20\t2026년 11월 20일"])
    translate = load("date-en-ko")
    before = contents(translate.folder.path)
    assert evaluate(translate, data=str(tmp_path / "mine.tsv"))["value"] == 100
    assert contents(translate.folder.path) == before


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    return {path.name: (path.stat().st_mtime_ns, sha256(path)) for path in folder.iterdir()}


# --- Reports ------------------------------------------------------------------------------------


def test_more_metrics(translate: Translator) -> None:
    """Besides the recipe's, each once; the recipe's first stays the headline."""
    report: dict[str, Any] = {"metrics": ("chrf", "bleu", "ter", "bleu_lc_tok")}
    line = evaluate(translate, **report)
    assert line["metric"] == "bleu"
    assert list(line["all"]) == ["bleu", "chrf", "ter", "bleu_lc_tok"]
    assert "norm:moses-de" in line["all"]["bleu_lc_tok"]["signature"]
    assert set(describe(str(translate.folder.path))["measured"]) >= {
        f"{line['data']} {metric}" for metric in line["all"]
    }


def test_by_length(translate: Translator, tmp_path: Path) -> None:
    """Every sentence in one bin; each bin's score is that of its sentences alone."""
    source, target = ["one", "two six", "one two three four five six seven"], ["eins"] * 3
    rows = [f"{s}\t{t}" for s, t in zip(source, target, strict=True)]
    write_lines(tmp_path / "mine.tsv", rows)
    report: dict[str, Any] = {"metrics": ("exact", "chrf"), "by_length": True}
    line = evaluate(translate, data=str(tmp_path / "mine.tsv"), **report)
    short, long = line["by_length"]["bins"]
    assert line["by_length"]["unit"] == "words"
    assert [(each["first"], each["last"], each["pairs"]) for each in (short, long)] == [
        (1, 5, 2),
        (6, 10, 1),
    ]
    assert short["pairs"] + long["pairs"] == line["pairs"]
    exact = (2 * short["exact"] + long["exact"]) / 3
    assert exact == pytest.approx(line["all"]["exact"]["value"])
    assert long["chrf"] == TEXT_METRICS["chrf"]([translate(source[2])], ["eins"], "de").value
    card = (translate.folder.path / "README.md").read_text(encoding="utf-8")
    assert f"bleu by words of the source: 1-5 {short['bleu']:.2f}, 6-10" in card


def test_by_group(translate: Translator, tmp_path: Path) -> None:
    """A column of the table names the group; a group's score is that of its sentences alone."""
    rows = ["one\teins\tbook", "two six\tsechs zwei\tchat", "three\tdrei\tbook"]
    write_lines(tmp_path / "mine.tsv", rows)
    path = str(tmp_path / "mine.tsv")
    line = evaluate(translate, data=path, group="3", metrics=("exact",))
    right = [translate(source) == target for source, target, _ in (row.split("\t") for row in rows)]
    assert list(line["groups"]) == ["book", "chat"]
    write_lines(tmp_path / "two.tsv", rows[1:2])
    alone = evaluate(translate, data=str(tmp_path / "two.tsv"), group="3", metrics=("exact",))
    assert line["groups"]["chat"] == alone["all"]["exact"]["value"]
    selected = evaluate(translate, data=f"{path}[3=chat]", group="3", metrics=("exact",))
    assert selected["groups"] == {"chat": line["groups"]["chat"]}
    assert selected["data"].endswith("mine.tsv[3=chat]")
    low, high = line["intervals"]["exact"]
    value = line["all"]["exact"]["value"]
    assert low <= value <= high
    assert value == pytest.approx(100 * sum(right) / 3)
    with pytest.raises(DataError, match=r"mine\.tsv, line 1"):
        evaluate(translate, data=path, group="4")
    with pytest.raises(UsageError, match="is not a table, so no column"):
        evaluate(translate, group="3")


def test_several_references(translate: Translator, tmp_path: Path) -> None:
    """A file of all translations, ragged: an output that equals any of them is right."""
    sources = ["one", "two six", "three"]
    path, references = tmp_path / "mine.tsv", tmp_path / "refs.tsv"
    write_lines(path, [f"{source}\tfalsch" for source in sources])
    answers = [translate(source) for source in sources]
    write_lines(
        references,
        ["three\tnichts", f"one\tauch\t{answers[0]}", "two six\tviel", f"two six\t{answers[1]}"],
    )
    line = evaluate(
        translate, data=str(path), metrics=("exact", "chrf"), references=str(references)
    )
    assert line["all"]["exact"]["value"] == pytest.approx(200 / 3)
    assert "nrefs:var" in line["all"]["chrf"]["signature"]
    assert line["references"] == str(references)
    alone = evaluate(translate, data=str(path), metrics=("exact",))
    assert alone["all"]["exact"]["value"] == 0
    assert "references" not in alone
    write_lines(references, ["one\teins"])
    with pytest.raises(DataError, match="2 of 3 sources, such as 'two six'"):
        evaluate(translate, data=str(path), references=str(references))
    write_lines(references, ["one"])
    with pytest.raises(DataError, match="line 1"):
        evaluate(translate, data=str(path), references=str(references))


def test_time(translate: Translator) -> None:
    """How long it took together and one at a time."""
    line = evaluate(translate, timing=True)
    timing = line["timing"]
    assert timing["alone"] == 8
    assert 0 < timing["median_milliseconds"] <= timing["p95_milliseconds"]
    assert timing["sentences_per_second"] > 0
    assert timing["tokens_per_second"] > timing["sentences_per_second"]
    card = (translate.folder.path / "README.md").read_text(encoding="utf-8")
    assert "sentences/s together; alone a median of" in card


def test_a_report_is_for_translators(classify: Classifier) -> None:
    """Images have no length."""
    with pytest.raises(UsageError, match="does not translate"):
        evaluate(classify, by_length=True)


def test_mirror_images_are_for_classifiers(translate: Translator) -> None:
    with pytest.raises(UsageError, match="does not classify images: leave out `mirrored`"):
        evaluate(translate, mirrored=True)


def test_metrics_by_name() -> None:
    """A mistyped one is answered with the nearest."""
    assert EvaluateRequest(metrics=("ter", "bleu")).text_metrics == ("ter", "bleu")
    with pytest.raises(UsageError, match=r"'blue': did you mean 'bleu'\? .*bleu_lc_tok"):
        EvaluateRequest(metrics=("blue",))


def test_signs_of_trouble_are_said(translate: Translator, tmp_path: Path) -> None:
    """A model on text that it was never trained on: in the log, in the card, in plain words."""
    rows = [f"{number} cats\tкошки и собаки номер {number}" for number in range(100)]
    write_lines(tmp_path / "mine.tsv", rows)
    line = evaluate(translate, data=str(tmp_path / "mine.tsv"))
    assert line["signs"]["wrong_script"] > 50
    (remark,) = (each for each in line["remarks"] if "another script" in each)
    assert remark in (translate.folder.path / "README.md").read_text(encoding="utf-8")
    assert "remarks" not in evaluate(translate)  # of 8 pairs no share says anything


# --- Test splits --------------------------------------------------------------------------------


def test_the_test_split_needs_final(translate: Translator) -> None:
    """And is then logged as such; without, nothing is measured or logged."""
    before = log(translate.folder.path)
    with pytest.raises(
        UsageError, match=r"is a test split.*`final=True`.*`split='valid'`"
    ) as caught:
        evaluate(translate, split="test")
    assert caught.value.exit_code == 2
    assert log(translate.folder.path) == before
    line = evaluate(translate, split="test", final=True)
    assert (line["split"], line["final"]) == ("test", True)
    assert log(translate.folder.path) == [*before, line]


def test_the_recipes_own_test_split_needs_final_by_its_path_too(translate: Translator) -> None:
    """Naming the file with --data instead of the split does not make it another one."""
    recipe = translate.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    assert recipe.data.test is not None
    with pytest.raises(UsageError, match="`final=True`"):
        evaluate(translate, data=recipe.data.test)


def test_other_spellings_of_its_path_are_the_same_split(
    translate: Translator, tmp_path: Path
) -> None:
    """A way round, and a link."""
    recipe = translate.folder.recipe
    assert isinstance(recipe, TranslateRecipe)
    assert recipe.data.root is not None
    assert recipe.data.test is not None
    root, (folder, name) = Path(recipe.data.root), recipe.data.test.split("/")
    (tmp_path / "link").symlink_to(root / folder)
    for path in (root / folder / ".." / folder / name, tmp_path / "link" / name):
        with pytest.raises(UsageError, match="`final=True`"):
            evaluate(translate, data=str(path))


def test_a_registered_test_split_needs_final_by_any_name(
    translate: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given as other data, it is known by its content; the log names it."""
    path = tmp_path / "harmless.tsv"
    write_lines(path, ["one\teins", "two three\tdrei zwei"])
    monkeypatch.setitem(splits._register(), sha256(path), Split("numbers/secret", test=True))
    with pytest.raises(UsageError, match=r"harmless\.tsv is a test split"):
        evaluate(translate, data=str(path))
    line = evaluate(translate, data=str(path), final=True)
    assert line["registered"] == ["numbers/secret"]
    assert line["split"] is None


def test_generated_test_dates_need_final(translate: Translator) -> None:
    """Whatever the model was trained on."""
    with pytest.raises(UsageError, match="dates:test is a test split"):
        evaluate(translate, data="dates:test")


# --- Other data ---------------------------------------------------------------------------------


def test_other_files_by_path(
    translate: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two aligned files by their common name, from the current folder."""
    write_lines(tmp_path / "mine.en", ["one", "nine two"])
    write_lines(tmp_path / "mine.de", ["eins", "zwei neun"])
    monkeypatch.chdir(tmp_path)
    line = evaluate(translate, data="mine")
    assert (line["data"], line["pairs"], line["split"]) == ("mine", 2, None)


def test_other_images(classify: Classifier, tmp_path: Path) -> None:
    """A folder a class; classes that the model does not know are named."""
    for number in range(3):
        (tmp_path / "new" / "right").mkdir(parents=True, exist_ok=True)
        half(1, 50 + number).save(tmp_path / "new" / "right" / f"{number}.png")
    assert evaluate(classify, data=str(tmp_path / "new"))["images"] == 3
    (tmp_path / "new" / "right").rename(tmp_path / "new" / "up")
    with pytest.raises(DataError, match=r"does not have: up\. The model has 2: left, right"):
        evaluate(classify, data=str(tmp_path / "new"))


def test_a_split_that_the_recipe_does_not_name(translate: Translator, classify: Classifier) -> None:
    """The nearest, those that there are, and another way."""
    with pytest.raises(UsageError, match=r"'vald': did you mean 'valid'.*`data`"):
        evaluate(translate, split="vald")
    with pytest.raises(UsageError, match=r"names no split 'test'"):
        evaluate(classify, split="test", final=True)


def test_missing_data(translate: Translator) -> None:
    """Named, with the places looked at."""
    with pytest.raises(NotFoundError, match="There is no data 'nowhere/test'"):
        evaluate(translate, data="nowhere/test")


def test_generated_dates_are_reported_by_phrasing(translate: Translator) -> None:
    """Every group has a score, and the whole is between the worst and the best."""
    corpus = read_corpus("dates:valid", PairData(train="", valid="", source="en", target="ko"))
    assert corpus.groups is not None
    assert len(corpus.groups) == len(corpus)
    exact = TEXT_METRICS["exact"].statistics(corpus.target, corpus.references)
    groups = by_group(corpus.groups, exact)
    assert set(groups) == set(corpus.groups)
    assert set(groups.values()) == {100.0}


# --- info ---------------------------------------------------------------------------------------


def test_info_on_a_folder(translate: Translator) -> None:
    """Parts, parameters, training and what was measured."""
    facts = describe(str(translate.folder.path))
    assert facts["task"] == "translate"
    assert facts["parameters"] == sum(p.numel() for p in translate.model.parameters())
    assert facts["trained"]["steps"] == 400
    assert any("bleu" in name for name in facts["measured"])
    json.dumps(facts)


def test_info_on_a_preset() -> None:
    """The paper's own figure stands beside ours."""
    facts = describe("transformer-base")
    assert facts["parameters"] == 63_082_496
    assert "65M" in facts["paper"]


def test_info_on_nothing() -> None:
    """Neither model nor preset."""
    with pytest.raises(NotFoundError, match=r"no model 'vit-x'.*preset"):
        describe("vit-x")
