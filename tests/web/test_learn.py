"""The ideas of the Learn view: as the atlas has them, with code that is where they say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from manyheads.project.paths import shipped
from manyheads.web.app import STATIC
from manyheads.web.ideas import DATA, lessons

ROOT = Path(__file__).parents[2]
STOP = re.compile(r"^### (\w+) · ([^\n]+)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
ERROR = re.compile(r"^\| \*\*(E\d+)\*\* \| (.+?) \| (.+?) \|", re.MULTILINE)
ATLAS = {
    language: (ROOT / "docs" / name).read_text(encoding="utf-8")
    for language, name in (("en", "atlas.md"), ("ko", "atlas.ko.md"))
}
IDEAS = {each["id"]: each for each in json.loads(DATA.read_text(encoding="utf-8"))["ideas"]}
LOCATED = {each["id"]: each["code"] for each in lessons()["ideas"]}


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("name", IDEAS)
def test_an_idea_is_that_of_the_atlas(name: str) -> None:
    """Its title in both languages, and its equation; a sentence of its own in each."""
    idea = IDEAS[name]
    for language, text in ATLAS.items():
        title, told = {found[0]: found[1:] for found in STOP.findall(text)}[name]
        assert idea["title"][language] == title
        assert squeezed(idea["math"]) in squeezed(told)
        assert 30 < len(idea["sentence"][language]) < 260
        assert bool(re.search("[가-힣]", idea["sentence"][language])) is (language == "ko")


@pytest.mark.parametrize("name", IDEAS)
def test_its_code_is_there(name: str) -> None:
    """The line that was computed is the definition's own, and the atlas names it too."""
    assert LOCATED[name]
    for each in LOCATED[name]:
        line = (ROOT / each["file"]).read_text(encoding="utf-8").splitlines()[each["line"] - 1]
        assert re.search(rf"\b(def|class) {each['name'].rpartition('.')[2]}\b", line), each
        assert f"`{each['name']}`" in ATLAS["en"]


@pytest.mark.parametrize("name", IDEAS)
def test_its_figure_is_of_a_shipped_model(name: str) -> None:
    """With a text or an example image; of one that opens a map, or shows a group of figures."""
    figure: dict[str, Any] = IDEAS[name]["figure"]
    assert figure["model"] in shipped("pretrained")
    assert ("text" in figure) is not ("image" in figure)
    assert ("map" in figure) is not ("panel" in figure)
    if "image" in figure:
        assert (STATIC / "examples" / f"{figure['image']}.png").is_file()


def test_the_errata_are_those_of_the_atlas() -> None:
    """All of them, word for word, in both languages."""
    for language, text in ATLAS.items():
        told = [
            (each["id"], each["said"][language], each["true"][language])
            for each in lessons()["errata"]
        ]
        assert told == ERROR.findall(text)
    assert len(lessons()["errata"]) == 14
