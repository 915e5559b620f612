"""A small corpus without fault, and ways to write it with one."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manyheads.data.text.formats import Pair

CLAUSES = [
    ("the dog sleeps in the garden", "der Hund schläft im Garten"),
    ("a child reads a long book", "ein Kind liest ein langes Buch"),
    ("my sister is singing", "meine Schwester singt gerade"),
    ("the train was late again", "der Zug kam wieder zu spät"),
    ("we bought some bread", "wir haben etwas Brot gekauft"),
    ("it is raining", "es regnet gerade"),
    ("they are waiting for you at the station", "sie warten am Bahnhof auf dich"),
    ("nobody knows the answer to this question", "niemand kennt die Antwort auf diese Frage"),
]

Texts = list[tuple[str, str]]


def pairs(count: int = 60, seed: int = 0) -> Texts:
    """Different sentences of one to five clauses, translated clause by clause."""
    random = np.random.default_rng(seed)
    found: dict[tuple[str, str], None] = {}
    while len(found) < count:
        chosen = random.choice(len(CLAUSES), random.integers(1, 6), replace=False)
        source, target = zip(*(CLAUSES[number] for number in chosen), strict=True)
        found[" and ".join(source), " und ".join(target)] = None
    return list(found)


def number(texts: Sequence[tuple[str, str]]) -> list[Pair]:
    """Give each pair its line."""
    return [Pair(line, source, target) for line, (source, target) in enumerate(texts, 1)]


def two_files(
    folder: Path, texts: Texts, *, end: str = "\n", start: str = "", encoding: str = "utf-8"
) -> Path:
    """Write a.en and a.de; return their stem."""
    for side, language in enumerate(("en", "de")):
        content = start + "".join(f"{pair[side]}{end}" for pair in texts)
        (folder / f"a.{language}").write_bytes(content.encode(encoding))
    return folder / "a"


def jsonl(folder: Path, texts: Texts) -> Path:
    """Write a.jsonl, in which texts may have line breaks."""
    rows = [json.dumps({"en": source, "de": target}) for source, target in texts]
    return raw(folder, "a.jsonl", "".join(f"{row}\n" for row in rows).encode())


def tsv(texts: Texts) -> bytes:
    """The content of a .tsv file."""
    return "".join(f"{source}\t{target}\n" for source, target in texts).encode()


def tmx(texts: Texts) -> bytes:
    """The content of a .tmx file: the unit of pair N is on line N + 2."""
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{s}</seg></tuv><tuv xml:lang="de"><seg>{t}</seg></tuv></tu>\n'
        for s, t in texts
    )
    return f'<tmx version="1.4">\n<body>\n{units}</body></tmx>\n'.encode()


def raw(folder: Path, name: str, content: bytes) -> Path:
    """Write bytes."""
    (folder / name).write_bytes(content)
    return folder / name


def packed(folder: Path, content: bytes, cut: int) -> Path:
    """Write a.tsv.gz without its last bytes."""
    return raw(folder, "a.tsv.gz", gzip.compress(content)[:-cut])
