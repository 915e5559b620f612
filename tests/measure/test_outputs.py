"""Rows of an evaluation: every input with its truth and answer, in a file and on a page."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import manyheads
from manyheads import Classifier, Translator
from manyheads.errors import UsageError
from manyheads.measure.outputs import OutputRow, sentence_scores, write_outputs
from manyheads.measure.text_metrics import chrf
from tests import browser
from tests.language import trained as language_model
from tests.made import CLASSES, half, numbers, read_jsonl, trained, write_lines

Rows = list[dict[str, Any]]
LINE = {"data": "made", "metric": "accuracy", "value": 50.0}


def measured(model: Any, folder: Path, **parameters: Any) -> tuple[dict[str, Any], Rows]:
    line = manyheads.evaluate(model, outputs=folder, **parameters)
    assert "rows" not in line  # the log has scores only
    assert (folder / "index.html").read_text("utf-8").startswith("<!doctype html>")
    rows = read_jsonl(folder / "outputs.jsonl")
    assert [row["number"] for row in rows] == list(range(len(rows)))
    assert len((folder / "answers.txt").read_text("utf-8").splitlines()) == len(rows)
    return line, rows


# --- Tasks --------------------------------------------------------------------------------------


def test_a_translator(own_translator: Path, tmp_path: Path) -> None:
    """The rows are the pairs in order; each score is that of the sentence alone."""
    translate = manyheads.load(own_translator, Translator)
    _, rows = measured(translate, tmp_path / "new" / "out")
    source, target = numbers(8, seed=1)
    assert [(row["input"], row["truth"]) for row in rows] == [
        (a, [b]) for a, b in zip(source, target, strict=True)
    ]
    assert [row["answer"] for row in rows] == translate(source)
    for row in rows:
        assert row["score"] == pytest.approx(chrf([row["answer"]], [row["truth"]]).value, abs=1e-3)
        assert row["right"] == (row["answer"] in row["truth"])
        assert 0 < row["probability"] <= 1


def test_a_classifier(classifier: Path, tmp_path: Path) -> None:
    """The score is the probability of the right class: the share of right rows is the accuracy."""
    line, rows = measured(classifier, tmp_path / "out")
    assert line["value"] == pytest.approx(100 * sum(row["right"] for row in rows) / len(rows))
    for row in rows:
        (truth,) = row["truth"]
        shares = {row["answer"]: row["probability"], **dict(row["others"])}
        assert set(shares) == set(CLASSES)
        assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
        assert row["score"] == pytest.approx(100 * shares[truth], abs=1e-2)
        assert Path(row["input"]).is_file()  # its own file: nothing is copied
    assert not (tmp_path / "out" / "images").exists()


def test_images_without_a_file_get_one_to_look_at(tmp_path: Path) -> None:
    """Those of scikit-learn: the file on the page is classified as the row says."""
    _, rows = measured("digits", tmp_path / "out")
    digits = manyheads.load("digits", Classifier)
    worst = min(rows, key=lambda row: row["score"])
    assert digits(worst["input"]) == worst["answer"]
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert f"manyheads look digits {worst['input']}" in page


@pytest.mark.parametrize("task", ["generate", "fill", "tag"])
def test_models_with_an_output_per_token(task: str, tmp_path: Path) -> None:
    line, rows = measured(language_model(task), tmp_path / "out")
    assert len(rows) == line["lines"]
    for row in rows:
        assert 0 <= row["score"] <= 100
        assert row["score"] <= 100 * row["probability"] + 1e-3  # nothing is more probable
        assert len(row["truth"]) == 1


def test_a_reader_of_lines(tmp_path: Path) -> None:
    line, rows = measured(trained("reader"), tmp_path / "out")
    assert len(rows) == line["lines"]
    exact = sum(row["right"] for row in rows) / len(rows)
    assert line["all"]["exact"]["value"] == pytest.approx(100 * exact)


@pytest.mark.parametrize("model", ["emoji-caption", "emoji-search"])
def test_images_with_texts(model: str, tmp_path: Path) -> None:
    """Every image with all its right texts; a matcher answers with the nearest text of the set."""
    folder = tmp_path / "images"
    folder.mkdir()
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "white")):
        Image.new("RGB", (36, 36), colour).save(folder / f"{name}.png")
        write_lines(folder / f"{name}.txt", [f"a {colour} square", f"{colour} paper"])
    _, rows = measured(model, tmp_path / "out", data=str(folder))
    assert len(rows) == 3
    assert {tuple(row["truth"]) for row in rows} == {
        (f"a {colour} square", f"{colour} paper") for colour in ("red", "blue", "white")
    }
    if model == "emoji-search":
        every = {text for row in rows for text in row["truth"]}
        assert all(row["answer"] in every for row in rows)
        assert all(row["right"] == (row["score"] == 100) for row in rows)


# --- The folder ---------------------------------------------------------------------------------


def test_a_folder_of_something_else_is_left_alone(own_translator: Path, tmp_path: Path) -> None:
    """Found before anything is translated; a report takes the place of an earlier one."""
    translate = manyheads.load(own_translator, Translator)
    logged = (own_translator / "evaluations.jsonl").read_bytes()
    write_lines(tmp_path / "mine" / "notes.txt", ["notes"])
    with pytest.raises(UsageError, match="holds other files"):
        manyheads.evaluate(translate, outputs=tmp_path / "mine")
    with pytest.raises(UsageError, match="is a file: name a folder"):
        manyheads.evaluate(translate, outputs=tmp_path / "mine" / "notes.txt")
    assert (own_translator / "evaluations.jsonl").read_bytes() == logged
    measured(translate, tmp_path / "out")
    measured(translate, tmp_path / "out")


def test_line_n_belongs_to_row_n(tmp_path: Path) -> None:
    """Even if a model puts out the end of a line."""
    texts = ["a\nb", "", "c\r"]
    rows = [OutputRow(input=t, truth=[t], answer=t, score=1, right=True) for t in texts]
    write_outputs(tmp_path, "m", rows, LINE, looks=False)
    assert (tmp_path / "answers.txt").read_bytes() == b"a b\n\nc \n"
    assert [row["answer"] for row in read_jsonl(tmp_path / "outputs.jsonl")] == texts


def test_a_score_per_sentence_without_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sacrebleu.metrics.chrf", None)
    assert sentence_scores(["one", "two"], [["one"], ["three"]]) == [100.0, 0.0]


# --- The page -----------------------------------------------------------------------------------

needs_browser = pytest.mark.skipif(
    browser.found() is None, reason=f"{browser.MISSING}. {browser.REMEDY}"
)
SHOWN = "[...document.querySelectorAll('tbody tr')].map(row => Number(row.cells[0].textContent))"


def made_rows() -> list[OutputRow]:
    """Four images; the second and the fourth are mistakes of the same kind."""
    kinds = [("cat", "cat", 0.9), ("cat", "dog", 0.8), ("dog", "dog", 0.6), ("cat", "dog", 0.55)]
    return [
        OutputRow(
            input=f"image {number} <b>",
            truth=[truth],
            answer=answer,
            score=100 * (share if truth == answer else 1 - share),
            right=truth == answer,
            probability=share,
            others=[("cat" if answer == "dog" else "dog", 1 - share)],
            image=lambda: half(1, 1),
        )
        for number, (truth, answer, share) in enumerate(kinds)
    ]


@needs_browser
def test_the_page_sorts_and_filters(tmp_path: Path) -> None:
    write_outputs(tmp_path / "out", "pets", made_rows(), LINE, looks=True)
    with browser.browser(tmp_path / "profile") as page:
        page.open(tmp_path / "out" / "index.html")
        assert page.evaluate(SHOWN) == [2, 4, 3, 1]  # the worst first
        chip = "document.querySelector('.chips button')"
        assert page.evaluate(f"{chip}.textContent") == "cat → dog: 2"
        page.click(".chips button")
        assert page.evaluate(SHOWN) == [2, 4]
        page.click(".chips button")
        page.evaluate(
            "{ const form = document.forms[0]; form.elements.least.value = '0.58';"
            "form.elements.truth.value = 'cat'; form.dispatchEvent(new Event('input')); }"
        )
        assert page.evaluate(SHOWN) == [2, 1]
        page.click("input[name=near]")  # the truth is the next answer
        assert page.evaluate(SHOWN) == [2]
        look = "document.querySelector('button.look').title"
        assert page.evaluate(look) == f"manyheads look pets {tmp_path}/out/images/000001.png"
        assert page.evaluate("document.querySelector('tbody img').naturalWidth") == 6
        assert "image 1 <b>" in page.evaluate("document.querySelector('tbody').textContent")
        heads = "[...document.querySelectorAll('th')].map(head => head.textContent)"
        assert all(page.evaluate(heads))
        assert page.evaluate("Boolean(document.querySelector('main h1'))")
        page.size(390, 800)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) == 0
        assert page.problems == []
        assert [each for each in page.requests if not each.startswith(("file:", "data:"))] == []


def test_a_report_is_not_part_of_the_model(own_translator: Path) -> None:
    """A file of the model is none of the report's folder."""
    shutil.copy(own_translator / "recipe.toml", own_translator / "copy.toml")
    with pytest.raises(UsageError, match="holds other files"):
        manyheads.evaluate(str(own_translator), outputs=own_translator)
