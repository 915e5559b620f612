"""The page as a text: it holds all it needs, asks for nothing, and no user's text breaks out."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
import torch

from manyheads.lens.thumbnail import data_url
from manyheads.lens.view.report import LIBRARIES, STATIC, modules, report
from tests.lens import examples, views
from tests.schema import errors

TEXT = f"{views.UNFRIENDLY} \ud800 한국어"


class Parts(HTMLParser):
    """Scripts, styles and everything that could ask a network for something."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.metas: list[dict[str, str | None]] = []
        self.addresses: list[str] = []
        self.title = ""
        self._inside: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._inside = tag
        if tag == "script":
            self.scripts.append((found, ""))
        elif tag == "style":
            self.styles.append("")
        elif tag == "meta":
            self.metas.append(found)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif self._inside == "style":
            self.styles[-1] += data
        elif self._inside == "title":
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = None


def parsed(page: str) -> Parts:
    parts = Parts()
    parts.feed(page)
    return parts


def data_of(parts: Parts) -> dict[str, Any]:
    (text,) = [text for attributes, text in parts.scripts if attributes.get("id") == "look-data"]
    return dict(json.loads(text))


def test_nothing_is_asked_of_a_network() -> None:
    """Everything is inside; the policy allows what is written in the page and nothing else."""
    parts = parsed(report(views.image(), title="x", pixels=torch.zeros(4, 6, dtype=torch.uint8)))
    assert parts.addresses == ["data:,"]  # the icon that a browser would look for
    (policy,) = [
        meta["content"] or ""
        for meta in parts.metas
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data: blob:"
    assert "unsafe" not in policy
    run = [text for attributes, text in parts.scripts if attributes.get("type") in (None, "module")]
    assert len(run) == len(LIBRARIES) + 1
    for rule, texts in (("script-src", run), ("style-src", parts.styles)):
        hashes = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in texts]
        assert rules[rule].split() == [f"'sha256-{each}'" for each in hashes]


def test_no_text_breaks_out_of_the_page() -> None:
    """A token, a title, a file's name that would close the script: all of them come back whole."""
    view = views.transformer()
    told = {"text": TEXT, "translation": TEXT}
    page = report(view, title=TEXT, metadata=told, name=TEXT)
    parts = parsed(page)
    assert len(parts.scripts) == len(LIBRARIES) + 3
    data = data_of(parts)
    assert data["told"] == told
    assert data["view"]["source"] == view.source
    assert parts.title == TEXT
    (written,) = re.findall(r'id="look-data">(.*?)</script>', page)
    assert not set("<>&\u2028\u2029") & set(written)
    assert written.isascii()


def test_weights_are_taken_out_of_the_data() -> None:
    """They are packed beside it; the rest of the view is as its JSON has it."""
    view = views.translation()
    data = data_of(parsed(report(view, title="x")))
    found, whole = data["view"], json.loads(json.dumps(view.to_json()))
    for short, long in zip(found["maps"], whole["maps"], strict=True):
        assert short.pop("heads") == len(long.pop("weights"))
        del long["mean"]
        assert short == long
    del found["maps"], whole["maps"]
    assert found == whole
    assert data["open"]["site"] == "decoder layer 3 cross"  # the clearest


@pytest.mark.parametrize(
    "view",
    [
        views.translation(),
        views.transformer(),
        views.recurrent(),
        views.recurrent("seq2seq-lstm"),
        views.tags(),
        views.image(),
        views.windowed(),
        examples.small_image_view("attention"),
    ],
    ids=["translation", "transformer", "lstm", "no attention", "tags", "vit", "swin", "pool"],
)
def test_views_are_what_the_schema_says(view: Any) -> None:
    assert errors(json.loads(json.dumps(view.to_json()))) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": "manyheads-view/2"}, "was expected"),
        ({"probabilities": [1.5]}, "greater than the maximum"),
        ({"weather": "fine"}, "'weather' was unexpected"),
        ({"figures": [{"kind": "pie", "group": "", "legend": "", "title": ""}]}, "pie"),
    ],
)
def test_the_schema_refuses(change: dict[str, Any], reason: str) -> None:
    """A schema that takes everything says nothing."""
    found = errors(json.loads(json.dumps({**views.translation().to_json(), **change})))
    assert any(reason in each for each in found), found


