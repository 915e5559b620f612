"""One server of the shipped models for the tests that leave it as it is, and one browser a file."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from PIL import Image

from manyheads.web.worker_process import ProcessWorker
from tests.browser import Page, browser
from tests.web.running import Running, running

EMOJI = Path(__file__).parents[2] / "docs" / "images"


@pytest.fixture(scope="session")
def shipped() -> Iterator[Running]:
    """A server of the shipped models, which are in a process of their own."""
    with running(worker=ProcessWorker()) as found:
        yield found


@pytest.fixture
def client(shipped: Running) -> httpx.Client:
    """A client for it."""
    return shipped.client


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """A tab in which nothing goes wrong, and that asks nobody but the server."""
    tab.size(1280, 900)
    tab.prefer(prefers_color_scheme="light")
    yield tab
    assert tab.problems == []
    hosts = {each.split("/")[2] for each in tab.requests if each.startswith("http")}
    assert len(hosts) == 1


def png(size: tuple[int, int] = (32, 32), colour: str = "orange") -> bytes:
    """An image of one colour."""
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, "png")
    return content.getvalue()


def encoded(content: bytes) -> str:
    """An image as JSON has it."""
    return base64.b64encode(content).decode()
