"""Reading beyond single lines: translated lines, pages like photographs, fonts of other makers.

    python -m benchmarks.reading translate
    python -m benchmarks.reading pages
    python -m benchmarks.reading fonts FOLDER
    python -m benchmarks.reading notes

`translate`: 100 lines of the Korean side of enko's test split, drawn in ordinary held-out fonts as
the recipe draws lines, are read and translated; chrF beside that of the translated true texts.
`pages`: paragraphs of the same split in the same fonts on pages: as they are, turned,
and as a camera would see them (perspective, uneven light, blur, noise, JPEG; computed, not taken).
`fonts`: lines in all fonts of a folder that the reader never saw, a line of the table each.
`notes`: lines of the validation split, more and more blurred and noisy; the shares noted as unsure.

The data are those of the recipe read-ko; but for `notes` a test split is measured, so nothing
may be chosen by it.
"""

import argparse
import tempfile
import unicodedata
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from benchmarks import reading_signs
from manyheads import load
from manyheads.asks.read_request import ReadRequest
from manyheads.data.synthetic.text_lines import RenderedLines, find_fonts
from manyheads.errors import DataError
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.picture_translation import READER, ReadingTranslator
from manyheads.recipe_data.pair_splits import corpus_split
from manyheads.streams import generator
from manyheads.tasks.read.predictor import Reader, combine, separators
from manyheads.tasks.read.recipe import ReadRecipe
from manyheads.tasks.read.task import edit_distance, measure, plain

ORDINARY = [reading_signs.SHARE / name for name in reading_signs.ORDINARY]
LINES = 100
LONGEST = 44  # characters of a line
PAGES = 40
SIZE = 30  # of the font of a page, in pixels


def pairs(translator: str) -> list[tuple[str, str]]:
    """Return the Korean and English texts of the test split of a translator's recipe."""
    data: Any = load(translator).folder.recipe.data
    corpus = corpus_split("test", data)
    sources = (" ".join(unicodedata.normalize("NFC", text).split()) for text in corpus.source)
    return [*zip(sources, corpus.target, strict=True)]


def translate(reader: Reader, translator: str) -> None:
    """Compare translations of what was read with translations of what was printed."""
    recipe = reader.folder.recipe
    assert isinstance(recipe, ReadRecipe)
    short = [pair for pair in pairs(translator) if len(pair[0]) <= LONGEST]
    chosen = generator(1, "reading").permutation(len(short))[: 2 * LINES]
    references = {short[n][0]: short[n][1] for n in chosen}
    lines = RenderedLines(
        list(references),
        ORDINARY,
        recipe.render,
        height=recipe.image.height,
        seed=1,
    )
    both = ReadingTranslator(reader, ReadRequest(images=(), translator=translator))
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number in range(LINES):
            paths.append(Path(folder) / f"{number:03d}.png")
            Image.fromarray(lines.photo(number, 0)).save(paths[-1])
        answers = both.answer(ReadRequest(images=tuple(paths), translator=translator))
    texts = lines.texts[:LINES]
    wanted = [references[text] for text in texts]
    read = [answer.text or "" for answer in answers]
    edits = sum(edit_distance(plain(a), plain(b)) for a, b in zip(read, texts, strict=True))
    cer = 100 * edits / sum(map(len, texts))
    found = [answer.translation or "" for answer in answers]
    straight, _ = both.translate(both.translator_from("ko"), texts)
    chrf = TEXT_METRICS["chrf"]
    after_reading, true = chrf(found, wanted, "en"), chrf(straight, wanted, "en")
    print(f"{LINES} lines of enko's test split, character errors {cer:.2f}%")
    print(f"chrF of read and translated     {after_reading.value:.2f}")
    print(f"chrF of the true text translated {true.value:.2f}  ({true.signature})")
    print(f"difference                       {after_reading.value - true.value:+.2f}")


def pages(reader: Reader, translator: str) -> None:
    """Measure character errors of whole pages."""
    recipe = reader.folder.recipe
    assert isinstance(recipe, ReadRecipe)
    fonts = ORDINARY
    texts = [text for text, _ in pairs(translator) if 120 <= len(text) <= 400][:PAGES]
    print(f"{len(texts)} pages; character errors in percent, lines found of those there")
    for name in ("as they are", "turned by 2 degrees", "like photographs"):
        edits = characters = found = there = 0
        for number, text in enumerate(texts):
            page, lines = draw_page(text, fonts[number % len(fonts)])
            if name == "turned by 2 degrees":
                page = page.rotate(2, Image.Resampling.BICUBIC, fillcolor=245)
            elif name == "like photographs":
                page = photograph(page, number)
            (answer,) = reader.read([page])
            wanted = plain("\n".join(lines))
            got = plain("\n".join(line.text for line in answer))
            edits += edit_distance(got, wanted)
            characters += len(wanted)
            found, there = found + len(answer), there + len(lines)
        print(f"  {name:<20} {100 * edits / characters:6.2f}   {found} of {there}")


