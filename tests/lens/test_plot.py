"""Images are looked at by people; here: they exist, they are not empty, no glyph is missing."""

import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import matplotlib as mpl
import numpy as np
import pytest
import torch
from PIL import Image

from manyheads.errors import MissingExtraError, UsageError
from manyheads.lens.plot import fonts
from manyheads.lens.plot.canvas import Canvas
from manyheads.lens.plot.image_plot import plot_image
from manyheads.lens.plot.text_plot import plot_text
from manyheads.lens.view.image_view import ClassView, image_view
from manyheads.lens.view.text_view import TextView
from manyheads.models.image_encoder import Pool
from tests.lens import examples
from tests.small import IMAGES

HEADLINE = "Friday, 20 November 2026 → 2026년 11월 20일 금요일"


def opened(path: Path) -> np.ndarray:
    """The PNG's pixels, with more than a few colours and white corners."""
    pixels = np.asarray(Image.open(path).convert("RGB"))
    colours = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    assert len(np.unique(colours)) > 50
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 255).all()
    return pixels


def darkest_blue(pixels: np.ndarray) -> int:
    """Count the pixels of the peak's colour."""
    return int((pixels == (0x01, 0x3C, 0x79)).all(axis=-1).sum())


def test_a_translation_with_its_hangul(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "map.png"
    plot_text(examples.date_view(), path, title=HEADLINE)
    assert darkest_blue(opened(path)) > 1000


@pytest.mark.parametrize("kind", ["encoder self", "decoder self", "decoder cross"])
def test_every_kind_of_a_real_model(tmp_path: Path, kind: str) -> None:
    plot_text(examples.small_text_view(), tmp_path / "map.png", kind=kind, layer=1)
    opened(tmp_path / "map.png")


@pytest.mark.parametrize("tokens", [1, 2, 60])
def test_any_length(tmp_path: Path, tokens: int) -> None:
    weights = torch.eye(tokens).add(1e-3).softmax(dim=-1)
    source = [f"▁w{n}" for n in range(tokens)]
    found = examples.map_view(weights.tolist())
    view = TextView(source, source, [0.5] * tokens, [found])
    plot_text(view, tmp_path / "map.png")
    opened(tmp_path / "map.png")


@pytest.mark.parametrize(("heads", "matrices"), [(1, 4), (2, 6)])
def test_one_head_is_its_own_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heads: int, matrices: int
) -> None:
    """Large, as a thumbnail, and two scales; several heads have a thumbnail each besides."""
    drawn = Mock(wraps=Canvas.matrix)
    monkeypatch.setattr(Canvas, "matrix", lambda *given: drawn(*given))
    plot_text(examples.date_view(layers=1, heads=heads), tmp_path / "map.png")
    assert drawn.call_count == matrices


def test_no_token_is_read_as_mathematics_and_no_glyph_is_missing(tmp_path: Path) -> None:
    tokens = ["$x^2$", r"$\nothing{", "\U0001f600", "ሰላም", "▁", "中文", "\x1b"]
    found = examples.map_view(torch.eye(7).tolist())
    view = TextView(
        tokens,
        tokens,
        [1.0] * 7,
        [type(found)(**{**vars(found), "rows": tokens, "columns": tokens})],
    )
    plot_text(view, tmp_path / "map.png", title="$ \U0001f600 " * 99)
    opened(tmp_path / "map.png")


