"""The ideas of the Learn view: as the atlas has them, with code that is where they say."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from manyheads.project.paths import shipped
from manyheads.web.app import STATIC
from manyheads.web.learn_ideas import DATA, lessons

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


def largest(row: list[float]) -> int:
    return max(range(len(row)), key=row.__getitem__)


def piece(token: str) -> str:
    return token.replace("▁", "")


def held(view: dict[str, Any], figure: dict[str, Any]) -> tuple[dict[str, Any], list[float]]:
    """The map that a figure opens, and the row that it holds, in its head."""
    found = next(
        each
        for each in view["maps"]
        if each["kind"] == figure["map"] and each["layer"] == figure["layer"]
    )
    rows = found["mean"] if figure["head"] == "mean" else found["weights"][int(figure["head"]) - 1]
    return found, rows[figure["row"] - 1]


def row_and_peak(view: dict[str, Any], figure: dict[str, Any]) -> list[str]:
    """The word that is held, and that with its largest weight."""
    found, weights = held(view, figure)
    names = (found["rows"][figure["row"] - 1], found["columns"][largest(weights)])
    return [f"“{piece(each)}”" for each in names]


def of_group(view: dict[str, Any], group: str, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each for each in view["figures"] if (each["group"], each["kind"]) == (group, kind)
    )
    return found


def curve(view: dict[str, Any], group: str, name: str) -> list[float]:
    curves = of_group(view, group, "lines")["curves"]
    found: list[float] = next(each["y"] for each in curves if each["name"] == name)
    return found


def nearest(view: dict[str, Any], figure: dict[str, Any]) -> list[str]:
    rows = of_group(view, "embeddings", "table")["rows"]
    neighbours = next(each[2] for each in rows if each[0] == "play")
    return ["“play”", f"“{neighbours.split()[0]}”"]


def with_and_without_root(client: httpx.Client, figure: dict[str, Any]) -> list[str]:
    """The largest weight of the row, and what it would be without dividing its scores."""
    given = {"model": figure["model"], "text": figure["text"], "row": figure["row"]}
    site = f"encoder layer {figure['layer']} self"
    steps = client.post(
        "/api/v1/look/head", json={**given, "site": site, "head": int(figure["head"])}
    ).json()
    products = np.array(steps["products"])
    raw = np.exp(products - products.max())
    root = f"√{steps['size']}"
    return [f"{100 * max(steps['weights']):.0f}%", root, f"{100 * (raw / raw.sum()).max():.0f}%"]


def two_peaks(view: dict[str, Any], figure: dict[str, Any]) -> list[str]:
    """The pieces with the two largest weights, in this order, behind the word that is held."""
    found, weights = held(view, figure)
    first, second = sorted(range(len(weights)), key=lambda i: -weights[i])[:2]
    names = (found["rows"][figure["row"] - 1], *(found["columns"][i] for i in (first, second)))
    return [f"“{piece(each)}”" for each in names]


def heads_differ(view: dict[str, Any], figure: dict[str, Any]) -> list[str]:
    """The word that is held, and in the order of heads what each looks at most."""
    found, _ = held(view, figure)
    row = figure["row"] - 1
    peaks = [piece(found["columns"][largest(each[row])]) for each in found["weights"]]
    assert peaks[1] == peaks[2]
    return [f"“{each}”" for each in (piece(found["rows"][row]), *dict.fromkeys(peaks))]


def nothing_ahead(view: dict[str, Any], figure: dict[str, Any]) -> list[str]:
    """No weight above the diagonal, in any head of any layer."""
    maps = [each for each in view["maps"] if each["kind"] == "decoder self"]
    assert maps
    for each in maps:
        assert np.triu(np.array(each["weights"]), 1).max() == 0
        assert np.array(each["weights"])[:, -1].min() >= 0
    return ["0"]


def costliest(view: dict[str, Any], figure: dict[str, Any]) -> list[str]:
    token, chance, loss = max(
        (each for each in of_group(view, "loss", "table")["rows"] if each[1] is not None),
        key=lambda each: each[2],
    )
    return [f"“{token}”", f"{chance:.3f}", f"{loss:.3f}"]


def patches(view: dict[str, Any], figure: dict[str, Any]) -> list[str]:
    grid = view["grids"][0]
    (_, _, height, width), whole = grid["boxes"][0], f"{view['height']} × {view['width']}"
    return [whole, f"{height:.0f} × {width:.0f}", str(grid["rows"] * grid["columns"])]


def peak_of_class_token(view: dict[str, Any], figure: dict[str, Any]) -> list[str]:
    found = next(each for each in view["maps"] if each["layer"] == figure["layer"])
    assert found["rows"][0] == "class token"
    row, column = found["columns"][largest(found["mean"][0])].removeprefix("patch ").split(",")
    return [str(figure["layer"]), row, column]


# What the figure of an idea is there to show: words and numbers of its text, in English in order.
SHOWN: dict[str, Callable[[dict[str, Any], dict[str, Any]], list[str]]] = {
    "T7": lambda view, figure: nearest(view, figure)[::-1],
    "T8": lambda view, _: [f"{curve(view, 'positions', 'sinusoidal')[i]:.2f}" for i in (1, 10)],
    "T5": row_and_peak,
    "T6": two_peaks,
    "T9": heads_differ,
    "T12": lambda view, _: [
        f"{of_group(view, 'layers', 'heat')['values'][0][i]:.2f}" for i in (1, 4)
    ],
    "T13": nothing_ahead,
    "T14": row_and_peak,
    "T16": costliest,
    "V1": patches,
    "V2": peak_of_class_token,
    "V3": lambda view, _: [f"{curve(view, 'positions', 'in a row')[i]:.2f}" for i in (1, 3)],
    "V11": lambda view, _: [
        f"{curve(view, 'distance', 'mean of heads')[0]:.0f}",
        f"{curve(view, 'distance', '3 x 3 convolutions: receptive field')[0]:.0f}",
    ],
}


@pytest.mark.parametrize("name", IDEAS)
def test_its_figure_shows_what_it_says(name: str, client: httpx.Client) -> None:
    """What is said of the example is computed from what the model answers for it."""
    figure = IDEAS[name]["figure"]
    if name == "T5a":
        expected = with_and_without_root(client, figure)
    else:
        given = {"model": figure["model"]}
        if "image" in figure:
            content = (STATIC / "examples" / f"{figure['image']}.png").read_bytes()
            given["image"] = base64.b64encode(content).decode()
        else:
            given["text"] = figure["text"]
        expected = SHOWN[name](client.post("/api/v1/look", json=given).json(), figure)
    said = figure["shows"]
    assert re.search(".*".join(map(re.escape, expected)), said["en"])
    assert all(each in said["ko"] for each in expected)


def test_the_first_idea_is_the_beginning() -> None:
    """Ideas about texts stand in the order of the story: what a later one needs comes before it."""
    order = list(IDEAS)
    assert order[0] == "T7"
    needs = {"T5": ["T7", "T8"], "T6": ["T5"], "T9": ["T5"], "T12": ["T9"], "T14": ["T13"]}
    for idea, before in needs.items():
        assert all(order.index(each) < order.index(idea) for each in before)


def test_no_idea_has_the_equation_of_another_kind_of_model() -> None:
    """The score of a recurrent decoder stands above no Transformer's map."""
    for idea in IDEAS.values():
        of_code = {each.partition(":")[0] for each in idea["code"]}
        assert "manyheads.nn.attention.recurrent_attention" not in of_code
