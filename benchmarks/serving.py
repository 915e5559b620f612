"""How much load `manyheads serve` holds, against the bare predictor; and how fast the page answers.

    python -m benchmarks.serving --seconds 60                # 64 clients, one sentence a request
    python -m benchmarks.serving --seconds 600 --memory      # is memory flat?
    python -m benchmarks.serving --seconds 60 --overload     # more than it can answer
    python -m benchmarks.serving --typing                    # the last key to the translation

The server is a process of its own. The bare predictor translates the same sentences in this
process, 64 at a time and all at once, before and after. Clients ask again as soon as they have an
answer, and after `Retry-After` where they are refused. Tokens are those of the translations.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from manyheads import load
from manyheads.strict_json import dumps
from manyheads.train.device import processor

MODEL = "multi30k-en-de"
AT_ONCE = 64
SENTENCES = 512
SUBJECTS = ("A man", "Two women", "A little girl", "The old dog", "Three children")
DOING = ("is cleaning", "stands near", "looks at", "plays with", "walks past")
OBJECTS = ("a window", "the red car of a friend", "a very large brown dog", "some people")
PLACES = ("in the street.", "on a sunny day.", "while others watch from the bridge.", "at night.")


def sentences() -> list[str]:
    """Make sentences of 8 to 20 words as photo captions have them."""
    every = [f"{s} {d} {o} {p}" for s in SUBJECTS for d in DOING for o in OBJECTS for p in PLACES]
    return (every * (SENTENCES // len(every) + 1))[:SENTENCES]


@dataclass
class Load:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)  # of each answer
    statuses: Counter[int] = field(default_factory=Counter)
    translations: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)  # MB of the server, over time
    length: float = 0.0

    def summary(self, count: Any) -> dict[str, Any]:
        """Sum it up; `count` counts tokens."""
        ordered = sorted(self.seconds) or [float("nan")]
        return {
            "answers": len(self.seconds),
            "tokens_per_second": round(count(self.translations) / self.length),
            "p50_ms": round(1000 * statistics.median(ordered)),
            "p99_ms": round(1000 * ordered[int(0.99 * (len(ordered) - 1))]),
            "statuses": dict(self.statuses),
            # From the beginning to the end, in ten steps.
            "memory_mb": [self.memory[n * (len(self.memory) - 1) // 10] for n in range(11)],
        }


@contextmanager
def server(engine: str) -> Iterator[tuple[str, int]]:
    """Run the command; give its address and process id when it is ready."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "manyheads", "serve", MODEL, "--port", "0", "--engine", engine]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found is not None
        while True:
            try:
                if httpx.get(f"{found[0]}/health/ready").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        print(f"ready after {time.monotonic() - begun:.1f} s")
        try:
            yield found[0], process.pid
        finally:
            process.terminate()
            process.wait(120)


