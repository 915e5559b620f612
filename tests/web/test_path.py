"""The path of the Learn view: by keyboard, in both languages, on sentences that no page quotes."""

import base64
import io
import json
import re
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tests.browser import MISSING, Page, found
from tests.web.conftest import encoded, png
from tests.web.running import Running

pytestmark = pytest.mark.skipif(found() is None, reason=MISSING)

SENTENCE = "The young doctor wrote a long letter to her sister."
OTHER = "Three horses drink cold water behind the barn."
CAT = "The cat is sleeping on the warm roof."
FIRST = "My brother sold his old guitar to a friend."  # what the page begins with
QUOTED = re.compile("“([^”]+)”")
TITLES = {
    "en": ["Pieces", "Vectors", "Positions", "A query", "Several", "Layers", "The next", "Fool"],
    "ko": ["조각", "벡터", "위치", "쿼리", "멀티", "층", "다음", "속이기"],
}
ASKED = "document.querySelector('.path-options button:not(.link)')"
SHOWN = "document.querySelector('.path-options .right')"


@pytest.fixture
def page(page: Page, shipped: Running) -> Page:
    """A tab without progress."""
    page.visit(f"{shipped.address}/health/live", "true")
    page.evaluate("localStorage.clear()")
    return page


def open_path(page: Page, server: Running, **kept: Any) -> None:
    """Open the Learn view, with some of what the path keeps."""
    if kept:
        page.evaluate(f"localStorage.setItem('manyheads-path', {json.dumps(json.dumps(kept))!s})")
    page.visit(f"{server.address}/#view=learn", ASKED)


def enter(page: Page, selector: str) -> None:
    """Press Enter on what a person reaches by the tab key."""
    assert page.evaluate(
        f"(() => {{ const found = document.querySelector({selector!r}); found.focus();"
        "return found.tabIndex === 0 && document.activeElement === found; })()"
    )
    page.command("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r", code="Enter")
    page.command("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter")


def options(page: Page) -> list[str]:
    """The options as they are before a guess."""
    return list(
        page.evaluate(
            "[...document.querySelectorAll('.path-options button:not(.link)')]"
            ".map(each => each.firstChild.textContent)"
        )
    )


def at(number: int) -> str:
    """The condition that a step is there to be answered."""
    return f"document.querySelector('.path-card[data-step=\"{number}\"]')"


def ahead(page: Page, number: int) -> None:
    enter(page, ".path-steps .ahead")
    page.wait(at(number))


def right(page: Page, number: int) -> str:
    """Go to a step, have it shown without a guess, and return the right option."""
    page.click(f".path-flow .first[data-step='{number}']")
    page.wait(f"{at(number)} && {ASKED}")
    page.click(".path-options .link")
    page.wait(SHOWN)
    return str(page.evaluate(f"{SHOWN}.firstChild.textContent"))


def test_the_path_begins_with_what_was_typed(page: Page, shipped: Running) -> None:
    """The sentence and the model of the Text view; the first answer is not given away."""
    text = "My uncle grows tomatoes behind the house."
    chosen = {"text": f"{text}\n", "model": "en-de"}
    page.evaluate(f"localStorage.setItem('manyheads', {json.dumps(json.dumps(chosen))})")
    open_path(page, shipped)
    assert page.evaluate("document.getElementById('path-text').value") == text
    first = "document.querySelector('.path-flow [data-step=\"1\"]').innerText"
    count = right(page, 1)
    assert count in page.evaluate(first)
    page.evaluate("localStorage.setItem('manyheads', '{}')")  # another text was typed since
    open_path(page, shipped)
    assert page.evaluate("document.getElementById('path-text').value") == text
    page.click(".path-steps .again")
    page.wait(f"{ASKED} && document.querySelector('.path-says b')")
    assert page.evaluate("document.getElementById('path-text').value") != text
    assert not any(letter.isdigit() for letter in page.evaluate(first).split(",")[0][1:])


