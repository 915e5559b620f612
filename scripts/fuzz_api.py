"""Fuzz the API of `manyheads serve`: against its description, with known kinds of faults, by load.

    pip install schemathesis
    python scripts/fuzz_api.py                  # the shipped models, some minutes
    python scripts/fuzz_api.py --only kinds     # or schema, or load
    python scripts/fuzz_api.py --examples 500   # for each path

schema: every path is asked with its examples, at the limits of its parameters, and with what is
drawn from its schema, by schemathesis. An answer with a status of 5xx, or with a status, a content
type or a body that /openapi.json does not have, is a failure.

kinds: numbers that are none in every parameter, parameters that would be ignored, images that are
cut off, prefixes without end, a client that does not read.

load: what is large is asked by many clients at once, for some seconds; meanwhile /health/live is
asked and a sentence of 13 words is translated, again and again. Failures are an answer of
/health/live after a second, a 95th percentile of the translations above two, 2.5 GB of memory, and
a process that divides documents on after its clients have left.

An error or a traceback in the server's log is a failure, too, whatever was answered.

Failures are listed, and the exit code is 1.
"""

import argparse
import base64
import io
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
LIVE, TRANSLATED, MEMORY = 1.0, 2.0, 2500  # seconds, seconds, MB
SENTENCE = "A man in a blue shirt is cleaning the window of a house."  # 13 words
TOO_LATE = 30.0  # seconds in which a client that does not read is left
UNEXPECTED = re.compile(r" (?:ERROR|CRITICAL) |^Traceback|^Exception ")  # in a line of the log


@contextmanager
def server(failures: list[str], *models: str) -> Iterator[tuple[str, int]]:
    """Serve models, the shipped ones if none is named, on a free port.

    Gives address and process when all are loaded; adds to the failures what the log has of them.
    """
    command = [sys.executable, "-m", "manyheads", "serve", "--port", "0", *models]
    with tempfile.NamedTemporaryFile() as log, subprocess.Popen(command, stderr=log) as process:

        def lines() -> list[str]:
            return Path(log.name).read_text("utf-8", "replace").splitlines()

        try:
            while not (found := re.search(r"http://\S+", " ".join(lines()[:1]))) or not ready(
                found[0]
            ):
                assert process.poll() is None, f"the server has ended: {lines()}"
                time.sleep(0.2)
            yield found[0], process.pid
        finally:
            process.terminate()
            process.wait(timeout=120)
            failures += [f"in the log: {line}" for line in lines() if UNEXPECTED.search(line)]


def ready(address: str) -> bool:
    """Tell whether all models are loaded."""
    with suppress(httpx.TransportError):
        models = httpx.get(f"{address}/api/v1/models", timeout=60).json()["models"]
        return all(model["loaded"] for model in models)
    return False


# --- Kinds ----------------------------------------------------------------------------------------


def chunk(name: bytes, data: bytes) -> bytes:
    """One chunk of a PNG."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(side: int, *, rows: int | None = None, end: bool = True) -> bytes:
    """A black PNG of RGBA with 16 bits; with fewer rows than it says, or without its end."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 16, 6, 0, 0, 0))
    packer = zlib.compressobj(9)
    row = bytes(1 + 8 * side)
    data = b"".join(packer.compress(row) for _ in range(side if rows is None else rows))
    data = chunk(b"IDAT", data + packer.flush())
    return b"\x89PNG\r\n\x1a\n" + head + data + (chunk(b"IEND", b"") if end else b"")


def workbook(cells: str) -> bytes:
    """An XLSX with these cells."""
    content, name = io.BytesIO(), "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/a.xml", f'<worksheet xmlns="{name}">{cells}</worksheet>')
    return content.getvalue()


NUMBERS = ("1e400", "-1e400", "1e308", "-1", "1" + "0" * 400, '"1e400"', "0.5", "true", "[]", "{}")
PARAMETERS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "/translate": ({"q": "A dog.", "source": "en", "target": "de"}, ("alternatives",)),
    "/v2/translate": ({"text": ["A dog."], "target_lang": "DE"}, ("formality", "ignore_tags")),
    "/api/v1/translate": (
        {"texts": ["A dog."], "target": "de"},
        ("n_best", "beams", "length_penalty", "diversity", "temperature", "seed", "prefix"),
    ),
    "/api/v1/look/head": (
        {"model": "digits", "text": "A", "site": "a", "head": 1, "row": 1},
        ("head", "row"),
    ),
}
IGNORED = {
    "formality": "less",
    "split_sentences": "nonewlines",
    "splitting_tags": ["a"],
    "non_splitting_tags": ["a"],
    "outline_detection": "0",
    "style_id": "a",
    "custom_instructions": ["Write plainly."],
}