def memory_of(pid: int) -> int:
    """Return the resident memory of a process and its children in MB; 0 where /proc is missing."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return 0
    return (pages * os.sysconf("SC_PAGE_SIZE") >> 20) + sum(map(memory_of, children))


class Client:
    """A connection that sends one request after another.

    httpx takes 7 ms of a core for a request, as much as the translation of a sentence.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, address: str) -> "Client":
        """Connect to a server."""
        host, _, port = address.rpartition("/")[2].partition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=1 << 24))

    async def post(self, content: Any) -> tuple[int, dict[str, str], bytes]:
        """Send a request; return status, headers and body of its answer."""
        body = dumps(content).encode()
        self._writer.write(
            b"POST /api/v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        answer = await self._reader.readexactly(int(headers["content-length"]))
        return int(first.split()[1]), headers, answer

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


async def drive(
    address: str, pid: int, texts: Sequence[str], clients: int, seconds: float, *, many: int
) -> Load:
    """Ask by many clients at once; `many` texts a request."""
    found = Load()
    begun = time.monotonic()

    async def client(number: int) -> None:
        place = number * 7
        http = await Client.connect(address)
        while time.monotonic() - begun < seconds:
            given = [texts[(place + n) % len(texts)] for n in range(many)]
            place += many
            sent = time.monotonic()
            status, headers, body = await http.post({"texts": given, "model": MODEL})
            found.statuses[status] += 1
            if status == 200:
                found.seconds.append(time.monotonic() - sent)
                answers.append(body)
            else:
                http.close()  # the server would close it meanwhile
                await asyncio.sleep(float(headers.get("retry-after", 1)))
                http = await Client.connect(address)
        http.close()

    async def watch() -> None:
        while True:
            found.memory.append(memory_of(pid))
            await asyncio.sleep(1)

    answers: list[bytes] = []  # read when the clock has stopped
    watching = asyncio.create_task(watch())
    await asyncio.gather(*(client(number) for number in range(clients)))
    watching.cancel()
    found.length = time.monotonic() - begun
    for body in answers:
        found.translations += [each["translation"] for each in json.loads(body)["answers"]]
    found.memory.append(memory_of(pid))
    return found


def bare(own: Any, texts: Sequence[str], at_once: int, count: Any) -> int:
    """Translate without a server; return tokens per second."""
    begun = time.monotonic()
    found: list[str] = []
    for first in range(0, len(texts), at_once):
        part = own.translate(texts[first : first + at_once])
        found += [best[0].text for best in part]
    return round(count(found) / (time.monotonic() - begun))


def typing(address: str, times: int) -> dict[str, Any]:
    """Measure in the browser: from the last key of a 12-word sentence to its translation."""
    from tests.browser import browser

    sentence = "A man in a blue shirt is standing on a ladder outside"
    shown: list[float] = []
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder)) as page:
        page.size(1280, 900)
        ready = "document.querySelector('.out .word')"
        for number in range(times):
            page.visit(f"{address}/#model={MODEL}&text=A+dog+{number}", ready)
            page.evaluate(
                """(() => {
                  const field = document.getElementById("source");
                  field.value = "";
                  field.focus();
                  globalThis.last = 0;
                  globalThis.shown = 0;
                  field.addEventListener("input", () => { last = performance.now(); shown = 0; });
                  new MutationObserver(() => requestAnimationFrame(() => {
                    if (last && !shown) shown = performance.now();
                  })).observe(document.querySelector(".out"), { childList: true });
                })()"""
            )
            page.type(f"{sentence} {number % 10}")
            page.wait("globalThis.shown > globalThis.last")
            time.sleep(0.5)
            shown.append(page.evaluate("shown - last"))
    return {"median_ms": round(statistics.median(shown)), "all_ms": [round(each) for each in shown]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--overload", action="store_true")
    parser.add_argument("--typing", type=int, nargs="?", const=9, default=0, metavar="TIMES")
    arguments = parser.parse_args()
    texts = sentences()
    result: dict[str, Any] = {"processor": processor(), "cores": os.cpu_count()}
    own: Any = load(MODEL, engine=arguments.engine)

    def count(found: Sequence[str]) -> int:
        return sum(map(len, own.tokenizers.target.encode(list(found))))

    with server(arguments.engine) as (address, pid):
        if arguments.typing:
            print(dumps(result | typing(address, arguments.typing), indent=1))
            return
        many = 100 if arguments.overload else 1
        if not arguments.memory and not arguments.overload:
            bare(own, texts[:AT_ONCE], AT_ONCE, count)  # warm
            result["bare_64"] = [bare(own, texts, AT_ONCE, count)]
            result["bare_all"] = [bare(own, texts, len(texts), count)]
        asyncio.run(drive(address, pid, texts, 8, 5, many=1))  # warm
        found = drive(address, pid, texts, arguments.clients, arguments.seconds, many=many)
        result["served"] = asyncio.run(found).summary(count)
        if arguments.overload:
            after = asyncio.run(drive(address, pid, texts, 1, 1, many=1))
            result["first_answer_after_ms"] = round(1000 * after.seconds[0])
        if not arguments.memory and not arguments.overload:
            result["bare_64"].append(bare(own, texts, AT_ONCE, count))
            result["bare_all"].append(bare(own, texts, len(texts), count))
            result["share"] = round(
                result["served"]["tokens_per_second"] / statistics.mean(result["bare_64"]), 2
            )
    print(dumps(result, indent=1))


if __name__ == "__main__":
    main()
