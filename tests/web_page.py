"""A folder of `manyheads export --to web`, opened in a browser from a server on this machine."""

import base64
import io
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from PIL import Image

from manyheads.data.images.image_set import Preprocessing
from tests.browser import Page, browser

OFFLINE = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve files on this machine; gives the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def opened(folder: Path, profile: Path) -> Iterator[tuple[Page, str]]:
    """Open a page; then cut it off from every network. Gives the page, and where it came from."""
    with served(folder) as origin, browser(profile) as page:
        page.command("Page.navigate", url=f"{origin}/index.html")
        page.wait("document.documentElement?.dataset.ready === 'yes'")
        page.command("Network.emulateNetworkConditions", **OFFLINE)
        yield page, origin


def answers(page: Page, texts: Sequence[str]) -> list[str]:
    """What the page's model writes for each text."""
    script = (
        "(async texts => { const found = [];"
        "for (const text of texts) found.push(await window.model.answer(text));"
        f"return found; }})({json.dumps(list(texts))})"
    )
    return list(page.evaluate(script))


def answers_to_images(page: Page, images: Sequence[Image.Image], *more: str) -> list[Any]:
    """What the page's model says of each image, given as a PNG file."""
    files = [_png(each) for each in images]
    script = (
        "(async (files, more) => { const found = [];"
        "for (const file of files) {"
        "  const bytes = Uint8Array.from(atob(file), c => c.charCodeAt(0));"
        "  found.push(await window.model.answer(new Blob([bytes]), ...more)); }"
        f"return found; }})({json.dumps(files)}, {json.dumps(more)})"
    )
    return list(page.evaluate(script))


def image_input(page: Page, image: Image.Image, how: Preprocessing) -> list[float]:
    """What `pixels.js`, imported as `p`, makes of an image."""
    script = (
        "(async (file, how) => {"
        "  const bytes = Uint8Array.from(atob(file), c => c.charCodeAt(0));"
        "  const image = await p.decodeImage(new Blob([bytes]));"
        f"  return [...p.toInput(image, how).values]; }})({json.dumps(_png(image))}, "
        f"{json.dumps(asdict(how))})"
    )
    return list(page.evaluate(script))


def _png(image: Image.Image) -> str:
    content = io.BytesIO()
    image.save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()
