"""Every path answers with what the models say, over a real connection."""

import asyncio
import base64
import io
import json
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator
from PIL import Image, ImageDraw, ImageFont

from manyheads import load
from manyheads.documents.document_translation import Document
from manyheads.looking.look_inside import look
from manyheads.tasks.translate.predictor import Translator
from manyheads.web import document_sentences as documents
from manyheads.web.app import create_app
from manyheads.web.batching import Job
from manyheads.web.routes import compatible
from manyheads.web.served import Served, ServedModel, ServedOptions
from manyheads.web.settings import Limits, Settings
from tests.schema import SCHEMA
from tests.web.conftest import encoded, png
from tests.web.running import Running, running

SENTENCE = "A man is cleaning a window."


def ask(client: httpx.Client, path: str, **given: object) -> dict[str, Any]:
    found = client.post(path, json=given)
    assert found.status_code == 200, found.text
    answer: dict[str, Any] = found.json()
    return answer


def test_translate(client: httpx.Client) -> None:
    """The languages choose a model, or its name does; the answers are those of Python."""
    own = load("en-de")
    texts = [SENTENCE, "Two dogs play in the snow."]
    found = ask(client, "/api/v1/translate", texts=texts, target="de")
    assert found["model"] == "en-de"
    assert [each["translation"] for each in found["answers"]] == own(texts)
    named = ask(
        client,
        "/api/v1/translate",
        texts=[SENTENCE],
        model="multi30k-en-de",
        n_best=3,
        probabilities=True,
        align=True,
        prefix="Der",
    )
    (answer,) = named["answers"]
    assert len(answer["n_best"]) == 3
    assert answer["translation"].startswith("Der")
    tokens = answer["n_best"][0]["tokens"]
    assert "".join(answer["translation"][t["begin"] : t["end"]] for t in tokens).replace(
        " ", ""
    ) == (answer["translation"].replace(" ", ""))
    assert any(token["source"]["token"] for token in tokens if token.get("source"))


def test_translate_a_document(client: httpx.Client) -> None:
    """Structure, placeholders and the glossary's terms are kept; a stream tells how far it is."""
    text = "# The dog\n\nA man plays with a {name}.\n\n* Two dogs play.\n"
    given = {"text": text, "format": "markdown", "model": "multi30k-en-de"}
    path = "/api/v1/translate/document"
    found = ask(client, path, **given, glossary={"dogs": "Vierbeiner"})
    lines = found["text"].splitlines()
    assert [line[:2] for line in lines] == ["# ", "", lines[2][:2], "", "* "]
    assert "{name}" in lines[2]
    assert "Vierbeiner" in lines[4]
    with client.stream("POST", path, json=given | {"stream": True}) as stream:
        told = [json.loads(line) for line in stream.iter_lines()]
    assert told[0]["of"] >= told[0]["translated"] > 0
    assert told[-1]["model"] == "multi30k-en-de"
    assert "{name}" in told[-1]["text"]


def test_tag(client: httpx.Client) -> None:
    """Spaces into Korean."""
    found = ask(client, "/api/v1/tag", texts=["아버지가방에들어가신다"])
    assert " " in found["answers"][0]["text"]


def test_generate_says_that_no_model_can(client: httpx.Client) -> None:
    """None that is shipped continues texts."""
    for path in ("generate", "fill"):
        found = client.post(f"/api/v1/{path}", json={"texts": ["Once"]})
        assert found.status_code == 404
        assert "No model is served that can" in found.json()["detail"]


def near(answer: dict[str, Any]) -> list[tuple[str, Any]]:
    """Classes and probabilities, up to rounding."""
    return [
        (each["label"], pytest.approx(each["probability"], rel=1e-3)) for each in answer["classes"]
    ]


def test_classify(client: httpx.Client) -> None:
    """In JSON or as the body; with the model's own classes, or in words."""
    found = ask(client, "/api/v1/classify", images=[encoded(png())] * 2, top=3)
    first, second = found["answers"]
    assert len(first["classes"]) == 3
    assert near(first) == near(second)
    sent = client.post(
        "/api/v1/classify?top=3", content=png(), headers={"Content-Type": "image/png"}
    )
    assert near(sent.json()["answers"][0]) == near(first)
    words = ask(
        client, "/api/v1/classify", images=[encoded(png())], labels=["a cat", "an orange square"]
    )
    assert words["model"] in ("emoji-search", "icon-search")
    assert {each["label"] for each in words["answers"][0]["classes"]} == {
        "a cat",
        "an orange square",
    }


