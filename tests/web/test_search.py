"""Search in an index of images over HTTP: by words, by images, by many clients."""

import base64
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from PIL import Image, ImageDraw

from manyheads.image_search.image_index import ImageIndex, index
from manyheads.web.worker_process import ProcessWorker
from tests.web.conftest import encoded
from tests.web.running import Running, running
from tests.web.test_worker import until

COLOURS = ("red", "green", "blue", "orange", "black")


def drawn(colour: str, shape: str) -> Image.Image:
    image = Image.new("RGB", (300, 200), "white")
    getattr(ImageDraw.Draw(image), shape)((60, 20, 220, 180), fill=colour)
    return image


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of ten images, one of which is gone when it is searched."""
    place = tmp_path_factory.mktemp("search")
    (place / "images").mkdir()
    for colour in COLOURS:
        for shape in ("ellipse", "rectangle"):
            drawn(colour, shape).save(place / "images" / f"{colour}-{shape}.png")
    index(place / "images", out=place / "index")
    (place / "images" / "black-rectangle.png").unlink()
    return place


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    """A server with the index, which the process of the models opens."""
    with running(["digits"], index=folder / "index", worker=ProcessWorker()) as found:
        until(lambda: found.client.get("/health/ready").status_code == 200)
        yield found


def test_words(server: Running, folder: Path) -> None:
    """The same as in Python, also for many clients at once, whose words are merged."""
    queries = [f"a {colour} {shape}" for colour in COLOURS for shape in ("circle", "square")]
    own = ImageIndex(folder / "index")
    expected = [[each.path for each in own.search(query, top=3)] for query in queries]

    def ask(query: str) -> list[str]:
        given = {"queries": [query], "top": 3}
        found = httpx.post(f"{server.address}/api/v1/search", json=given, timeout=60)
        assert found.status_code == 200, found.text
        (answer,) = found.json()["answers"]
        assert answer["query"] == query
        return [each["path"] for each in answer["images"]]

    with ThreadPoolExecutor(8) as clients:
        assert list(clients.map(ask, queries)) == expected
    assert all(len(each) == 3 for each in expected)


def test_images(server: Running) -> None:
    """What is sent is found in the index, with a small image of each that is still there."""
    content = io.BytesIO()
    drawn("orange", "ellipse").save(content, "png")
    given = {"images": [encoded(content.getvalue())], "top": 10, "thumbnails": True}
    (answer,) = server.client.post("/api/v1/search", json=given).json()["answers"]
    assert (answer["query"], answer["kind"]) == ("image 1", "image")
    first, *others = answer["images"]
    assert Path(first["path"]).name == "orange-ellipse.png"
    assert first["score"] > max(each["score"] for each in others)
    gone = [each for each in answer["images"] if each.get("gone")]
    assert [Path(each["path"]).name for each in gone] == ["black-rectangle.png"]
    shown = [each["thumbnail"] for each in answer["images"] if each.get("thumbnail")]
    assert len(shown) == 9
    small = Image.open(io.BytesIO(base64.b64decode(shown[0].partition(",")[2])))
    assert small.size == (192, 128)


def test_what_is_refused(server: Running, folder: Path) -> None:
    """Neither words nor images; too many; a path is words."""
    for given, status in (
        ({}, 400),
        ({"queries": ["red"], "top": 10**6}, 400),
        ({"queries": ["red"] * 500}, 413),
        ({"images": [str(folder / "images" / "red-ellipse.png")]}, 422),
    ):
        assert server.client.post("/api/v1/search", json=given).status_code == status
    path = {"queries": [str(folder / "images" / "red-ellipse.png")]}
    (answer,) = server.client.post("/api/v1/search", json=path).json()["answers"]
    assert answer["kind"] == "text"
    assert server.client.get("/api/v1/models").json()["index"]
