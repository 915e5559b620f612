"""A view as one self-contained HTML file, without network access.

Its content security policy allows only the scripts, styles and images in the file.
"""

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from manyheads.lens.colours import AGAINST, AGAINST_NIGHT, IDENTITY, NIGHT, PAPER
from manyheads.lens.thumbnail import data_url
from manyheads.lens.view.compressed_weights import Packed, pack
from manyheads.lens.view.image_view import ImageView
from manyheads.lens.view.plain_page import content_hash, html_document
from manyheads.lens.view.text_view import MapView, TextView, clearest
from manyheads.strict_json import dumps

STATIC = Path(__file__).parent / "static"
LIBRARIES = ("d3-path", "d3-array", "d3-selection", "d3-shape")  # in order of dependency
LIMIT = 4_900_000  # characters of a page; weights use the space left by figures and labels

View = TextView | ImageView


def report(
    view: View,
    *,
    title: str,
    metadata: Mapping[str, str] | None = None,
    pixels: Tensor | None = None,
    name: str = "look",
) -> str:
    """Write a view as a page; `name` is that of files that are saved from the page.

    Metadata are further JSON entries, such as the model, the text and its translation. Pixels are
    the image, (height, width) or (height, width, channel), 0..255.
    """
    data = _drawn(view, metadata, pixels, name)
    scripts = [_read(f"d3/{library}.min.js") for library in LIBRARIES]
    program = modules("start.js")
    style = _read("look.css")
    rest = sum(map(len, (*scripts, program, style, inline_json(data))))
    packed = pack(view.maps, max(LIMIT - rest, LIMIT // 4))
    data |= _described(packed)
    policy = (
        f"default-src 'none'; script-src {' '.join(map(content_hash, (*scripts, program)))}; "
        f"style-src {content_hash(style)}; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = "\n".join(f"<script>{script}</script>" for script in scripts)
    body = f"""<main id="look"><p>{html.escape(title)}</p>
<noscript>This page draws with JavaScript.</noscript></main>
<script type="application/json" id="look-data">{inline_json(data)}</script>
<script type="text/plain" id="look-weights">{packed.text}</script>
{head}
<script type="module">{program}</script>"""
    generator = '<meta name="generator" content="manyheads">'
    return html_document(title, policy, style, body, generator)


def page_data(
    view: View,
    *,
    metadata: Mapping[str, str] | None = None,
    pixels: Tensor | None = None,
    name: str = "look",
) -> dict[str, Any]:
    """Return what `static/look.js` draws a view from: the data of a page, with packed weights."""
    data, packed = _drawn(view, metadata, pixels, name), pack(view.maps)
    return {"data": data | _described(packed), "packed": packed.text}


def _described(packed: Packed) -> dict[str, Any]:
    weights = {key: value for key, value in vars(packed).items() if key != "text"}
    return {"weights": weights, "rounding": packed.rounding}


def _drawn(
    view: View, metadata: Mapping[str, str] | None, pixels: Tensor | None, name: str
) -> dict[str, Any]:
    """Return the data of a page, but for the weights."""
    found = view.to_json()
    found["maps"] = [_bare(each) for each in view.maps]
    return {
        "view": found,
        "told": dict(metadata or {}),
        "name": name,
        "open": {"site": _opening(view)},
        "image": None if pixels is None else data_url(pixels),
        "colours": {
            "light": PAPER,
            "dark": NIGHT,
            "againstLight": AGAINST,
            "againstDark": AGAINST_NIGHT,
            "identity": IDENTITY[:6],  # black and grey are invisible on some backgrounds
        },
    }


_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w-]+\.js)";$', flags=re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const) (\w+)", flags=re.MULTILINE)


def modules(entry: str) -> str:
    """Bundle an ES module with its imports: each in its own function, the entry last.

    A page opened from disk cannot import modules. Only named imports, and exports of functions and
    constants, are supported.
    """
    parts: dict[str, str] = {}

    def visit(name: str) -> None:
        if name in parts:
            return
        source = _read(name)
        parts[name] = ""  # in progress: imports may be circular
        for _, other in _IMPORT.findall(source):
            visit(other)
        body = _IMPORT.sub(lambda found: f"const {found[1]} = {_variable(found[2])};", source)
        names = ", ".join(found for _, found in _EXPORT.findall(body))
        body = _EXPORT.sub(r"\1 \2", body)
        if name != entry:
            body = f"const {_variable(name)} = (() => {{\n{body}return {{ {names} }};\n}})();\n"
        del parts[name]
        parts[name] = body

    visit(entry)
    return "".join(parts.values())


def _variable(name: str) -> str:
    return f"module_{name.removesuffix('.js').replace('-', '_')}"


def _read(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def inline_json(data: Any) -> str:
    """Write JSON that is safe inside HTML and JavaScript for any text.

    All characters beyond ASCII are escaped, including U+2028 and lone surrogates.
    """
    text = dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _bare(layer: MapView) -> dict[str, Any]:
    """Return the fields of a map without its weights."""
    fields = {key: value for key, value in vars(layer).items() if key not in ("mean", "weights")}
    return {**fields, "heads": len(layer.weights)}


def _opening(view: View) -> str | None:
    """Choose the layer that a page shows first, the same as the PNG."""
    if not view.maps:
        return None
    if isinstance(view, ImageView):
        return view.maps[-1].site
    cross = [found for found in view.maps if found.kind == "decoder cross"]
    return clearest(cross or view.maps).site