def test_a_form_with_an_image_in_it_is_no_image(client: httpx.Client) -> None:
    """The problem says how to send the image itself."""
    found = client.post("/api/v1/classify", files={"image": ("a.png", png())})
    assert found.status_code == 415, found.text
    assert "--data-binary" in found.json()["remedy"]


def test_caption(client: httpx.Client) -> None:
    """In the language that is asked for."""
    found = ask(client, "/api/v1/caption", images=[encoded(png())], language="ko", n_best=2)
    assert found["model"] == "emoji-caption"
    (answer,) = found["answers"]
    assert answer["language"] == "ko"
    assert len(answer["n_best"]) == 2


def test_read_and_translate(client: httpx.Client) -> None:
    """A line of Korean in an image, read and translated by the served models."""
    content = _line("고양이가 있다.")
    found = ask(client, "/api/v1/read", images=[encoded(content)], to="en")
    (answer,) = found["answers"]
    assert found["model"] == "read-ko"
    assert answer["language"] == "ko"
    assert "고양이" in answer["text"]
    (same,) = ask(client, "/api/v1/translate", texts=[answer["text"]], source="ko")["answers"]
    assert answer["translation"] == same["translation"]


def test_read_is_the_same_as_on_the_command_line(client: httpx.Client) -> None:
    """A translator must fit the language of the reader, and `to` is of what was translated."""
    rows = Image.new("L", (200_000, 6), 255)  # too long for a line
    for column in range(0, 200_000, 9):
        rows.paste(0, (column, 1, column + 4, 5))
    content = io.BytesIO()
    rows.save(content, "png")
    images = [encoded(content.getvalue())]
    (answer,) = ask(client, "/api/v1/read", images=images, to="en")["answers"]
    assert "times as wide as high" in answer["error"]
    assert "to" not in answer
    for given, status, told in (
        ({"images": []}, 400, "images is empty"),
        ({"translator": "de-en"}, 400, "but read-ko reads ko"),
        ({"translator": "enko-ko-en", "to": "de"}, 400, "is to be in de"),
        ({"model": "emoji-caption", "to": "en"}, 404, "from 'en' to 'en'"),
    ):
        found = client.post("/api/v1/read", json={"images": images} | given)
        assert found.status_code == status, found.text
        assert told in found.json()["detail"]


