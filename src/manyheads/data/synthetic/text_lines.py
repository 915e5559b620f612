"""Rendered lines of text: a sentence, a font and a seed give the image of a printed line.

Every example is a pure function of (seed, epoch, example): its font, size, place, spacing, slant,
weight, colours, light, blur, noise and JPEG artefacts. The same versions of Pillow and FreeType
give the same pixels.
"""

import math
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from manyheads.data.images.line_images import spread_contrast
from manyheads.errors import DataError, NotFoundError
from manyheads.streams import generator

BILINEAR = Image.Resampling.BILINEAR
SUFFIXES = (".ttf", ".otf")
SIZES = (16, 18, 20, 22, 24, 26, 28, 32, 36, 40, 48)  # of glyphs as they are drawn, in pixels
ABOVE, BELOW = 0.84, 0.22  # of the baseline, in font sizes: Hangul above, Latin descenders below
MARGIN = 6  # pixels around a drawn line, so that turning cuts nothing off
Size = tuple[int, int]  # width and height
NOISE = 1 << 19  # normal values that all lines take their noise from
MISSING = "\U0010ffff"  # no font has it: what is drawn for it stands for missing characters


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """The [render] table: how lines of text are drawn."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    min_characters: Annotated[int, Ge(1), Le(1000)] = 8  # of a line; longer texts are cut at spaces
    max_characters: Annotated[int, Ge(1), Le(1000)] = 44
    min_size: Annotated[float, Ge(0.2), Le(1)] = 0.5  # of the font, as a share of the height
    max_size: Annotated[float, Ge(0.2), Le(1)] = 0.9
    # Strength of blur, noise, slant and so on; 0 draws black on white, upright and sharp.
    distortion: Annotated[float, Ge(0), Le(2)] = 1.0


def cut(text: str, limits: Iterator[int], most: int) -> Iterator[str]:
    """Cut a text at spaces: each piece has at most as many characters as the next limit says.

    A word longer than a limit is a piece by itself; one longer than `most` is cut.
    """
    piece, limit = "", next(limits)
    for word in text.split():
        if piece and len(piece) + 1 + len(word) > limit:
            yield piece
            piece, limit = "", next(limits)
        while len(word) > most:
            yield word[:most]
            word = word[most:]
        piece = f"{piece} {word}" if piece else word
    if piece:
        yield piece


def random_letters(text: str, random: np.random.Generator) -> str:
    """Replace Hangul syllables, Latin letters and digits by random ones of their kind.

    Syllables are the 2,350 of KS X 1001, which every Korean font has.
    """
    draws = random.integers(0, 2350, len(text)).tolist()
    return "".join(
        next((k[draw % len(k)] for k in _KINDS if character in k), character)
        for character, draw in zip(text, draws, strict=True)
    )


_KINDS = (
    "".join(bytes((a, b)).decode("euc_kr") for a in range(0xB0, 0xC9) for b in range(0xA1, 0xFF)),
    string.ascii_lowercase,
    string.ascii_uppercase,
    string.digits,
)


def find_fonts(*places: Path) -> dict[str, Path]:
    """Find the fonts in folders, by name: the names of the files without their endings.

    Args:
        places: each a folder, or a pattern of files, such as `fonts/Nanum*.ttf`.

    Raises:
        NotFoundError: no such folder, or no fonts in it.
        DataError: two fonts have one name.
    """
    fonts: dict[str, Path] = {}
    for place in places:
        files = place.glob("*") if place.is_dir() else place.parent.glob(place.name)
        found = {path.stem: path for path in sorted(files) if path.suffix in SUFFIXES}
        if not found:
            state = "has no fonts" if place.is_dir() else "is no folder or pattern of fonts"
            raise NotFoundError(
                f"{place} {state} ({', '.join(SUFFIXES)}). On Debian and Ubuntu `apt install "
                "fonts-nanum` puts Korean fonts into /usr/share/fonts/truetype/nanum; any folder "
                "of fonts will do: name it in data.fonts."
            )
        for name in fonts.keys() & found.keys():
            if fonts[name] != found[name]:
                raise DataError(f"{fonts[name]} and {found[name]} have one name: leave one out.")
        fonts |= found
    return fonts


class Font:
    """A font file at any size; what was opened stays open."""

    def __init__(self, path: Path) -> None:
        """Open a font.

        Raises:
            DataError: the file is no font.
        """
        self.path = path
        self.at = lru_cache(maxsize=None)(self._at)
        self.at(SIZES[0])

    def _at(self, size: int) -> ImageFont.FreeTypeFont:
        try:
            # Basic layout: the same on every machine, with or without the library raqm.
            return ImageFont.truetype(self.path, size, layout_engine=ImageFont.Layout.BASIC)
        except OSError as error:
            raise DataError(f"{self.path} is not a font that can be read: {error}.") from error

    def lacks(self, characters: Iterable[str]) -> set[str]:
        """Return the characters without a glyph of their own; spaces need none.

        A small letter that is drawn as its capital has none.
        """
        font = self.at(SIZES[-1])
        missing = _glyph(font, MISSING)
        return {
            each
            for each in characters
            if not each.isspace()
            and (
                (glyph := _glyph(font, each)) == missing
                or not any(glyph)
                or (each != each.upper() and glyph == _glyph(font, each.upper()))
            )
        }


def _glyph(font: ImageFont.FreeTypeFont, character: str) -> bytes:
    return bytes(font.getmask(character, mode="1"))


@dataclass(frozen=True)
class _Styles:
    """What decides how wide the lines of an epoch are, an entry a line."""

    fonts: np.ndarray
    drawn: np.ndarray  # font size as drawn
    scales: np.ndarray  # from drawn pixels down to those of the line
    stretches: np.ndarray
    spacings: np.ndarray  # drawn pixels between characters, besides the font's own
    left: np.ndarray
    right: np.ndarray
    widths: np.ndarray


class RenderedLines:
    """Lines of text, drawn in one of several fonts, another way in each epoch."""

    def __init__(
        self,
        texts: Sequence[str],
        fonts: Sequence[Path],
        rendering: Rendering,
        *,
        height: int,
        seed: int,
        origin: str = "",
        hashes: tuple[str, ...] = (),
    ) -> None:
        """Leave out texts that no font has all characters of.

        Args:
            texts: one for each line.
            fonts: files of fonts.
            rendering: how texts are drawn.
            height: of all lines, in pixels.
            seed: of all that is drawn by chance.
            origin: where the texts come from, for messages.
            hashes: sha256 of these files.

        Raises:
            DataError: a file is no font, or no text is left.
        """
        self.origin = origin
        self.hashes = hashes
        self.fonts = [Font(path) for path in fonts]
        self.rendering = rendering
        self.height = height
        self.seed = seed
        characters = set().union(*texts)
        lacking = [font.lacks(characters) for font in self.fonts]
        able = np.array([[lacks.isdisjoint(text) for lacks in lacking] for text in texts])
        kept = np.flatnonzero(able.any(axis=1)).tolist() if texts else []
        self.missing = sorted(set.intersection(*lacking)) if lacking else []
        self.left_out = len(texts) - len(kept)
        self.texts = [texts[index] for index in kept]
        if not self.texts:
            raise DataError(
                f"None of {len(texts):,} texts can be drawn: none of {len(fonts)} fonts has all of "
                f"its characters. Missing: {' '.join(self.missing[:20])}."
            )
        self._able = able[kept]
        self._noise = generator(seed, "noise").standard_normal(NOISE, dtype=np.float32)
        self._drawn_as = lru_cache(maxsize=1)(self._choose)  # the styles of an epoch

    def __len__(self) -> int:
        return len(self.texts)

    def widths(self, epoch: int) -> np.ndarray:
        """Return the width of each line in an epoch."""
        return self._drawn_as(epoch).widths

    def describe(self, index: int, epoch: int) -> str:
        """Name a line for messages: its text and font."""
        return f"{self.texts[index]!r} in {self.group(index, epoch)}"

    def group(self, index: int, epoch: int) -> str:
        """Name the font of a line in an epoch."""
        return self.fonts[self._drawn_as(epoch).fonts[index]].path.stem

    def _choose(self, epoch: int) -> _Styles:
        options, strength = self.rendering, min(self.rendering.distortion, 1.0)
        count = len(self)
        draws = generator(self.seed, "line-styles", epoch).random((8, count))
        place = np.floor(draws[0] * self._able.sum(axis=1))  # among the fonts that are able to
        fonts = (np.cumsum(self._able, axis=1) > place[:, None]).argmax(axis=1)
        sizes = self.height * (options.min_size + (options.max_size - options.min_size) * draws[1])
        # Half are drawn larger and made smaller, as a camera or a resized screenshot does.
        enlarged = np.where(draws[2] < 0.5, 1.0, 1.0 + 1.5 * (draws[2] - 0.5) * 2 * strength)
        drawn = np.array(SIZES)[np.searchsorted(SIZES[:-1], sizes * enlarged)]
        scales = drawn / sizes
        stretches = 1 + strength * (0.3 * draws[3] - 0.14)
        loose = draws[4] < 0.2 * strength
        spacings = np.where(loose, np.rint(drawn * (0.3 * draws[5] - 0.06)), 0).astype(int)
        left, right = (1 + np.floor(draws[n] * self.height * 0.4).astype(int) for n in (6, 7))
        lengths = np.array(
            [
                self.fonts[font].at(int(size)).getlength(text) + spacing * (len(text) - 1)
                for text, font, size, spacing in zip(
                    self.texts, fonts, drawn, spacings, strict=True
                )
            ]
        )
        widths = left + right + np.maximum(1, np.ceil(lengths / scales * stretches)).astype(int)
        return _Styles(fonts, drawn, scales, stretches, spacings, left, right, widths)

    def pixels(self, index: int, epoch: int) -> np.ndarray:
        """Draw a line, its contrast spread as a reader sees it: (height, width), 0..255."""
        return spread_contrast(self.photo(index, epoch))

    def photo(self, index: int, epoch: int) -> np.ndarray:
        """Draw a line in its own colours: (height, width), 0..255."""
        styles, strength = self._drawn_as(epoch), self.rendering.distortion
        random = generator(self.seed, "line", epoch, index)
        draws = random.random(34).tolist()
        font = self.fonts[styles.fonts[index]].at(int(styles.drawn[index]))
        unsteady = 0.06 * draws[24] * strength if draws[25] < 0.5 else 0.0
        ink = self._ink(self.texts[index], font, int(styles.spacings[index]), unsteady)
        ink = _thickened(ink, draws[0], draws[1], strength)
        size = (int(styles.widths[index]), self.height)
        ink = self._place(ink, size, styles, index, draws[2:6])
        if draws[6] < 0.4 * strength:
            ink = ink.filter(ImageFilter.GaussianBlur(0.3 + 1.7 * draws[7] ** 1.5 * strength))
        if draws[8] < 0.15 * strength:
            share = 0.55 + 0.4 * draws[9]
            small = (max(1, round(size[0] * share)), max(1, round(size[1] * share)))
            ink = ink.resize(small, BILINEAR).resize(size, BILINEAR)
        covered = np.asarray(ink, dtype=np.float32) / 255
        if draws[33] < 0.3 * strength:
            covered = _wavy(covered, random, strength * (0.3 + 3 * draws[33]))
        if draws[20] < 0.15 * strength:
            covered = _with_neighbour(covered, draws[21:24])
        if draws[26] < 0.1 * strength:
            _with_rules(covered, draws[27:33])
        return self._lit(covered, draws[10:20], strength)

    def _ink(
        self, text: str, font: ImageFont.FreeTypeFont, spacing: int, unsteady: float
    ) -> Image.Image:
        """Draw a text in white on black, the baseline at ABOVE sizes below the margin.

        Characters with a spacing of their own stand up to `unsteady` sizes higher or lower.
        """
        size = font.size
        width = math.ceil(font.getlength(text)) + spacing * (len(text) - 1)
        rows = round((ABOVE + BELOW) * size) + 2 * MARGIN
        ink = Image.new("L", (max(1, width) + 2 * MARGIN, rows))
        draw = ImageDraw.Draw(ink)
        baseline = MARGIN + round(ABOVE * size)
        if not spacing:
            draw.text((MARGIN, baseline), text, fill=255, font=font, anchor="ls")
            return ink
        x = float(MARGIN)
        for place, character in enumerate(text):
            row = baseline + round(unsteady * size * math.sin(2.4 * place + size))
            draw.text((round(x), row), character, fill=255, font=font, anchor="ls")
            x += font.getlength(character) + spacing
        return ink

    def _place(
        self, ink: Image.Image, size: Size, styles: _Styles, index: int, draws: list[float]
    ) -> Image.Image:
        """Put drawn text onto a line: scaled, turned by a slope and slanted."""
        strength, down = self.rendering.distortion, float(styles.scales[index])
        across = float(styles.scales[index] / styles.stretches[index])
        # The row of the baseline, so that the font fits in, where it does.
        drawn = float(styles.drawn[index] / styles.scales[index])
        low, high = sorted((ABOVE * drawn, self.height - BELOW * drawn))
        baseline = low + (high - low) * draws[0]
        slope = strength * 3 * (draws[1] - 0.5) / max(size[0], 4 * self.height)
        slant = strength * (0.5 * (draws[2] - 0.5) if draws[3] < 0.3 else 0.0)
        drawn_baseline = MARGIN + round(ABOVE * (ink.height - 2 * MARGIN) / (ABOVE + BELOW))
        first = MARGIN - across * (int(styles.left[index]) + slant * baseline)
        # Where a pixel of the line comes from: x' = ax + by + c, y' = dx + ey + f.
        row = down * slope, down, drawn_baseline - down * (baseline + slope * (size[0] / 2))
        terms = (across, across * slant, first, *row)
        return ink.transform(size, Image.Transform.AFFINE, terms, BILINEAR)

    def _lit(self, ink: np.ndarray, draws: Sequence[float], strength: float) -> np.ndarray:
        """Colour ink and paper, light them unevenly, and add noise and JPEG artefacts."""
        contrast = 255 - strength * 175 * draws[0] ** 1.5
        paper = 255 - (255 - contrast) * draws[1]
        ink_grey = paper - contrast
        if draws[2] < 0.3 * strength:
            paper, ink_grey = ink_grey, paper
        image = paper + (ink_grey - paper) * ink
        if draws[3] < 0.5 * strength:  # light falls from one side
            slope = np.linspace(-0.5, 0.5, ink.shape[1], dtype=np.float32)
            image += slope * (0.35 * contrast * strength * (draws[4] - 0.5) * 2)
        if draws[5] < 0.6 * strength:
            amount = 0.08 * contrast * strength * draws[6]
            first = int(draws[7] * max(1, NOISE - image.size))
            if image.size <= NOISE:
                image += amount * self._noise[first : first + image.size].reshape(image.shape)
        np.clip(np.rint(image, out=image), 0, 255, out=image)
        pixels: np.ndarray = image.astype(np.uint8)
        if draws[8] < 0.2 * strength:
            stored = BytesIO()
            Image.fromarray(pixels).save(stored, "JPEG", quality=round(25 + 65 * draws[9]))
            pixels = np.asarray(Image.open(stored))
        return pixels


def _thickened(ink: Image.Image, which: float, amount: float, strength: float) -> Image.Image:
    if which >= 0.3 * strength:
        return ink
    pixels = np.asarray(ink)
    combine = np.maximum if which < 0.2 * strength else np.minimum
    moved = pixels.copy()
    moved[:, 1:] = combine(pixels[:, 1:], pixels[:, :-1])
    moved[1:] = combine(moved[1:], pixels[:-1])
    share = amount * (0.8 if combine is np.maximum else 0.5)
    return Image.blend(ink, Image.fromarray(moved), share)


def _wavy(ink: np.ndarray, random: np.random.Generator, amount: float) -> np.ndarray:
    """Move pixels by a smooth random field, which makes letters uneven (Simard et al. 2003, 2)."""
    height, width = ink.shape
    fields = random.normal(0, amount, (2, height // 8 + 1, width // 8 + 1)).astype(np.float32)
    down, right = (
        np.asarray(Image.fromarray(field).resize((width, height), Image.Resampling.BICUBIC))
        for field in fields
    )
    y = np.clip(np.arange(height)[:, None] + down, 0, height - 1)
    x = np.clip(np.arange(width) + right, 0, width - 1)
    top, left = y.astype(int), x.astype(int)
    below, beside = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    y, x = y - top, x - left
    upper = ink[top, left] * (1 - x) + ink[top, beside] * x
    lower = ink[below, left] * (1 - x) + ink[below, beside] * x
    moved: np.ndarray = (upper * (1 - y) + lower * y).astype(np.float32)
    return moved


def _with_rules(ink: np.ndarray, draws: Sequence[float]) -> None:
    """Rule a line at some of its edges, as an underline, or what is left of a frame."""
    thick = 1 + int(draws[0] * 2)
    place = int(draws[1] * ink.shape[0] / 8)
    for drawn, edge in zip(draws[2:], (ink[::-1], ink, ink.T, ink.T[::-1]), strict=True):
        if drawn < 0.5:
            edge[place : place + thick] = 1.0


def _with_neighbour(ink: np.ndarray, draws: Sequence[float]) -> np.ndarray:
    """Show a little of another line above or below, as where a page was cut into lines."""
    rows = 1 + int(draws[0] * ink.shape[0] / 10)
    middle = ink.shape[0] // 2
    strip = np.roll(ink[middle : middle + rows], round(draws[1] * ink.shape[1]), axis=1)
    lines = ink.copy()
    place = slice(0, rows) if draws[2] < 0.5 else slice(ink.shape[0] - rows, ink.shape[0])
    np.maximum(lines[place], strip, out=lines[place])
    return lines
