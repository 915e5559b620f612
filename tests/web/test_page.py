"""The served page in a real browser: by mouse, keyboard and touch, in both languages."""

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tests.browser import MISSING, Page, found
from tests.web.conftest import encoded, png
from tests.web.running import Running

pytestmark = pytest.mark.skipif(found() is None, reason=MISSING)

WORDS = "document.querySelector('.out .word') && !document.querySelector('.out.old')"
DRAWN = "document.querySelector('.look .figure') && !document.querySelector('.under.old')"
READY = "document.documentElement?.dataset.page === 'ready'"


def visit(page: Page, server: Running, fragment: str = "", until: str = READY) -> None:
    page.visit(f"{server.address}/#{fragment}", until)


def text_of(page: Page, selector: str) -> str:
    words = page.evaluate(f"document.querySelector({selector!r}).innerText")
    return " ".join(str(words).split())


def drop(page: Page, given: bytes = b"") -> None:
    """Drop an image, if none is given one with a brown animal on a blue sky."""
    image = Image.new("RGB", (96, 96), "skyblue")
    drawing = ImageDraw.Draw(image)
    drawing.ellipse((20, 30, 76, 80), fill="saddlebrown")
    drawing.ellipse((55, 15, 90, 45), fill="saddlebrown")
    content = io.BytesIO()
    image.save(content, "png")
    encoded = base64.b64encode(given or content.getvalue()).decode()
    page.evaluate(
        f"""(() => {{
          const bytes = Uint8Array.from(atob("{encoded}"), (sign) => sign.charCodeAt(0));
          const given = new DataTransfer();
          given.items.add(new File([bytes], "in.png", {{ type: "image/png" }}));
          const options = {{ dataTransfer: given, bubbles: true, cancelable: true }};
          document.querySelector(".drop").dispatchEvent(new DragEvent("drop", options));
        }})()"""
    )


def test_typing_translates(page: Page, shipped: Running) -> None:
    """The translation and its threads follow; the address restores both."""
    visit(page, shipped, "model=multi30k-en-de&text=A+dog&inside=1", WORDS)
    page.evaluate("document.getElementById('source').focus()")
    page.evaluate("document.getElementById('source').setSelectionRange(5, 5)")
    page.type(" plays.")
    page.wait("location.hash.includes('plays')")
    page.wait("[...document.querySelectorAll('.out .word')].length >= 3")
    page.wait(DRAWN)
    page.wait("[...document.querySelectorAll('.look .keys .token')].length >= 4")
    translated = text_of(page, ".out")
    assert (
        translated
        == shipped.client.post(
            "/api/v1/translate", json={"texts": ["A dog plays."], "model": "multi30k-en-de"}
        ).json()["answers"][0]["translation"]
    )
    fragment = page.evaluate("location.hash.slice(1)")
    visit(page, shipped, fragment, WORDS)
    assert text_of(page, ".out") == translated
    assert page.evaluate("document.querySelectorAll('.tip').length") <= 1


SOURCE = "document.querySelectorAll('.mirror .w')"


