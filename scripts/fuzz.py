"""Fuzz the readers: small valid files, mutated, are answered or refused, and nothing else.

    .venv/bin/python scripts/fuzz.py                             # every reader, a minute each
    .venv/bin/python scripts/fuzz.py images tar --minutes 10 --seed 3
    .venv/bin/python scripts/fuzz.py images --seed 3 --example 1234    # this one, with a traceback

A reader refuses with an error of manyheads.errors. Any other exception, a crash, more than LIMIT
seconds or more than GROWTH bytes of memory is a failure, listed at the end; the exit code is 1.
An example is a pure function of its target, seed and number. Every target runs in a process of its
own, since decoders written in C can hang or crash.
"""

import argparse
import contextlib
import csv
import faulthandler
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image

from manyheads.errors import ManyheadsError

if TYPE_CHECKING:
    from manyheads.data.images.image_set import ImageSet

LIMIT = 10  # seconds an example
GROWTH = 1 << 30  # bytes of memory

Sample = dict[str, bytes]  # the files of an example, by name


class Target(NamedTuple):
    """A reader: valid files for it, and what reads a folder of such files."""

    samples: Callable[[], list[Sample]]
    read: Callable[[Path], object]


# --- Mutations ----------------------------------------------------------------------------------

WORDS = [b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r", b"\t", b'"', b"&x;", b"<", b"[", b"{"]
WORDS += [
    b"\xed\xa0\x80",
    b"\\ud83d",
    b"null",
    b"true",
    b"NaN",
    b"~nosuchuser/",
    b"../" * 9,
    b"a" * 300,
]
NUMBERS = [b"0", b"-1", b"1", b"255", b"65536", b"2147483648", b"9" * 25, b"1e400", b"nan", b"0.5"]
VALUES = [b"{}", b"[]", b'""', b"null", b"-1", b"2020-01-01", b"[" * 9000, b'"RGB"', b'"L"']
VALUES += [b'"../../../outside"', b'"/etc/passwd"', b'"reference://::/x"', b'"\xff\xfe"']
FLOOD = 100_000  # bytes
EXTREMES = [
    b"\0" * 4,
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\x80\0\0\0",
    b"\xff" * 8,
]


def mutate(data: bytes, draw: random.Random, other: bytes) -> bytes:
    """Change a file in one to four places; `other` is a file to splice in."""
    for _ in range(draw.choice([1, 1, 2, 4])):
        change = draw.choice([*MUTATIONS, None])
        data = change(data, draw) if change is not None else _splice(data, draw, other)
    return data


def _place(data: bytes, draw: random.Random) -> int:
    """Draw a position, every other time among the first bytes, where headers are."""
    return draw.randrange(min(len(data), draw.choice([512, len(data) or 1])) + 1)


def _flip(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 8])):
        if changed:
            changed[min(_place(data, draw), len(changed) - 1)] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _overwrite(data: bytes, draw: random.Random) -> bytes:
    place, value = _place(data, draw), draw.choice(EXTREMES)[: draw.choice([1, 2, 4, 8])]
    return data[:place] + value + data[place + len(value) :]


def _insert(data: bytes, draw: random.Random) -> bytes:
    place = _place(data, draw)
    return data[:place] + draw.choice(WORDS) + data[place:]


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: _place(data, draw)]


def _delete(data: bytes, draw: random.Random) -> bytes:
    place = _place(data, draw)
    return data[:place] + data[place + draw.choice([1, 4, 64]) :]


def _repeat(data: bytes, draw: random.Random) -> bytes:
    place = _place(data, draw)
    part = data[place : place + draw.choice([1, 16, 512])]
    return data[:place] + part * draw.choice([2, 3, 1000]) + data[place:]


def _splice(data: bytes, draw: random.Random, other: bytes) -> bytes:
    return data[: _place(data, draw)] + other[_place(other, draw) :]


