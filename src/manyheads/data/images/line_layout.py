"""Cut an image of text into lines by projection profiles (Likforman-Sulem et al. 2007, 3.1).

Rows with ink form lines, rows without separate them. Meant for one column of horizontal text on a
paper without pictures; a page that is turned by a few degrees is turned back first. Columns of
text, tables, curved lines and text in several directions are beyond it.
"""

import itertools
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageFilter

from manyheads.data.images.line_images import PAPER
from manyheads.data.images.text_box import without_box

MOST = 4_000_000  # pixels that are analysed; a larger image is made smaller for it
CONTRAST = 20  # grey levels that ink differs from the paper around it at least
PAGE = 100  # pixels: in a side as long as this
RULE = 0.9  # a row or column with this share of ink is a rule, and no text
TURNS = np.arange(-4, 4.01, 0.25)  # degrees tried
FRAME = 0.22  # of a line's height, left around its ink
GAP = 3  # heights of a line that a gap in it is wide, at least, if it is between columns
CLOSE = 0.12  # of the height of a letter between its parts, at most
ONE_LINE = 2.2  # an image at most so many times as high as its only line is that line as it is


class TextLine(NamedTuple):
    """A line of an image."""

    pixels: np.ndarray  # (height, width), 0..255
    paragraph: int  # lines with a wide gap between them are in different ones
    columns: bool = False  # there is a gap in it as wide as GAP heights, as between columns


class _Band(NamedTuple):
    top: int
    bottom: int  # behind the last row

    @property
    def height(self) -> int:
        return self.bottom - self.top