def point(page: Page, number: int) -> None:
    """Point at a word of the source, which lies under the field."""
    place = page.evaluate(
        f"(() => {{ const b = {SOURCE}[{number}].getBoundingClientRect();"
        "return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    )
    page._pointer("mouseMoved", place)


def lit(page: Page, where: str) -> list[str]:
    return list(
        page.evaluate(f"[...document.querySelectorAll('{where} .lit')].map(e => e.textContent)")
    )


def test_a_candidate_can_be_forced_by_keyboard(page: Page, shipped: Running) -> None:
    """The rest is translated again, and the figure with it; the model may have its way again."""
    link = "model=multi30k-en-de&text=A+man+is+cleaning+a+window.&inside=1"
    visit(page, shipped, link, f"{DRAWN} && {WORDS}")
    before = text_of(page, ".out")
    page.evaluate("document.querySelectorAll('.out .word')[2].focus()")
    page.key("Enter")
    page.wait("document.querySelectorAll('.candidates .chips button').length > 1")
    forced = text_of(page, ".candidates .chips button:nth-child(2) span")
    page.click(".candidates .chips button", 1)
    page.wait(f"!document.querySelector('.told').hidden && {WORDS}")
    after = text_of(page, ".out")
    assert after.split()[2].startswith(forced)
    page.wait(f"{DRAWN} && {FIGURE} === {json.dumps(spaceless(page))}")
    fragment = page.evaluate("location.hash.slice(1)")
    visit(page, shipped, fragment, f"!document.querySelector('.told')?.hidden && {WORDS}")
    assert text_of(page, ".out") == after
    page.click(".told button")
    page.wait(f"document.querySelector('.told').hidden && {WORDS}")
    page.wait(f"document.querySelector('.out').innerText.trim() === {json.dumps(before)}")
    page.wait(f"{DRAWN} && {FIGURE} === {json.dumps(spaceless(page))}")


FIGURE = (
    "[...document.querySelectorAll('.look .queries .token')].map(e => e.firstChild.textContent)"
    ".join('').replace('</s>', '').replaceAll(/\\s/g, '')"
)


def spaceless(page: Page) -> str:
    """The translation that can be seen, without what is gone from it and without spaces."""
    script = (
        "(() => { const copy = document.querySelector('.out').cloneNode(true);"
        "for (const e of copy.querySelectorAll('del')) e.remove(); return copy.textContent; })()"
    )
    return "".join(str(page.evaluate(script)).split())


def test_what_if(page: Page, shipped: Running) -> None:
    """A word that is left out, what changed in place, and a translation of one's own."""
    visit(page, shipped, "model=multi30k-en-de&text=A+man+in+a+blue+shirt.", WORDS)
    before = text_of(page, ".out")
    assert "blau" in before
    point(page, 4)
    assert any("blau" in each for each in lit(page, ".out"))
    assert text_of(page, ".strike") == "leave out “blue”"
    page.click(".strike")
    page.wait("document.querySelector('.mirror .struck') && document.querySelector('.out del')")
    assert "blau" not in spaceless(page)
    assert "blau" in text_of(page, ".out del")
    page.click(".told button")
    page.wait(f"document.querySelector('.out').innerText.trim() === {json.dumps(before)}")
    page.evaluate("document.getElementById('own').open = true")
    page.evaluate("document.getElementById('own-text').focus()")
    page.type("Ein Hund.")
    page.wait("document.querySelectorAll('#own tbody tr').length >= 3")


def test_doubt_is_seen_and_named(page: Page, shipped: Running) -> None:
    """Above the answer, in plain words; the answer itself is subdued."""
    link = "model=multi30k-en-de&text=The+quantum+hippopotamus+taxes+jazz.&inside=1"
    visit(page, shipped, link, WORDS)
    page.wait("document.querySelector('.out .word.unsure')")
    told = text_of(page, ".known strong")
    assert "hippopotamus" in told
    assert "unsure" in told
    assert not any(sign in told for sign in ("log", "token", "%", "recase"))
    place = "document.querySelector('{}').getBoundingClientRect().top"
    assert page.evaluate(f"{place.format('.known strong')} < {place.format('.out')}")
    size = "parseFloat(getComputedStyle(document.querySelector('{}')).fontSize)"
    assert page.evaluate(f"{size.format('.out')} < {size.format('#source')}")
    page.wait("document.querySelectorAll('.mirror .rare').length > 1")
    page.click(".fixes button", 0)  # without the first new word
    page.wait("!document.getElementById('source').value.includes('hippopotamus')")
    page.wait(DRAWN)
    assert page.evaluate("document.querySelectorAll('.look .token[aria-label]').length") == 0
    assert page.evaluate("document.querySelector('.look .keys .token').lang") == "en"
    assert page.evaluate("document.querySelector('.look .queries .token').lang") == "de"


NOISE = (
    np.random.default_rng(1).integers(0, 256, (8, 8, 3), dtype=np.uint8).repeat(8, 0).repeat(8, 1)
)


def noise() -> bytes:
    """Coloured squares, which no model was trained on."""
    content = io.BytesIO()
    Image.fromarray(NOISE).save(content, "png")
    return content.getvalue()


def test_nonsense_is_answered_with_a_warning(page: Page, shipped: Running) -> None:
    """Of texts and images, in the API and on the page; in Korean too."""

    def notes(path: str, **given: Any) -> list[str]:
        found = shipped.client.post(f"/api/v1/{path}", json=given).json()
        return [note for each in found["answers"] for note in each.get("notes", [])]

    image = encoded(noise())
    told = [
        *notes(
            "translate", model="multi30k-en-de", texts=["xqzv kjwq 한국 brrt", "A MAN", "a " * 60]
        ),
        *notes("translate", model="date-en-ko", texts=["Hello world"]),
        *notes("classify", model="cifar10-cct-2-3x2", images=[image]),
        *notes("caption", model="emoji-caption", images=[image]),
        *notes("classify", model="emoji-search", images=[image], labels=["cat", "dog"]),
        *notes("read", images=[image]),
        *notes("tag", texts=["ẞ가"]),
    ]
    assert len(told) >= 8
    assert any("cifar10-cct-2-3x2 is unsure" in each for each in told)
    assert any("learned to describe" in each for each in told)
    assert sum("learned to recognise" in each for each in told) == 3
    visit(
        page,
        shipped,
        "model=multi30k-en-de&text=xqzv+kjwq+brrt",
        "document.querySelector('.known strong')",
    )
    assert "New to it" in text_of(page, ".known")
    left = page.evaluate(
        "import('/static/draw/language.js').then(({ hasKorean, korean }) => "
        f"{json.dumps(told)}.filter(text => !hasKorean(text) "
        "|| /characters|unusual/.test(korean(text))))"
    )
    assert left == []
    visit(page, shipped, "view=picture&classify=cifar10-cct-2-3x2")
    drop(page, noise())
    page.wait("document.querySelectorAll('.card.doubt').length >= 2")
    assert "unsure" in text_of(page, ".card.doubt .notes")
    page.wait(ANSWERED)


def test_what_a_model_is(page: Page, shipped: Running) -> None:
    """In a line on top, in both languages; on paper its name and how good it is."""
    visit(page, shipped, "model=multi30k-en-de&text=A+dog.&inside=1", DRAWN)
    assert text_of(page, ".intro") == (
        "English to German, 2.5M parameters. "
        "This model has read 29,000 photo captions, nothing else."
    )
    shown = "['.printed', '.choice .about', '.choice select', '.chips', '.look .sentence']"
    seen = f"{shown}.map(each => document.querySelector(each).checkVisibility())"
    assert page.evaluate(seen) == [False, True, True, True, True]
    try:
        page.command("Emulation.setEmulatedMedia", media="print")
        assert page.evaluate(seen) == [True, True, False, False, True]
        assert text_of(page, ".printed") == "multi30k-en-de (en → de)"
        assert "58.4 of 100" in text_of(page, ".choice .about")  # the worst, beside the best
    finally:
        page.command("Emulation.setEmulatedMedia", media="")
    page.click(".settings button", 0)
    page.wait("document.documentElement.lang === 'ko'")
    page.wait(DRAWN)
    assert text_of(page, ".intro").startswith("영어에서 독일어로, 파라미터 250만. ")
    page.click(".settings button", 0)
    page.wait("document.documentElement.lang === 'en'")
    page.wait(DRAWN)


def test_integrated_gradients_when_asked(page: Page, shipped: Running) -> None:
    """They take seconds, so they come on demand; and again they may be cancelled."""
    visit(page, shipped, "model=multi30k-en-de&text=A+dog.&inside=1", DRAWN)
    page.click(".more")
    assert "Cancel" in text_of(page, ".more")
    page.click(".more")
    page.wait("!document.querySelector('.under.old')")
    assert "Add" in text_of(page, ".more")
    page.click(".more")
    chosen = "document.querySelector('.heads [aria-pressed=true]')?.textContent"
    page.wait(f"{chosen} === 'integrated gradients' && document.querySelector('.more').hidden")
    page.click(".kinds .attention", 0)
    page.click(".heads button", 1)
    page.click(".queries .token", 0)
    page.wait(STEPS)


UNTRAINED = "document.querySelector('.believe [value=untrained]').checked"


def test_the_same_model_untrained(page: Page, shipped: Running) -> None:
    """One switch beside the figure, by mouse and keyboard; what was not learned is said."""
    visit(page, shipped, "model=multi30k-en-de&text=A+man+is+cleaning+a+window.&inside=1", DRAWN)
    page.wait("!document.querySelector('.believe').hidden")
    before, translation = text_of(page, ".look .figure"), text_of(page, ".out")
    page.click(".believe [value=untrained]")
    page.wait(f"{DRAWN} && document.querySelector('.look h1')?.textContent.endsWith('untrained')")
    assert "does not differ from the untrained model's" in text_of(page, ".believe")
    assert text_of(page, ".look .figure") != before
    assert text_of(page, ".out") == translation
    page.click(".queries .token", 0)
    page.click(".heads button", 1)
    page.wait(STEPS)  # of the untrained model
    asked = len(page.requests)
    page.evaluate("document.querySelector('.believe [value=untrained]').focus()")
    page.key("ArrowLeft")
    page.wait(
        f"!{UNTRAINED} && document.querySelector('.look h1')?.textContent === 'multi30k-en-de'"
    )
    assert [each for each in page.requests[asked:] if each.endswith("/look")] == []  # it was kept
    assert "does not differ" in text_of(page, ".believe")
    page.click(".believe [value=untrained]")
    page.wait(f"{DRAWN} && document.querySelector('.look h1')?.textContent.endsWith('untrained')")
    page.evaluate("document.querySelector('#source').focus()")
    page.type(" Two dogs play.")
    page.wait(f"!{UNTRAINED} && {DRAWN}")  # another sentence begins with the trained model


def test_a_part_is_left_out(page: Page, shipped: Running) -> None:
    """What is chosen in the figure is set to zero: the answer changes, and so does its figure."""
    text = "A young girl in a red coat is feeding three ducks near the old bridge."
    visit(page, shipped, f"model=multi30k-en-de&text={text.replace(' ', '+')}&inside=1", DRAWN)
    page.wait("!document.querySelector('.believe').hidden")
    before = text_of(page, ".out")
    assert "roten" in before
    page.click(".heads button", 2)
    options = "[...document.querySelectorAll('.believe option')]"
    head = page.evaluate(f"{options}[0].value")
    assert head.endswith("cross head 2")
    page.click(".believe [value=without]")
    page.wait("!document.querySelector('.told').hidden")
    assert head in text_of(page, ".told")
    title = "document.querySelector('.look h1')?.textContent"
    page.wait(f"{DRAWN} && {title}.endsWith('{head}')")
    red = page.evaluate(f"{options}.find((each) => each.text.includes('“red”')).value")
    page.evaluate(
        "(() => { const part = document.querySelector('.believe select'); "
        f"part.value = '{red}'; part.dispatchEvent(new Event('change')); }})()"
    )
    page.wait(f"{DRAWN} && {title}.endsWith('{red}')")
    assert "roten" in text_of(page, ".out del")
    assert "becomes" in text_of(page, ".believe")
    page.click(".told button")
    page.wait("document.querySelector('.told').hidden")
    page.wait(f"{DRAWN} && document.querySelector('.believe [value=trained]').checked")
    assert text_of(page, ".out") == before


def test_the_keyboard_has_tooltips(page: Page, shipped: Running) -> None:
    """Of words with their weights and candidates, and of cells; they go with the focus."""
    visit(page, shipped, "model=multi30k-en-de&text=Two+dogs+play.&inside=1", DRAWN)
    page.evaluate("document.querySelector('.look .queries .token').focus()")
    page.key("ArrowRight")
    page.wait("document.querySelector('.tip.shown')")
    told = text_of(page, ".tip")
    assert "looks at" in told
    assert "Other candidates" in told
    page.evaluate("document.querySelector('.matrix canvas').focus()")
    page.key("ArrowDown")
    page.wait("document.querySelector('.tip.shown')?.textContent.includes('→')")
    page.evaluate("document.activeElement.blur()")
    page.wait("!document.querySelector('.tip.shown')")


def texts_of(view: dict[str, Any]) -> set[str]:
    """What Python wrote into a view, but for tokens and words of the person's own."""
    found = {
        each["legend"] for name in ("maps", "gates", "overlays") for each in view.get(name, [])
    }
    found |= {legend for each in view["maps"] for legend in each["head_legends"]}
    found |= {each["name"] for each in view["overlays"]} | set(view["notes"])
    if view.get("alignment"):
        found |= {"{legend}; {why}".format(**view["alignment"])}
    for each in view["figures"]:
        found |= {each["title"], each["legend"], each["group"]}
        if "1st:" not in (each.get("x") or ""):
            found |= {each.get("x") or "", each.get("y") or ""}
        if each["kind"] == "table":
            found |= set(each["columns"])
        found |= {curve["name"] for curve in each.get("curves", [])}
    return found


@pytest.mark.parametrize(
    ("model", "given"),
    [
        ("multi30k-en-de", "Two dogs play in the snow."),
        pytest.param("enko-en-ko", "He is my friend.", marks=pytest.mark.full),
        pytest.param("date-en-ko", "Friday, 20 November 2026", marks=pytest.mark.full),
        ("korean-spacing-lstm", "이함수는"),
        ("digits", None),
        ("cifar10-cct-2-3x2", None),
        ("emoji-caption", None),
    ],
)
def test_figures_speak_korean(page: Page, shipped: Running, model: str, given: str | None) -> None:
    """Every title, legend and note that the shipped models' figures have."""
    visit(page, shipped, "view=picture")
    body = {"text": given} if given else {"image": encoded(png())}
    path, wanted = "/api/v1/look", {"model": model, **body}
    texts: set[str] = set()
    for option in ("integrated", "untrained"):
        texts |= texts_of(shipped.client.post(path, json={**wanted, option: True}).json())
    assert len(texts) > 8
    left = page.evaluate(
        "import('/static/draw/language.js').then(({ hasKorean }) => "
        f"{json.dumps(sorted(texts))}.filter(text => !hasKorean(text)))"
    )
    assert left == []


STEPS = "document.querySelector('.steps .room tbody') && !document.querySelector('.computed.old')"


def test_a_head_shows_how_it_computed(page: Page, shipped: Running) -> None:
    """The real numbers of the held word: products, scale, mask, softmax; by mouse and by key."""
    visit(page, shipped, "model=multi30k-en-de&text=Two+dogs+play.&inside=1", DRAWN)
    assert "Choose a single head" in text_of(page, ".computed")
    page.click(".heads button", 2)
    assert "Hold a word" in text_of(page, ".computed")
    page.click(".queries .token", 1)
    page.wait(STEPS)
    given = {"model": "multi30k-en-de", "text": "Two dogs play."}
    view = shipped.client.post("/api/v1/look", json=given).json()
    site = page.evaluate(
        "Number(document.querySelector('.scrubber input').value)"
        ".toString().replace(/^/, 'decoder layer ') + ' cross'"
    )
    weights = next(each for each in view["maps"] if each["site"] == site)["weights"][1][1]
    rows = page.evaluate(
        "[...document.querySelector('.computed table').querySelectorAll('tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent))"
    )
    assert [float(row[3]) for row in rows] == pytest.approx(weights, abs=2e-3)
    scores = [float(row[2]) for row in rows]
    assert scores == pytest.approx([float(row[1]) / 32**0.5 for row in rows], abs=2e-2)
    colours = page.evaluate(
        "[document.querySelector('.computed tbody tr').children[3].style.backgroundColor,"
        "document.querySelector('.keys .token').style.backgroundColor]"
    )
    assert colours[0] == colours[1]
    asked = len(page.requests)
    page.prefer(prefers_color_scheme="dark")
    page.wait(
        f"document.querySelector('.computed tbody tr').children[3].style.backgroundColor "
        f"!== {json.dumps(colours[0])}"
    )
    assert page.requests[asked:] == []  # another theme is no other question
    page.click(".kinds .attention", 1)
    assert "Hold a word" in text_of(page, ".computed")
    page.evaluate("document.querySelector('.queries .token').focus()")
    page.key("ArrowRight")
    page.wait(STEPS)
    page.wait("document.querySelector('.computed')?.textContent.includes('hidden')")
    page.click(".kinds .explanations")
    assert not page.evaluate("document.querySelector('.steps').checkVisibility()")


ANSWERED = (
    "[...document.querySelectorAll('.card .answers')].length === 3 && "
    "[...document.querySelectorAll('.card .answers')].every(e => e.textContent.trim()) && "
    "!document.querySelector('.answers.old')"
)


def test_see(page: Page, shipped: Running) -> None:
    """Drop an image; a covered part changes the classes, by mouse and by keyboard."""
    visit(page, shipped, "view=picture&inside=1")
    drop(page)
    page.wait("document.querySelectorAll('.answers .class').length === 5")
    page.wait(DRAWN)
    page.wait(ANSWERED)
    before = text_of(page, ".classes")
    page.click(".parts button", 27)
    page.wait("document.querySelector('.parts [aria-pressed=true]')")
    page.key("ArrowRight")
    assert page.evaluate("document.activeElement.ariaLabel") == "Part 4, 5"
    page.wait(f"{ANSWERED} && {DRAWN}")
    page.click(".scrubber input", at=(0.02, 0.5))  # the first layer, which has heads
    page.wait("document.querySelectorAll('.heads button').length > 1")
    page.click(".heads button", 1)
    page.click(".look .plain .stage")
    page.wait(STEPS)
    page.evaluate("[...document.querySelectorAll('.pair .link')].find(e => !e.hidden).click()")
    page.wait("!document.querySelector('.parts [aria-pressed=true]')")
    page.wait(ANSWERED)
    page.wait(f"document.querySelector('.classes').innerText.includes({json.dumps(before[:4])})")
    page.wait(DRAWN)


@pytest.mark.parametrize(
    ("example", "wanted"),
    [
        ("ship", ["ship"]),
        pytest.param("car", ["automobile"], marks=pytest.mark.full),
        pytest.param("airplane", ["airplane"], marks=pytest.mark.full),
        ("seven", ["7"]),
        ("heart", ["purple heart", "보라색 하트", "lila Herz", "cœur violet", "紫のハート"]),
        ("line", ["목록의 복사본을 반환합니다.", "Return a copy of the list."]),
    ],
)
def test_examples_of_images(page: Page, shipped: Running, example: str, wanted: list[str]) -> None:
    """Each is answered right by the model that it is for, without a doubt; a link restores it."""
    visit(page, shipped, "view=picture")
    names = page.evaluate("import('/static/examples.js').then(m => Object.keys(m.IMAGES))")
    page.evaluate(  # pictures on the buttons before it may still move it
        f"document.querySelectorAll('.drop .chips button')[{names.index(example)}].click()"
    )
    page.wait(ANSWERED)
    sure = "[...document.querySelectorAll('.card:not(.doubt)')].map(e => e.innerText).join('\\n')"
    assert all(each in page.evaluate(sure) for each in wanted)
    if len(wanted) == 1:
        assert text_of(page, ".card:not(.doubt) .class .name") == wanted[0]
    fragment = page.evaluate("location.hash.slice(1)")
    assert f"image={example}" in fragment
    visit(page, shipped, fragment)
    page.wait(ANSWERED)
    assert all(each in page.evaluate(sure) for each in wanted)


BOTH = "document.querySelectorAll('.twice .figure').length === 2 && !document.querySelector('.old')"


def test_compare_two_inputs(page: Page, shipped: Running) -> None:
    """One gesture in both, one scale, the difference of maps of one shape; a link restores it."""
    link = (
        "view=compare&model=multi30k-en-de&text=Two+men+play.&model2=multi30k-en-de"
        "&text2=Two+women+play.&map=decoder+cross&layer=2"
    )
    visit(page, shipped, link)
    page.wait(BOTH)
    page.wait("document.querySelector('.between canvas')?.checkVisibility()")
    side = "document.querySelectorAll('.side')[{}].querySelector('{}').{}"
    page.click(".side:nth-child(1) .heads button", 3)
    pressed = "[...document.querySelectorAll('.side [aria-pressed=true]')].map(e => e.innerText)"
    assert page.evaluate(f"{pressed}.filter(name => name === 'head 3').length") == 2
    page.hover(".side:nth-child(2) .queries .token", 1)
    lit = side.format(0, ".queries .lit", "dataset.index")
    assert page.evaluate(lit) == "1"
    colours = page.evaluate(
        "[...document.querySelectorAll('.side')].map(side => {"
        "const look = side.querySelector('.heads [aria-pressed=true]').__data__;"
        "return [...side.querySelectorAll('.keys .token')].map((chip, column) => "
        "[look.at(1, column), chip.style.backgroundColor]); })"
    )
    scales = page.evaluate(
        "[...document.querySelectorAll('.side .scale span:last-child')].map(e => e.textContent)"
    )
    assert scales[0] == scales[1]
    known = dict(colours[0])
    assert all(known.get(weight, colour) == colour for weight, colour in colours[1])
    page.away()
    page.click(".side:nth-child(2) .queries .token", 1)
    fragment = page.evaluate("location.hash.slice(1)")
    assert "row=2" in fragment
    assert "head=3" in fragment
    visit(page, shipped, fragment)
    page.wait(BOTH)
    page.wait(f"{side.format(1, '.queries .lit', 'dataset.index')} === '1'")
    page.evaluate("document.querySelector('.between canvas').focus()")
    page.key("ArrowDown")
    assert page.evaluate(lit) == "2"
    page.evaluate(
        "HTMLAnchorElement.prototype.click = () => {};"
        "URL.createObjectURL = blob => { window.kept = blob; return 'blob:none'; };"
        "document.querySelectorAll('.side .link')[1].click()"
    )
    page.wait("window.kept")
    saved = page.evaluate("window.kept.text()")
    assert saved.startswith("<!doctype html>")
    assert "Two women play." in saved


def test_compare_two_models(page: Page, shipped: Running) -> None:
    """Of other shapes: no difference, which is said. By a change of the model, without an error."""
    visit(
        page, shipped, "view=compare&model=enko-en-ko&text=He+is+my+friend.&model2=multi30k-en-de"
    )
    page.wait(BOTH)
    page.wait("document.querySelector('.between .legend')")
    assert "different shapes" in text_of(page, ".between .legend")
    page.evaluate(
        "(() => { for (const id of ['model', 'model2']) {"
        "const field = document.getElementById(id);"
        "field.value = 'cifar10-cct-2-3x2'; field.dispatchEvent(new Event('change')); } })()"
    )
    page.click(".drop .chips button", 0)
    page.evaluate(
        "document.querySelectorAll('.drop')[1].querySelectorAll('.chips button')[1].click()"
    )
    page.wait(f"{BOTH} && document.querySelectorAll('.twice .plain').length === 2")
    page.wait("document.querySelector('.between canvas')?.checkVisibility()")
    page.hover(".between canvas", at=(0.3, 0.6))
    page.evaluate("document.querySelector('.between canvas').focus()")
    page.key("ArrowDown")
    page.wait("document.querySelector('.between [role=status]').textContent.includes('→')")
    assert "image=ship" in page.evaluate("location.hash")
    assert "image2=car" in page.evaluate("location.hash")


def tap(page: Page, selector: str, number: int = 0) -> None:
    """Touch an element with a finger."""
    x, y = page.evaluate(
        f"(() => {{ const e = document.querySelectorAll({selector!r})[{number}];"
        "e.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const b = e.getBoundingClientRect();"
        "return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    )
    page.command("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    page.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


def test_by_touch(page: Page, shipped: Running) -> None:
    """A phone does what a mouse does: hold a word, choose a head, force a candidate, walk on."""
    page.size(390, 800)
    page.command("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        visit(page, shipped, "model=multi30k-en-de&text=Two+dogs+play.&inside=1", DRAWN)
        tap(page, ".look .queries .token", 1)
        page.wait("location.hash.includes('row=2')")
        tap(page, ".heads button", 2)
        page.wait(STEPS)
        tap(page, ".kinds .explanations")
        page.wait("location.hash.includes('map=explanations')")
        tap(page, ".out .word", 1)
        page.wait("document.querySelectorAll('.candidates .chips button').length > 1")
        tap(page, ".candidates .chips button", 1)
        page.wait("!document.querySelector('.told').hidden")
        page.wait(DRAWN)
        visit(page, shipped, "view=learn&idea=T5", DRAWN)
        tap(page, ".walk .step", 1)
        page.wait("location.hash.includes('idea=T5a')")
        page.wait(DRAWN)
    finally:
        page.command("Emulation.setTouchEmulationEnabled", enabled=False)


def test_learn_is_a_walk(page: Page, shipped: Running) -> None:
    """Every idea has a sentence, an equation, a live figure and code; at the end the errata."""
    visit(page, shipped, "view=learn&idea=T7")
    page.wait("document.querySelector('.code li')")
    ideas = page.evaluate("[...document.getElementById('idea').options].map(each => each.value)")
    assert len(ideas) >= 13
    named = page.evaluate("[...document.getElementById('idea').options].map(e => e.textContent)")
    assert "5. Self-attention: a word in its sentence" in named  # the field's term, then the idea
    figure = (
        "document.querySelector('.look .figure')?.checkVisibility() "
        "|| document.querySelector('.look .drawer .panel canvas, .look .drawer .panel svg, "
        ".look .drawer .panel table')"
    )
    for idea in ideas[:-1]:
        page.wait(
            f"location.hash.includes('idea={idea}&') || location.hash.endsWith('idea={idea}')"
        )
        page.wait(f"({figure}) && !document.querySelector('.under.old')")
        assert (
            page.evaluate("document.querySelector('.formula math').getBoundingClientRect().width")
            > 40
        )
        assert page.evaluate("document.querySelectorAll('.code li').length") >= 1
        assert len(text_of(page, ".idea + .out")) > 40
        page.click(".walk .step", 1)
    page.wait("document.querySelectorAll('.errata section').length === 14")
    assert page.evaluate("document.querySelectorAll('.walk .step')[1].disabled")


def test_learn_restores_and_speaks_korean(page: Page, shipped: Running) -> None:
    """A link has the idea and what was held in its figure; by keyboard too."""
    visit(page, shipped, "view=learn&idea=T13")
    page.wait(DRAWN)
    page.evaluate("document.querySelectorAll('.walk .step')[1].focus()")
    page.key("Enter")
    page.command("Input.dispatchKeyEvent", type="char", text="\r", key="Enter")
    page.wait("location.hash.includes('idea=T14')")
    page.wait(DRAWN)
    page.click(".queries .token", 3)
    fragment = page.evaluate("location.hash.slice(1)")
    visit(page, shipped, fragment)
    page.wait(DRAWN)
    assert page.evaluate("document.querySelector('.queries .lit').dataset.index") == "3"
    page.click(".settings button", 0)
    page.wait(
        "document.querySelector('.idea')?.textContent === '인코더-디코더 어텐션: 원문에게 묻기'"
    )
    page.wait(DRAWN)
    page.click(".settings button", 0)
    page.wait("document.documentElement.lang === 'en'")
    page.wait(DRAWN)


def test_pictures_in_korean(page: Page, shipped: Running) -> None:
    """In every language of the captioner; the picture stays when the page's language changes."""
    visit(page, shipped, "view=picture")
    drop(page)
    page.wait("document.querySelectorAll('.answers dd').length === 5")
    page.click(".settings button", 0)
    page.wait("document.documentElement.lang === 'ko'")
    assert text_of(page, "#head nav") == "글 그림 비교 배우기"
    page.wait("document.querySelectorAll('.answers dd').length === 5")
    page.wait(ANSWERED)
    page.click(".settings button", 0)
    page.wait("document.documentElement.lang === 'en'")
    page.wait(ANSWERED)


@pytest.mark.parametrize(
    ("view", "scheme"),
    [
        ("text", "dark"),
        ("picture", "light"),
        ("compare", "dark"),
        ("learn", "light"),
        pytest.param("text", "light", marks=pytest.mark.full),
        pytest.param("picture", "dark", marks=pytest.mark.full),
        pytest.param("compare", "light", marks=pytest.mark.full),
        pytest.param("learn", "dark", marks=pytest.mark.full),
    ],
)
def test_small_and_named(page: Page, shipped: Running, view: str, scheme: str) -> None:
    """At 320 pixels nothing overflows, all that can be operated has a name and is large enough."""
    page.size(320, 700)
    page.prefer(prefers_color_scheme=scheme)
    visit(page, shipped, f"view={view}&inside=1")
    if view == "text":
        page.wait(DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, input, select, textarea")]
           .filter((each) => each.checkVisibility() && !each.ariaLabel && !each.innerText?.trim()
             && ![...(each.labels ?? [])].some((label) => label.innerText.trim()))
           .map((each) => each.outerHTML)"""
    )
    assert nameless == []
    narrow = page.evaluate(
        """[...document.querySelectorAll("#head button, .chips button, .out button, select")]
           .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 24)
           .map((each) => each.outerHTML)"""
    )
    assert narrow == []


ENDS = """(() => {
  const box = document.querySelector(".sentence").getBoundingClientRect();
  const at = (side, index, edge) => {
    const found = document.querySelector(`.${side} .token[data-index="${index}"]`);
    const token = found.getBoundingClientRect();
    return [(token.left + token.right) / 2 - box.left, token[edge] - box.top];
  };
  return [...document.querySelectorAll(".threads path")].map((path) => {
    const { r, c } = path.__data__;
    const numbers = path.getAttribute("d").match(/-?[\\d.]+/g).map(Number);
    const wanted = [...at("keys", c, "bottom"), ...at("queries", r, "top")];
    const drawn = [...numbers.slice(0, 2), ...numbers.slice(-2)];
    return Math.max(...wanted.map((place, i) => Math.abs(place - drawn[i])));
  });
})()"""


# Points of threads that lie on words other than those that they begin and end at.
CROSSED = """[...document.querySelectorAll(".threads path")].flatMap((path) => {
  const { r, c } = path.__data__;
  const box = document.querySelector(".sentence").getBoundingClientRect();
  const others = [
    ...document.querySelectorAll(`.keys .token:not([data-index="${c}"])`),
    ...document.querySelectorAll(`.queries .token:not([data-index="${r}"])`),
  ].map((token) => token.getBoundingClientRect());
  const points = [];
  for (let at = 0; at < path.getTotalLength(); at += 3) {
    const { x, y } = path.getPointAtLength(at);
    points.push([x + box.left, y + box.top]);
  }
  const within = (e, [x, y]) => x > e.left && x < e.right && y > e.top && y < e.bottom;
  return points.filter((point) => others.some((each) => within(each, point)));
})"""


@pytest.mark.parametrize(
    ("width", "media"),  # 640: a window of 1280 at 200%
    [
        (1280, "screen"),
        (390, "print"),
        pytest.param(1280, "print", marks=pytest.mark.full),
        pytest.param(640, "screen", marks=pytest.mark.full),
        pytest.param(390, "screen", marks=pytest.mark.full),
    ],
)
def test_threads_end_on_their_words(page: Page, shipped: Running, width: int, media: str) -> None:
    """On one line, wrapped, and on paper; of a chosen word, and never behind another one."""
    page.size(width, 900)
    text = "A man in a blue shirt is standing on a ladder cleaning a window.".replace(" ", "+")
    visit(page, shipped, f"model=multi30k-en-de&text={text}&inside=1", DRAWN)
    try:
        page.command("Emulation.setEmulatedMedia", media=media)
        page.evaluate("new Promise((done) => setTimeout(done, 300))")
        wrapped = page.evaluate("Boolean(document.querySelector('.sentence.wrapped'))")
        assert wrapped or width > 390
        ends = page.evaluate(ENDS)
        assert len(ends) == 0 if wrapped else len(ends) > 10
        for number in (0, 6, 12):
            page.click(".look .queries .token", number)
            page.away()
            chosen = page.evaluate(ENDS)
            assert chosen
            ends += chosen
            assert page.evaluate(CROSSED) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        page.command("Emulation.setEmulatedMedia", media="")
    assert max(ends) < 1.5


# Points of threads between source and answer that lie on words which they do not begin or end at.
BEHIND = """[...document.querySelectorAll(".ties path")].flatMap((path) => {
  const frame = document.querySelector(".ties").getBoundingClientRect();
  const boxes = [...document.querySelectorAll(".mirror .w, .out .word")].flatMap((word) => {
    const half = parseFloat(getComputedStyle(word).fontSize) / 2;
    return [...word.getClientRects()].map(({ left, right, top, bottom }) =>
      ({ word, left, right, top: (top + bottom) / 2 - half, bottom: (top + bottom) / 2 + half }));
  });
  const points = [];
  for (let at = 0; at < path.getTotalLength(); at += 2) {
    const { x, y } = path.getPointAtLength(at);
    points.push([x + frame.left, y + frame.top]);
  }
  const within = (e, [x, y]) => x > e.left && x < e.right && y > e.top && y < e.bottom;
  const on = (point) => boxes.filter((each) => !each.word.matches(".lit") && within(each, point));
  return points.flatMap(on).map(({ word }) => word.textContent);
})"""


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.full),
        pytest.param(390, "light", marks=pytest.mark.full),
    ],
)
def test_threads_pass_between_words(page: Page, shipped: Running, width: int, scheme: str) -> None:
    """Of a sentence of 25 words, which wraps: every word of the answer, in turn."""
    page.size(width, 850)
    page.prefer(prefers_color_scheme=scheme)
    text = (
        "The young woman in the red coat who lives next door told me yesterday that her little "
        "brother had broken his arm while playing football again."
    )
    visit(page, shipped, f"model=en-de&text={text.replace(' ', '+')}", WORDS)
    page.wait("document.querySelector('.ties path.lit')")
    count = page.evaluate("document.querySelectorAll('.out .word').length")
    drawn = 0
    for number in range(count):
        page.hover(".out .word", number)
        if page.evaluate("document.querySelectorAll('.ties path').length"):
            drawn += 1
            assert page.evaluate(BEHIND) == []
    assert drawn > count / 2


def test_a_column_without_a_name_has_no_head(page: Page, shipped: Running) -> None:
    """The corner of a table is a cell; every head of a column has words for a screen reader."""
    visit(page, shipped, "model=multi30k-en-de&text=A+dog+sleeps.&inside=1", DRAWN)
    page.evaluate(
        "document.querySelectorAll('.look .drawer').forEach(each => { each.open = true; })"
    )
    page.wait("document.querySelectorAll('.look .drawer details.twin').length > 3")
    page.evaluate("document.querySelectorAll('.look .twin').forEach(each => { each.open = true; })")
    page.wait("document.querySelectorAll('.look .twin thead').length > 4")
    heads = page.evaluate(
        "[...document.querySelectorAll('.look .twin thead th')].map(each => each.textContent)"
    )
    assert heads
    assert all(heads)
    rows = page.evaluate(
        "[...document.querySelectorAll('.look .twin table')]"
        ".map(each => [each.rows[0].cells.length, each.rows[1].cells.length])"
    )
    assert all(head == body for head, body in rows)


def test_landmarks_have_names_of_their_own(page: Page, shipped: Running) -> None:
    """Also where two figures have one title: a captioner has positions in both halves."""
    visit(page, shipped, "view=picture&image=heart&inside=1", DRAWN)
    page.wait(
        "[...document.getElementById('whose').options].some(e => e.value === 'emoji-caption')"
    )
    page.evaluate(
        "(() => { const field = document.getElementById('whose'); field.value = 'emoji-caption';"
        "field.dispatchEvent(new Event('change')); })()"
    )
    page.wait(  # its figure: two panels of one title
        "(() => { for (const each of document.querySelectorAll('.look .drawer')) each.open = true;"
        "const rooms = document.querySelectorAll('.look .twin .room');"
        "return new Set([...rooms].map((each) => each.ariaLabel)).size < rooms.length; })()"
    )
    names = page.evaluate(
        "[...document.querySelectorAll('[role=region], section[aria-label], nav')]"
        ".map(each => each.ariaLabel)"
    )
    assert len(set(names)) == len(names)