def _number(data: bytes, draw: random.Random) -> bytes:
    """Replace a number that is written out."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data[:100_000]))
    if not found:
        return data
    chosen = draw.choice(found)
    return data[: chosen.start()] + draw.choice(NUMBERS) + data[chosen.end() :]


def _swap_lines(data: bytes, draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    first, second = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _flood(data: bytes, draw: random.Random) -> bytes:
    """Repeat a few bytes until what takes the square of their number takes too long."""
    place = _place(data, draw)
    part = data[place : place + draw.choice([1, 2, 8, 24])] or b" "
    return data[:place] + part * (FLOOD // len(part)) + data[place:]


def _value(data: bytes, draw: random.Random) -> bytes:
    """Replace a value of JSON or TOML."""
    found = list(re.finditer(rb'"[^"\n]{0,200}"|\{[^{}]*\}|\[[^\[\]]*\]|\b\d+\b', data[:100_000]))
    if not found:
        return data
    chosen = draw.choice(found)
    return data[: chosen.start()] + draw.choice(VALUES) + data[chosen.end() :]


MUTATIONS = [
    _flip,
    _overwrite,
    _insert,
    _cut,
    _delete,
    _repeat,
    _number,
    _swap_lines,
    _flood,
    _value,
]


# --- Text ---------------------------------------------------------------------------------------

PAIRS = [("One, two.", "Eins, zwei."), ('"go" & 3', "„geh“ & 3"), ("나는 간다", "I go\u2028on")]


def text_samples() -> list[Sample]:
    left, right = ("".join(f"{pair[side]}\n" for pair in PAIRS).encode() for side in (0, 1))
    utf_16 = left.decode().encode("utf-16")
    return [
        {"a.txt": left},
        {"a.en": left, "a.de": right},
        {"a.txt": utf_16},
        {"a.txt": utf_16[2:]},
    ]


def read_texts(folder: Path) -> object:
    from manyheads.data.documents.glossary import Glossary
    from manyheads.data.text.corpus import read_sentences
    from manyheads.data.text.formats import read_pairs

    if (folder / "a.en").exists():
        _read_corpus(folder / "a")
        return list(read_pairs(folder / "a", "en", "de"))
    _attempt(lambda: Glossary.read(folder / "a.txt"))
    _attempt(lambda: read_sentences(folder / "a.txt", 1))
    return read_sentences(folder / "a.txt")


def _attempt(read: Callable[[], object]) -> None:
    with contextlib.suppress(ManyheadsError):
        read()


def _read_corpus(path: Path) -> None:
    """Check a corpus, as `check-data` does."""
    from manyheads.check_data.text_check import Place, check

    _attempt(lambda: check(Place("a", str(path), "en", "de"), {}).as_json())


# --- Tables -------------------------------------------------------------------------------------


def table_samples() -> list[Sample]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {"en": source, "de": target, "image": "a.png", "label": str(number)}
        for number, (source, target) in enumerate(PAIRS)
    ]
    records = io.StringIO()
    writer = csv.DictWriter(records, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    tabbed = "".join("\t".join(row) + "\n" for row in (rows[0], *(row.values() for row in rows)))
    parquets = []
    picture = _images()["a.png"]
    nested = [{"translation": {"en": s, "de": t}} for s, t in PAIRS]
    cells = [{"image": {"bytes": picture, "path": None}, "label": 3.0, "en": b"a", "de": 5}]
    for table in (rows, nested, cells):
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(table), file)
        parquets.append(file.getvalue())
    lines = "".join(f"{json.dumps(row)}\n" for row in (*rows, *nested))
    files = {"a.csv": records.getvalue(), "a.tsv": tabbed, "a.jsonl": lines}
    plain = "".join(f"{s}\t{t}\n" for s, t in PAIRS).encode()
    return [
        *({name: content.encode(), "a.png": picture} for name, content in files.items()),
        *({"a.parquet": content} for content in parquets),
        {"plain.tsv": plain},
    ]


def read_tables(folder: Path) -> object:
    from manyheads.data.text.formats import read_pairs
    from manyheads.recipe_data.image_data import LabelledImageData
    from manyheads.recipe_data.image_splits import find_images

    (path,) = (each for each in folder.iterdir() if each.suffix != ".png")
    _read_corpus(path)
    for several in (False, True):
        data = LabelledImageData(train=str(path), multi_label=several)
        _attempt(partial(_open_all, partial(find_images, str(path), data)))
    return list(read_pairs(path, "en", "de"))


# --- Translation memories -----------------------------------------------------------------------


def memory_samples() -> list[Sample]:
    units = "".join(
        f'<tu><tuv xml:lang="en-US"><seg>{s} <ph>{{1}}</ph>&#233;</seg></tuv>'
        f'<tuv lang="de"><seg>{t}</seg></tuv></tu>\n'
        for s, t in (("one &amp; two", "eins"), ("세", "drei"))
    )
    body = f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>'
    doctypes = ("", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">', '<!DOCTYPE tmx [<!ENTITY x "y">]>')
    return [
        {"a.tmx": f'<?xml version="1.0" encoding="{name}"?>\n{doctype}{body}'.encode(name)}
        for name in ("utf-8", "utf-16", "cp949", "utf-32")
        for doctype in doctypes
    ]


def read_memory(folder: Path) -> object:
    from manyheads.data.text.formats import read_pairs

    _read_corpus(folder / "a.tmx")
    return list(read_pairs(folder / "a.tmx", "en", "de"))


# --- Images -------------------------------------------------------------------------------------


@cache
def _images() -> Sample:
    """One small image of every format, and of several modes."""
    draw = np.random.default_rng(0)
    colours = Image.fromarray(draw.integers(0, 256, (9, 11, 3)).astype(np.uint8))
    deep = Image.fromarray(draw.integers(0, 65536, (9, 11)).astype(np.uint16))
    exif = Image.Exif()
    exif[0x0112] = 6
    found: Sample = {}

    def add(name: str, image: Image.Image, **options: object) -> None:
        file = io.BytesIO()
        image.save(file, Image.registered_extensions()[Path(name).suffix], **options)
        found[name] = file.getvalue()

    for ending in ("png", "jpg", "webp", "bmp", "gif", "tif", "ppm", "avif"):
        add(f"a.{ending}", colours, **({} if ending in ("bmp", "gif", "ppm") else {"exif": exif}))
    add("deep.png", deep)
    add("deep.tif", deep, compression="tiff_lzw")
    add("palette.png", colours.quantize(7), transparency=0)
    add("print.jpg", colours.convert("CMYK"), progressive=True)
    add("alpha.webp", colours.convert("RGBA"), lossless=True)
    add("moving.gif", colours, save_all=True, append_images=[colours.rotate(90)])
    add("moving.webp", colours, save_all=True, append_images=[colours.rotate(180)])
    add("pages.tif", colours, save_all=True, append_images=[colours], compression="tiff_deflate")
    file = io.BytesIO()
    np.save(file, np.asarray(colours))
    found["a.npy"] = file.getvalue()
    return found


def image_samples() -> list[Sample]:
    return [{name: content} for name, content in _images().items()]


def read_images(folder: Path) -> object:
    from manyheads.data.images.image_file import naming, open_image
    from manyheads.data.images.image_set import Preprocessing

    (path,) = folder.iterdir()
    with naming(path):
        image = open_image(path)
        _attempt(lambda: _naming(path, lambda: _examined(image)))
        bands = Preprocessing(height=4, width=5, mode="bands", num_channels=3)
        _attempt(lambda: _naming(path, lambda: bands.pixels(image)))
        return Preprocessing(height=5, width=4, mode="RGB").pixels(image)


def _naming(path: Path, read: Callable[[], object]) -> None:
    from manyheads.data.images.image_file import naming

    with naming(path):
        read()


def _examined(image: object) -> object:
    from manyheads.data.checks.image_fingerprints import digest, perceptual

    return digest(image), perceptual(image)  # type: ignore[arg-type]


# --- Archives -----------------------------------------------------------------------------------


def archive_samples() -> list[Sample]:
    pictures = [_images()[name] for name in ("a.png", "a.jpg")]
    parts = {
        "one.png": pictures[0],
        "one.cls": b"left",
        "sub/two.jpg": pictures[1],
        "sub/two.json": b'{"label": "right", "n": 1}',
        "three": pictures[0],
        "three.txt": b"left",
    }
    found = []
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=form) as archive:
            for name, content in parts.items():
                member = tarfile.TarInfo(name if form == tarfile.USTAR_FORMAT else "d" * 120 + name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            for kind, name in ((tarfile.LNKTYPE, "four.png"), (tarfile.SYMTYPE, "four.cls")):
                link = tarfile.TarInfo(name)
                link.type = kind
                link.linkname = archive.getnames()[0 if kind == tarfile.LNKTYPE else 1]
                archive.addfile(link)
        found.append({"a.tar": file.getvalue()})
    return found


def read_archive(folder: Path) -> object:
    from manyheads.data.images.shards import read_shards

    shards = [folder / "a.tar"]
    _attempt(partial(read_shards, shards, None))
    _attempt(partial(read_shards, shards, "label", ";"))
    return _open_all(partial(read_shards, shards, "label"))


def _open_all(read: "Callable[[], ImageSet]") -> int:
    images = read()
    for index in range(min(len(images), 5)):
        _attempt(partial(images.open, index))
    return len(images)


# --- Recipes and model folders ------------------------------------------------------------------

OVERRIDES = b"train.steps=200\nmodel.dim=64\ntrain.restart=\ndata.train=a*b\nmodel.heads=[1, 2]"


def recipe_samples() -> list[Sample]:
    from manyheads.project.paths import shipped

    recipes = sorted(shipped("recipes").values())
    return [{"a.toml": path.read_bytes(), "overrides": OVERRIDES} for path in recipes]


def read_a_recipe(folder: Path) -> object:
    from manyheads.project.base_recipe import read_recipe

    overrides = (folder / "overrides").read_text("utf-8", "surrogateescape").split("\n")
    _attempt(lambda: read_recipe(folder / "a.toml", [overrides[0]]))
    _attempt(lambda: read_recipe(folder / "a.toml", overrides))
    return read_recipe(folder / "a.toml")


def folder_samples() -> list[Sample]:
    from manyheads.project.paths import shipped

    folders = (shipped("pretrained")[name] for name in ("digits", "date-en-ko"))
    found = [{path.name: path.read_bytes() for path in each.parent.iterdir()} for each in folders]
    image = found[0]["preprocessing.json"].replace(b'"L"', b'"RGB"')  # of weights for one channel
    return [*found, found[0] | {"preprocessing.json": image}]


def read_folder(folder: Path) -> object:
    from manyheads.predict.load import load

    _write_hashes(folder / "manyheads.json")
    predictor: Any = load(folder, threads=1)
    return predictor(np.zeros((8, 8), np.uint8) if (folder / "labels.json").exists() else "May 1")


# --- Indexes of images --------------------------------------------------------------------------


@cache
def searcher() -> Any:
    """Return a model whose vectors are those of the index below."""
    from manyheads.predict.load import load

    class Searcher:
        folder = load("digits", threads=1).folder

        def embed_texts(self, texts: list[str]) -> np.ndarray:
            return np.eye(len(texts), 4, dtype=np.float32)

        embed_images = embed_texts

    return Searcher()


def index_samples() -> list[Sample]:
    from manyheads.image_search.index_folder import Header, IndexedImage, IndexFolder, create

    samples = []
    for count in (1, 4, 60):
        with tempfile.TemporaryDirectory() as name:
            path = Path(name)
            create(path, Header(model="digits", weights=searcher().folder.weights_hash, dim=4))
            folder = IndexFolder(path, write=True)
            images = [IndexedImage(f"/{row}.png", f"/{row}.png", row // 2) for row in range(count)]
            vectors = np.eye(4, dtype=np.float32)[np.arange(count) % 4]
            folder.commit(vectors, [f"{row:064x}" for row in range(count)], images)
            folder.close()
            samples.append({each.name: each.read_bytes() for each in path.iterdir()})
    return samples


def read_index(folder: Path) -> object:
    from manyheads.image_search.image_index import ImageIndex

    with ImageIndex(folder, model=searcher()) as index:
        index.search("any", top=3)
        image = folder / "a.png"
        Image.new("L", (2, 2)).save(image)
        index.add(image, prune=True)
        return index.search("any", top=100)


# --- Documents ----------------------------------------------------------------------------------

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RUN = '<w:r><w:rPr><w:b/><w:lang w:val="en"/></w:rPr><w:t>A <![CDATA[dog]]>.</w:t><w:br/></w:r>'


def document_samples() -> list[Sample]:
    texts = {
        "a.txt": "- One. Two!\n\n> three\n1) four\ta|b\n",
        "a.md": "---\na: 1\n---\n# One\n\n* *two* `x` [a](b)\n\n|a|b|\n|-|-|\n|c|d|\n\n!!! note\n",
        "a.html": '<meta charset = "utf-8"><p title="a">One <b>two</b> &lt; <code>x</code><!-- -->',
    }
    word = {"word/document.xml": f"<w:document {WORD}><w:p>{RUN}{RUN}</w:p></w:document>"}
    table = f'<table {SHEET}><tableColumn id="1" name="a &amp; b"/></table>'
    sheet = {
        "xl/workbook.xml": f"<workbook {SHEET}/>",
        "xl/sharedStrings.xml": f"<sst {SHEET}><si><t>A dog</t></si></sst>",
        "xl/tables/table1.xml": table,
    }
    return [
        *({name: text.encode()} for name, text in texts.items()),
        *({name: text.encode() for name, text in parts.items()} for parts in (word, sheet)),
    ]


def read_document(folder: Path) -> object:
    from manyheads.data.documents.document_formats import format_of, open_document

    paths = [path for path in folder.rglob("*") if path.is_file()]
    name, content = paths[0].name, paths[0].read_bytes()
    if name.endswith(".xml"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for path in paths:
                archive.write(path, path.relative_to(folder))
        content, name = file.getvalue(), "a.docx" if (folder / "word").exists() else "a.xlsx"
    document = open_document(content, name, format_of(name))
    parts = [
        part.text
        for text in document.texts.values()
        for split in document.passes
        for line in split(text, "en")
        for part in line
    ]
    return [document.shown(part) for part in parts], document.pack(dict(document.texts))


# --- Names of data, and of files to write ------------------------------------------------------

NAMES = [
    b"memory://a/b.tsv\nfile:///x/a.tsv\nb.tsv[split=train]\n./a*b\nclean/b\nhub:a/b:c\nb.tsv",
    b"reference://::/x\nzip://a::memory://b\ngithub://a:b@c/d\nsimplecache::file:///x\nb.tsv",
    b".\n..\n/\na/..\n~nobody/x\nb.tsv",
]


def name_samples() -> list[Sample]:
    return [{"names": names, "b.tsv": b"one\teins\n"} for names in NAMES]


def read_names(folder: Path) -> object:
    """Every line as a name that a person gave, and as one that only a stored recipe has."""
    from manyheads.check_data.text_check import Place
    from manyheads.project.paths import allow, find_data

    os.environ["MANYHEADS_CACHE"] = str(folder / "cache")
    place = Place("a", "a", "en", "de")
    lines = (folder / "names").read_text("utf-8", "replace").split("\n")[:50]
    for line in filter(None, lines):
        out = folder / "out" / line.lstrip("/~") if line.strip("/") else Path(line)
        find = partial(find_data, line, str(folder))
        for read in (partial(_check_beside, place, out), find, partial(allow, line), find):
            with contextlib.suppress(OSError):  # a name too long, which the command explains
                _attempt(read)
    if "fsspec.implementations.reference" in sys.modules:
        raise AssertionError("a file system was opened that renders templates")
    return find_data(lines[-1][:60], str(folder))


def _check_beside(place: Any, out: Path) -> None:
    from manyheads.check_data.text_check import cleaned_files

    files, log = cleaned_files(place, out)
    if wrong := [path for path in (*files, log) if not path.name.startswith(out.name[:1] or "?")]:
        raise AssertionError(f"{out} would write {wrong[0]}")


# --- Engines ------------------------------------------------------------------------------------


@cache
def _exported(model: str, engine: str) -> Path:
    """Export a shipped model in a process of its own: tracing is disturbed by type checks."""
    out = Path(tempfile.mkdtemp()) / "model"
    words = ["export", model, "--to", engine, "--out", str(out), "--limit", "2"]
    words += ["--text", "May 1, 2026"] if model == "date-en-ko" else []
    subprocess.run([sys.executable, "-m", "manyheads", *words], check=True, capture_output=True)
    return out


def engine_samples() -> list[Sample]:
    samples = []
    for model, engine in (("date-en-ko", "ctranslate2"), ("digits", "onnx")):
        files = sorted((_exported(model, engine) / "engines" / engine).glob("*.json"))
        samples.append({f"{engine}/{path.name}": path.read_bytes() for path in files})
    # What random changes would take long to find: a graph elsewhere, and no hashes.
    graphs = samples[1]["onnx/graphs.json"].replace(b"model.onnx", b"../../../outside")
    samples.append(samples[1] | {"onnx/graphs.json": graphs})
    record = json.loads(samples[0]["ctranslate2/engine.json"]) | {"sha256": {}}
    samples.append(samples[0] | {"ctranslate2/engine.json": json.dumps(record).encode()})
    return samples


def read_engine(folder: Path) -> object:
    from manyheads.predict.load import load

    (engine,) = (path.name for path in folder.iterdir())
    model = {"ctranslate2": "date-en-ko", "onnx": "digits"}[engine]
    copy = shutil.copytree(_exported(model, engine), folder / "model")
    files = copy / "engines" / engine
    for graph in files.glob("*.onnx"):
        shutil.copy(graph, folder / "outside")
    for path in (folder / engine).iterdir():
        shutil.copy(path, files)
    _write_hashes(files / "engine.json")
    predictor: Any = load(copy, engine=engine, threads=1)
    answer = predictor(np.zeros((8, 8), np.uint8) if engine == "onnx" else "May 1")
    hashed = json.loads((files / "engine.json").read_bytes())["sha256"]
    if hashed.keys() | {"engine.json"} != {path.name for path in files.iterdir()}:
        raise AssertionError("a file without a hash was opened")
    if re.search(
        rb'"file": "[^"]*outside', b"".join(p.read_bytes() for p in files.glob("g*.json"))
    ):
        raise AssertionError("a file outside of the folder was opened")
    return answer


def _write_hashes(record: Path) -> None:
    """Write the hashes that fit, so that damage is not found by them alone."""
    with contextlib.suppress(ValueError, LookupError, TypeError, OSError, RecursionError):
        table = json.loads(record.read_bytes())
        for name in table["sha256"]:
            table["sha256"][name] = hashlib.sha256((record.parent / name).read_bytes()).hexdigest()
        record.write_text(json.dumps(table), encoding="utf-8")


# --- Runs that are resumed ----------------------------------------------------------------------

STEPS = ("train.steps=4", "train.save_every=4", "train.validate_every=4", "train.threads=1")


@cache
def _run() -> Path:
    from manyheads.fit.observer import SilentObserver
    from manyheads.fit.run_training import train

    out = Path(tempfile.mkdtemp()) / "run"
    train("digits", *STEPS, out=out, observer=SilentObserver())
    return out


def run_samples() -> list[Sample]:
    """Its files, with other numbers for the measured ones: an example depends on no clock."""
    names = ("recipe.toml", "metrics.jsonl", "state/step-000000004/progress.json")
    measured = re.compile(rb"(?<=[ :,\[])-?\d+\.\d+(?:e-?\d+)?(?=[,}\]\s])")  # no version
    files = {name: (_run() / name).read_bytes() for name in names}
    return [
        {
            name: content if name.endswith(".toml") else measured.sub(b"1.5", content)
            for name, content in files.items()
        }
    ]


def read_run(folder: Path) -> object:
    from manyheads.fit.observer import SilentObserver
    from manyheads.fit.run_training import train

    out = shutil.copytree(_run(), folder / "run")
    for path in folder.glob("*.*"):
        shutil.copy(path, out)
    shutil.copytree(folder / "state", out / "state", dirs_exist_ok=True)
    return train("digits", *STEPS, out=out, resume=True, observer=SilentObserver())


TARGETS = {
    "text": Target(text_samples, read_texts),
    "tables": Target(table_samples, read_tables),
    "tmx": Target(memory_samples, read_memory),
    "tar": Target(archive_samples, read_archive),
    "images": Target(image_samples, read_images),
    "recipes": Target(recipe_samples, read_a_recipe),
    "folders": Target(folder_samples, read_folder),
    "indexes": Target(index_samples, read_index),
    "documents": Target(document_samples, read_document),
    "names": Target(name_samples, read_names),
    "engines": Target(engine_samples, read_engine),
    "runs": Target(run_samples, read_run),
}


# --- Running ------------------------------------------------------------------------------------


@cache
def samples_of(name: str) -> list[Sample]:
    """Return the valid files of a target."""
    return TARGETS[name].samples()


def example(name: str, seed: int, number: int) -> bool:
    """Read an example; tell whether it was answered rather than refused.

    Raises:
        Exception: the reader failed.
    """
    draw = random.Random(f"{name} {seed} {number}")
    samples = samples_of(name)
    sample, other = draw.choice(samples), draw.choice(samples)
    chosen = draw.choice(sorted(sample))
    mutated = mutate(sample[chosen], draw, draw.choice(sorted(other.values())))
    return is_answered(name, sample | {chosen: mutated})


def is_answered(name: str, files: Sample) -> bool:
    """Read files; tell whether they were answered rather than refused.

    Raises:
        Exception: the reader failed.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each, content in files.items():
            (Path(folder) / each).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / each).write_bytes(content)
        try:
            TARGETS[name].read(Path(folder))
        except ManyheadsError as error:
            str(error)
            return False
    return True