@pytest.mark.parametrize("language", ["ko", pytest.param("en", marks=pytest.mark.full)])
def test_the_path_is_walked_by_keyboard(page: Page, shipped: Running, language: str) -> None:
    """A sentence of one's own, eight guesses, each told kindly; a reload goes on where one was."""
    page.evaluate(f"localStorage.setItem('manyheads-language', '{language}')")
    open_path(page, shipped)
    page.evaluate("document.getElementById('path-text').select()")
    page.evaluate("document.getElementById('path-text').focus()")
    page.type(SENTENCE)
    enter(page, "#path-text")
    page.wait("document.querySelector('.path-says b')?.textContent.includes('Arzt')")
    page.wait(ASKED)
    for number, title in enumerate(TITLES[language], 1):
        if number > 1:
            ahead(page, number)
            assert page.evaluate("document.activeElement.tagName") == "H2"
        assert title in page.evaluate("document.querySelector('.path-card h2').textContent")
        assert page.evaluate("document.querySelectorAll('.path-flow [data-lit]').length") >= 1
        assert not page.evaluate(f"Boolean({SHOWN})")
        assert page.evaluate("document.querySelector('.path-verdict').textContent") == ""
        given = options(page)
        assert 2 <= len(given) <= 8
        assert len(set(given)) == len(given)
        enter(page, f".path-options button:nth-of-type({1 + number % len(given)})")
        page.wait(SHOWN)
        verdict = page.evaluate("document.querySelector('.path-verdict').innerText")
        hit = page.evaluate(f"{SHOWN}.matches('[aria-pressed=true]')")
        kind = {"en": ("Right", "fair guess"), "ko": ("맞았습니다", "그럴듯한")}[language]
        assert kind[0 if hit else 1] in verdict
        explained = page.evaluate("document.querySelectorAll('.path-explain').length")
        assert explained == 2
        page.wait("document.querySelector('.path-figures').children.length >= 1")
        if number == 4:
            kept = page.evaluate("document.querySelector('.path-verdict').innerText")
            page.visit(f"{shipped.address}/#view=learn", SHOWN)
            assert page.evaluate("document.querySelector('.path-verdict').innerText") == kept
            assert page.evaluate("document.getElementById('path-text').value") == SENTENCE
            page.click(".settings button", 0)
            page.wait(f"document.documentElement.lang !== '{language}' && {SHOWN}")
            page.click(".settings button", 0)
            page.wait(f"document.documentElement.lang === '{language}' && {SHOWN}")
    done = page.evaluate("document.querySelector('.path-done').innerText")
    assert "8" in done
    page.wait("!document.querySelector('.path-figures .old')")
    enter(page, ".path-steps .again")
    page.wait(f"{ASKED} && !{SHOWN}")
    assert "1" in page.evaluate("document.querySelector('.path-card h2 small').textContent")
    assert page.evaluate("document.getElementById('path-text').value") != SENTENCE


def test_answers_are_those_of_the_model(page: Page, shipped: Running) -> None:
    """What is right is in the view of the sentence itself; another sentence has other answers."""
    answers = []
    for text in (SENTENCE, OTHER):
        open_path(page, shipped, text=text)
        view = shipped.client.post("/api/v1/look", json={"model": "en-de", "text": text}).json()
        answers.append([right(page, number) for number in range(1, 9)])
        pieces, near, _, looked, count, _, likely, _ = answers[-1]
        assert int(pieces) == len(view["source"]) - 1  # without the end token
        neighbours = next(
            each
            for each in view["figures"]
            if each["kind"] == "table" and each["group"] == "embeddings"
        )
        assert any(
            row[2].startswith(f"{near} ") or f" {near} " in row[2] for row in neighbours["rows"]
        )
        cross = [each for each in view["maps"] if each["kind"] == "decoder cross"][-1]
        peaks = {
            cross["columns"][max(range(len(row)), key=row.__getitem__)].strip("▁")
            for head in cross["weights"]
            for row in head
        }
        assert looked in peaks
        assert 0 <= int(count) <= len(cross["weights"])
        first = [step["candidates"][0][0].strip("▁") for step in view["steps"]]
        assert likely in first
    changed = [one != two for one, two in zip(*answers, strict=True)]
    assert sum(changed) >= 5
    assert changed[3]
    assert changed[6]


def text_of(page: Page, selector: str) -> str:
    return str(page.evaluate(f"document.querySelector({selector!r}).innerText"))


def look(server: Running, text: str) -> dict[str, Any]:
    found: dict[str, Any] = server.client.post(
        "/api/v1/look", json={"model": "en-de", "text": text}
    ).json()
    return found


@pytest.mark.parametrize("text", [CAT, pytest.param(FIRST, marks=pytest.mark.full)])
def test_words_that_change_places_keep_their_pieces(
    page: Page, shipped: Running, text: str
) -> None:
    """Only where the model reads the same pieces in another order is that said."""
    open_path(page, shipped, text=text)
    right(page, 3)
    (other,) = QUOTED.findall(text_of(page, ".path-verdict"))
    assert other != text
    assert sorted(look(shipped, other)["source"]) == sorted(look(shipped, text)["source"])
    assert "only their order differs" in text_of(page, ".path-shown")