def test_images_are_small_and_small_ones_exact() -> None:
    """The digits of 8 x 8 pixels stay what they are; a photo becomes a JPEG of 1024 pixels."""
    digit = torch.arange(64, dtype=torch.uint8).view(8, 8)
    assert data_url(digit).startswith("data:image/png;base64,")
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randint(0, 256, (30, 20, 3), generator=generator, dtype=torch.uint8)
    photo = coarse.repeat_interleave(100, 0).repeat_interleave(100, 1)
    address = data_url(photo)
    assert address.startswith("data:image/jpeg;base64,")
    assert len(address) < 500_000


def test_modules_are_joined_each_once() -> None:
    """Imports become constants, exports what a function gives back; nothing of either is left."""
    program = modules("start.js")
    assert not re.search(r"^(import|export) ", program, flags=re.MULTILINE)
    for path in STATIC.glob("*.js"):
        name = f"const module_{path.stem} = "
        assert program.count(name) == (path.name != "start.js"), path.name


def test_no_script_ends_early() -> None:
    """What stands inside <script> and <style> may not hold what ends them."""
    for path in [*STATIC.glob("*.js"), *STATIC.glob("d3/*.js"), *STATIC.glob("*.css")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"</(script|style)|<!--", text, flags=re.IGNORECASE), path.name
        assert "\r" not in text


def test_modules_are_readable_and_fetch_nothing() -> None:
    """Small files of short lines; nothing in them reaches for a network or makes code of text."""
    for path in STATIC.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        assert len(lines) < 400, path.name
        if path.name != "korean.js":  # one text a line
            assert max(map(len, lines)) <= 110, path.name
        assert lines[0].startswith("// "), path.name
        found = re.search(r"\b(fetch|XMLHttpRequest|WebSocket|eval|innerHTML|import)\(", text)
        assert not found, (path.name, found)
        assert "innerHTML" not in text


def test_d3_has_its_licence() -> None:
    """Vendored as published: name and version in the file, the licence beside it."""
    for library in LIBRARIES:
        text = (STATIC / "d3" / f"{library}.min.js").read_text(encoding="utf-8")
        assert re.match(rf"// https://d3js\.org/{library}/ v3\.\d+\.\d+ Copyright", text)
        licence = STATIC / "d3" / f"LICENSE-{library.removeprefix('d3-')}"
        assert "Mike Bostock" in licence.read_text(encoding="utf-8")


def test_damaged_weights_are_refused() -> None:
    """A model that diverged has no map; `nan` would be no JSON either."""
    from manyheads.errors import UsageError
    from manyheads.lens.view.text_view import map_view
    from manyheads.nn.recording.trace import LayerId

    weights = torch.full((1, 1, 2), float("nan"))
    with pytest.raises(UsageError, match="encoder layer 1 self contains NaN"):
        map_view(LayerId("encoder"), weights, rows=["a"], columns=["a", "b"], what="")


def test_all_that_the_page_says_is_there_in_korean() -> None:
    """Every text that a module asks for; those that Python writes are tested with real figures."""
    korean = (STATIC / "korean.js").read_text(encoding="utf-8")
    asked = set()
    for path in {*STATIC.glob("*.js")} - {STATIC / "korean.js", STATIC / "state.js"}:
        source = re.sub(r'" \+\s+"', "", path.read_text(encoding="utf-8"))
        asked |= set(re.findall(r'\b(?:say|button|tell)\(\s*"([^"]+)"', source))
        asked |= set(re.findall(r'^    "([A-Z][^"]+\.)",$', source, flags=re.MULTILINE))
    assert len(asked) > 30
    assert {text for text in asked if f'"{text}":' not in korean} == {"CSV"}
