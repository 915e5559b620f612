"""The first hour: pages and notebooks are current, cells run, exercises tell right from wrong."""

import json
import re
from typing import Any

import pytest
import torch

from scripts import first_hour
from scripts.first_hour import LANGUAGES, Cell, cells, run

LONG = ("manyheads.train(", "mine(")  # what takes long, and what needs its result


def named(language: str, kind: str) -> list[Cell]:
    """The cells of a kind, in order."""
    return [cell for cell in cells(language) if cell.kind == kind]


@pytest.fixture(scope="module", params=LANGUAGES)
def ran(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Run every cell but the training once in each language; every output is the stored one."""
    parts = [
        cell._replace(kind="skipped") if any(each in cell.text for each in LONG) else cell
        for cell in cells(request.param)
    ]
    shown: list[str] = []
    values: dict[str, Any] = {}
    found = list(run(parts, values, show=shown.append))
    assert [each.printed for each in found if each.expected is not None] == [
        each.expected for each in found if each.expected is not None
    ]
    assert sum(each.expected is not None for each in found) > 8
    assert shown == [cell.name.split()[0] for cell in parts if cell.kind == "picture"]
    unsolved = [each.printed for each in found if each.cell.kind == "check"]
    assert all(text.startswith(("Not yet: ", "아직 아닙니다: ")) for text in unsolved)
    return request.param, values


def test_pages_and_notebooks_are_current() -> None:
    """Otherwise: python scripts/first_hour.py."""
    for path, text in first_hour.built().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is not what is built"


@pytest.mark.parametrize("number", range(len(named("en", "exercise"))))
def test_an_exercise_tells_right_from_wrong(
    number: int, ran: tuple[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The solution is right; each wrong one gets a sentence of its own, not an exception's."""
    language, values = ran
    exercise, check = (named(language, kind)[number] for kind in ("exercise", "check"))
    (solution,) = (cell for cell in named(language, "solution") if cell.name == exercise.name)
    wrong = [cell for cell in named(language, "wrong") if cell.name == exercise.name]
    sentences = re.findall(r'^        ("(?:\\.|[^"\\])*"),$', check.text, flags=re.MULTILINE)
    assert len(wrong) >= 2
    said = []
    for cell in (solution, *wrong):
        own = dict(values)
        exec(cell.text, own)
        exec(check.text, own)
        said.append(capsys.readouterr().out.rstrip("\n"))
    right, *advice = said
    assert right == {"en": "Right.", "ko": "정답입니다."}[language]
    prefix = {"en": "Not yet: ", "ko": "아직 아닙니다: "}[language]
    assert {each.removeprefix(prefix) for each in advice} <= {json.loads(s) for s in sentences}
    assert len({*advice}) == len({*sentences})  # each sentence is needed by a wrong solution


def test_the_hand_computes_what_the_model_computes(ran: tuple[str, dict[str, Any]]) -> None:
    """Seven lines in both places, and they would notice: values are of the order of 1."""
    language, values = ran
    assert values["seen"]["output"].abs().max() > 0.1
    assert torch.allclose(values["by_hand"], values["seen"]["output"], atol=1e-5)
    moments = [cell.text for cell in named(language, "code") if "by_hand = " in cell.text]
    assert len(moments) == 2


def test_both_languages_have_the_same_cells() -> None:
    """Text stands in pairs, and nothing of a mark is left."""
    english, korean = (cells(language) for language in LANGUAGES)
    assert [cell.kind for cell in english] == [cell.kind for cell in korean]
    for cell in (*english, *korean):
        assert not {"«", "»"} & {*cell.text}, cell.text
    for cell in korean:
        if cell.kind == "markdown":
            assert re.search("[가-힣]", cell.text)
    for cell in english:
        if cell.kind in ("markdown", "check"):
            assert len(re.findall("[가-힣]+", cell.text)) <= 1, cell.text  # an example of a number


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_notebook_is_one(language: str) -> None:
    """Of format 4.5: ids differ, code compiles, nothing is stored of a run."""
    book = json.loads(first_hour.notebook(language))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    for cell in book["cells"]:
        assert cell["cell_type"] in ("code", "markdown")
        assert isinstance(cell["source"], list)
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            compile("".join(cell["source"]), "cell", "exec")


@pytest.mark.parametrize("language", LANGUAGES)
def test_pictures_are_there(language: str) -> None:
    """And have descriptions."""
    pictures = named(language, "picture")
    assert len(pictures) == 3
    for cell in pictures:
        assert first_hour.picture(cell.name.split()[0]).exists()
    text = first_hour.page(language)
    assert len(re.findall(r"!\[[^\]]{20,}\]\(images/first-hour-", text)) == 3


def test_numbers_in_words() -> None:
    """By hand: a one is said at the end only."""
    values: dict[str, Any] = {"random": __import__("random")}
    (cell,) = (each for each in named("en", "code") if "def korean" in each.text)
    exec(cell.text, values)
    words = {7: "seven", 42: "forty-two", 110: "one hundred ten", 815: "eight hundred fifteen"}
    hangul = {7: "칠", 42: "사십이", 110: "백십", 815: "팔백십오", 301: "삼백일"}
    assert {n: values["english"](n) for n in words} == words
    assert {n: values["korean"](n) for n in hangul} == hangul
    assert len({*values["pairs"]}) == 260


def test_what_is_said_of_maps_is_true(ran: tuple[str, dict[str, Any]]) -> None:
    """Of the shipped en-de; another one may need other words, and new pictures."""
    _, values = ran
    first, fifth = (values["trace"].records[layer].weights()[0] for layer in (0, 4))
    to_the_end = first[:, :, -1].mean(dim=1)
    assert (to_the_end > 0.85).sum() > 3  # of six
    before = fifth.diagonal(-1, 1, 2).mean(dim=1)
    assert before.argmax() == 1
    assert before[1] > 0.4
    read = values["cross"][1].argmax(dim=-1)[values["output"].index("▁zurück")]
    assert values["tokens"].names[read] == "▁back"