@pytest.mark.parametrize("language", ["ko", pytest.param("en", marks=pytest.mark.full)])
def test_where_no_two_words_keep_their_pieces(page: Page, shipped: Running, language: str) -> None:
    page.evaluate(f"localStorage.setItem('manyheads-language', '{language}')")
    text = "Birds sing."
    open_path(page, shipped, text=text)
    right(page, 3)
    (other,) = QUOTED.findall(text_of(page, ".path-verdict"))
    assert sorted(look(shipped, other)["source"]) != sorted(look(shipped, text)["source"])
    told = text_of(page, ".path-shown")
    assert {"en": "only their order", "ko": "순서만 다릅니다"}[language] not in told
    assert {"en": "other pieces", "ko": "다른 조각"}[language] in told


def mixed(view: dict[str, Any], word: str) -> dict[str, float]:
    """What is in the vector at a word after the encoder, from each piece, by attention rollout."""
    maps = [np.array(each["mean"]) for each in view["maps"] if each["kind"] == "encoder self"]
    flow = np.eye(len(view["source"]))
    for weights in maps:
        flow = (flow + weights @ flow) / 2
    shares: dict[str, float] = {}
    own = next(i for i, each in enumerate(view["source"]) if each.strip("▁") == word)
    for each, share in zip(view["source"], flow[own], strict=True):
        name = each.strip("▁")
        shares[name] = shares.get(name, 0) + float(share)
    return shares


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (CAT, "en"),
        (FIRST, "ko"),
        pytest.param(CAT, "ko", marks=pytest.mark.full),
        pytest.param(FIRST, "en", marks=pytest.mark.full),
    ],
)
def test_what_is_most_in_a_vector_is_said(
    page: Page, shipped: Running, text: str, language: str
) -> None:
    """The word with most; all that has more, the end token and signs, is named with its share."""
    page.evaluate(f"localStorage.setItem('manyheads-language', '{language}')")
    open_path(page, shipped, text=text)
    answer = right(page, 6)
    asked = text_of(page, ".path-ask")
    assert {"en": "word", "ko": "단어"}[language] in asked
    (own,) = QUOTED.findall(asked)
    shares = mixed(look(shipped, text), own)
    words = {name: share for name, share in shares.items() if name.isalpha() and name != own}
    assert answer == max(words, key=words.__getitem__)
    larger = [name for name, share in shares.items() if share > shares[answer] and name != own]
    assert "</s>" in larger
    end = {"en": ("end", "the end token", "attention sink"), "ko": ("끝", "끝 토큰", "어텐션 싱크")}
    named = {"</s>": end[language][1], ".": "“.”"}
    verdict = text_of(page, ".path-verdict")
    bars = page.evaluate("[...document.querySelectorAll('.path-mix .line')].at(-1).ariaLabel")
    for name in larger:
        assert f"{named[name]} {100 * shares[name]:.1f}%" in verdict
    for name in ("</s>", answer):
        share = f"{100 * shares[name]:.0f}%"
        assert f"{end[language][0] if name == '</s>' else name} {share}" in bars
    parts = [int(each) for each in re.findall(r"(\d+)%", bars)]
    assert len(parts) == 3 + len(larger)  # its own, the answer, what has more, all others
    assert parts[-1] < max(parts)
    assert end[language][2] in text_of(page, ".path-shown")


def test_what_is_most_similar_is_the_first_of_all(page: Page, shipped: Running) -> None:
    """A word whose nearest is itself with a capital is not asked about."""
    text = "Where is my key?"
    open_path(page, shipped, text=text)
    answer = right(page, 2)
    (token,) = QUOTED.findall(text_of(page, ".path-ask"))
    tables = [each for each in look(shipped, text)["figures"] if each["kind"] == "table"]
    rows = next(each["rows"] for each in tables if each["group"] == "embeddings")
    assert any(row[0] == token and row[2].startswith(f"{answer} ") for row in rows)


def test_the_query_of_step_four_meets_real_keys(page: Page, shipped: Running) -> None:
    """The table has products, scores and weights of the named head, as the model computes them."""
    open_path(page, shipped, text=OTHER)
    right(page, 4)
    rows = page.evaluate(
        "[...document.querySelectorAll('.path-table tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent))"
    )
    root = float(
        page.evaluate("document.querySelectorAll('.path-table th')[2].textContent").split("√")[1]
    )
    for _, product, score, _ in rows:
        assert float(score) == pytest.approx(float(product) / root**0.5, abs=0.02)
    weights = [float(row[3].strip("<%")) for row in rows]
    assert weights == sorted(weights, reverse=True)
    assert len(rows) >= 4


