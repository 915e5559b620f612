"""Noto Emoji of 72 pixels, with names and keywords of Unicode CLDR in five languages."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from scripts.data.rows import FOLDER
from scripts.data.sources import Sources

NOTO = "https://github.com/googlefonts/noto-emoji"
COMMIT = "b3e3051a088047d19fd4d49b1c3ac42fb8c3aaf8"  # of June 2025
CLDR = {  # packages of npm, and the folder and the key in them
    "cldr-annotations-full": ("annotations", "annotations"),
    "cldr-annotations-derived-full": ("annotationsDerived", "annotationsDerived"),
}
VERSION = "47.0.0"
INTEGRITY = {
    "cldr-annotations-full": "kN3w6S5lu07gVsHod0St7WmfAxSruGsqZssBwu7Jcj5VbqgS2L3PeSFlPE1LwVX7ycBu"
    "CipsAiLpuoOxFRrVBQ==",
    "cldr-annotations-derived-full": "4DFjfdmPlZZTcVeOVTbWqe6bKTd3U+3q+KtpkzAR3awTexZ6nwNRRbadKCgN"
    "inT54XP1h4KV+Ws5Vm6R5Uvxgw==",
}
LANGUAGES = ("en", "ko", "de", "fr", "ja")
TONE = re.compile("_?1f3f[b-f]")  # a modifier of the colour of skin


def build(sources: Sources, root: Path) -> Iterator[Path]:
    """Write emoji/noto72.parquet: the emoji that CLDR names in all five languages."""
    png = sources.repository("noto-emoji", NOTO, COMMIT, "png/72") / "png" / "72"
    packages = {name: sources.package(name, VERSION, INTEGRITY[name]) for name in CLDR}
    names = {language: annotations(packages, language) for language in LANGUAGES}
    splits = dict(
        line.split("\t") for line in (FOLDER / "emoji.tsv").read_text("utf-8").splitlines()
    )
    rows = []
    for path in sorted(png.glob("emoji_u*.png")):
        code = path.stem.removeprefix("emoji_u")
        sign = "".join(chr(int(part, 16)) for part in code.split("_"))
        if all(sign in names[language] for language in LANGUAGES):
            told = {language: names[language][sign] for language in LANGUAGES}
            rows.append(
                {"codepoints": code, "image": path.read_bytes(), "base": TONE.sub("", code)}
                | {f"name_{language}": told[language]["tts"][0] for language in LANGUAGES}
                | {f"keywords_{language}": told[language]["default"] for language in told}
                | {"split": splits.get(code, "train")}
            )
    table = pa.Table.from_pylist(sorted(rows, key=lambda row: row["codepoints"]))
    path = root / "emoji" / "noto72.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd")
    yield path


def annotations(packages: dict[str, dict[str, bytes]], language: str) -> dict[str, Any]:
    """Read the names and keywords of a language, by the emoji."""
    found: dict[str, Any] = {}
    for name, (folder, part) in reversed(CLDR.items()):
        content = json.loads(packages[name][f"package/{folder}/{language}/annotations.json"])
        found |= content[part]["annotations"]
    return found
