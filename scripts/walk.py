"""Count what one call enters, what it imports, and how large the source is.

    python scripts/walk.py           # JSON on stdout; asks shipped models, in a few seconds

Each case runs in a fresh process. What is counted, and how:

- Only files under src/manyheads count. A function is its file and its line; entered twice, it
  counts once.
- Comprehensions, generator expressions and lambdas are not functions here, nor are bodies of
  modules and classes. A function inside another one, a property, and a method each count as one.
- What runs while the body of a module does (decorators, registrations) does not count: that is the
  import, not the call. In the command nothing was loaded before, so reading its model counts. The
  server is asked twice, the second time counts: as for most requests, its model is in memory.
- All threads of the process count: the server's, and those that own models. Processes do not: the
  server has its models in threads here, with the same functions as in its worker's process.
- "files" are those with an entered function; "modules" are all modules of the package in
  sys.modules after one call in a fresh process, and "of other tasks" those of them whose path
  names another task than the one that was asked for, packages of the same name included.
- Tokens are those of `tokenize` without comments, line ends, indents and the ends of files.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import subprocess
import sys
import threading
import tokenize
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "manyheads"
IMAGES = ROOT / "docs" / "images"
SENTENCE = "A man is riding a bicycle."
TASKS = (
    "caption|captioner|captions|captioned",
    "classify|classifier|classifiers|classes",
    "translate|translator|translations|translation_parity|stored_translator|seq2seq|transformer",
    "generate|causal_lm|language_models|language_model|language",
    "fill|masked_lm",
    "tag|tagger|word_spacer",
    "match|matcher|matches",
    "read|line_reader|read_parity|line_images|printed_lines|text_lines",
    "reconstruct|reconstructor",
    "embed|embedder",
)
IMAGE_PARTS = "image|images|augment|vision|cct|coatnet|cvt|deit|hybrid|mlp|resnet|swin|vgg|vit"


# --- What a call enters ---------------------------------------------------------------------------


class Entered:
    """Functions of the package that are entered while it is open, in all threads."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self._open = False
        self._imports = threading.local()  # modules whose bodies run in a thread
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        deep = getattr(self._imports, "deep", 0)
        if frame.f_code.co_name == "<module>":
            self._imports.deep = max(0, deep + (1 if event == "call" else -1))
        elif self._open and not deep and event == "call":
            self.codes.add(frame.f_code)

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Count what is entered inside."""
        self._open = True
        try:
            yield
        finally:
            self._open = False

    def told(self) -> dict[str, Any]:
        """Return the functions by file."""
        found: dict[str, set[str]] = {}
        for code in self.codes:
            path = Path(code.co_filename)
            body = not code.co_flags & inspect.CO_OPTIMIZED  # of a class
            if path.is_relative_to(SOURCE) and not body and not code.co_name.startswith("<"):
                name = f"{code.co_qualname}:{code.co_firstlineno}"
                found.setdefault(path.relative_to(SOURCE).as_posix(), set()).add(name)
        return {
            "functions": sum(map(len, found.values())),
            "files": len(found),
            "entered": {path: sorted(found[path]) for path in sorted(found)},
        }


def command(*words: str) -> None:
    """Run the command in this process, without its output."""
    from manyheads.cli.main import main

    before, sys.argv = sys.argv, ["manyheads", *words]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            main()
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"manyheads {' '.join(words)} ended with {ended.code}") from ended
    finally:
        sys.argv = before


def by_command() -> dict[str, Any]:
    """Translate by the command, with the shipped default model."""
    entered = Entered()
    with entered.counting():
        command("translate", SENTENCE)
    return entered.told()


def in_python() -> dict[str, Any]:
    """Load the same model and translate."""
    import manyheads

    entered = Entered()
    with entered.counting():
        translator: Any = manyheads.load("en-de")
        translator(SENTENCE)
    return entered.told()


def by_server() -> dict[str, Any]:
    """Ask the application for a translation, as LibreTranslate's clients do."""
    entered = Entered()
    asyncio.run(_post(entered))
    return entered.told()