def test_dials_answer_at_once(page: Page, shipped: Running) -> None:
    """A low temperature sharpens the bars; the dial of the beam asks the server for its answer."""
    open_path(page, shipped, text=OTHER)
    right(page, 7)
    top = "parseInt(document.querySelector('.path-bars li > :last-child').textContent)"
    sharp: list[int] = []
    flat: list[int] = []
    for value, kept in ((0.2, sharp), (2, flat)):
        page.evaluate(
            "(() => { const dial = document.getElementById('path-temperature');"
            f"dial.value = {value}; dial.dispatchEvent(new Event('input')); }})()"
        )
        kept.append(page.evaluate(top))
    assert sharp[0] > flat[0]
    page.evaluate(
        "(() => { const dial = document.getElementById('path-beams'); dial.value = 1;"
        "dial.dispatchEvent(new Event('input')); })()"
    )
    greedy = shipped.client.post(
        "/api/v1/translate", json={"model": "en-de", "texts": [OTHER], "beams": 1}
    ).json()["answers"][0]["translation"]
    written = "[...document.querySelectorAll('.path-out')].at(-1).innerText.trim()"
    page.wait(f"{written} === {json.dumps(greedy)}")


def test_what_changed_is_said(page: Page, shipped: Running) -> None:
    """Words that are struck or added; the page names what is gone and what is new."""
    open_path(page, shipped, text=OTHER)
    right(page, 8)
    page.wait("document.querySelector('.path-free [role=status]').textContent")
    struck = page.evaluate("document.querySelector('.path-strike [aria-pressed=true]').innerText")
    assert struck in OTHER
    page.click(".path-strike [aria-pressed=true]")
    page.wait("document.querySelector('.path-free [role=status]').textContent.includes('not')")
    page.evaluate("document.getElementById('path-add').focus()")
    page.type("not")
    changed = shipped.client.post(
        "/api/v1/translate", json={"model": "en-de", "texts": [f"{OTHER} not"]}
    ).json()["answers"][0]["translation"]
    written = "[...document.querySelectorAll('.path-free .path-out')].at(-1).innerText.trim()"
    page.wait(f"{written} === {json.dumps(changed)}")


def picture() -> str:
    """A red thing on wheels, which is among no examples; as a data URL."""
    image = Image.new("RGB", (64, 64), "lightgray")
    drawing = ImageDraw.Draw(image)
    drawing.rectangle((8, 26, 56, 46), fill="firebrick")
    drawing.rectangle((18, 16, 44, 28), fill="firebrick")
    drawing.ellipse((12, 40, 24, 52), fill="black")
    drawing.ellipse((40, 40, 52, 52), fill="black")
    content = io.BytesIO()
    image.save(content, "png")
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"


@pytest.mark.parametrize(
    "model", ["cifar10-cct-2-3x2", pytest.param("digits", marks=pytest.mark.full)]
)
def test_the_same_path_for_a_picture(page: Page, shipped: Running, model: str) -> None:
    """All eight steps on a picture of one's own; covering parts changes the answer."""
    image = picture()
    open_path(page, shipped, kind="image", image=image, model={"image": model})
    given = {"model": model, "images": [image.split(",")[1]], "top": 10}
    classes = shipped.client.post("/api/v1/classify", json=given).json()["answers"][0]["classes"]
    view = shipped.client.post(
        "/api/v1/look", json={"model": model, "image": image.split(",")[1]}
    ).json()
    answers = [right(page, number) for number in range(1, 9)]
    assert int(answers[0]) == view["grids"][0]["rows"] * view["grids"][0]["columns"]
    assert answers[6] == classes[1]["label"]
    for number in (1, 3, 5):
        assert answers[number] in "ABCD"
    page.wait("document.querySelector('.path-free [role=status]').textContent")
    for number in range(16):
        if not page.evaluate(
            f"document.querySelectorAll('.cover button')[{number}].ariaPressed === 'true'"
        ):
            page.click(".cover button", number)
    given["images"] = [encoded(png((64, 64), "#808080"))]
    grey = shipped.client.post("/api/v1/classify", json=given).json()["answers"][0]["classes"][0]
    shown = "document.querySelector('.path-free .path-bars li').innerText"
    page.wait(f"{shown}.split(/\\s+/)[0] === {json.dumps(grey['label'])}")
    page.wait("!document.querySelector('.path-free .old')")