def test_the_time_to_answer_is_that_of_all_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of reading them and of translating what was read."""
    with running(["read-ko", "enko-ko-en"], limits=Limits(answer=2)) as server:
        image = encoded(_line("고양이가 있다."))
        ask(server.client, "/api/v1/read", images=[image], to="en")  # loads the models
        asked = slowed(monkeypatch, server, "enko-ko-en", 0.9)
        late = server.client.post("/api/v1/read", json={"images": [image] * 4, "to": "en"})
        assert late.status_code == 503
        assert len(asked) <= 3


def _line(text: str) -> bytes:
    font = ImageFont.truetype(_korean_font(), 40)
    image = Image.new("L", (420, 70), 255)
    ImageDraw.Draw(image).text((10, 8), text, fill=0, font=font)
    content = io.BytesIO()
    image.save(content, "png")
    return content.getvalue()


def _korean_font() -> str:
    # Importing the package would change matplotlib.
    spec = find_spec("koreanize_matplotlib")
    assert spec is not None
    assert spec.origin is not None
    (found,) = Path(spec.origin).parent.rglob("NanumGothic.ttf")
    return str(found)


def test_look(client: httpx.Client) -> None:
    """The view by its schema, the data of the page, and a page to keep."""
    given = {"model": "multi30k-en-de", "text": SENTENCE}
    view = ask(client, "/api/v1/look", **given)
    Draft202012Validator(SCHEMA).validate(
        {key: value for key, value in view.items() if key not in ("model", "text", "translation")}
    )
    assert view["translation"] == look("multi30k-en-de", SENTENCE, integrated=False).answer
    page = ask(client, "/api/v1/look", **given, form="page")
    assert set(page) == {"data", "packed"}
    html = client.post("/api/v1/look", json=given | {"form": "html"})
    assert html.headers["content-type"] == "text/html; charset=utf-8"
    assert html.text.startswith("<!doctype html>")
    image = ask(client, "/api/v1/look", model="cifar10-cct-2-3x2", image=encoded(png()))
    assert image["kind"] == "image"


def test_look_for_causes(client: httpx.Client) -> None:
    """Texts only: for an image the other one would be the path of a file on the server."""
    given = {"model": "multi30k-en-de", "text": SENTENCE, "instead": "A dog is running."}
    view = ask(client, "/api/v1/look", **given)
    assert any(each["group"] == "cause" for each in view["figures"])
    image = {"model": "digits", "image": encoded(png()), "instead": "/etc/hostname"}
    answer = client.post("/api/v1/look", json=image)
    assert answer.status_code == 400
    assert "Python and commands only" in answer.text


def test_look_at_one_head(client: httpx.Client) -> None:
    """The weights of a row are those of the view; what is not there is refused."""
    given = {"model": "multi30k-en-de", "text": SENTENCE}
    view = ask(client, "/api/v1/look", **given)
    wanted = {"site": "decoder layer 2 cross", "head": 3, "row": 2}
    steps = ask(client, "/api/v1/look/head", **given, **wanted)
    (shown,) = (each for each in view["maps"] if each["site"] == wanted["site"])
    assert steps["weights"] == pytest.approx(shown["weights"][2][1], abs=1e-3)
    assert len(steps["keys"]) == len(shown["columns"])
    for wrong in ({"site": "nowhere"}, {"head": 99}, {"row": 0}):
        answer = client.post("/api/v1/look/head", json=given | wanted | wrong)
        assert answer.status_code == 400
    picture = {"model": "cifar10-cct-2-3x2", "image": encoded(png())}
    pool = ask(client, "/api/v1/look/head", **picture, site="pool layer 1 sequence", head=1, row=1)
    assert sum(pool["weights"]) == pytest.approx(1, abs=1e-2)


def test_models_and_health(client: httpx.Client) -> None:
    """What is served, with what was measured; after an answer the worker runs."""
    ask(client, "/api/v1/tag", texts=["가"])
    found = client.get("/api/v1/models").json()
    facts = {each["name"]: each for each in found["models"]}
    assert facts["multi30k-en-de"]["source"] == "en"
    assert facts["multi30k-en-de"]["measured"]
    assert facts["digits"]["looks"]
    assert not found["index"]
    live = client.get("/health/live").json()
    told = {"status": "live", "worker": "running", "failed_starts": 0}
    assert live == told | {"documents": live["documents"]}
    assert live["documents"] in ("starting", "running")
    assert client.get("/health/ready").json() == {"status": "ready"}


def test_metrics(client: httpx.Client) -> None:
    """By path and status, and by model."""
    ask(client, "/api/v1/tag", texts=["가나다"])
    text = client.get("/metrics").text
    assert 'manyheads_requests_total{path="/api/v1/tag",status="200"}' in text
    assert 'manyheads_merged_requests_count{model="korean-spacing-lstm"}' in text
    assert "manyheads_processes 1.0" in text


def test_openapi(client: httpx.Client) -> None:
    """Every path is described, with an example that works."""
    found = client.get("/openapi.json").json()
    paths = found["paths"]
    tried = 0
    for path, methods in paths.items():
        for method, told in methods.items():
            if method != "post":
                continue
            content = told["requestBody"]["content"]
            if "application/json" in content:
                answer = client.post(path, json=content["application/json"]["example"])
            else:
                (media, text), *_ = (
                    (m, c["example"]) for m, c in content.items() if "example" in c
                )
                answer = client.post(path, content=text, headers={"Content-Type": media})
            absent = path.endswith(("/generate", "/fill", "/search"))
            assert answer.status_code in ({404} if absent else {200, 201}), (path, answer.text)
            tried += 1
    assert tried >= 13


# --- What clients of other servers speak ----------------------------------------------------------


def test_libretranslate(client: httpx.Client) -> None:
    """A text or an array, JSON or a form, HTML with its tags."""
    one = ask(client, "/translate", q=SENTENCE, source="en", target="de")
    assert one == {"translatedText": load("en-de")(SENTENCE)}
    several = ask(client, "/translate", q=[SENTENCE, "안녕"], source="auto", target="de")
    assert len(several["translatedText"]) == len(several["detectedLanguage"]) == 2
    form = client.post("/translate", data={"q": SENTENCE, "source": "en", "target": "de"})
    assert form.json() == one
    html = ask(
        client,
        "/translate",
        q='<p>A <b>dog</b>.</p><p translate="no">A dog.</p>',
        source="en",
        target="de",
        format="html",
        alternatives=2,
    )
    assert html["translatedText"].endswith('<p translate="no">A dog.</p>')
    assert "</b>" in html["translatedText"]
    assert len(html["alternatives"]) == 2
    listed = {each["code"]: each["targets"] for each in client.get("/languages").json()}
    assert set(listed["en"]) == {"ko", "de", "fr"}
    wrong = client.post("/translate", json={"q": "a", "source": "en", "target": "xx"})
    assert wrong.status_code == 400  # in both protocols
    assert "translates from" in wrong.json()["error"]
    wrong = client.post("/v2/translate", json={"text": ["a"], "target_lang": "XX"})
    assert wrong.status_code == 400
    assert "translates from" in wrong.json()["message"]


def test_texts_of_one_request_count_as_one_document() -> None:
    """As many as `batchLimit` says, each translated as alone."""
    with running(["multi30k-en-de"], limits=Limits(documents=1, inputs=3)) as server:
        texts = [SENTENCE, "Two dogs play.\nA man sleeps.", "<b>Dogs</b> play."]
        most = server.client.get("/frontend/settings").json()["batchLimit"]
        assert most == len(texts)
        for kind in ("text", "html"):
            given: dict[str, Any] = {"source": "en", "target": "de", "format": kind}
            found = ask(server.client, "/translate", q=texts, **given)["translatedText"]
            alone = [ask(server.client, "/translate", q=q, **given) for q in texts]
            assert found == [each["translatedText"] for each in alone]
        assert not server.served.documents.characters


@pytest.mark.parametrize(
    ("text", "language", "sure"),
    [
        ("안녕하세요", "ko", True),
        ("The dog is in the house.", "en", True),
        ("La vie est belle et je ne sais pas.", "fr", False),  # not served, as the next two
        ("Καλημέρα", "el", True),
        ("Доброе утро", "ru", False),  # or another one in these letters
        ("123 ...", "en", None),
    ],
)
def test_detect(client: httpx.Client, text: str, language: str, sure: bool | None) -> None:
    """By letters and frequent words; confidence is none where there is no letter."""
    best, *others = client.post("/detect", json={"q": text}).json()
    confidence = best["confidence"]
    assert best["language"] == language
    assert (None if confidence == 0 else confidence > 60) == sure
    assert all(0 < each["confidence"] <= confidence for each in others)


def test_deepl(client: httpx.Client) -> None:
    """Several texts; tags are kept, and those to be ignored with their content."""
    text = '<p>A man in a <x id="1">blue</x> shirt.</p>'
    before = client.get("/v2/usage").json()["character_count"]
    found = ask(
        client,
        "/v2/translate",
        text=[text, SENTENCE],
        source_lang="EN",
        target_lang="DE",
        tag_handling="xml",
        ignore_tags=["x"],
    )
    first, second = found["translations"]
    assert '<x id="1">blue</x>' in first["text"]
    assert first["text"].startswith("<p>")
    assert second == {
        "billed_characters": len(SENTENCE),
        "detected_source_language": "EN",
        "text": load("en-de")(SENTENCE),
    }
    codes = {each["language"] for each in client.get("/v2/languages?type=target").json()}
    assert codes == {"KO", "DE", "EN", "FR"}
    body = client.request("GET", "/v2/languages", json={"type": "target"})
    assert {each["language"] for each in body.json()} == codes
    billed = sum(each["billed_characters"] for each in found["translations"])
    assert client.get("/v2/usage").json()["character_count"] == before + billed
    assert billed == len(text) + len(SENTENCE)


def test_every_protocol_carries_notes(client: httpx.Client) -> None:
    """The same as the predictor's: in a field that clients ignore, or in a header of a file."""
    strange, model = "Xqzzvk 漢字 wjq.", load("en-de")
    assert isinstance(model, Translator)
    ((best,),) = model.translate([strange])
    told = [f"line 1: {strange!r}: {note}" for note in model.notes(strange, best)]
    assert told
    pair = {"source": "en", "target": "de"}
    assert ask(client, "/translate", q=strange, **pair)["notes"] == told
    assert ask(client, "/translate", q=[SENTENCE, strange], **pair)["notes"] == [[], told]
    assert "notes" not in ask(client, "/translate", q=[SENTENCE], **pair)
    given = {"text": [strange, SENTENCE], "source_lang": "EN", "target_lang": "DE"}
    first, second = ask(client, "/v2/translate", **given)["translations"]
    assert first["notes"] == told
    assert "notes" not in second
    named = {"model": "en-de"}
    assert ask(client, "/api/v1/translate/document", text=strange, **named)["notes"] == told

    def header(text: str) -> str | None:
        path = "/api/v1/translate/file?model=en-de"
        found: str | None = client.post(path, content=text.encode()).headers.get("Manyheads-Notes")
        return found

    assert json.loads(header(strange) or "") == told
    assert header(SENTENCE) is None
    long = "\n".join(f"{sign * 100} wjq." for sign in "漢字開店門")
    every = ask(client, "/api/v1/translate/document", text=long, **named)["notes"]
    written = header(long) or ""
    *some, last = json.loads(written)
    assert 3072 < len(written) <= 4096
    assert some == every[: len(some)]
    assert last == f"Notes left out: {len(every) - len(some)}; streamed answers have all."


