"""From the names in a [data] table to printed lines: drawn from texts, or read from images."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from manyheads.data.checks.held_out_images import hold_out_captioned
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.line_images import LineImage, LineImages
from manyheads.data.synthetic.codes import codes
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
from manyheads.recipe_data.named_splits import named, sentences
from manyheads.recipe_data.text_data import SentenceData
from manyheads.streams import generator, stream

IMAGE_FORMS = (".parquet", ".tar", ".json")  # that hold no plain texts

PrintedLines = RenderedLines | LineImages


class SomeLines:
    """Some lines of a set."""

    def __init__(self, lines: PrintedLines, chosen: Sequence[int]) -> None:
        self.lines = lines
        self.chosen = chosen
        self.texts = [lines.texts[index] for index in chosen]

    def widths(self, epoch: int) -> np.ndarray:
        """Return the width of each line."""
        return self.lines.widths(epoch)[self.chosen]

    def pixels(self, index: int, epoch: int) -> np.ndarray:
        """Return a line: (height, width), 0..255, dark on light."""
        return self.lines.pixels(self.chosen[index], epoch)

    def describe(self, index: int, epoch: int) -> str:
        """Name a line for messages."""
        return self.lines.describe(self.chosen[index], epoch)


class LineSource(NamedTuple):
    """The lines of a recipe: its [data] table, their size, how texts are drawn, and the seed.

    Raises of every method:
        NotFoundError: there are no such data or fonts.
        DataError: data cannot be used.
        RecipeError: unknown names of fonts; there are no validation data.
    """

    data: ReadData
    image: LineImage = LineImage()
    render: Rendering = Rendering()
    seed: int = 1

    def named(self, name: str, split: str) -> PrintedLines:
        """Draw or read some data, with the fonts and the seed of a split."""
        if self.data.fonts is None:
            return self._images(read_captioned(name, self.data))
        texts, hashes, origin = self._texts(name, split)
        return RenderedLines(
            texts,
            split_fonts(split, self.data),
            self.render,
            height=self.image.height,
            seed=stream(self.seed, f"{split}-lines"),
            origin=origin,
            hashes=hashes,
        )

    def other(self, name: str) -> PrintedLines:
        """Read other lines than the recipe's: images with texts if they have such a form, or texts.

        Texts are drawn as those of the validation split.
        """
        name = here(name)
        paths = find_data(split_selection(name)[0], self.data.root)
        images = any(path.is_dir() or path.suffix in IMAGE_FORMS for path in paths)
        if self.data.fonts is None or images:
            return self._images(read_given(name, self.data.model_copy(update={"fonts": None})))
        return self.named(name, "valid")

    def splits(self) -> tuple[PrintedLines, PrintedLines]:
        """Read or draw training and validation lines."""
        data = self.data
        if data.fonts is not None or data.valid is not None:
            return self.split("train"), self.split("valid")
        if data.hold_out == 0:
            raise RecipeError(
                "There is no validation data: set data.valid, or data.hold_out to a number of "
                "images."
            )
        captions = read_captioned(data.train, data)
        train, valid = hold_out_captioned(captions, data.hold_out, data.random_state)
        return self._images(train), self._images(valid)

    def split(self, split: str) -> PrintedLines:
        """Read or draw the lines that a recipe names for a split."""
        data = self.data
        if data.fonts is None and data.valid is None and split in ("train", "valid"):
            return self.splits()[split == "valid"]
        return self.named(named(split, data), split)

    def _images(self, captions: CaptionedImages) -> LineImages:
        return LineImages(captions, self.image, skip=self.data.on_error == "skip")

    def _texts(self, name: str, split: str) -> tuple[list[str], tuple[str, ...], str]:
        """Cut texts into lines; return them, the hashes of their files, and where they are from."""
        data, seed = self.data, self.seed
        table = _column(name, data, data.column)
        lines = [*self._cut(table.lines, f"{split}-cut")]
        if data.also_column is not None and split == "train":
            others = _column(name, data, data.also_column).lines
            chosen = generator(seed, "also").random(len(others)) < data.also_share
            lines += self._cut(compress(others, chosen), "also-cut")
        if data.random_share and split == "train":
            random = generator(seed, "random-letters")
            lines = _some_replaced(lines, data.random_share, random, random_letters)
        if data.code_share and split == "train":
            most = self.render.max_characters
            made = generator(seed, "codes")
            lines = _some_replaced(
                lines, data.code_share, made, lambda _, random: codes(random)[:most].rstrip()
            )
        return lines, table.hashes, table.origin

    def _cut(self, texts: Iterable[str], purpose: str) -> Iterator[str]:
        """Cut texts at spaces into lines of different lengths, always the same ones."""
        random = generator(self.seed, purpose)
        least, most = self.render.min_characters, self.render.max_characters

        def limits() -> Iterator[int]:
            while True:
                yield from random.integers(least, most + 1, 256).tolist()

        for text in texts:
            yield from cut(unicodedata.normalize("NFC", text), limits(), most)


def split_fonts(split: str, data: ReadData) -> list[Path]:
    """Return the fonts of a split: the test split has the held-out ones, if there are any."""
    assert data.fonts is not None
    places = (data.fonts,) if isinstance(data.fonts, str) else data.fonts
    known = find_fonts(*(data_root(data.root) / expand_user(place) for place in places))
    held_out = {*data.held_out_fonts, *data.valid_fonts}
    for name in sorted(held_out - known.keys()):
        raise RecipeError(f"data.fonts has no font {name!r}{nearest(name, known)}")
    chosen = {"valid": data.valid_fonts, "test": data.held_out_fonts}.get(split, ())
    fonts = [known[name] for name in chosen or [n for n in known if n not in held_out]]
    if not fonts:
        raise RecipeError("Every font of data.fonts is held out: leave some to train on.")
    return fonts


def _some_replaced(
    lines: list[str],
    share: float,
    random: np.random.Generator,
    make: Callable[[str, np.random.Generator], str],
) -> list[str]:
    """Replace a share of the lines, each by what is made of it."""
    chosen = random.random(len(lines)) < share
    return [make(line, random) if swap else line for line, swap in zip(lines, chosen, strict=True)]


def _column(name: str, data: ReadData, column: int | None) -> Sentences:
    return sentences(name, SentenceData(root=data.root, train=name, valid=name, column=column))
