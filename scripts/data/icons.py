"""Material Design Icons and Lucide, drawn with 48 pixels, with their search words."""

import io
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageChops

from scripts.data.rows import FOLDER
from scripts.data.sources import Sources

MDI = "7.4.47"  # of the package @mdi/svg
INTEGRITY = (
    "WQ2gDll12T9WD34fdRFgQVgO8bag3gavrAgJ0frN4phlwdJARpE6gO1YvLEMJR0KKgoc+/Ea/A0Pp11I00xBvw=="
)
LUCIDE = "https://github.com/lucide-icons/lucide"
COMMIT = "59978cecf84986af59f1f9f503bcebdc89c6d166"  # release 1.33.0
SIDE = 48


class Icon(NamedTuple):
    """An icon as its makers have it."""

    set: str
    name: str
    words: list[str]
    svg: str


def build(sources: Sources, root: Path) -> Iterator[Path]:
    """Write icons/icons48.parquet; needs resvg_py, which draws SVG."""
    lines = (FOLDER / "icons.tsv").read_text("utf-8").splitlines()
    splits = {(part, name): split for part, name, split in (line.split("\t") for line in lines)}
    rows = [
        {
            "set": icon.set,
            "name": icon.name,
            "image": draw(icon.svg),
            "words": icon.words,
            "split": splits.get((icon.set, icon.name), "train"),
        }
        for icon in (*material(sources), *lucide(sources))
    ]
    path = root / "icons" / "icons48.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, compression="zstd")
    yield path


def material(sources: Sources) -> Iterator[Icon]:
    """Read Material Design Icons, in the order of their table."""
    files = sources.package("@mdi/svg", MDI, INTEGRITY)
    for each in json.loads(files["package/meta.json"]):
        words = search_words(each["name"], each["aliases"], each["tags"])
        svg = files[f"package/svg/{each['name']}.svg"].decode()
        yield Icon("mdi", each["name"], words, svg)


def lucide(sources: Sources) -> Iterator[Icon]:
    """Read Lucide, in the order of its files."""
    folder = sources.repository("lucide", LUCIDE, COMMIT, "icons") / "icons"
    for path in sorted(folder.glob("*.svg"), key=lambda each: each.name):
        told: dict[str, Any] = json.loads(path.with_suffix(".json").read_text("utf-8"))
        aliases = [
            each["name"] if isinstance(each, dict) else each for each in told.get("aliases", ())
        ]
        words = search_words(path.stem, aliases, told["tags"])
        yield Icon("lucide", path.stem, words, path.read_text("utf-8"))


def search_words(name: str, *more: Iterable[str]) -> list[str]:
    """Return what an icon is found by, in letters, digits and spaces.

    Examples:
        >>> search_words("ab-testing", [], ["Developer / Languages", "<-"])
        ['ab testing', 'developer   languages']
    """
    texts = [name, *(text for part in more for text in part)]
    plain = {re.sub("[^a-z0-9]", " ", text.lower()).strip() for text in texts}
    return sorted(plain - {""})


def draw(svg: str) -> bytes:
    """Draw an icon in black on white, as a grey PNG."""
    import resvg_py

    content = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=SIDE, height=SIDE))
    opacity = Image.open(io.BytesIO(content)).convert("RGBA").getchannel("A")
    out = io.BytesIO()
    ImageChops.invert(opacity).save(out, "PNG", optimize=True)
    return out.getvalue()
