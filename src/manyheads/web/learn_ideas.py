"""The ideas of the *Learn* view, from `learn.json`; where their code is, is computed.

An idea has an `id` of docs/atlas.md, a title and a sentence in English and Korean, an equation in
TeX (what `static/tex.js` knows of it), code as "module:name", and a figure: a model with a text or
an example image, and either the map that is opened or the group of figures that is shown (`panel`);
`shows` says what can be seen in the example.
"""

import ast
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "learn.json"
PACKAGE = Path(__file__).parents[1]


@cache
def lessons() -> dict[str, Any]:
    """Return the ideas and the errata; the code of each idea with its file and line."""
    ideas: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    for idea in ideas["ideas"]:
        idea["code"] = [_located(each) for each in idea["code"]]
    return ideas


def _located(code: str) -> dict[str, Any]:
    """Find the file of the repository and the line at which a function or a class begins."""
    module, _, name = code.partition(":")
    spec: Any = find_spec(module)
    path = Path(spec.origin)
    file = f"src/manyheads/{path.relative_to(PACKAGE).as_posix()}"
    return {"name": name, "file": file, "line": _line(path, name)}


def _line(path: Path, name: str) -> int:
    """Return the line of a definition, "Class.method" too; the first one of the file without it."""
    found: Any = ast.parse(path.read_text(encoding="utf-8"))
    for part in name.split("."):
        body = getattr(found, "body", [])
        found = next((each for each in body if getattr(each, "name", None) == part), None)
    return getattr(found, "lineno", 1)
