"""The page of `manyheads evaluate --outputs`: marks in an answer can be read in both schemes."""

from pathlib import Path

import pytest

import manyheads
from tests.browser import MISSING, Page, found

pytestmark = pytest.mark.skipif(found() is None, reason=MISSING)
SHEET = Path(manyheads.__file__).parent / "measure" / "static" / "outputs.css"
BODY = '<table><tr><td class="bad">Er <mark>trinkt</mark> <small class="good">Tee</small></table>'
# Contrast of two colours: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
CONTRAST = """(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255)
      .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = (selector) => getComputedStyle(document.querySelector(selector));
  return [["mark", "mark"], [".bad", "html"], [".good", "html"]].map(([text, ground]) => {
    const pair = [light(style(text).color), light(style(ground).backgroundColor)];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  });
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_can_be_read(tab: Page, tmp_path: Path, scheme: str) -> None:
    """4.5 to 1, as WCAG asks of text, on the page's own ground and on a mark's."""
    path = tmp_path / "page.html"
    sheet = SHEET.read_text(encoding="utf-8")
    path.write_text(
        f'<!doctype html><html lang="de" data-ready="yes"><style>{sheet}</style>{BODY}',
        encoding="utf-8",
    )
    tab.prefer(prefers_color_scheme=scheme)
    tab.open(path)
    assert min(tab.evaluate(CONTRAST)) >= 4.5