def test_where_no_question_can_be_asked(page: Page, shipped: Running) -> None:
    """A sentence of one word: what is missing is said, and the path goes on."""
    open_path(page, shipped, text="Hello", step={"text": 1})
    page.click(".path-flow .first[data-step='8']")
    page.wait("document.querySelector('.path-card .about')?.textContent.includes('too short')")
    page.wait("document.querySelector('.path-steps .step')")


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [
        ("text", "light"),
        ("image", "dark"),
        pytest.param("text", "dark", marks=pytest.mark.full),
        pytest.param("image", "light", marks=pytest.mark.full),
    ],
)
def test_small_and_named(page: Page, shipped: Running, kind: str, scheme: str) -> None:
    """At 320 pixels nothing overflows; what can be operated has a name and is large enough."""
    page.size(320, 700)
    page.prefer(prefers_color_scheme=scheme)
    open_path(page, shipped, kind=kind)
    for number in range(1, 9):
        right(page, number)
        page.wait("!document.querySelector('.path-figures .old')")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, number
        wrong = page.evaluate(
            """[...document.querySelectorAll("#page button, #page input, #page select")]
               .filter((each) => each.checkVisibility() && (each.getBoundingClientRect().height < 24
                 || !(each.ariaLabel || each.innerText?.trim()
                   || [...(each.labels ?? [])].some((label) => label.innerText.trim()))))
               .map((each) => each.outerHTML)"""
        )
        assert wrong == [], number


def test_nothing_of_the_path_is_sent_before_it_is_opened(page: Page, shipped: Running) -> None:
    """The first visit and the book do without it."""
    page.visit(f"{shipped.address}/", "document.documentElement?.dataset.page === 'ready'")
    assert not [each for each in page.requests if "/path." in each]
    page.visit(
        f"{shipped.address}/#view=learn&idea=T7",
        "document.querySelector('.look .drawer .panel') && !document.querySelector('.under.old')",
    )
    assert not [each for each in page.requests if "/path." in each and each.endswith(".js")]


def test_an_idea_on_a_sentence_of_ones_own(page: Page, shipped: Running) -> None:
    """Its figure is of that sentence; the example comes back. An idea that is not there is said."""
    drawn = "document.querySelector('.look .figure') && !document.querySelector('.under.old')"
    page.visit(f"{shipped.address}/#view=learn&idea=T5", drawn)
    assert "Hunde" in page.evaluate("document.querySelector('.shows').textContent")
    page.evaluate("document.getElementById('own-sentence').focus()")
    page.type("A girl eats an apple.")
    enter(page, "#own-sentence")
    keys = "[...document.querySelectorAll('.look .keys .token')].map(e => e.innerText).join(' ')"
    page.wait(f"{keys}.includes('girl') && {drawn}")
    assert page.evaluate("document.querySelector('.shows').textContent") == ""
    page.click("form.choice .link")
    page.wait(f"{keys}.includes('dogs') && {drawn}")
    page.visit(f"{shipped.address}/#view=learn&idea=T99", "document.querySelector('.code li')")
    page.wait("document.querySelector('.idea + .out').textContent")
    told = "[...document.querySelectorAll('#page .about')].map(e => e.textContent).join(' ')"
    assert "T99" in page.evaluate(told)
    page.wait(
        "document.querySelector('.look .drawer .panel') && !document.querySelector('.under.old')"
    )


def test_letters_in_bytes_are_pieces_too(page: Page, shipped: Running) -> None:
    """A syllable outside the vocabulary: its bytes are counted, and said to be such."""
    text = "나는 아홉 시에 집에 가고 싶어."
    open_path(page, shipped, text=text, model={"text": "enko-ko-en"})
    view = shipped.client.post("/api/v1/look", json={"model": "enko-ko-en", "text": text}).json()
    assert any(token.startswith("<0x") for token in view["source"])
    assert int(right(page, 1)) == len(view["source"]) - 1
    assert "bytes, such as <0x" in page.evaluate("document.querySelector('.path-card').innerText")


def test_names_in_the_plane_do_not_cover_each_other(page: Page, shipped: Running) -> None:
    open_path(page, shipped, text="The animal did not cross the street because it was too tired.")
    right(page, 2)
    boxes = page.evaluate(
        "[...document.querySelectorAll('.path-plane span')].map(each => "
        "{ const b = each.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; })"
    )
    deep = [
        min(a[1], b[1]) - max(a[0], b[0])
        for i, a in enumerate(boxes)
        for b in boxes[:i]
        if min(a[3], b[3]) - max(a[2], b[2]) > 4
    ]
    assert max(deep) < 2
