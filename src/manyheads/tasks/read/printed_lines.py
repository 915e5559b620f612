"""From the names in a [data] table to printed lines: drawn from texts, or read from images."""

import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from manyheads.data.checks.separation import hold_out_captioned
from manyheads.data.images.line_images import LineImage, LineImages
from manyheads.data.synthetic.text_lines import (
    RenderedLines,
    Rendering,
    cut,
    find_fonts,
    random_letters,
)
from manyheads.data.text.corpus import Sentences
from manyheads.errors import RecipeError, nearest
from manyheads.files import expand_user
from manyheads.project.paths import data_root, find_data, here, split_selection
from manyheads.recipe_data.caption_data import ReadData
from manyheads.recipe_data.caption_splits import read_captioned, read_given
from manyheads.recipe_data.named_splits import named
from manyheads.recipe_data.sentence_splits import sentences
from manyheads.recipe_data.text_data import SentenceData
from manyheads.streams import generator, stream

IMAGE_FORMS = (".parquet", ".tar", ".json")  # that hold no plain texts

PrintedLines = RenderedLines | LineImages


def printed_lines(
    name: str,
    split: str,
    data: ReadData,
    image: LineImage,
    render: Rendering,
    seed: int,
) -> PrintedLines:
    """Draw or read the lines of one source, as those of a split.

    Args:
        name: of the data.
        split: its fonts and seed are used: those of "valid" for other data.
        data: the recipe's table.
        image: the size of lines.
        render: how texts are drawn.
        seed: of the recipe.

    Raises:
        NotFoundError: there are no such data or fonts.
        DataError: data cannot be used.
        RecipeError: unknown names of fonts.
    """
    if data.fonts is None:
        return LineImages(read_captioned(name, data), image, skip=data.on_error == "skip")
    fonts = split_fonts(split, data)
    texts, hashes, origin = _texts(name, split, data, render, seed)
    return RenderedLines(
        texts,
        fonts,
        render,
        height=image.height,
        seed=stream(seed, f"{split}-lines"),
        origin=origin,
        hashes=hashes,
    )


def given_lines(
    name: str, data: ReadData, image: LineImage, render: Rendering, seed: int
) -> PrintedLines:
    """Read other lines than the recipe's: images with texts if it is a form of these, else texts.

    Texts are drawn as those of the validation split.

    Raises:
        NotFoundError: there are no such data or fonts.
        DataError: data cannot be used.
    """
    name = here(name)
    paths = find_data(split_selection(name)[0], data.root)
    if data.fonts is None or any(path.is_dir() or path.suffix in IMAGE_FORMS for path in paths):
        found = read_given(name, data.model_copy(update={"fonts": None}))
        return LineImages(found, image, skip=data.on_error == "skip")
    return printed_lines(name, "valid", data, image, render, seed)


def line_splits(
    data: ReadData, image: LineImage, render: Rendering, seed: int
) -> tuple[PrintedLines, PrintedLines]:
    """Read or draw training and validation lines."""
    if data.fonts is None and data.valid is None:
        if data.hold_out == 0:
            raise RecipeError(
                "There is no validation data: set data.valid, or data.hold_out to a number of "
                "images."
            )
        parts = hold_out_captioned(
            read_captioned(data.train, data), data.hold_out, data.random_state
        )
        skip = data.on_error == "skip"
        return LineImages(parts[0], image, skip=skip), LineImages(parts[1], image, skip=skip)
    train, valid = (line_split(split, data, image, render, seed) for split in ("train", "valid"))
    return train, valid


def line_split(
    split: str, data: ReadData, image: LineImage, render: Rendering, seed: int
) -> PrintedLines:
    """Read or draw the lines that a recipe names for a split."""
    if data.fonts is None and data.valid is None and split in ("train", "valid"):
        return line_splits(data, image, render, seed)[split == "valid"]
    return printed_lines(named(split, data), split, data, image, render, seed)


def split_fonts(split: str, data: ReadData) -> list[Path]:
    """Return the fonts of a split: the test split has the held-out ones, if there are any."""
    assert data.fonts is not None
    folder = data_root(data.root) / expand_user(data.fonts)
    found = find_fonts(folder)
    held_out = {*data.held_out_fonts, *data.valid_fonts}
    for name in sorted(held_out - found.keys()):
        raise RecipeError(f"{folder} has no font {name!r}{nearest(name, found)}")
    chosen = {"valid": data.valid_fonts, "test": data.held_out_fonts}.get(split, ())
    fonts = [found[name] for name in chosen] or [
        path for name, path in found.items() if name not in held_out
    ]
    if not fonts:
        raise RecipeError(f"Every font in {folder} is held out: leave some to train on.")
    return fonts


def _texts(
    name: str, split: str, data: ReadData, render: Rendering, seed: int
) -> tuple[list[str], tuple[str, ...], str]:
    """Cut texts into lines; return them, the hashes of their files, and where they are from."""
    found = _column(name, data, data.column)
    lines = [*_cut(found.lines, render, seed, f"{split}-cut")]
    if data.also_column is not None and split == "train":
        others = _column(name, data, data.also_column).lines
        chosen = generator(seed, "also").random(len(others)) < data.also_share
        some = [text for text, take in zip(others, chosen, strict=True) if take]
        lines += _cut(some, render, seed, "also-cut")
    if data.random_share and split == "train":
        random = generator(seed, "random-letters")
        replaced = random.random(len(lines)) < data.random_share
        lines = [
            random_letters(line, random) if swap else line
            for line, swap in zip(lines, replaced, strict=True)
        ]
    return lines, found.hashes, found.origin


def _column(name: str, data: ReadData, column: int | None) -> Sentences:
    table = SentenceData(root=data.root, train=name, valid=name, column=column)
    return sentences(name, table)


def _cut(texts: Sequence[str], render: Rendering, seed: int, purpose: str) -> Iterator[str]:
    """Cut texts at spaces into lines of different lengths, always the same ones."""
    random = generator(seed, purpose)
    least, most = render.min_characters, render.max_characters

    def limits() -> Iterator[int]:
        while True:
            yield from random.integers(least, most + 1, 256).tolist()

    for text in texts:
        yield from cut(unicodedata.normalize("NFC", text), limits(), most)
