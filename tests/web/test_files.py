"""Files: translated with their structure, and refused where they would cost too much."""

import asyncio
import base64
import io
import json
import sys
import threading
import zipfile
from functools import cache
from pathlib import Path

import httpx
import pytest

from manyheads.web.settings import Limits
from tests.web.running import Running, running

PATH = "/api/v1/translate/file"
OFFICE = "application/vnd.openxmlformats-officedocument"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
IMAGE = b"\x89PNG dog" * 99
BODY = """<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>Two dogs play.</w:t></w:r></w:p>
<w:p><w:r><w:t>A man sees {name}.</w:t></w:r></w:p>"""


def package(parts: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("media/dog.png", IMAGE)
        for name, text in parts.items():
            archive.writestr(name, text)
    return content.getvalue()


@cache  # archives hold the time they were made
def docx(body: str = BODY) -> bytes:
    text = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    return package({"word/document.xml": text})


@cache
def xlsx() -> bytes:
    strings = f"<sst {S}><si><t>Two dogs play.</t></si></sst>"
    sheet = f"<worksheet {S}><c><f>SUM(1,2)</f><v>3</v></c></worksheet>"
    return package(
        {
            "xl/workbook.xml": f"<workbook {S}/>",
            "xl/sharedStrings.xml": strings,
            "xl/worksheets/sheet1.xml": sheet,
        }
    )


def parts(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def send(client: httpx.Client, content: bytes, **parameters: str) -> httpx.Response:
    return client.post(PATH, params={"target": "de"} | parameters, content=content)


def test_docx(client: httpx.Client) -> None:
    """By the ending, the content type or the format; all but the texts is as it was."""
    found = send(client, docx(), name="a letter.docx")
    assert found.status_code == 200, found.text
    assert found.headers["content-type"].startswith(f"{OFFICE}.wordprocessingml")
    assert "translated.docx" in found.headers["content-disposition"]
    after, before = parts(found.content), parts(docx())
    text = after.pop("word/document.xml").decode()
    assert before.pop("word/document.xml").decode() != text
    assert after == before
    assert "<w:rPr><w:b/></w:rPr>" in text
    assert "Two dogs" not in text
    assert "{name}" in text
    assert send(client, docx(), format="docx").content == found.content
    headers = {"Content-Type": f"{OFFICE}.wordprocessingml.document"}
    typed = client.post(PATH, params={"target": "de"}, content=docx(), headers=headers)
    assert typed.content == found.content


def test_xlsx(client: httpx.Client) -> None:
    """Texts of cells, not formulas."""
    found = send(client, xlsx(), name="C:\\tables\\a.xlsx")
    assert found.status_code == 200, found.text
    after = parts(found.content)
    assert b"Two dogs" not in after["xl/sharedStrings.xml"]
    assert after["xl/worksheets/sheet1.xml"] == parts(xlsx())["xl/worksheets/sheet1.xml"]


def test_texts(client: httpx.Client) -> None:
    """Files of text keep their encoding and line ends."""
    found = send(client, "# Two dogs play.\r\n".encode("utf-16"), name="a.md")
    assert found.status_code == 200, found.text
    assert found.headers["content-type"].startswith("text/markdown")
    text = found.content.decode("utf-16")
    assert text.startswith("# ")
    assert text.endswith("\r\n")
    assert "dogs" not in text


def test_stream_is_true_or_false(client: httpx.Client) -> None:
    parameters = {"target": "de", "format": "text", "stream": "maybe"}
    found = client.post(PATH, params=parameters, content=b"A dog.")
    assert found.status_code == 400
    assert "`stream` = 'maybe'" in found.json()["detail"]


def test_a_stream_tells_how_far_it_is(client: httpx.Client) -> None:
    """And at last gives the file."""
    parameters = {"target": "de", "name": "a.docx", "stream": "true"}
    with client.stream("POST", PATH, params=parameters, content=docx()) as stream:
        told = [json.loads(line) for line in stream.iter_lines()]
    assert told[0]["translated"] <= told[0]["of"] == 2
    assert told[-1]["model"]
    assert base64.b64decode(told[-1]["content"]) == send(client, docx(), name="a.docx").content
    with client.stream("POST", PATH, params=parameters, content=b"no archive") as stream:
        (problem,) = [json.loads(line) for line in stream.iter_lines()]
    assert problem["status"] == 422


@pytest.mark.parametrize(
    ("content", "parameters", "status", "told"),
    [
        (b"", {}, 400, "empty"),
        (docx(), {}, 400, "archive"),
        (b"A dog.", {"name": "a.docx"}, 422, "cannot be unpacked"),
        (docx()[:-40], {"name": "a.docx"}, 422, "cannot be unpacked"),
        (xlsx(), {"name": "a.docx"}, 422, "another kind"),
        (docx("<w:p>"), {"name": "a.docx"}, 422, "damaged"),
        (b"%PDF-1.7", {"name": "a.pdf"}, 400, ".docx or .html"),
        (b"id,text\n1,A dog.\n", {"name": "a.csv"}, 400, ".xlsx"),
        (b"A dog.", {"format": "word"}, 400, "Allowed"),
        (b"A dog.", {"path": "/etc/passwd"}, 400, "path"),
        (b"A dog.", {"model": "digits"}, 400, "digits"),
    ],
)
def test_what_is_refused(
    client: httpx.Client, content: bytes, parameters: dict[str, str], status: int, told: str
) -> None:
    """With a problem that says why."""
    found = client.post(PATH, params={"target": "de"} | parameters, content=content)
    assert found.status_code == status, found.text
    assert told in found.json()["detail"]


def test_a_form_with_a_file_in_it_is_no_file(client: httpx.Client) -> None:
    """What frames the parts of a form would be translated with it."""
    found = client.post(PATH, params={"target": "de"}, files={"file": ("a.txt", b"A dog.")})
    assert found.status_code == 415, found.text
    assert "--data-binary" in found.json()["remedy"]


def bomb(name: str, count: int = 1) -> bytes:
    """An archive of some megabytes that unpacks to gigabytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {W}/>")
        for number in range(count):
            with archive.open(name.format(number), "w", force_zip64=True) as part:
                for _ in range(1024 // count):
                    part.write(bytes(1 << 20))
    return content.getvalue()


def lying() -> bytes:
    """An archive whose part is larger than its directory says."""
    content = bytearray(docx(" " * (32 << 20)))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = archive.getinfo("word/document.xml").file_size
    told = size.to_bytes(4, "little")
    while (place := content.find(told)) >= 0:
        content[place : place + 4] = (1000).to_bytes(4, "little")
    return bytes(content)


def most_memory() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(each.split()[1]) >> 10 for each in lines if each.startswith("VmHWM"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    "content",
    [
        bomb("word/media/{}.png"),
        bomb("word/header{}.xml", 256),
        lying(),
        package({f"word/{n}.png": "" for n in range(6000)} | {"word/document.xml": "<a/>"}),
    ],
)
def test_archives_that_unpack_to_too_much(client: httpx.Client, content: bytes) -> None:
    """Are refused before they do; the server is in this process."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the largest so far
    before = most_memory()
    found = send(client, content, name="a.docx")
    assert found.status_code == 422, found.text
    assert "unpack" in found.json()["detail"]
    assert most_memory() - before < 100


def test_limits() -> None:
    """Characters of all texts; and files at the same time."""
    with running(["multi30k-en-de"], limits=Limits(document=30, files=1)) as server:
        found = send(server.client, docx(), name="a.docx")
        assert found.status_code == 413, found.text
        assert "30 characters" in found.json()["detail"]
        assert send(server.client, docx("<w:p/>"), name="a.docx").status_code == 200
        gate = threading.Event()
        with held(server, gate):
            task = threading.Thread(
                target=send, args=(server.client, b"A dog."), kwargs={"name": "a.txt"}
            )
            task.start()
            while not server.served.documents.files:
                task.join(0.01)
            refused = httpx.post(f"{server.address}{PATH}?target=de", content=b"A dog.")
            assert refused.status_code == 429
            gate.set()
            task.join(60)
        assert send(server.client, b"A dog.", name="a.txt").status_code == 200


class held:  # noqa: N801 - used as a function
    """Keep the model of a server busy until a gate opens."""

    def __init__(self, server: Running, gate: threading.Event) -> None:
        self.queue, self.gate = server.served.models["multi30k-en-de"].queue, gate

    def __enter__(self) -> None:
        assert self.queue._task is not None
        loop = self.queue._task.get_loop()
        work = self.queue.call(lambda _: self.gate.wait(60))
        self.done = asyncio.run_coroutine_threadsafe(work, loop)

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        assert self.done.result(60)