def peak() -> int:
    """Return the largest memory of this process so far, in bytes."""
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def work(name: str, seed: int, number: int, seconds: float) -> None:
    """Run examples in this process: a line before each, a line for each failure."""
    for sample in samples_of(name):
        is_answered(name, sample)  # imports what it needs, and that takes time and memory
    base, end = peak(), time.monotonic() + seconds
    resource.setrlimit(resource.RLIMIT_AS, (base + (16 << 30), resource.RLIM_INFINITY))
    answered = 0
    while time.monotonic() < end:
        print(f"{number}\t{answered}", flush=True)
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        try:
            answered += example(name, seed, number)
        except Exception as error:
            print(f"{number}\t{answered}\t{type(error).__name__}: {error!a:.300}", flush=True)
        faulthandler.cancel_dump_traceback_later()
        if peak() - base > GROWTH:
            sys.exit(f"memory grew by {peak() - base:,} bytes")
        number += 1


def supervise(name: str, seed: int, seconds: float) -> Iterator[tuple[int, str]]:
    """Run a target, in a new process after each crash; yield failures, with their examples."""
    end, number, answered = time.monotonic() + seconds, 0, 0
    while (left := end - time.monotonic()) > 0:
        words = [
            sys.executable,
            __file__,
            name,
            f"--seed={seed}",
            f"--work={number}",
            f"--left={left}",
        ]
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
            subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8"
            ) as process,
        ):
            assert process.stdout is not None
            count = 0
            for line in process.stdout:
                first, so_far, *failed = line.rstrip("\n").split("\t", 2)
                number, count = int(first) + 1, int(so_far)
                if failed:
                    yield number - 1, failed[0]
            answered += count
            if process.wait():
                errors.seek(0)
                yield number - 1, f"exit code {process.returncode}: {errors.read()[-2000:]}"
    print(f"{name}: {number:,} examples, {answered:,} of them answered", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--example", type=int, help="run this one, here")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--left", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.targets or list(TARGETS)
    if unknown := set(names) - set(TARGETS):
        parser.error(f"no target {', '.join(unknown)}: there are {', '.join(TARGETS)}")
    if given.work is not None:
        work(names[0], given.seed, given.work, given.left)
    elif given.example is not None:
        print("answered" if example(names[0], given.seed, given.example) else "refused")
    else:
        failed = 0
        for name in names:
            for number, reason in supervise(name, given.seed, 60 * given.minutes):
                failed += 1
                print(f"{name} --seed {given.seed} --example {number}: {reason}", flush=True)
        sys.exit(failed > 0)


if __name__ == "__main__":
    main()