def test_a_long_title_is_wrapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No word is lost on three lines; a title beyond them ends in an ellipsis."""
    drawn = Mock(wraps=Canvas.write)
    monkeypatch.setattr(Canvas, "write", lambda *given, **layout: drawn(*given, **layout))
    for count in (60, 600):
        drawn.reset_mock()
        title = " ".join(f"w{number}" for number in range(count))
        plot_text(examples.date_view(), tmp_path / "map.png", title=title)
        lines = [each.args[3] for each in drawn.call_args_list if each.args[3].startswith("w")]
        places = [each.args[2] for each in drawn.call_args_list if each.args[3] in lines]
        assert places == sorted(set(places))
        assert 1 < len(lines) <= 3
        assert (" ".join(lines) == title) == (count == 60)
        assert lines[-1].endswith("…") == (count == 600)


@pytest.mark.parametrize(("heads", "out"), [(4, [2, 4]), (1, [1])])
def test_heads_that_are_taken_out_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heads: int, out: list[int]
) -> None:
    """On the thumbnails of their layer."""
    drawn = Mock(wraps=Canvas.write)
    monkeypatch.setattr(Canvas, "write", lambda *given, **layout: drawn(*given, **layout))
    view = examples.date_view(layers=2, heads=heads)
    view = replace(view, maps=[view.maps[0], replace(view.maps[1], taken_out=out)])
    plot_text(view, tmp_path / "map.png")
    marks = [each.args for each in drawn.call_args_list if each.args[3] == "taken out"]
    assert len(marks) == len(out)
    (layer,) = (each.args for each in drawn.call_args_list if each.args[3] == "layer 2")
    assert {each[2] for each in marks} == {layer[2]}


@pytest.mark.parametrize(
    ("shape", "pool"),
    [
        ((4, 6), "mean"),
        ((4, 6, 1), "class"),
        ((40, 60, 3), "class"),
        pytest.param((4, 6), "class", marks=pytest.mark.full),
        pytest.param((4, 6, 1), "mean", marks=pytest.mark.full),
        pytest.param((40, 60, 3), "mean", marks=pytest.mark.full),
    ],
)
def test_an_image(tmp_path: Path, pool: Pool, shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    pixels.flags.writeable = False  # as from a file
    plot_image(examples.small_image_view(pool), pixels, tmp_path / "image.png", title="삼")
    opened(tmp_path / "image.png")


def test_the_explained_class_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = replace(
        examples.small_image_view("class"),
        classes=[ClassView("three", 0.75), ClassView("one", 0.01, explained=True)],
    )
    write = Mock(wraps=Canvas.write)
    monkeypatch.setattr(Canvas, "write", lambda *args, **layout: write(*args, **layout))
    plot_image(view, torch.zeros(4, 6, dtype=torch.uint8), tmp_path / "image.png")
    written = [call.args[3] for call in write.call_args_list]
    assert "three" in written
    assert "one (explained)" in written


@pytest.mark.parametrize(
    "name",
    [
        "deit: deit-b",
        pytest.param("cct: cct-7/3x1", marks=pytest.mark.full),
        pytest.param("vit: compact-vit-7", marks=pytest.mark.full),
        "vit: 2-D sinusoids, attention pool",
        "swin-t",
        pytest.param("swin as timm pads", marks=pytest.mark.full),
        "cvt-13",
        pytest.param("coatnet-0", marks=pytest.mark.full),
    ],
)
def test_every_kind_of_model(tmp_path: Path, name: str) -> None:
    """Stages with different numbers of heads, windows, strided keys, pools, extra tokens."""
    view = image_view(examples.recorded(IMAGES[name]), width=30, height=20, classes=[("a", 1.0)])
    plot_image(view, np.zeros((20, 30, 3), dtype=np.uint8), tmp_path / "all.png", title=name)
    assert darkest_blue(opened(tmp_path / "all.png")) > 100
    plot_image(view, np.zeros((20, 30, 3), dtype=np.uint8), tmp_path / "first.png", layer=1)
    with pytest.raises(UsageError, match=r"There is no layer 0\. Layers of this image: 1 \("):
        plot_image(view, np.zeros((20, 30, 3), dtype=np.uint8), tmp_path / "x.png", layer=0)


def test_tiny_images_are_enlarged_without_blur(tmp_path: Path) -> None:
    pixels = torch.zeros(4, 6, 3, dtype=torch.uint8)
    pixels[1, 2] = torch.tensor([0, 255, 0])
    plot_image(examples.small_image_view("class"), pixels, tmp_path / "image.png")
    green = (opened(tmp_path / "image.png") == (0, 255, 0)).all(axis=-1)
    assert green.sum() > 50 * 50  # one pixel became a square with sharp edges
    assert green.any(axis=0).sum() == pytest.approx(green.any(axis=1).sum(), abs=12)


@pytest.mark.parametrize("shape", [(3000, 4000), (3000, 4000, 1), (3000, 2000, 3)])
def test_a_large_image_is_drawn_from_a_small_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    """matplotlib makes sixteen numbers of every pixel."""
    draw = Mock(wraps=Canvas.draw_image)
    monkeypatch.setattr(Canvas, "draw_image", lambda *args: draw(*args))
    view = examples.small_image_view("class")
    plot_image(view, np.zeros(shape, dtype=np.uint8), tmp_path / "image.png")
    drawn = [call.args[1].shape for call in draw.call_args_list]
    assert len(drawn) > 1
    assert all(max(each) == 1024 for each in drawn)


def test_an_image_must_be_an_image(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"uint8 of shape \(3, 4, 6\)"):
        plot_image(
            examples.small_image_view("class"), np.zeros((3, 4, 6), dtype=np.uint8), tmp_path / "x"
        )


def test_what_is_not_in_the_view_is_named(tmp_path: Path) -> None:
    view = examples.date_view()
    with pytest.raises(UsageError, match=r"no map of kind 'encoder self'.*: 'decoder cross'"):
        plot_text(view, tmp_path / "x.png", kind="encoder self")
    with pytest.raises(UsageError, match=r"no layer 7.*: 1, 2, 3"):
        plot_text(view, tmp_path / "x.png", layer=7)


def test_nobodys_settings_change_and_no_package_is_imported_for_its_font(tmp_path: Path) -> None:
    before, known = dict(mpl.rcParams), len(mpl.font_manager.fontManager.ttflist)
    plot_text(examples.date_view(), tmp_path / "map.png", title=HEADLINE)
    assert dict(mpl.rcParams) == before
    assert len(mpl.font_manager.fontManager.ttflist) == known
    assert "koreanize_matplotlib" not in sys.modules


def test_a_missing_matplotlib_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.font_manager", None)
    with pytest.raises(MissingExtraError, match=r"'matplotlib'.*manyheads\[plot\]"):
        plot_text(examples.date_view(), tmp_path / "map.png")


def test_a_missing_font_with_hangul_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fonts, "_candidates", list)
    plot_text(examples.small_text_view(), tmp_path / "latin.png")  # needs none
    with pytest.raises(MissingExtraError, match="koreanize-matplotlib"):
        plot_text(examples.date_view(), tmp_path / "map.png")
