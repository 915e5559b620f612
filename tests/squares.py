"""Images of coloured halves with captions in two languages, and small models that learned them.

Twelve images differ in colour and side: "red left", "빨강 왼쪽". A tiny captioner and a tiny
matcher know them by heart after a few seconds; the images of other splits have other noise.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import ImageSet
from tests.made import png, run, write_recipe
from tests.shared_folders import made_once

COLOURS = {"red": (220, 0, 0), "green": (0, 220, 0), "blue": (0, 0, 220), "white": (220, 220, 220)}
KOREAN = {"red": "빨강", "green": "초록", "blue": "파랑", "white": "하양"}
SIDES = {"left": "왼쪽", "right": "오른쪽", "top": "위"}
NAMES = [(colour, side) for colour in COLOURS for side in SIDES]
SPLITS = ("train", "valid", "test")
SIDE = 8  # pixels

RECIPE = """
task = "{task}"

[data]
train = "squares.parquet[split=train]"
valid = "squares.parquet[split=valid]"
test = "squares.parquet[split=test]"

[data.texts]
en = ["name_en", "others_en"]
ko = ["name_ko"]

[image]
height = 8
width = 8

[tokenizer]
size = 330

[model]
preset = "{preset}"
dim = 32
heads = 2
ffn_dim = 64
{layers} = 1
dropout = 0.0

[model.image]
patch = 4
dim = 16
layers = 1
heads = 2
ffn_dim = 32

[train]
steps = {steps}
batch_size = 12
learning_rate = 1e-2
warmup = 10
threads = 1
log_every = 10
validate_every = {every}
save_every = 20
"""
CAPTION = RECIPE.replace("{task}", "caption").replace("{preset}", "captioner-vit-ti")
CAPTION = CAPTION.replace("{layers}", "decoder_layers")
CAPTION = CAPTION.replace("{steps}", "200").replace("{every}", "100")
MATCH = RECIPE.replace("{task}", "match").replace("{preset}", "matcher-vit-ti")
MATCH = MATCH.replace("{layers}", "layers").replace("{steps}", "120").replace("{every}", "60")
MATCH += "texts = 2\n"
TEXTS = {"caption": CAPTION, "match": MATCH}


def square(number: int, seed: int = 0) -> Image.Image:
    """The image of `NAMES[number]`: bright on one side, nearly black elsewhere."""
    colour, side = NAMES[number % len(NAMES)]
    noise = np.random.default_rng((number, seed)).integers(0, 30, (SIDE, SIDE, 3))
    half = SIDE // 2
    part: Any = {"left": np.s_[:, :half], "right": np.s_[:, half:], "top": np.s_[:half]}[side]
    noise[part] += np.array(COLOURS[colour])
    return Image.fromarray(noise.astype(np.uint8))


def texts(number: int) -> dict[str, list[str]]:
    """Two captions in English, and one in Korean."""
    colour, side = NAMES[number % len(NAMES)]
    english = [f"{colour} {side}", f"{side}: {colour}"]
    return {"en": english, "ko": [f"{KOREAN[colour]} {SIDES[side]}"]}


def captioned(count: int = len(NAMES), seed: int = 0) -> CaptionedImages:
    """The images with their captions, in memory."""
    captions = [
        (number, language, text)
        for number in range(count)
        for language, several in texts(number).items()
        for text in several
    ]
    images = ImageSet(
        labels=np.zeros(count, dtype=int),
        classes=[],
        names=[" ".join(NAMES[number % len(NAMES)]) for number in range(count)],
        read=lambda index: square(index, seed),
        origin="squares",
    )
    owners, languages, written = zip(*captions, strict=True)
    return CaptionedImages(images, np.array(owners), list(written), list(languages))


def write_squares(root: Path) -> None:
    """Write squares.parquet under root: 12 images in each split."""
    rows = [
        {
            "image": png(square(number, seed)),
            "split": split,
            "name_en": texts(number)["en"][0],
            "others_en": texts(number)["en"][1:],
            "name_ko": texts(number)["ko"][0],
        }
        for seed, split in enumerate(SPLITS)
        for number in range(len(NAMES))
    ]
    root.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), root / "squares.parquet")


def write_files(folder: Path, count: int = 4) -> list[Path]:
    """Write the first images as files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number}.png" for number in range(count)]
    for number, path in enumerate(paths):
        square(number, 9).save(path)
    return paths


@cache
def root() -> Path:
    """The folder of the data and of a recipe for each task: look, don't touch."""

    def make(path: Path) -> None:
        write_squares(path)
        for task, text in TEXTS.items():
            write_recipe(path / f"{task}.toml", text, path)

    return made_once("squares", make)


def recipe(task: str) -> Path:
    """A recipe that finds its data."""
    return root() / f"{task}.toml"


@cache
def trained(task: str) -> Path:
    """A trained folder, "caption" or "match": look, don't touch."""
    return made_once(f"squares-{task}", lambda path: run(recipe(task), path / task)) / task
