"""Fonts for all labels of a figure, Hangul included, without changing matplotlib's settings."""

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from manyheads.errors import MissingExtraError, optional_import

if TYPE_CHECKING:
    from matplotlib.font_manager import FontProperties

# Common system fonts with Hangul, the more legible ones first.
HANGUL = (
    "Pretendard",
    "Noto Sans KR",
    "Noto Sans CJK KR",
    "Apple SD Gothic Neo",
    "Malgun Gothic",
    "NanumGothic",
    "NanumBarunGothic",
    "AppleGothic",
    "Noto Sans CJK JP",
    "Baekmuk Gulim",
    "UnDotum",
)
LATIN = "DejaVu Sans"  # comes with matplotlib
MISSING = "\N{REPLACEMENT CHARACTER}"


class Fonts:
    """Chooses fonts by the characters of a figure, so that no label shows an empty box."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Find the fonts for all texts of a figure.

        Raises:
            MissingExtraError: matplotlib is not installed, or no font has the required Hangul.
        """
        with optional_import("matplotlib", extra="plot"):
            from matplotlib.font_manager import findfont

        latin = Path(findfont(LATIN))
        characters = set("".join(texts))
        needed = characters - _covered(latin)
        self.paths = [latin]
        best = max(_candidates(), key=lambda path: len(needed & _covered(path)), default=latin)
        found = needed & _covered(best) if needed else set()
        if found:  # one font for the whole figure where possible
            self.paths = [best, latin]
        if any("가" <= character <= "힣" for character in needed - found):
            raise MissingExtraError(package="koreanize-matplotlib", extra="plot")

    def choose(self, text: str, size: float) -> tuple[str, "FontProperties"]:
        """Return the text, and the font with most of its characters.

        A character without a glyph becomes a replacement character or a question mark.
        """
        from matplotlib.font_manager import FontProperties

        path = max(self.paths, key=lambda path: len(set(text) & _covered(path)))
        known = _covered(path)
        substitute = MISSING if MISSING in known else "?"
        clean = "".join(character if character in known else substitute for character in text)
        return clean, FontProperties(fname=str(path), size=size)

    def width(self, texts: Iterable[str], size: float) -> float:
        """Return the width of the widest text, in inches."""
        from matplotlib.font_manager import get_font

        widest = 0.0
        for text in texts:
            clean, properties = self.choose(text, size)
            font = get_font(str(properties.get_file()))
            font.set_size(size, 72)
            font.set_text(clean, 0.0)
            widest = max(widest, font.get_width_height()[0] / 64 / 72)  # 26.6 fixed point
        return widest


def _candidates() -> list[Path]:
    from matplotlib.font_manager import fontManager

    installed = {
        font.name: Path(font.fname)
        for font in fontManager.ttflist
        if font.name in HANGUL and font.style == "normal" and font.weight in (400, "normal")
    }
    found = [installed[name] for name in HANGUL if name in installed]
    # Importing koreanize_matplotlib would change matplotlib's settings: only use its font file.
    package = find_spec("koreanize_matplotlib")
    folders = (package and package.submodule_search_locations) or []
    found.extend(Path(folder) / "fonts" / "NanumGothic.ttf" for folder in folders)
    return [path for path in found if path.is_file()]


@cache
def _covered(path: Path) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(path).get_charmap()))
