"""A real browser, headless, spoken to in its DevTools protocol over two pipes: nothing to install.

The protocol: https://chromedevtools.github.io/devtools-protocol/. With --remote-debugging-pipe the
browser reads commands from file descriptor 3 and writes answers and events to 4, JSON between NULs.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Seconds that a busy machine may need for one thing; pytest's limit is longer.
PATIENCE = float(os.environ.get("MANYHEADS_PATIENCE", "240"))
STARTS = 3  # a browser that ends before it has opened a tab is started again
# What it says of a page that is being replaced by the next one.
BETWEEN = ("Cannot find default execution context", "context was destroyed", "navigated or closed")
# Why tests are skipped, and what helps.
MISSING = "no Chromium or Chrome here"
REMEDY = (
    "Install one (Debian: apt-get install --no-install-recommends chromium; Ubuntu: snap install "
    "chromium; elsewhere: https://www.google.com/chrome/), or name one that is installed: "
    "MANYHEADS_BROWSER=/path/to/chrome make test"
)
# Puts the pipes where the browser expects them, whatever numbers they had, and becomes the browser.
LAUNCH = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for place, pipe in enumerate(pipes, 3):
    os.dup2(pipe, place)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def found() -> str | None:
    """Find a browser; MANYHEADS_BROWSER names another one."""
    named = os.environ.get("MANYHEADS_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class BrowserError(AssertionError):
    """The browser, or the page in it, answered with an error."""


class Page:
    """One tab. `problems` are its console errors and exceptions, `requests` what it asked for."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._rest = b""
        self._last = 0
        self._session: str | None = None
        self.problems: list[str] = []
        self.requests: list[str] = []

    def attach(self) -> Self:
        """Open a tab and listen to it."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        return self

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        """Give one command and wait for its answer; events on the way are noted."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self._note(answer)

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file and wait until it is drawn."""
        self.problems.clear()
        self.requests.clear()
        self.command("Page.navigate", url="about:blank")
        self.command("Page.navigate", url=f"{path.resolve().as_uri()}{fragment}")
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def visit(self, address: str, until: str) -> None:
        """Open the page of a server, and wait until a condition is true."""
        self.command("Page.navigate", url="about:blank")
        self.problems.clear()  # what the page before did last is not of this one
        self.requests.clear()
        self.command("Page.navigate", url=address)
        self.wait(until)

    def type(self, text: str) -> None:
        """Type a text where the focus is, letter by letter."""
        for letter in text:
            self.command("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
            self.command("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self._holds(condition):
            if time.monotonic() > end:
                raise BrowserError(f"never true: {condition}; problems: {self.problems}")
            time.sleep(0.05)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.evaluate(f"Boolean({condition})"))
        except BrowserError as error:
            if any(each in str(error) for each in BETWEEN):
                return False
            raise

    def evaluate(self, expression: str) -> Any:
        """Compute an expression in the page; promises are awaited."""
        answer = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", details).get("description", str(details)))
        return answer["result"].get("value")

    def size(self, width: int, height: int, scale: float = 1.0) -> None:
        """Make the window so large, and wait until the page was laid out and drawn in it.

        The browser answers before the page has its new width, and what observes sizes is told
        within the next frame.
        """
        mobile = width < 500
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=mobile,
        )
        # A phone zooms out of a page without a viewport: its inside is wider than its screen.
        self.wait(f"{'screen.width' if mobile else 'innerWidth'} === {width}")
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def prefer(self, **features: str) -> None:
        """Set what the system prefers: `prefers_color_scheme="dark"`."""
        listed = [
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()
        ]
        self.command("Emulation.setEmulatedMedia", features=listed)

    def hover(self, selector: str, number: int = 0, at: tuple[float, float] = (0.5, 0.5)) -> None:
        """Move the pointer over an element."""
        self._pointer("mouseMoved", self._place(selector, number, at))

    def click(self, selector: str, number: int = 0, at: tuple[float, float] = (0.5, 0.5)) -> None:
        """Click on an element."""
        place = self._place(selector, number, at)
        self._pointer("mouseMoved", place)
        self._pointer("mousePressed", place, button="left", clickCount=1)
        self._pointer("mouseReleased", place, button="left", clickCount=1)

    def away(self) -> None:
        """Move the pointer to where nothing is."""
        self._pointer("mouseMoved", (0, 0))

    def key(self, name: str) -> None:
        """Press a key: "ArrowLeft", "Escape", "3"."""
        text = {"text": name} if len(name) == 1 else {}
        self.command("Input.dispatchKeyEvent", type="keyDown", key=name, **text)
        self.command("Input.dispatchKeyEvent", type="keyUp", key=name)

    def screenshot(self, path: Path) -> None:
        """Save the whole page as a PNG."""
        size = self.command("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.command(
            "Page.captureScreenshot",
            captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def _place(self, selector: str, number: int, at: tuple[float, float]) -> tuple[float, float]:
        found = self.evaluate(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{number}];"
            "e.scrollIntoView({block: 'nearest', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.left, b.top, b.width, b.height]; })()"
        )
        left, top, width, height = found
        return left + at[0] * width, top + at[1] * height

    def _pointer(self, kind: str, place: tuple[float, float], **more: Any) -> None:
        self.command("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **more)
        # Two frames, so that what the pointer set off is drawn.
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._receive], [], [], PATIENCE)
            if not ready:
                raise BrowserError(f"the browser said nothing for {PATIENCE:.0f} seconds")
            more = os.read(self._receive, 1 << 20)
            if not more:
                raise BrowserError("the browser has gone")
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.problems.append(
                    details.get("exception", {}).get("description", details["text"])
                )
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.problems.append(str([each.get("value") for each in params["args"]]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.problems.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Start a browser with an empty profile in a folder; it ends with the block."""
    for number in range(1, STARTS + 1):
        profile = folder / str(number)
        profile.mkdir(parents=True)
        with _process(profile) as page:
            try:
                page.attach()
            except (BrowserError, BrokenPipeError) as error:
                if number == STARTS:
                    said = (profile / "stderr").read_text(errors="replace")[-2000:]
                    raise BrowserError(f"{error}; it was started {STARTS} times: {said}") from error
                continue
            yield page
            return


@contextmanager
def _process(profile: Path) -> Iterator[Page]:
    program = found()
    assert program is not None
    (read_commands, send), (receive, write_answers) = os.pipe(), os.pipe()
    with (profile / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", LAUNCH, str(read_commands), str(write_answers)),
                *(program, *FLAGS, f"--user-data-dir={profile}"),
            ],
            pass_fds=(read_commands, write_answers),
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    os.close(read_commands)
    os.close(write_answers)
    page = Page(send, receive)
    try:
        yield page
    finally:
        try:
            page._session = None
            page.command("Browser.close")
            process.wait(timeout=20)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
        os.close(send)
        os.close(receive)