def slowed(
    monkeypatch: pytest.MonkeyPatch, server: Running, name: str, seconds: float
) -> list[int]:
    """Let a model wait before each answer; the numbers of inputs that it is asked are kept."""
    asked: list[int] = []
    queue = server.served.models[name].queue
    own = queue.ask

    async def ask(job: Job) -> list[Any]:
        asked.append(len(job.inputs))
        await asyncio.sleep(seconds)
        return await own(job)

    monkeypatch.setattr(queue, "ask", ask)
    return asked


def test_texts_of_deepl_are_translated_together(
    shipped: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of each model; the time to answer is that of all."""
    texts = [SENTENCE, "Two dogs play.", "고양이가 있다.", "A man sleeps."]
    given = {"text": texts, "target_lang": "DE"}
    ask(shipped.client, "/v2/translate", **given)  # loads the model
    asked = slowed(monkeypatch, shipped, "en-de", 0)
    ask(shipped.client, "/v2/translate", text=[SENTENCE, "Two dogs play."], target_lang="DE")
    assert asked == [2]
    with running(["multi30k-en-de"], limits=Limits(answer=2)) as server:
        # Loads the model, in time or not.
        server.client.post("/v2/translate", json={"text": SENTENCE, "target_lang": "DE"})
        monkeypatch.setattr(documents, "AT_A_TIME", 1)
        asked = slowed(monkeypatch, server, "multi30k-en-de", 0.75)
        late = server.client.post("/v2/translate", json=given)
        assert late.status_code == 503
        assert late.json()["title"] == "Too slow"
        assert len(asked) <= 3


def test_each_text_of_deepl_by_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are in the order of the texts."""

    async def translate(
        _: object, model: ServedModel, texts: list[str], **__: object
    ) -> list[Document]:
        return [Document(f"{model.name}: {text}", (), b"") for text in texts]

    def translator(_: Served, source: str | None, target: str) -> ServedModel:
        data = SimpleNamespace(language_pair=(source, target))
        folder: Any = SimpleNamespace(name=source, recipe=SimpleNamespace(data=data))
        return ServedModel(folder, queue=None)  # type: ignore[arg-type]

    monkeypatch.setattr(compatible, "translate_texts", translate)
    monkeypatch.setattr(Served, "translator", translator)
    with running(["digits"]) as server:
        monkeypatch.setattr(compatible, "_for_target", lambda *_: ["en", "ko"])
        texts = ["The dog is in the house.", "안녕하세요", "A man and a woman.", "고양이"]
        found = ask(server.client, "/v2/translate", text=texts, target_lang="DE")["translations"]
    expected = ["en", "ko", "en", "ko"]
    assert [each["text"] for each in found] == [
        f"{language}: {text}" for language, text in zip(expected, texts, strict=True)
    ]
    assert [each["detected_source_language"].lower() for each in found] == expected


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1e308", "11", "-1", '"many"', "[]"])
def test_alternatives_that_are_no_number(client: httpx.Client, number: str) -> None:
    content = f'{{"q": "A dog.", "source": "en", "target": "de", "alternatives": {number}}}'
    headers = {"Content-Type": "application/json"}
    found = client.post("/translate", content=content, headers=headers)
    assert found.status_code == 400, found.text
    assert "alternatives" in found.json()["detail"]


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("formality", "less", 400),
        ("formality", "more", 400),
        ("formality", "polite", 400),
        ("formality", "prefer_more", 200),
        ("formality", "default", 200),
        ("split_sentences", "0", 400),
        ("split_sentences", "1", 200),
        ("non_splitting_tags", ["a"], 400),
        ("style_id", "a", 400),
        ("context", "A house.", 200),
        ("show_billed_characters", True, 200),
    ],
)
def test_what_deepl_knows_and_no_model_here(
    client: httpx.Client, name: str, value: object, status: int
) -> None:
    """What would be another translation is refused by name; hints may have no effect."""
    given = {"text": ["A dog."], "target_lang": "DE", name: value}
    found = client.post("/v2/translate", json=given)
    assert found.status_code == status, found.text
    assert status == 200 or found.json()["where"] == name