async def _post(entered: Entered) -> None:
    import httpx

    from manyheads.web.app import create_app
    from manyheads.web.served import ServedOptions
    from manyheads.web.settings import Limits, Settings

    served = ServedOptions(("en-de",)).make(Limits())
    guard: Any = create_app(served, Settings())
    transport = httpx.ASGITransport(guard)
    body = {"q": SENTENCE, "source": "en", "target": "de"}
    async with (
        guard.app.router.lifespan_context(guard.app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        while not served.ready:
            await asyncio.sleep(0.05)
        for counted in (False, True):
            with entered.counting() if counted else contextlib.nullcontext():
                answer = await client.post("/translate", json=body)
            assert answer.status_code == 200, answer.text


# --- What a call imports --------------------------------------------------------------------------


def imported(task: str) -> dict[str, Any]:
    """List what is imported now, and what of it belongs to other tasks, or to images."""
    modules = sorted(name for name in sys.modules if name.partition(".")[0] == "manyheads")
    others = {name for each in TASKS for name in each.split("|") if task not in each.split("|")}
    images = {*IMAGE_PARTS.split("|")}
    words = {name: {*name.split(".")[1:]} for name in modules}
    parts = {
        name: words[name] | {p for word in words[name] for p in word.split("_")} for name in words
    }
    return {
        "modules": len(modules),
        "of other tasks": [name for name in modules if others & words[name]],
        "of images": [name for name in modules if images & parts[name]],
        "all": modules,
    }


def imports_of_command(task: str, given: str) -> dict[str, Any]:
    """Run a verb of the command, then list what is imported."""
    command(task, given)
    return imported(task)


def imports_of_python(task: str, model: str, given: str) -> dict[str, Any]:
    """Load a model and call it, then list what is imported."""
    import manyheads

    predictor: Any = manyheads.load(model)
    predictor(given)
    return imported(task)


INPUTS = {
    "translate": ("en-de", SENTENCE),
    "caption": ("emoji-caption", str(IMAGES / "heart.png")),
    "classify": ("digits", str(IMAGES / "seven.png")),
}
CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "manyheads translate": by_command,
    "load and translate": in_python,
    "POST /translate": by_server,
    **{
        f"imports of manyheads {task}": partial(imports_of_command, task, given)
        for task, (_, given) in INPUTS.items()
    },
    **{
        f"imports of load, {task}": partial(imports_of_python, task, model, given)
        for task, (model, given) in INPUTS.items()
    },
}


# --- How large the source is ----------------------------------------------------------------------


def sizes() -> dict[str, Any]:
    """Count lines, tokens, and lines of functions."""
    ends = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    ends |= {tokenize.ENCODING, tokenize.ENDMARKER}
    lines = tokens = 0
    functions: list[tuple[int, str]] = []
    for path in sorted(SOURCE.rglob("*.py")):
        content = path.read_bytes()
        lines += content.count(b"\n")
        found = tokenize.tokenize(io.BytesIO(content).readline)
        tokens += sum(token.type not in ends for token in found)
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                functions.append((length, f"{path.relative_to(SOURCE).as_posix()}:{node.name}"))
    scripts = sum(path.read_bytes().count(b"\n") for path in SOURCE.rglob("*.js"))
    longest = max(functions)
    return {
        "Python lines": lines,
        "Python files": len([*SOURCE.rglob("*.py")]),
        "tokens": tokens,
        "JavaScript lines": scripts,
        "functions": len(functions),
        "lines a function, mean": round(sum(n for n, _ in functions) / len(functions), 2),
        "longest function": {"lines": longest[0], "is": longest[1]},
    }


def main() -> None:
    """Run one case, or all, each in a process of its own."""
    if len(sys.argv) == 3 and sys.argv[1] == "--case":
        sys.stdout.write(json.dumps(CASES[sys.argv[2]]()))
        return
    found: dict[str, Any] = {"sizes": sizes()}
    for name in CASES:
        process = [sys.executable, __file__, "--case", name]
        done = subprocess.run(process, capture_output=True, encoding="utf-8", check=False)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        found[name] = json.loads(done.stdout)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