def draw_page(text: str, path: Path) -> tuple[Image.Image, list[str]]:
    """Write a text in lines of 900 pixels on a page; return it and its lines."""
    font = ImageFont.truetype(path, SIZE)
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= 900 or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    page = Image.new("L", (1000, 120 + 46 * len(lines)), 245)
    canvas = ImageDraw.Draw(page)
    for number, line in enumerate(lines):
        canvas.text((50, 60 + 46 * number), line, fill=30, font=font)
    return page, lines


def photograph(page: Image.Image, seed: int) -> Image.Image:
    """Compute what a camera makes of a page."""
    random = generator(seed, "photo")
    width, height = page.size
    corners = np.array([[0, 0], [0, height], [width, height], [width, 0]], dtype=float)
    moved = corners + random.uniform(-0.02, 0.02, (4, 2)) * (width, height)
    quad = tuple(moved.ravel().tolist())
    seen = page.transform(page.size, Image.Transform.QUAD, quad, Image.Resampling.BICUBIC, 1, 245)
    seen = seen.filter(ImageFilter.GaussianBlur(random.uniform(0.5, 1.2)))
    light = np.linspace(1, random.uniform(0.5, 0.8), width) * np.linspace(
        1, random.uniform(0.7, 1), height
    ).reshape(-1, 1)
    values = np.asarray(seen) * light + random.normal(0, 6, (height, width))
    stored = BytesIO()
    Image.fromarray(np.clip(values, 0, 255).astype(np.uint8)).save(stored, "JPEG", quality=60)
    return Image.open(stored)


def fonts(reader: Reader, folder: Path, translator: str) -> None:
    """Measure character errors in each font of a folder."""
    recipe = reader.folder.recipe
    assert isinstance(recipe, ReadRecipe)
    texts = [text for text, _ in pairs(translator) if len(text) <= LONGEST][:300]
    for name, path in find_fonts(folder).items():
        try:
            lines = RenderedLines(texts, [path], recipe.render, height=recipe.image.height, seed=2)
            sharp = RenderedLines(
                texts,
                [path],
                replace(recipe.render, distortion=0.0),
                height=recipe.image.height,
                seed=2,
            )
        except DataError as error:
            print(f"  {name:<24} {error}")
            continue
        scores = [
            measure(reader.model, reader.characters, each).scores["cer"] for each in (lines, sharp)
        ]
        print(f"  {name:<24} {scores[0]:6.2f}  undistorted {scores[1]:6.2f}   {len(lines)} lines")


def notes(reader: Reader) -> None:
    """Tell how many lines are noted, by their share of wrong characters."""
    recipe = reader.folder.recipe
    assert isinstance(recipe, ReadRecipe)
    data: Any = load("enko-ko-en").folder.recipe.data
    texts = [plain(text) for text in corpus_split("valid", data).source if len(text) <= LONGEST]
    paths = ORDINARY
    lines = RenderedLines(texts, paths, recipe.render, height=recipe.image.height, seed=3)
    noted: dict[str, list[bool]] = {name: [] for name in ("none", "to 10%", "to 30%", "more")}
    for number in range(5 * LINES):
        photo, strength = Image.fromarray(lines.photo(number, 0)), number % 5
        blurred = photo.filter(ImageFilter.GaussianBlur(strength * photo.height / 60))
        noise = generator(number, "notes").normal(0, 8 * strength, (photo.height, photo.width, 1))
        values = np.asarray(blurred.convert("RGB")) + noise
        (found,) = reader.read([Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))])
        if not found:
            continue
        best = combine([line.texts for line in found], 1, separators(found))[0]
        wanted = plain(lines.texts[number])
        errors = edit_distance(plain(best.text), wanted) / len(wanted)
        kind = ["none", "to 10%", "to 30%", "more"][(errors > 0) + (errors > 0.1) + (errors > 0.3)]
        noted[kind].append(any("unlike" in note for note in reader.notes(found)))
    for kind, told in noted.items():
        print(f"  wrong characters: {kind:<8} noted {sum(told)} of {len(told)} lines")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["translate", "pages", "fonts", "notes"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--model", default=READER)
    parser.add_argument("--translator", default="ko-en")
    arguments = parser.parse_args()
    reader = load(arguments.model)
    assert isinstance(reader, Reader)
    if arguments.what == "translate":
        translate(reader, arguments.translator)
    elif arguments.what == "pages":
        pages(reader, arguments.translator)
    elif arguments.what == "notes":
        notes(reader)
    else:
        fonts(reader, arguments.folder, arguments.translator)


if __name__ == "__main__":
    main()