def find_lines(pixels: np.ndarray) -> list[TextLine]:
    """Cut grey pixels (height, width) into lines, from top to bottom; none if there is no ink."""
    factor = max(1, int(np.ceil(np.sqrt(pixels.size / MOST))))
    small = np.asarray(Image.fromarray(pixels).reduce(factor)) if factor > 1 else pixels
    boxed = without_box(small)
    if boxed is not small:
        pixels, small, factor = boxed, boxed, 1
    contrast = _contrast(small)
    ink = _ink(contrast)
    if not ink.any():
        return []
    if turn := find_turn(ink):
        pixels, small = _turned(pixels, turn), _turned(small, turn)
        contrast = _contrast(small)
        ink = _ink(contrast)
    if not (bands := find_bands(ink)):
        return []
    ink, bands = _with_faint_lines(contrast, ink, bands)
    if len(bands) == 1 and small.shape[0] <= ONE_LINE * bands[0].height:
        return [TextLine(pixels, 0)]
    paragraphs = _paragraphs(bands)
    edges = [0, *[(a.bottom + b.top) // 2 for a, b in itertools.pairwise(bands)], small.shape[0]]
    typical = int(np.median([band.height for band in bands]))
    lines = []
    for number, band in enumerate(bands):
        columns = np.flatnonzero(ink[band.top : band.bottom].any(axis=0))
        # A line of small letters only is as high as the others.
        missing = max(0, round(0.75 * typical) - band.height) // 2
        frame = round(FRAME * max(band.height, typical * 0.75)) + missing
        top = max(edges[number], band.top - frame)
        bottom = min(edges[number + 1], band.bottom + frame)
        left = max(0, int(columns[0]) - 2 * frame)
        right = min(ink.shape[1], int(columns[-1]) + 1 + 2 * frame)
        part = pixels[top * factor : bottom * factor, left * factor : right * factor]
        widest = int(np.diff(columns).max(initial=0))
        lines.append(TextLine(part, paragraphs[number], widest > GAP * typical))
    return lines


def find_ink(pixels: np.ndarray) -> np.ndarray:
    """Tell ink from paper: (height, width) of booleans.

    A pixel is compared with the mean around it, so that light may fall unevenly. Ink is what there
    is less of: dark on light paper, or light on dark.
    """
    return _ink(_contrast(pixels))


def _ink(contrast: np.ndarray) -> np.ndarray:
    """Tell ink from paper by the contrast of each pixel; rules are no ink."""
    height, width = contrast.shape
    darker = contrast[contrast > 0]
    if not darker.size:
        return np.zeros(contrast.shape, dtype=bool)
    ink: np.ndarray = contrast > max(CONTRAST, _otsu(darker))
    ink &= _neighbours(ink) >= 2
    if height >= PAGE:  # rules and the edges of the paper are no text
        ink[:, ink.mean(axis=0) > RULE] = False
    if width >= PAGE:
        ink[ink.mean(axis=1) > RULE] = False
    return ink


def _contrast(pixels: np.ndarray) -> np.ndarray:
    """Return by how much pixels differ from the paper around them; ink is above 0."""
    height, width = pixels.shape
    radius = max(8, min(height // 2, width // 2, 25), max(height, width) // 32)
    around = Image.fromarray(pixels).filter(ImageFilter.BoxBlur(radius))
    gap = np.asarray(around, dtype=np.int16) - pixels
    few_are_lighter = (gap.astype(np.float32) ** 3).sum() < 0
    return -gap if few_are_lighter else gap


def _with_faint_lines(
    contrast: np.ndarray, ink: np.ndarray, bands: list[_Band]
) -> tuple[np.ndarray, list[_Band]]:
    """Add lines of fainter text between those that were found, such as grey remarks.

    They are about as high as the others, and much wider than high, unlike spots.
    """
    typical = float(np.median([band.height for band in bands]))
    between = np.ones(len(contrast), dtype=bool)
    for band in bands:
        frame = round(FRAME * band.height) + 1
        between[max(0, band.top - frame) : band.bottom + frame] = False
    if not between.any():
        return ink, bands
    faint = (contrast > 2 * CONTRAST) & between[:, None]
    faint &= _neighbours(faint) >= 2
    faint[:, faint[between].mean(axis=0) > RULE] = False
    faint[faint.mean(axis=1) > RULE] = False
    found = []
    for band in find_bands(faint):
        columns = np.flatnonzero(faint[band.top : band.bottom].any(axis=0))
        if 0.4 <= band.height / typical <= 1.6 and len(columns) >= 2 * band.height:
            found.append(band)
            ink[band.top : band.bottom] |= faint[band.top : band.bottom]
    return ink, sorted([*bands, *found])


def _otsu(values: np.ndarray) -> int:
    """Return the threshold with the largest variance between both sides (Otsu 1979)."""
    counts = np.bincount(np.clip(values, 0, 255), minlength=256).astype(float)
    below = counts.cumsum()
    total = (counts * np.arange(256)).cumsum()
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (total[-1] * below - total * below[-1]) ** 2 / (below * above)
    return int(np.nan_to_num(between, posinf=0).argmax())


def _neighbours(ink: np.ndarray) -> np.ndarray:
    """Count the pixels of ink among the eight around each pixel."""
    padded = np.pad(ink.astype(np.uint8), 1)
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    around: np.ndarray = rows[:-2] + rows[1:-1] + rows[2:] - ink
    return around


def find_turn(ink: np.ndarray) -> float:
    """Find by how many degrees a page is turned: 0 unless turning it back makes lines clearer.

    The sum of squares of the row profile is largest where lines run along rows.
    """
    rows, columns = np.nonzero(ink)
    step = max(1, len(rows) // 40_000)
    rows, columns = rows[::step], columns[::step]
    if ink.shape[0] < 16 or ink.shape[1] < 16:
        return 0.0

    def clearness(turn: float) -> float:
        moved = np.rint(rows - columns * np.tan(np.radians(turn))).astype(int)
        counts = np.bincount(moved - moved.min())
        return float((counts.astype(float) ** 2).sum())

    measured = [clearness(float(turn)) for turn in TURNS]
    best = int(np.argmax(measured))
    upright = measured[len(TURNS) // 2]
    return float(TURNS[best]) if measured[best] > 1.1 * upright else 0.0


def _turned(pixels: np.ndarray, turn: float) -> np.ndarray:
    paper = int(np.median(pixels))
    turned = Image.fromarray(pixels).rotate(turn, Image.Resampling.BILINEAR, fillcolor=paper)
    return np.asarray(turned, dtype=np.uint8)


def find_bands(ink: np.ndarray) -> list[_Band]:
    """Find runs of rows with ink; small ones, such as dots, join the line they belong to."""
    profile = ink.sum(axis=1)
    least = max(1, round(0.002 * ink.shape[1]))
    bands = _runs(profile >= least)
    if not bands:
        return []
    heights = np.array([band.height for band in bands])
    typical = float(np.median(np.repeat(heights, heights)))  # most rows are in such bands
    if _one_letter(bands, np.flatnonzero(ink.any(axis=0))):
        return [_Band(bands[0].top, bands[1].bottom)]
    bands = _joined(bands, typical)
    bands = [part for band in bands for part in _split(band, profile, typical)]
    return [band for band in bands if band.height >= max(2, 0.12 * typical)]


def _runs(flags: np.ndarray) -> list[_Band]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return [_Band(int(top), int(bottom)) for top, bottom in edges.reshape(-1, 2)]


def _joined(bands: list[_Band], typical: float) -> list[_Band]:
    """Join a low band with the nearer neighbour, if that is close."""
    joined: list[_Band] = []
    for band in bands:
        close = bool(joined) and band.top - joined[-1].bottom <= 0.3 * typical
        low = bool(joined) and min(band.height, joined[-1].height) < 0.45 * typical
        if close and low and band.bottom - joined[-1].top <= 1.35 * typical:
            joined[-1] = _Band(joined[-1].top, band.bottom)
        else:
            joined.append(band)
    return joined


def _one_letter(bands: list[_Band], columns: np.ndarray) -> bool:
    """Whether two bands are the parts of one letter, such as a syllable of Hangul by itself.

    It is about as wide as high, without a gap between its columns, and hardly one between its rows.
    """
    whole = bands[-1].bottom - bands[0].top
    close = len(bands) == 2 and bands[1].top - bands[0].bottom < CLOSE * whole
    return close and 0.7 * whole < len(columns) == np.ptp(columns) + 1 < 1.3 * whole


def _split(band: _Band, profile: np.ndarray, typical: float) -> list[_Band]:
    """Cut a band as high as several lines, which touch, where there is least ink."""
    if band.height < 1.7 * typical:
        return [band]
    quarter = max(1, round(typical / 4))
    first, last = band.top + 2 * quarter, band.bottom - 2 * quarter
    if last <= first:
        return [band]
    middle = first + int(profile[first:last].argmin())
    lower = _Band(middle, band.bottom)
    return [_Band(band.top, middle), *_split(lower, profile, typical)]


def _paragraphs(bands: list[_Band]) -> list[int]:
    """Number the paragraphs: a gap much wider than the usual begins another."""
    if len(bands) == 1:
        return [0]
    gaps = np.array([b.top - a.bottom for a, b in itertools.pairwise(bands)])
    typical = np.median([band.height for band in bands])
    usual = np.median(gaps)
    wide = gaps > max(1.6 * usual, usual + 0.5 * typical)
    return [0, *wide.cumsum().tolist()]


def cut_wide(line: np.ndarray, most: int) -> list[tuple[np.ndarray, bool]]:
    """Cut a line that `line_pixels` prepared into pieces of at most `most` pixels.

    Cuts are made where there is least ink, between words if possible.

    Returns:
        The pieces, and whether a space follows each: the gap is as wide as one.
    """
    pieces: list[tuple[np.ndarray, bool]] = []
    width = max(2, line.shape[0] // 5)  # of a space
    while line.shape[1] > most:
        ink = (PAPER - line[:, :most].astype(np.int32)).sum(axis=0)
        window = np.convolve(ink, np.ones(width), mode="same")
        first = most // 2
        window = window[first : most - width]
        least = np.flatnonzero(window == window.min())
        # The middle of the first stretch of columns with so little ink.
        stretch = np.split(least, np.flatnonzero(np.diff(least) > 1) + 1)[0]
        cut = first + int(stretch[len(stretch) // 2])
        blank = bool(window.min() < 0.02 * PAPER * line.shape[0] * width)
        pieces.append((line[:, :cut], blank))
        line = line[:, cut:]
    return [*pieces, (line, False)]