def test_glossaries_of_deepl(client: httpx.Client) -> None:
    """Made, used, listed, read and deleted."""
    entries = "window\tLuke\nman\tHerr"
    given = {"name": "n", "source_lang": "en", "target_lang": "de", "entries": entries}
    made = client.post("/v2/glossaries", json=given | {"entries_format": "tsv"})
    assert made.status_code == 201
    number = made.json()["glossary_id"]
    assert made.json()["entry_count"] == 2
    found = ask(client, "/v2/translate", text=[SENTENCE], target_lang="DE", glossary_id=number)[
        "translations"
    ][0]["text"]
    assert "Luke" in found
    assert "Herr" in found
    assert number in [
        each["glossary_id"] for each in client.get("/v2/glossaries").json()["glossaries"]
    ]
    assert client.get(f"/v2/glossaries/{number}/entries").text == entries
    assert client.delete(f"/v2/glossaries/{number}").status_code == 204
    assert client.get(f"/v2/glossaries/{number}").status_code == 404
    unknown = {"text": "a", "target_lang": "DE", "glossary_id": "\ud800"}
    lone = client.post("/v2/translate", content=json.dumps(unknown))
    assert lone.status_code == 404, lone.text
    wrong = client.post("/v2/glossaries", json=given | {"entries": "window"})
    assert wrong.status_code == 400
    for form, entries in (("csv", "a,b\rc,d"), ("tsv", "a\tb\rc")):
        damaged = client.post(
            "/v2/glossaries", json=given | {"entries": entries, "entries_format": form}
        )
        assert damaged.status_code == 400, damaged.text
        assert "entries" in damaged.json()["detail"]


def test_glossaries_of_replicas() -> None:
    """A replica on Ray refuses to keep what the others would not find."""
    settings = Settings(glossaries=None)
    app = create_app(ServedOptions(("digits",)).make(settings.limits), settings)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/v2/glossaries", json={"name": "a"})

    answer = asyncio.run(ask())
    assert answer.status_code == 501, answer.text
    assert "several replicas" in answer.json()["detail"]


def test_glossaries_end_with_the_server() -> None:
    """Their database is open while the application runs, and closed behind it."""
    settings = Settings()
    app = create_app(ServedOptions(("digits",)).make(settings.limits), settings)
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/v2/glossaries").json() == {"glossaries": []}
        kept = app.app.state.glossaries  # type: ignore[attr-defined]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        list(kept)


def test_images_may_be_data_urls(shipped: Running) -> None:
    """As a page has them."""
    url = f"data:image/png;base64,{base64.b64encode(png()).decode()}"
    found = ask(shipped.client, "/api/v1/classify", images=[url])
    assert found["answers"][0]["classes"]