def kinds(address: str) -> list[str]:
    """Ask what servers have fallen over; return the failures."""
    client = httpx.Client(base_url=address, timeout=120, trust_env=False)
    failures = []

    def expect(name: str, found: httpx.Response, allowed: Callable[[int], bool]) -> None:
        if not allowed(found.status_code):
            failures.append(f"{name}: {found.status_code} {found.text[:200]}")

    headers = {"Content-Type": "application/json"}
    for path, (given, names) in PARAMETERS.items():
        for name in names:
            for number in NUMBERS:
                rest = {key: value for key, value in given.items() if key != name}
                body = f'{json.dumps(rest)[:-1]}, "{name}": {number}}}'
                found = client.post(path, content=body, headers=headers)
                expect(f"{path} {name} = {number[:20]}", found, lambda status: status < 500)
    for name, value in IGNORED.items():
        given = {"text": ["A dog."], "target_lang": "DE", name: value}
        expect(f"{name} = {value}", client.post("/v2/translate", json=given), lambda n: n == 400)
    whole = png(40)
    cuts = {f"the first {n} bytes": whole[:n] for n in (20, 60, len(whole) - 12, len(whole) - 8)}
    cuts |= {"half of its rows": png(40, rows=20), "no end": png(40, end=False)}
    for what, content in cuts.items():
        for where in ("classify", "caption", "read"):
            given = {"images": [base64.b64encode(content).decode()]}
            found = client.post(f"/api/v1/{where}", json=given)
            expect(f"{where}: a PNG with {what}", found, lambda status: status == 422)
    for size in (20_000, 300_000):
        given = {"texts": ["A dog."], "target": "de", "prefix": "Ein Hund " * (size // 9)}
        found = client.post("/api/v1/translate", json=given)
        expect(f"a prefix of {size} characters", found, lambda n: 400 <= n < 500)
    if not leaves_who_does_not_read(address):
        failures.append("a client that does not read keeps its connection")
    return failures


def leaves_who_does_not_read(address: str) -> bool:
    """Ask for more than fits between the server and its client; tell whether the server leaves."""
    host, port = address.removeprefix("http://").split(":")
    asked = 400
    with socket.create_connection((host, int(port)), timeout=TOO_LATE) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * asked)
        time.sleep(TOO_LATE)
        received = 0
        with suppress(ConnectionResetError):
            while part := slow.recv(1 << 20):
                received += part.count(b"HTTP/1.1 200")
            return received < asked
    return True


# --- Load -----------------------------------------------------------------------------------------


def family(pid: int) -> list[int]:
    """A process and its children."""
    found = [pid]
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text(encoding="utf-8").split():
                found += family(int(child))
    return found


def memory(pid: int) -> int:
    """Resident memory of a process and its children in MB; what they share counts once each."""
    pages = 0
    for each in family(pid):
        with suppress(OSError):
            pages += int(Path(f"/proc/{each}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def processor(pid: int) -> float:
    """Seconds of a core that a process and its children have used."""
    ticks = 0
    for each in family(pid):
        with suppress(OSError):
            told = Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            ticks += int(told[11]) + int(told[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Watch:
    """Asks and measures until it is stopped."""

    def __init__(self, address: str, pid: int) -> None:
        self.address, self.pid = address, pid
        self.live: list[float] = []
        self.translated: list[float] = []
        self.memory: list[int] = []
        self._over = threading.Event()

    def __enter__(self) -> "Watch":
        texts = {"texts": [SENTENCE], "model": "multi30k-en-de"}
        asks: tuple[Callable[[httpx.Client], Any], ...] = (
            lambda client: self._time(self.live, lambda: client.get("/health/live")),
            lambda client: self._time(
                self.translated, lambda: client.post("/api/v1/translate", json=texts)
            ),
            lambda _: self.memory.append(memory(self.pid)),
        )
        self._threads = [threading.Thread(target=self._run, args=(ask,)) for ask in asks]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, ask: Callable[[httpx.Client], Any]) -> None:
        with httpx.Client(base_url=self.address, timeout=300, trust_env=False) as client:
            while not self._over.wait(0.1):
                ask(client)

    @staticmethod
    def _time(seconds: list[float], ask: Callable[[], httpx.Response]) -> None:
        begun = time.monotonic()
        ask().raise_for_status()
        seconds.append(time.monotonic() - begun)


def load(address: str, pid: int) -> list[str]:
    """Ask much at once; print what was measured, and return what is above its bar."""
    image = png(4898)
    lines = (f"A man is cleaning window number {n} of a very large house." for n in range(9000))
    text = "\n\n".join(lines)[:500_000]
    prefix = "Ein Mann putzt das Fenster. " * 10_700
    translate = {"texts": [SENTENCE], "model": "multi30k-en-de", "prefix": prefix}
    document = {"text": text, "model": "multi30k-en-de", "stream": True}
    png_type = {"Content-Type": "image/png"}
    cells = workbook("<c><is><t>a</t></is></c>" * 290_000)
    cases: dict[str, tuple[int, float, dict[str, Any]]] = {
        f"24 PNGs of {len(image) // 1000} kB": (
            24,
            120.0,
            {"url": "/api/v1/classify", "content": image, "headers": png_type},
        ),
        f"40 documents of {len(text) // 1000} kB": (
            40,
            20.0,
            {"url": "/api/v1/translate/document", "json": document},
        ),
        f"8 prefixes of {len(prefix) // 1000} kB": (
            8,
            20.0,
            {"url": "/api/v1/translate", "json": translate},
        ),
        f"4 workbooks of {len(cells) // 1000} kB": (
            4,
            20.0,
            {"url": "/api/v1/translate/file?target=de&name=a.xlsx", "content": cells},
        ),
    }
    failures = []
    for name, (count, seconds, given) in cases.items():
        statuses: Counter[int | str] = Counter()

        def ask(
            client: httpx.Client, given: dict[str, Any] = given, seconds: float = seconds
        ) -> int | str:
            """Ask, and leave after some seconds."""
            end = time.monotonic() + seconds
            with client:
                try:
                    with client.stream("POST", **given) as answer:
                        for _line in answer.iter_raw():
                            if time.monotonic() > end:
                                return "left"
                        return answer.status_code
                except httpx.TimeoutException:
                    return "left"

        # Made before: it takes longer than what is measured.
        made = [
            httpx.Client(base_url=address, timeout=seconds, trust_env=False) for _ in range(count)
        ]
        with Watch(address, pid) as watch:
            begun = time.monotonic()
            with ThreadPoolExecutor(count) as clients:
                statuses.update(clients.map(ask, made))
            length = time.monotonic() - begun
            time.sleep(5)
        before = processor(pid)
        time.sleep(5)
        idle = (processor(pid) - before) / 5
        ordered = sorted(watch.translated)
        late = ordered[int(0.95 * (len(ordered) - 1))]
        print(
            f"{name}: {dict(statuses)} in {length:.1f} s; memory {max(watch.memory):,} MB; "
            f"/health/live at most {max(watch.live):.2f} s of {len(watch.live)}; {len(ordered)} "
            f"translations, 95% within {late:.2f} s, at most {ordered[-1]:.2f} s; afterwards "
            f"{idle:.2f} of a core",
            flush=True,
        )
        above = {
            "memory": max(watch.memory) > MEMORY,
            "/health/live": max(watch.live) > LIVE,
            "translations": late > TRANSLATED,
            "work that goes on": idle > 0.5,
        }
        failures += [f"{name}: {what}" for what, is_above in above.items() if is_above]
    return failures


def main() -> int:
    """Run what was asked for against a server of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=50, help="drawn for each path")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("schema", "kinds", "load"))
    given = parser.parse_args()
    failures: list[str] = []
    failed = False
    with server(failures) as (address, pid):
        if given.only in (None, "kinds"):
            failures += kinds(address)
        if given.only in (None, "load"):
            failures += load(address, pid)
        if given.only in (None, "schema"):
            command = [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"),
                *("--phases", "examples,coverage,fuzzing", "--checks", ",".join(CHECKS)),
                *("--max-examples", str(given.examples), "--seed", str(given.seed)),
                *("--request-timeout", "120", "--no-color"),
            ]
            failed = subprocess.run(command, check=False).returncode != 0
    print("\n".join(failures) or "no failures of the kinds and under load")
    return int(failed or bool(failures))


if __name__ == "__main__":
    sys.exit(main())
