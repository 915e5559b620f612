"""Small data, recipes and trained folders that the tests make for themselves.

The sentences are numbers in English and, in reverse order, in German: word order matters, and a
tiny model learns some of it in a second. The images are bright on their left or right half.
"""

import io
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageFont

from manyheads.files import sha256
from manyheads.fit.run_training import train
from manyheads.project.base_recipe import read_recipe
from tests.shared_folders import made_once

ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
GERMAN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
CLASSES = ("left", "right")

TRANSLATE = """
task = "translate"

[data]
train = "numbers/train"
valid = "numbers/valid"
test = "numbers/test"
source = "en"
target = "de"

[tokenizer]
size = 320

[model]
preset = "transformer-tiny"
dim = 16
heads = 2
ffn_dim = 32
encoder_layers = 1
decoder_layers = 1
dropout = 0.1

[train]
steps = 60
max_tokens = 128
learning_rate = 1e-2
warmup = 10
threads = 1
log_every = 10
validate_every = 30
save_every = 20
"""

CLASSIFY = """
task = "classify"

[data]
train = "halves"
hold_out = 8

[image]
height = 4
width = 6
mode = "L"

[augment]
shift = 1

[model]
preset = "vit-ti"
patch = 2
dim = 8
layers = 1
heads = 2
ffn_dim = 16
dropout = 0.1

[train]
steps = 40
batch_size = 8
learning_rate = 1e-2
warmup = 5
threads = 1
log_every = 10
validate_every = 20
save_every = 10
"""


class Silent:
    """An observer that looks away."""

    def say(self, message: str) -> None: ...

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None: ...

    def validated(self, step: int, metrics: dict[str, float]) -> None: ...


def numbers(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Sentence pairs: "two seven one" and "eins sieben zwei"."""
    random = np.random.default_rng(seed)
    drawn = [random.integers(0, 10, random.integers(1, 6)) for _ in range(count)]
    source = [" ".join(ENGLISH[n] for n in row) for row in drawn]
    return source, [" ".join(GERMAN[n] for n in row[::-1]) for row in drawn]


def write_hashes(record: Path) -> None:
    """Write the hashes of the files beside a record anew, so that damage is not found by them."""
    stored = json.loads(record.read_bytes())
    for name in stored["sha256"]:
        stored["sha256"][name] = sha256(record.parent / name)
    record.write_text(json.dumps(stored), encoding="utf-8")


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write a text file as Unix does, parents included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def write_numbers(root: Path, *, train: int = 120, other: int = 8) -> None:
    """Write train, valid and test of the sentence pairs under root."""
    for seed, (split, count) in enumerate([("train", train), ("valid", other), ("test", other)]):
        source, target = numbers(count, seed)
        write_lines(root / "numbers" / f"{split}.en", source)
        write_lines(root / "numbers" / f"{split}.de", target)


def half(label: int, seed: int, *, height: int = 4, width: int = 6) -> Image.Image:
    """A grey image with one bright half."""
    values = np.random.default_rng(seed).integers(0, 120, (height, width))
    middle = width // 2
    values[:, slice(0, middle) if label == 0 else slice(middle, None)] += 130
    return Image.fromarray(values.astype(np.uint8))


def write_halves(root: Path, *, count: int = 40) -> None:
    """Write one folder a class with images in it under root."""
    for number in range(count):
        label = number % 2
        path = root / "halves" / CLASSES[label] / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        half(label, number).save(path)


def png(image: Image.Image) -> bytes:
    """An image as the bytes of a PNG file."""
    file = io.BytesIO()
    image.save(file, "png")
    return file.getvalue()


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of a file with one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_recipe(path: Path, text: str, root: Path) -> Path:
    """Write a recipe that finds its data under root."""
    path.write_text(text.replace("[data]", f"[data]\nroot = '{root}'"), encoding="utf-8")
    return path


def run(recipe: Path, out: Path, *overrides: str, resume: bool = False) -> dict[str, Any]:
    """Train a recipe in this process."""
    return train(read_recipe(recipe, overrides), out=out, resume=resume, observer=Silent())


@cache
def trained(kind: str) -> Path:
    """A trained folder, made once a test run: "translator", "classifier", "reader".

    Copy it to change it.

    The translator knows every word alone, whatever the seed and the processor's last digits: in
    400 steps of large batches, where 250 of small ones leave that to luck.
    """

    def make(base: Path) -> None:
        if kind == "translator":
            write_numbers(base, train=300)
            text, steps = TRANSLATE.replace("max_tokens = 128", "max_tokens = 256"), 400
        elif kind == "reader":
            write_texts_to_read(base, train=200)
            text, steps = READ, 250
        else:
            write_halves(base)
            text, steps = CLASSIFY, 40
        recipe = write_recipe(base / f"{kind}.toml", text, base)
        run(recipe, base / "model", f"train.steps={steps}")

    return made_once(kind, make) / "model"


def image_size(path: Path) -> tuple[int, int]:
    """Width and height of an image file."""
    with Image.open(path) as image:
        return image.size


def write_fonts(folder: Path) -> Path:
    """Write Pillow's own font, which has letters and digits, as two files of a folder."""
    font = ImageFont.load_default(16)
    assert isinstance(font, ImageFont.FreeTypeFont)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("One", "Two"):
        (folder / f"{name}.ttf").write_bytes(font.font_bytes)
    return folder


READ = """
task = "read"

[data]
train = "read/train.txt"
valid = "read/valid.txt"
test = "read/test.txt"
fonts = "fonts"
held_out_fonts = ["Two"]
language = "en"

[render]
min_characters = 2
max_characters = 12
min_size = 0.7
distortion = 0

[model]
preset = "line-reader"
widths = [16, 32, 32, 32]
dim = 32
layers = 1
heads = 2
ffn_dim = 32

[train]
steps = 60
batch_width = 1024
learning_rate = 5e-3
muon = true
warmup = 10
threads = 1
log_every = 10
validate_every = 30
save_every = 20
"""


def write_texts_to_read(root: Path, *, train: int = 120, other: int = 12) -> None:
    """Write texts of each split, and fonts to draw them in, under root."""
    for seed, (split, count) in enumerate([("train", train), ("valid", other), ("test", other)]):
        write_lines(root / "read" / f"{split}.txt", numbers(count, seed)[0])
    write_fonts(root / "fonts")
