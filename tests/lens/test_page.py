"""The page in a real browser: opened from a disk, hovered, walked, pinned, let go, saved."""

import base64
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from manyheads.lens.panels import Bars, Curve, Figure, Heat, Interval, Lines, Panel, Table
from manyheads.lens.view.image_view import ClassView, ImageView
from manyheads.lens.view.report import report
from manyheads.lens.view.text_view import TextOverlay, TextView
from tests import browser
from tests.browser import Page
from tests.lens import examples, views
from tests.schema import errors

pytestmark = pytest.mark.skipif(
    browser.found() is None, reason=f"{browser.MISSING}. {browser.REMEDY}"
)
View = TextView | ImageView
Show = Callable[..., Page]
IDLE = "[...document.querySelectorAll('.token')].every(t => !t.matches('.lit, .asked'))"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests: it takes a second to start."""
    with browser.browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


def told(kind: str) -> dict[str, str]:
    """What the JSON says beside the view."""
    return {
        "model": "small <b>",
        **({"text": "a </script> b"} if kind == "text" else {"path": "x.png"}),
    }


@pytest.fixture
def show(tab: Page, tmp_path: Path) -> Show:
    """Write a view as a page and open it, at a desk or on a phone."""

    def open_(view: View, fragment: str = "", *, width: int = 1200, **features: str) -> Page:
        path = tmp_path / "look.html"
        pixels = torch.arange(24, dtype=torch.uint8).view(4, 6) * 10
        page = report(
            view,
            title="x",
            metadata=told(view.to_json()["kind"]),
            pixels=pixels if isinstance(view, ImageView) else None,
        )
        path.write_bytes(page.encode())
        tab.size(width, 900)
        tab.prefer(**{"prefers_color_scheme": "light", **features})
        tab.away()
        tab.open(path, fragment)
        return tab

    return open_


VIEWS: dict[str, Callable[[], View]] = {
    "translation": views.translation,
    "transformer": views.transformer,
    "lstm": views.recurrent,
    "no attention": lambda: views.recurrent("seq2seq-lstm"),
    "tags": views.tags,
    "vit": views.image,
    "swin": views.windowed,
    "pool": lambda: examples.small_image_view("attention"),
}


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        pytest.param(name, scheme, marks=() if (number + dark) % 2 else pytest.mark.full)
        for number, name in enumerate(VIEWS)
        for dark, scheme in enumerate(["light", "dark"])
    ],
)
def test_it_opens_from_a_disk(show: Show, name: str, scheme: str) -> None:
    """No request but for the file and what it holds, no word on the console, no sideways scroll."""
    page = show(VIEWS[name](), prefers_color_scheme=scheme)
    asked = [url for url in page.requests if not url.startswith(("data:", "blob:"))]
    assert [url.partition("/")[0] for url in asked] == ["file:"]
    for width in (320, 390, 1200):
        page.size(width, 800)
        page.wait(f"document.documentElement.scrollWidth <= {width}")
    assert page.problems == []


def test_the_model_is_named(show: Show) -> None:
    """Above the figure, and in a saved image of it."""
    page = show(views.translation())
    assert page.evaluate("document.querySelector('.figure > h1').innerText") == "small <b>"


def test_one_gesture_lights_up_everything(show: Show) -> None:
    """An output word under the pointer: its source words, the row of the map and of every head."""
    page = show(views.translation())
    page.hover(".queries .token", 6)  # Friday's
    assert page.evaluate("document.querySelectorAll('.keys .token.asked').length") == 6
    weights = page.evaluate(
        "[...document.querySelectorAll('.keys .weight')].map(e => Number(e.textContent))"
    )
    row = views.translation().maps[2].mean[6]
    assert weights == pytest.approx([w if w >= 0.005 else 0 for w in row], abs=0.0051)
    assert page.evaluate("document.querySelector('.matrix .lit.row').getAttribute('y')") == "6"
    marks = page.evaluate(
        "[...document.querySelectorAll('.heads path.lit')].map(e => e.getAttribute('d'))"
    )
    assert len(marks) == 5  # mean and four heads
    assert all(mark.startswith("M0,6h6") for mark in marks)
    threads = page.evaluate("document.querySelectorAll('.threads path').length")
    assert threads == sum(weight >= 0.005 for weight in row)
    page.away()
    assert page.evaluate(IDLE)


COLOURS = """(() => {
  const pixel = (canvas, x, y) =>
    "rgb(" + [...canvas.getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3).join(" ") + ")";
  const rgb = (colour) => "rgb(" + colour.match(/\\d+/g).join(" ") + ")";
  const row = Number(new URLSearchParams(location.hash.slice(1)).get("row")) - 1;
  const thumb = document.querySelector(".heads button[aria-pressed=true] canvas");
  const matrix = document.querySelector(".matrix canvas");
  const threads = new Map(d3.selectAll(".threads path").nodes()
    .map((path) => [path.__data__.c, rgb(getComputedStyle(path).stroke)]));
  return [...document.querySelectorAll(".keys .token")].map((chip, column) => [
    rgb(chip.style.backgroundColor), pixel(matrix, column, row), pixel(thumb, column, row),
    threads.get(column) ?? null,
  ]);
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("head", ["mean", "2"])
def test_equal_weights_have_equal_colours(show: Show, head: str, scheme: str) -> None:
    """A chip, its thread, the thumbnail and the map: one scale, of all heads of the layer."""
    page = show(
        views.translation(),
        f"#map=decoder+cross&layer=2&head={head}&row=3",
        prefers_color_scheme=scheme,
        prefers_reduced_motion="reduce",
    )
    found = page.evaluate(COLOURS)
    assert len({colours[0] for colours in found}) > 1
    for chip, cell, small, thread in found:
        assert chip == cell == small
        assert thread in (chip, None)
    assert sum(thread is not None for *_, thread in found) > 1
    # Two heads that give the same weight give it the same colour.
    weights = page.evaluate(
        "(() => { const all = {};"
        "for (const button of document.querySelectorAll('.heads button')) {"
        "const look = button.__data__; const canvas = button.querySelector('canvas');"
        "const ink = canvas.getContext('2d');"
        "for (let r = 0; r < canvas.height; r++) for (let c = 0; c < canvas.width; c++)"
        "(all[look.at(r, c)] ??= new Set()).add([...ink.getImageData(c, r, 1, 1).data].join()); }"
        "return Object.values(all).map(colours => colours.size); })()"
    )
    assert set(weights) == {1}


def test_the_width_of_threads_has_a_key(show: Show) -> None:
    """It says what is not drawn: at rest, and with a word chosen."""
    page = show(views.translation())
    key = "document.querySelector('.widths').innerText"
    assert "at rest, weights of 0.25 and more" in page.evaluate(key)  # 1.5 of 6 columns alike
    page.hover(".queries .token", 2)
    assert "with a word chosen, weights of 0.005 and more" in page.evaluate(key)
    widths = page.evaluate(
        "[...document.querySelectorAll('.widths path')]"
        ".map(e => Number(e.getAttribute('stroke-width')))"
    )
    assert widths == pytest.approx([9, 4.5, 0.9])


@pytest.mark.parametrize("make", [views.translation, views.image], ids=["text", "image"])
def test_explanations_belong_to_no_layer(show: Show, make: Callable[[], View]) -> None:
    """They stand apart from attention, without a slider; a line says when to trust each."""
    page = show(make())
    slider = "document.querySelector('.scrubber').checkVisibility()"
    trust = "document.querySelector('.trust').innerText"
    assert page.evaluate(slider)
    assert "A mean hides heads" in page.evaluate(trust)
    page.click(".kinds .explanations")
    assert not page.evaluate(slider)
    assert "map=explanations" in page.evaluate("location.hash")
    lines = set()
    for number in range(page.evaluate("document.querySelectorAll('.heads button').length")):
        page.evaluate(f"document.querySelectorAll('.heads button')[{number}].click()")
        lines.add(page.evaluate(trust))
    assert all(lines)
    assert not any("attention shows" in line.lower() for line in lines)
    # An address of an explanation alone opens it.
    page = show(make(), "#head=integrated+gradients")
    assert not page.evaluate(slider)


def test_gradients_that_do_not_add_up_are_marked(show: Show) -> None:
    """On the map itself, not only in a note."""
    note = "Integrated gradients do not add up: 6.4 is missing of a difference of 7.5."
    page = show(replace(views.translation(), notes=[note]), "#head=integrated+gradients")
    assert page.evaluate("document.querySelector('.trust.wrong').innerText") == (
        "Incomplete: do not rely on these."
    )


def test_what_was_taken_out_and_what_is_compared(show: Show, tmp_path: Path) -> None:
    """Heads without an output are named so; both sentences stand there with their translations."""
    view = views.transformer()
    view = replace(view, maps=[replace(each, taken_out=[2]) for each in view.maps])
    page = show(view)
    names = page.evaluate("[...document.querySelectorAll('.heads button')].map(b => b.innerText)")
    assert [each.strip() for each in names][:3] == ["mean", "head 1", "head 2 (taken out)"]
    assert page.evaluate("document.querySelector('.both')") is None
    compared = {"text": "a", "translation": "b", "instead": "c", "instead_translation": "d"}
    path = tmp_path / "both.html"
    path.write_text(report(view, title="x", metadata=compared), encoding="utf-8")
    page.open(path)
    assert page.evaluate("document.querySelector('.both').innerText") == "a → b\nc → d"
    assert page.problems == []


def test_korean_for_a_korean_browser(show: Show, tab: Page) -> None:
    """Chosen by what the browser prefers."""
    agent = tab.evaluate("navigator.userAgent")
    tab.command("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="ko-KR,en")
    try:
        page = show(views.transformer())
        assert page.evaluate("document.documentElement.lang") == "ko"
        assert page.evaluate("document.querySelector('.kinds .attention').innerText") == (
            "번역문 → 원문"
        )
        assert page.evaluate("document.querySelector('.legend').innerText").startswith("디코더 1층")
        assert page.evaluate("document.querySelector('.scrubber').innerText") == "층 1 / 2"
    finally:
        tab.command("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="en-US,en")
    assert page.problems == []


def test_threads_are_as_wide_as_weights(show: Show) -> None:
    page = show(views.translation())
    page.hover(".queries .token", 0)
    found = page.evaluate(
        "d3.selectAll('.threads path').nodes().map(e => "
        "[e.__data__.weight, Number(e.getAttribute('stroke-width'))])"
    )
    assert found
    for weight, width in found:
        assert width == pytest.approx(max(9 * weight, 0.6), abs=1e-4)


def test_pin_walk_let_go(show: Show) -> None:
    """A click pins, and the address knows; arrows walk along and across; Esc lets go of all."""
    page = show(views.translation())
    page.click(".queries .token", 2)
    page.away()
    assert "row=3" in page.evaluate("location.hash")
    assert page.evaluate("document.querySelectorAll('.queries .token.lit').length") == 1
    page.key("ArrowRight")
    assert "row=4" in page.evaluate("location.hash")
    page.key("ArrowUp")  # 월: to November, which it comes from
    assert "column=4" in page.evaluate("location.hash")
    assert "row" not in page.evaluate("location.hash")
    assert "November is looked at by" in page.evaluate(
        "document.querySelector('[role=status]').textContent"
    )
    page.key("ArrowDown")
    assert "row=" in page.evaluate("location.hash")
    page.key("Escape")
    assert "row" not in page.evaluate("location.hash")
    assert page.evaluate(IDLE)
    page.click(".queries .token", 2)
    page.click(".queries .token", 2)
    assert "row" not in page.evaluate("location.hash")


def test_arrows_scroll_where_they_do_not_walk(show: Show) -> None:
    """From a drawer below, or with the sentence out of view, the page scrolls and none is lit."""
    page = show(views.translation())
    page.evaluate("document.querySelectorAll('.drawer').forEach(d => { d.open = true; })")
    kept = "addEventListener('keydown', e => { window.prevented = e.defaultPrevented; })"
    page.evaluate(kept)
    page.evaluate("scrollTo({top: 1500, behavior: 'instant'})")
    for focus in ("document.activeElement.blur()", "document.querySelector('summary').focus()"):
        page.evaluate(focus)
        page.key("ArrowDown")
        assert page.evaluate("window.prevented") is False
        assert "row" not in page.evaluate("location.hash")
    page.evaluate("document.activeElement.blur(); scrollTo({top: 0, behavior: 'instant'})")
    page.key("ArrowDown")  # nothing has the focus, and the sentence is in view
    assert page.evaluate("window.prevented") is True
    assert "row=1" in page.evaluate("location.hash")


def test_focus_stays_where_layers_and_kinds_change(show: Show) -> None:
    """A walk goes on from the same place, and what has the focus is lit, with whatever is shown."""
    page = show(views.transformer(), "#map=decoder+cross&layer=1")
    focused = "(e => [e.closest('.tokens')?.dataset.axis, e.dataset.index])(document.activeElement)"
    lit = "document.activeElement.matches('.lit')"
    page.key("ArrowDown")
    page.key("ArrowRight")
    for act in (
        lambda: page.key("2"),
        lambda: page.evaluate("document.querySelectorAll('.kinds button')[1].click()"),
        lambda: page.key("1"),
        lambda: page.evaluate("document.querySelectorAll('.kinds button')[2].click()"),
    ):
        act()
        assert page.evaluate(focused) == ["row", "1"]
        assert page.evaluate(lit)
        assert page.problems == []
    assert page.evaluate("document.activeElement.tabIndex") == 0
    page.key("ArrowRight")
    page.key("ArrowRight")
    page.evaluate("document.querySelectorAll('.kinds button')[0].click()")  # three tokens, not four
    assert page.problems == []


def test_layers_heads_and_kinds_live_in_the_address(show: Show) -> None:
    """Keys, slider, thumbnails and buttons choose; the same address opens the same."""
    page = show(views.transformer())
    legend = "document.querySelector('.legend').textContent"
    assert "mean of 2 heads" in page.evaluate(legend)
    page.key("1")
    assert page.evaluate(legend).startswith("decoder layer 1")
    page.key("2")
    assert page.evaluate(legend).startswith("decoder layer 2")
    page.key("7")  # there is none
    assert page.evaluate(legend).startswith("decoder layer 2")
    page.click(".heads button", 2)
    assert page.evaluate(legend).startswith("decoder layer 2, head 2, attention from the step")
    page.click(".kinds button", 1)
    assert "the words before it" in page.evaluate(legend)
    assert page.evaluate("document.querySelectorAll('.matrix .masked').length") == 1
    page.evaluate(
        "const s = document.querySelector('.scrubber input'); s.value = 1;"
        "s.dispatchEvent(new Event('input'))"
    )
    fragment = page.evaluate("location.hash")
    assert fragment == "#map=decoder+self&layer=1&head=2"
    page = show(views.transformer(), fragment)
    assert page.evaluate(legend).startswith("decoder layer 1, head 2")
    assert page.evaluate("location.hash") == fragment


@pytest.mark.parametrize("fragment", ["#map=nonsense&layer=99&head=-1&row=x", "#row=1e9", "#%%%"])
def test_an_address_of_nothing_opens_the_first(show: Show, fragment: str) -> None:
    page = show(views.translation(), fragment)
    assert page.problems == []
    assert "decoder layer 3, mean of 4" in page.evaluate(
        "document.querySelector('.legend').textContent"
    )


def test_the_mask_is_drawn_only_where_there_is_one(show: Show) -> None:
    """T13: strokes over every cell behind the present, and the scale says what they mean."""
    page = show(views.transformer(), "#map=decoder+self")
    strokes = page.evaluate("document.querySelector('.matrix .masked').getAttribute('d')")
    assert strokes == "M1,0H3v1H1zM2,1H3v1H2z"  # of 3 x 3 cells
    assert "hidden by the mask" in page.evaluate("document.querySelector('.scale').textContent")
    page = show(views.transformer(), "#map=encoder+self")
    assert page.evaluate("document.querySelector('.matrix .masked')") is None


@pytest.mark.parametrize("width", [390, 1300])
def test_a_wide_map_scrolls_in_its_box(show: Show, width: int) -> None:
    """Of 700 columns each is two pixels at least; the page stays as wide as the window."""
    view = views.transformer()
    long = TextOverlay("long", "", view.output, ["▁a"] * 700, [[0.0] * 699 + [0.5]] * 3)
    page = show(
        replace(view, source=long.columns, overlays=[long]), "#map=explanations", width=width
    )
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("document.querySelector('.matrix canvas').clientWidth") == 1400
    box = "document.querySelector('.matrix .scroll')"
    assert page.evaluate(f"{box}.clientWidth < {width}")
    page.evaluate("document.querySelector('.matrix canvas').focus()")
    page.evaluate("location.hash = '#map=explanations&row=1&column=699'")
    page.wait("document.querySelector('.matrix .lit.column').getAttribute('x') === '698'")
    page.key("ArrowRight")  # the walk is followed to the last column
    assert page.evaluate(f"{box}.scrollLeft + {box}.clientWidth === {box}.scrollWidth")


def test_what_is_fitted_to_a_line_stands_on_one(show: Show) -> None:
    """At any width where it is fitted: the end does not stand alone below."""
    view = views.tags()
    written = "Ein Mann in einem blauen Hemd steht auf einer Leiter ."
    words = [*(f"▁{word}" for word in written.split()), "</s>"]
    weights = [[0.1] * len(words)] * len(words)
    overlay = TextOverlay("x", "", words, words, weights)
    view = replace(view, source=words, output=words, probabilities=[1.0] * len(words), maps=[])
    page = show(replace(view, overlays=[overlay]))
    rows = "new Set([...document.querySelectorAll('.queries .word')].map(e => e.offsetTop)).size"
    found = {}
    for width in range(600, 1000, 7):
        page.size(width, 800)
        found[width] = page.evaluate(rows)
    assert set(found.values()) == {1}, found


def test_bars_are_probabilities(show: Show) -> None:
    page = show(views.translation())
    shown = page.evaluate(
        "[...document.querySelectorAll('.percent')].slice(0, 8).map(e => e.textContent)"
    )
    assert shown == [f"{round(100 * p)}%" for p in views.translation().probabilities]
    page = show(views.tags())
    assert page.evaluate("[...document.querySelectorAll('.said')].map(e => e.textContent)") == [
        "B",
        "I",
        "B",
        "I",
    ]


def test_probabilities_stand_under_the_output_alone(show: Show) -> None:
    """Also where a source reads like its translation, as names and numbers do."""
    page = show(views.copied(), "#map=decoder+cross")
    assert page.evaluate("document.querySelectorAll('.queries .bar').length") == 4
    page = show(views.copied(), "#map=encoder+self")
    assert page.evaluate("document.querySelectorAll('.queries .bar').length") == 0


def test_the_strongest_partner_may_speak_against(show: Show) -> None:
    view = views.translation()
    (overlay,) = view.overlays
    weights = [[0.05, -0.9, *[0.1] * (len(overlay.columns) - 2)] for _ in overlay.rows]
    page = show(
        replace(view, overlays=[replace(overlay, weights=weights)]),
        "#map=decoder+cross&head=integrated+gradients",
    )
    page.click(".queries .token", 2)
    page.key("ArrowUp")
    assert "column=2" in page.evaluate("location.hash")


def test_hover_a_patch(show: Show) -> None:
    """Both images outline it, every head shows its row, the tooltip has exact weights."""
    view = views.image()
    page = show(view)
    legend = "document.querySelector('.legend').textContent"
    assert page.evaluate(legend).startswith("Row of class token: encoder layer 2, mean of 2 heads")
    shades = "document.querySelector('.heads canvas').dataset.key"
    before = page.evaluate(shades)
    page.hover(".plain .stage", at=(0.5, 0.25))  # of 2 x 3 patches the one above in the middle
    assert page.evaluate(legend).startswith("Row of patch 1,2: ")
    assert (
        page.evaluate(
            "[...document.querySelectorAll('.stage .patch')].map(e => e.getAttribute('d'))"
        )
        == ["M2,0h2v2h-2z"] * 4
    )
    assert page.evaluate(shades) != before
    told = page.evaluate("[...document.querySelectorAll('.tip span')].map(e => e.textContent)")
    assert told[0] == "patch 1,2 looks at"
    row = view.maps[1].mean[2]
    best = max(range(1, 7), key=lambda i: row[i])
    assert told[1] == f"{view.maps[1].columns[best]}: {row[best]:.4f}"
    assert told[-1] == f"class token: {row[0]:.4f}"
    page.away()
    assert page.evaluate(legend).startswith("Row of class token")


TIP = "[...document.querySelectorAll('.tip.shown span')].map(e => e.textContent)"


def test_the_tooltip_of_an_overlay_has_the_number_pointed_at(show: Show) -> None:
    """Then the largest; cells that are not the model's patches are not called so, here or there."""
    view = views.image()
    overlay = view.overlays[-1]
    weights = [round(0.01 * i, 2) for i in range(24)]
    fine = replace(
        view.grids[0],
        rows=4,
        columns=6,
        boxes=[[float(i // 6), float(i % 6), 1.0, 1.0] for i in range(24)],
        extra=[],
    )
    overlays = [overlay, replace(overlay, name="pixels", grid=1, weights=weights)]
    page = show(
        replace(view, grids=[*view.grids, fine], overlays=overlays),
        "#map=explanations&head=integrated+gradients",
    )
    page.hover(".asked .stage", at=(0.5, 0.25))
    assert page.evaluate(TIP)[:3] == ["patch 1,2: -0.2500", "the largest:", "patch 2,3: 1.0000"]
    page.away()
    assert page.evaluate(TIP) == []
    page.evaluate("location.hash = '#head=pixels'")
    page.hover(".plain .stage", at=(0.99, 0.3))
    assert page.evaluate(TIP)[:3] == [
        "row 2, column 6: 0.1100",
        "the largest:",
        "row 4, column 6: 0.2300",
    ]
    page.evaluate("document.querySelector('details.twin').open = true")
    page.wait("document.querySelector('.twin tbody th')")
    assert page.evaluate("document.querySelector('.twin tbody th').innerText") == "row 1, column 1"


def test_a_pool_has_its_patches_lit(show: Show) -> None:
    """Its one query asks all patches: the pointer and arrows go over those that are asked."""
    view = examples.small_image_view("attention")
    page = show(view)
    page.hover(".asked .stage", at=(0.5, 0.25))
    assert page.evaluate(TIP)[0] == f"patch 1,2: {view.maps[-1].mean[0][1]:.4f}"
    outline = "document.querySelector('.stage .patch').getAttribute('d')"
    assert page.evaluate(outline) == "M2,0h2v2h-2z"
    page.click(".plain .stage", at=(0.5, 0.25))
    page.away()
    page.key("ArrowDown")
    assert page.evaluate("location.hash").endswith("column=5")
    assert page.evaluate(outline) == "M2,2h2v2h-2z"
    said = page.evaluate("document.querySelector('[role=status]').textContent")
    assert said.startswith(f"patch 2,2: {view.maps[-1].mean[0][4]:.4f}, the largest:")


def test_walk_over_patches(show: Show) -> None:
    """Arrows walk over the grid and stop at its edge; the class token is a button."""
    page = show(views.image())
    for key, row in (
        ("ArrowRight", 2),
        ("ArrowRight", 3),
        ("ArrowDown", 6),
        ("ArrowDown", 6),
        ("ArrowLeft", 5),
    ):
        page.key(key)
        assert page.evaluate("location.hash").endswith(f"row={row}"), key
    page.key("Escape")
    assert "row" not in page.evaluate("location.hash")
    page.click(".extra .token")
    assert "row=1" in page.evaluate("location.hash")


def test_overlays_of_an_image(show: Show) -> None:
    """Signed numbers have two hues and a scale to both sides; the legend is the overlay's own."""
    page = show(views.image(), "#head=integrated+gradients")
    assert page.evaluate("document.querySelector('.legend').textContent") == "what speaks for three"
    assert page.evaluate("document.querySelector('.asked .scale').textContent") == "-11"
    blue, orange = (
        page.evaluate(
            "(() => { const c = document.querySelectorAll('.heads button:last-child canvas')[0];"
            f"return [...c.getContext('2d').getImageData({x}, {y}, 1, 1).data]; }})()"
        )
        for x, y in ((2, 1), (1, 0))
    )
    assert blue[2] > blue[0]
    assert orange[0] > orange[2]


def test_the_explained_class_is_said(show: Show) -> None:
    """It stands among the classes with its probability, and is marked, likely or not."""
    view = views.image()
    page = show(replace(view, classes=[*view.classes, ClassView("one", 0.001, explained=True)]))
    assert page.evaluate(
        "[...document.querySelectorAll('.classes > *')].map(e => e.innerText)"
    ) == [
        "three\n75.0%",
        "이\n25.0%",
        "one\n0.1%\nThe explanation maps are for this class",
    ]


def test_windows_of_swin_are_drawn(show: Show) -> None:
    """V16: a patch in a shifted window at the edge belongs to a group with its own outline."""
    page = show(views.windowed(), "#layer=2")
    windows = "document.querySelector('.windows').getAttribute('d')"
    assert page.evaluate(windows)
    page.hover(".plain .stage", at=(0.02, 0.02))
    group = page.evaluate("document.querySelector('.stage .group').getAttribute('d')")
    assert group.startswith("M0,0h")
    page.key("3")  # another stage: fewer, larger patches
    assert page.evaluate("document.querySelector('.patches').getAttribute('d')").count("M") == 12


def test_gates_have_no_map(show: Show) -> None:
    """T3: a model without attention shows words, probabilities and gates, and no empty frames."""
    page = show(views.recurrent("seq2seq-lstm"))
    assert page.evaluate("document.querySelectorAll('.queries .token').length") == 3
    assert page.evaluate("document.querySelectorAll('figure.of-heat').length") == len(
        views.recurrent("seq2seq-lstm").gates
    )
    hidden = "getComputedStyle(document.querySelector('{}')).display"
    for part in (".heads", ".legend"):
        assert page.evaluate(hidden.format(part)) == "none"


def test_every_figure_has_a_table(show: Show) -> None:
    """The same numbers, made when it is opened; a heat's hole is a dash."""
    page = show(views.translation())
    page.evaluate("document.querySelectorAll('.drawer').forEach(d => { d.open = true; })")
    page.wait("document.querySelectorAll('details.twin').length === 1 + 8")
    page.evaluate("document.querySelectorAll('details.twin').forEach(d => { d.open = true; })")
    page.wait("document.querySelectorAll('details.twin table').length === 9")
    first = page.evaluate(
        "[...document.querySelectorAll('details.twin')[0].querySelectorAll('tr')].map(row => "
        "[...row.children].map(cell => cell.textContent))"
    )
    view = views.translation()
    assert [row[0] for row in first] == ["", "2026", "년", "11", "월", "20", "일", "금요일", "</s>"]
    assert [float(cell) for cell in first[1][1:]] == pytest.approx(
        view.maps[2].mean[0], rel=6e-3, abs=1e-4
    )
    heat = page.evaluate("document.querySelectorAll('figure table')[0].textContent")
    assert "–" in heat


def test_names_of_a_heat_do_not_touch(show: Show) -> None:
    """Beside cells lower than a line every few are left, also when the window becomes narrow."""
    heat = Heat("Waves", "", "", [[0.5] * 128] * 32, rows=[str(i) for i in range(32)])
    page = show(replace(views.translation(), figures=[Figure("positions", "", heat)]))
    page.evaluate("document.querySelector('.drawer').open = true")
    boxes = (
        "[...document.querySelectorAll('.row-names span')]"
        ".filter(e => getComputedStyle(e).visibility === 'visible').map(e => {"
        " const b = e.getBoundingClientRect(); return [e.innerText, (b.top + b.bottom) / 2]; })"
    )
    for width in (1200, 390):
        page.size(width, 800)
        # Until the observer of sizes has run, the names of the width before stand there.
        page.wait(f"{boxes}.every((b, i, all) => !i || b[1] - all[i - 1][1] >= 12)")
        found = page.evaluate(boxes)
        assert found[0][0] == "0"
        assert 1 < len(found) < 16


def test_charts_of_a_row_have_type_of_one_size(show: Show) -> None:
    """Each is drawn as wide as it stands there, the first among them."""
    bars = [Figure("heads", "", Lines("", "", "", [Curve("", [1.0, 2.0], [1.0, 2.0])]))] * 3
    page = show(replace(views.translation(), figures=bars))
    page.evaluate("document.querySelector('.drawer').open = true")
    page.wait("document.querySelectorAll('.plot').length === 3")
    sizes = page.evaluate(
        "[...document.querySelectorAll('.plot')].map(e => e.clientWidth / e.viewBox.baseVal.width)"
    )
    assert sizes == pytest.approx([1, 1, 1], abs=0.01)


def test_tables_say_what_there_is(show: Show) -> None:
    """Columns of intervals only where there are any; heads are aligned as what they stand over."""
    curve = Curve("a", [1.0], [2.0])
    panels: list[Panel | Table] = [
        Lines("Without", "x", "y", [curve]),
        Lines("With", "x", "y", [curve, replace(curve, low=[1.5], high=[2.5])]),
        Bars("Bars", "bits", ["one"], [Interval(0.5)]),
        Table("Neighbours", ["token", "index", "share"], [["a", "265", 0.5]]),
    ]
    figures = [Figure("rest", "", panel) for panel in panels]
    page = show(replace(views.translation(), figures=figures))
    page.evaluate("document.querySelector('.drawer').open = true")
    page.wait("document.querySelectorAll('.drawer .twin').length === 4")
    page.evaluate("document.querySelectorAll('.drawer .twin').forEach(d => { d.open = true; })")
    page.wait("document.querySelectorAll('.drawer table').length === 4")
    heads = page.evaluate(
        "[...document.querySelectorAll('.drawer table')].map(t => "
        "[...t.rows[0].cells].map(e => e.textContent))"
    )
    assert heads == [
        ["", "x", "y"],
        ["", "x", "y", "low", "high"],
        ["", "bits"],
        ["token", "index", "share"],
    ]
    for line in ("thead", "tbody"):
        assert page.evaluate(
            "[...[...document.querySelectorAll('.drawer table')].at(-1)"
            f".querySelector('{line} tr').children].map(e => getComputedStyle(e).textAlign)"
        ) == ["left", "left", "right"]


def saved(page: Page, button: int) -> bytes:
    """What a click on a button of the page's end would save."""
    page.evaluate(
        "URL.createObjectURL = blob => { window.kept = blob; return 'blob:none'; };"
        "HTMLAnchorElement.prototype.click = function () { window.keptName = this.download; };"
        "window.kept = null"
    )
    page.click("footer.tools button", button)
    page.wait("window.kept")
    text = page.evaluate(
        "new Promise(done => { const r = new FileReader(); r.onload = () => done(r.result);"
        "r.readAsDataURL(window.kept); })"
    )
    return base64.b64decode(text.partition(",")[2])


@pytest.mark.parametrize("make", [views.translation, views.windowed], ids=["text", "image"])
def test_saved_json_is_the_view(show: Show, make: Callable[[], View]) -> None:
    """All decimals survived the packing, and what comes out is what the command prints."""
    page = show(make())
    found = json.loads(saved(page, 1))
    expected: dict[str, Any] = json.loads(json.dumps({**told(found["kind"]), **make().to_json()}))
    assert found == expected
    assert errors(found) == []


@pytest.mark.parametrize("make", [views.translation, views.image], ids=["text", "image"])
def test_saved_png_shows_the_figure(show: Show, make: Callable[[], View]) -> None:
    """An image of the page's ground with ink, and with the hue of magnitude, on it."""
    page = show(make())
    image = Image.open(io.BytesIO(saved(page, 0))).convert("RGB")
    assert min(image.size) > 400
    assert image.getpixel((3, 3)) == (255, 255, 255)
    pixels = np.asarray(image).astype(int)
    blue = (pixels[..., 2] > pixels[..., 0] + 60).sum()
    dark = (pixels.max(axis=-1) < 90).sum()
    assert blue > 1000
    assert dark > 500
    assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_saved_png_has_the_slider(show: Show, scheme: str) -> None:
    """Its track in two colours, and the thumb where the layer is, of three the second."""
    page = show(views.translation(), "#layer=2", prefers_color_scheme=scheme)
    left, top, width, height = page.evaluate(
        "(() => { const f = document.querySelector('.figure').getBoundingClientRect();"
        "const b = document.querySelector('.scrubber input').getBoundingClientRect();"
        "return [b.left - f.left + 24, b.top - f.top + 24, b.width, b.height]; })()"
    )
    pixels = np.asarray(Image.open(io.BytesIO(saved(page, 0))).convert("RGB")).astype(int)
    along = pixels[round(2 * (top + height / 2)), :, :]
    ground, blue, thumb, rest = (
        along[round(2 * (left + part * width))].tolist() for part in (-0.02, 0.25, 0.5, 0.75)
    )
    assert blue == thumb
    assert blue[2] > blue[0] + 60
    assert ground != rest != blue
    above = pixels[round(2 * (top + height / 2 - 6)), :, :]
    assert above[round(2 * (left + 0.5 * width))].tolist() == thumb  # round, not a bar
    assert above[round(2 * (left + 0.25 * width))].tolist() == ground


def test_light_and_dark(show: Show) -> None:
    """As the system asks, and by a button; maps are painted anew."""
    page = show(views.translation(), prefers_color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    pixel = (
        "[...document.querySelector('.matrix canvas').getContext('2d').getImageData(0,0,1,1).data]"
    )
    assert page.evaluate(ground) == "rgb(16, 21, 28)"
    night = page.evaluate(pixel)
    page.click("footer.tools button", 2)
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert page.evaluate(pixel) != night


CONTRAST = """(() => {
  const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor; if (c !== 'rgba(0, 0, 0, 0)') return c; } };
  const found = [];
  for (const e of document.querySelectorAll('main *')) {
    const text = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!text || e.closest('svg, .unseen, noscript') || !e.getClientRects().length) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push([e.className, e.textContent, ratio]);
  }
  return found; })()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["translation", "vit"])
def test_text_has_contrast(show: Show, name: str, scheme: str) -> None:
    """WCAG 2 AA, 4.5 : 1, for every text, those on the shades of a lit row among them."""
    page = show(
        VIEWS[name](), "#row=4", prefers_color_scheme=scheme, prefers_reduced_motion="reduce"
    )
    assert page.evaluate(CONTRAST) == []


def test_what_a_screen_reader_hears(show: Show) -> None:
    """Every control has a name, every token its place and probability; one stop for Tab a line."""
    page = show(views.translation())
    labels = page.evaluate(
        "[...document.querySelectorAll('.queries .token')].map(e => "
        "[...e.children].filter(c => !c.ariaHidden).map(c => c.textContent).join(''))"
    )
    assert labels[6] == "금요일, token 7 of 8, probability 0.6100"
    assert page.evaluate("document.querySelectorAll('.queries .token[tabindex=\"0\"]').length") == 1
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, [role=img], [tabindex=\"0\"]')].filter(e => "
        "!(e.getAttribute('aria-label') || e.textContent.trim() || e.title)).map(e => e.outerHTML)"
    )
    assert unnamed == []


def test_no_motion_if_none_is_wanted(show: Show) -> None:
    page = show(views.translation(), prefers_reduced_motion="reduce")
    moving = "getComputedStyle(document.querySelector('.token')).transitionDuration"
    assert page.evaluate(moving) == "0s"
