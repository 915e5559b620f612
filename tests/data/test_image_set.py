"""Images as people have them, and the one way they become what a model sees."""

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from pydantic import TypeAdapter, ValidationError
from sklearn.model_selection import train_test_split

from manyheads.data.images import image_set as images_module
from manyheads.data.images.digits import read_digits
from manyheads.data.images.image_file import open_image
from manyheads.data.images.image_set import (
    ImageSet,
    Interpolation,
    Preprocessing,
    hold_out,
    in_threads,
    number_labels,
    read_folder,
    read_unlabelled,
)
from manyheads.data.images.image_tables import read_tables
from manyheads.errors import DataError, NotFoundError, UnreadableError
from tests.made import half, png, write_halves

GREY = Preprocessing(height=2, width=2, mode="L")
COLOUR = Preprocessing(height=2, width=2)


def plain(colour: tuple[int, ...] | int, mode: str, size: tuple[int, int] = (2, 2)) -> Image.Image:
    return Image.new(mode, size, colour)


# --- What the model sees of an image -----------------------------------------------------------


def test_an_image_of_the_right_size_is_taken_as_it_is() -> None:
    """Not a pixel changes: (channel, height, width), 0..255."""
    values = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    seen = Preprocessing(height=2, width=4).pixels(Image.fromarray(values))
    assert (seen == values.transpose(2, 0, 1)).all()
    grey = Preprocessing(height=2, width=4, mode="L").pixels(Image.fromarray(values[:, :, 0]))
    assert (grey == values[None, :, :, 0]).all()


@pytest.mark.parametrize(
    ("size", "crop", "box"),
    [
        ((20, 8), 1.0, (6, 0, 14, 8)),  # wide: left and right are cut off
        ((8, 20), 1.0, (0, 6, 8, 14)),  # high
        ((4, 4), 1.0, (0, 0, 4, 4)),
        ((20, 20), 0.8, (2, 2, 18, 18)),  # resize to 5 x 5, keep the middle 4 x 4
        ((2, 2), 1.0, (0, 0, 2, 2)),  # small ones are enlarged
    ],
)
def test_the_largest_part_of_the_models_shape(
    size: tuple[int, int], crop: float, box: tuple[int, ...]
) -> None:
    """Nothing is squeezed: the centre of the image in the shape of the model's input."""
    preprocessing = Preprocessing(height=4, width=4, crop=crop)
    assert preprocessing.box(*size) == pytest.approx(box)


def test_the_box_of_an_oblong_model() -> None:
    """A 2 x 4 model sees all of an image twice as wide as high, and the middle of a square."""
    preprocessing = Preprocessing(height=2, width=4)
    assert preprocessing.box(40, 20) == (0, 0, 40, 20)
    assert preprocessing.box(40, 40) == (0, 10, 40, 30)


@pytest.mark.parametrize("size", [(24, 16), (16, 24), (20, 20)])
@pytest.mark.parametrize("crop", [1.0, 0.75])
def test_box_says_where_pixels_come_from(size: tuple[int, int], crop: float) -> None:
    """A pixel of the model shows the image at the same place of the box (patches are so drawn).

    The image is bright in proportion to x, or to y; resampling keeps that away from the border.
    """
    width, height = size
    preprocessing = Preprocessing(height=4, width=4, mode="L", crop=crop)
    left, top, right, bottom = preprocessing.box(width, height)
    across = 10.0 * np.tile(np.arange(width), (height, 1))
    down = 10.0 * np.tile(np.arange(height)[:, None], (1, width))
    middle = (np.arange(4) + 0.5) / 4
    seen = preprocessing.pixels(Image.fromarray(across.astype(np.uint8)))[0]
    expected = 10 * (left + (right - left) * middle - 0.5)  # pixel x covers x .. x + 1
    assert seen[1:3, 1:3] == pytest.approx(np.tile(expected[1:3], (2, 1)), abs=1)
    seen = preprocessing.pixels(Image.fromarray(down.astype(np.uint8)))[0]
    expected = 10 * (top + (bottom - top) * middle - 0.5)
    assert seen[1:3, 1:3] == pytest.approx(np.tile(expected[1:3, None], (1, 2)), abs=1)


@pytest.mark.parametrize(
    ("image", "colour"),
    [
        (plain(77, "L"), (77, 77, 77)),
        (plain((10, 20, 30), "RGB"), (10, 20, 30)),
        (plain((10, 20, 30, 255), "RGBA"), (10, 20, 30)),
        (plain((10, 20, 30, 0), "RGBA"), (255, 255, 255)),  # transparent is white
        (plain((0, 0, 0, 51), "RGBA"), (204, 204, 204)),  # a fifth of black on white
        (plain((77, 0), "LA"), (255, 255, 255)),
        (plain(1, "1"), (255, 255, 255)),  # black and white
        (plain((255, 255, 0, 0), "CMYK"), (0, 0, 255)),
        (plain(0x4D4D, "I;16"), (77, 77, 77)),  # 16 bits a pixel: scaled, not cut off
    ],
    ids=lambda value: value.mode if isinstance(value, Image.Image) else "",
)
def test_every_mode_becomes_colour(image: Image.Image, colour: tuple[int, ...]) -> None:
    """Grey, transparent, with a palette, printed, deep: one pixel means one thing."""
    seen = COLOUR.pixels(image)
    assert seen.shape == (3, 2, 2)
    assert (seen == np.array(colour)[:, None, None]).all()


def test_a_palette_with_a_transparent_colour() -> None:
    """As a GIF has it: the transparent entry is white, whatever colour stands there."""
    image = plain(0, "P")
    image.putpalette([10, 20, 30, 200, 100, 0])
    image.putpixel((1, 0), 1)
    image.info["transparency"] = 0
    seen = COLOUR.pixels(image)
    assert seen[:, 0, 0].tolist() == [255, 255, 255]
    assert seen[:, 0, 1].tolist() == [200, 100, 0]


def test_grey_models_see_grey() -> None:
    """ITU-R 601: L = .299 R + .587 G + .114 B."""
    seen = GREY.pixels(plain((100, 50, 200), "RGB"))
    assert seen.shape == (1, 2, 2)
    assert seen[0, 0, 0] == round(0.299 * 100 + 0.587 * 50 + 0.114 * 200)


def test_an_image_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    """EXIF orientation 6: the camera was held on its side."""
    upright = half(0, 1, height=4, width=6)
    exif = Image.Exif()
    exif[0x0112] = 6
    lying = upright.transpose(Image.Transpose.ROTATE_90)
    lying.save(tmp_path / "lying.png", exif=exif)
    model = Preprocessing(height=4, width=6, mode="L")
    assert (model.pixels(open_image(tmp_path / "lying.png")) == model.pixels(upright)).all()


def test_normalise() -> None:
    """(value / 255 - mean) / std, a number a channel."""
    preprocessing = Preprocessing(mean=(0.0, 0.5, 0.2), std=(1.0, 0.5, 0.1))
    pixels = torch.tensor([0, 255, 51], dtype=torch.uint8).view(1, 3, 1, 1)
    assert preprocessing.normalise(pixels).flatten().tolist() == pytest.approx([0.0, 1.0, 0.0])


def test_one_mean_serves_all_channels() -> None:
    """As the defaults do: 0..255 becomes -1..1."""
    pixels = torch.tensor([0, 255, 0], dtype=torch.uint8).view(1, 3, 1, 1)
    assert Preprocessing().normalise(pixels).flatten().tolist() == [-1.0, 1.0, -1.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"height": 0},
        {"width": -8},
        {"crop": 0},
        {"crop": 1.5},
        {"std": [0.0]},
        {"mean": [0.1, 0.2]},
        {"mode": "L", "mean": [0.1, 0.2, 0.3]},
        {"mode": "HSV"},
        {"mode": "bands"},
        {"num_channels": 5},
        {"mode": "RGBA", "mean": [0.5, 0.5, 0.5]},
    ],
)
def test_preprocessing_that_cannot_be(wrong: dict[str, object]) -> None:
    """Found when a recipe or a model is read, not in the first batch."""
    with pytest.raises(ValidationError):
        TypeAdapter(Preprocessing).validate_python(wrong)


# --- Sets of images ---------------------------------------------------------------------------


def test_a_folder_a_class(tmp_path: Path) -> None:
    """Classes in alphabetical order; images at any depth; other files do not matter."""
    write_halves(tmp_path, count=6)
    (tmp_path / "halves" / "README.txt").write_text("about these images")
    (tmp_path / "halves" / "left" / "notes.txt").write_text("not an image")
    deep = tmp_path / "halves" / "right" / "more" / "deep.JPG"
    deep.parent.mkdir()
    half(1, 9).save(deep)
    images = read_folder(tmp_path / "halves")
    assert images.classes == ["left", "right"]
    assert images.labels.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert len(images) == 7
    assert images.names[0] == str(tmp_path / "halves" / "left" / "000.png")
    assert (np.asarray(images.open(0)) == np.asarray(half(0, 0))).all()


def test_what_is_no_image_by_its_ending(tmp_path: Path) -> None:
    """Without one the content counts; photos that are not read are named; the others are listed."""
    write_halves(tmp_path, count=4)
    left = tmp_path / "halves" / "left"
    (left / "000.png").rename(left / "000")
    (left / "about").write_text("not an image")
    (left / "phone.HEIC").write_bytes(b"\0\0\0\x18ftypheic" + bytes(50))
    (left / ".DS_Store").write_bytes(b"Bud1")
    (tmp_path / "halves" / "lost.png").write_bytes(png(half(0, 0)))  # in no class folder
    images = read_folder(tmp_path / "halves")
    assert [Path(name).name for name in images.names[:3]] == ["000", "002.png", "phone.HEIC"]
    assert [Path(name).name for name in images.other_files] == ["about", "lost.png"]
    with pytest.raises(UnreadableError, match=r"phone\.HEIC cannot .*: it is HEIC, which is not"):
        images.open(2)
    assert len(images.readable(GREY)) == 4
    assert read_unlabelled(left).other_files == (str(left / "about"),)


def test_links_pipes_and_circles(tmp_path: Path) -> None:
    """Broken links and pipes are unreadable images; links to folders are followed, once."""
    write_halves(tmp_path, count=4)
    left, right = (tmp_path / "halves" / name for name in ("left", "right"))
    (left / "broken.png").symlink_to("nowhere.png")
    (left / "itself.png").symlink_to("itself.png")
    os.mkfifo(left / "pipe.png")
    (left / "more").mkdir()
    (left / "more" / "up").symlink_to(tmp_path / "halves" / "left")
    (left / "more" / "again").symlink_to(".")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    half(1, 3).save(elsewhere / "z.png")
    (right / "linked").symlink_to(elsewhere)
    images = read_folder(tmp_path / "halves")
    names = [Path(name).name for name in images.names]
    assert names[:5] == ["000.png", "002.png", "broken.png", "itself.png", "pipe.png"]
    assert names[5:] == ["001.png", "003.png", "z.png"]
    found = images.readable(GREY)
    assert len(found) == 5
    reasons = " ".join(found.left_out)
    assert "broken.png (No such file" in reasons
    assert "itself.png (Too many levels" in reasons
    assert "pipe.png (it is a named pipe, not a file)" in reasons


def test_a_class_folder_that_cannot_be_read() -> None:
    """Its images would be missing."""
    with tempfile.TemporaryDirectory() as folder, unprivileged(Path(folder)):
        for name in ("cat", "dog"):
            (Path(folder) / name).mkdir()
            half(0, 1).save(Path(folder) / name / "1.png")
        (Path(folder) / "dog").chmod(0)
        with pytest.raises(DataError, match=r"The folder .*dog cannot be read: Permission denied"):
            read_folder(Path(folder))
        (Path(folder) / "dog").chmod(0o700)


@contextlib.contextmanager
def unprivileged(folder: Path) -> Iterator[None]:
    """Be a user who owns the folder and nothing else: root may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.chown(folder, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    """Of a file they are; of a class they would be stored with the model."""
    write_halves(tmp_path, count=4)
    left = tmp_path / "halves" / "left"
    (left / "000.png").rename(left / "00\udcff.png")
    assert len(read_folder(tmp_path / "halves").readable(GREY)) == 4
    left.rename(tmp_path / "halves" / "l\udcff")
    with pytest.raises(DataError, match=r"the name of the class 'l\\udcff' is not UTF-8"):
        read_folder(tmp_path / "halves")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "has no label"),
        ({"a": 1}, r"has the label {'a': 1}: a label is a text or a number"),
        (b"cat", r"has the label b'cat'"),
        ("c\udcff", r"has the label 'c\\udcff'"),
    ],
)
def test_labels_that_are_none(value: object, words: str) -> None:
    """Not the name of a class, one or several."""
    with pytest.raises(DataError, match=rf"b\.png {words}"):
        number_labels(["cat", value], ["a.png", "b.png"], None)
    if value == value:
        with pytest.raises(DataError, match=rf"b\.png {words}"):
            number_labels(["cat", [value]], ["a.png", "b.png"], ";")


def test_a_folder_without_images(tmp_path: Path) -> None:
    """Says what was expected, by example."""
    (tmp_path / "cat").mkdir()
    with pytest.raises(DataError, match=r"one folder of images per class.*\.png"):
        read_folder(tmp_path)


def write_parquet(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_with_bytes(tmp_path: Path) -> None:
    """One column of encoded images, one of class names; several files are one set."""
    originals = [half(label, label) for label in (0, 1, 1)]
    cells = [png(image) for image in originals]
    one = write_parquet(tmp_path / "1.parquet", image=cells[:2], label=["left", "right"])
    two = write_parquet(tmp_path / "2.parquet", image=cells[2:], label=["right"])
    images = read_tables([one, two], "image", "label")
    assert (images.classes, images.labels.tolist()) == (["left", "right"], [0, 1, 1])
    assert (np.asarray(images.open(2)) == np.asarray(originals[2])).all()
    assert images.describe([2]) == f"{two}, row 1"
    assert len(images.hashes) == 2


def test_parquet_as_hugging_face_writes_it(tmp_path: Path) -> None:
    """A struct with bytes and path, columns of other names, classes as numbers."""
    cells = [{"bytes": png(half(0, 0)), "path": None}, {"bytes": png(half(1, 1)), "path": "b.png"}]
    path = write_parquet(tmp_path / "hf.parquet", img=cells, fine_label=[3, 7])
    images = read_tables([path], "img", "fine_label")
    assert images.classes == ["3", "7"]
    assert images.open(1).size == (6, 4)


def test_parquet_with_paths(tmp_path: Path) -> None:
    """Relative to the table; as text, or as Hugging Face has images that stay in their files."""
    half(0, 5).save(tmp_path / "a.png")
    cells = [{"bytes": None, "path": "a.png"}, {"bytes": None, "path": str(tmp_path / "a.png")}]
    for column in (["a.png", str(tmp_path / "a.png")], cells):
        path = write_parquet(tmp_path / "p.parquet", image=column, label=["left", "left"])
        images = read_tables([path], "image", "label")
        for index in range(2):
            assert (np.asarray(images.open(index)) == np.asarray(half(0, 5))).all()
    images = read_tables([path], "image", None)
    assert (images.classes, images.labels.tolist()) == ([], [0, 0])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([1, 2], "the cell holds 1, neither an image nor a path"),
        ([[1, 2], [3]], r"the cell holds \[1, 2\]"),
        (["none.png", "none.png"], "No such file"),
        ([None, None], "it is empty"),
        ([{"other": 3}, {"other": 4}], "it is empty"),
    ],
)
def test_parquet_of_something_else(tmp_path: Path, cells: list[object], message: str) -> None:
    """Said with file and row."""
    path = write_parquet(tmp_path / "p.parquet", image=cells, label=["left", "right"])
    with pytest.raises(DataError, match=rf"row 1 cannot be read as an image: .*{message}"):
        read_tables([path], "image", "label").open(0)


def test_several_labels_of_which_there_are_none() -> None:
    """A question for no class is no question."""
    with pytest.raises(DataError, match="None of 2 images has a label; the first is a"):
        number_labels(["", None], ["a", "b"], ";")


def test_parquet_without_the_columns(tmp_path: Path) -> None:
    """Names the missing column, those that there are, and the keys to say so."""
    path = write_parquet(tmp_path / "hf.parquet", img=[b""], label=["cat"])
    with pytest.raises(DataError) as caught:
        read_tables([path], "image", "label")
    message = str(caught.value)
    assert f"{path} has no image: did you mean 'img'? It has img, label" in message
    assert "data.image" in message


def test_not_parquet(tmp_path: Path) -> None:
    """The file is named."""
    path = tmp_path / "images.parquet"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=f"{path} cannot be read as parquet"):
        read_tables([path], "image", "label")


def test_parquet_with_dates_for_labels(tmp_path: Path) -> None:
    """Also such as Python has no number for."""
    for kind, value in ((pa.timestamp("s"), 10**12), (pa.date32(), 0)):
        label = pa.array([value], pa.int64()).cast(
            (kind.bit_width == 32 and pa.int32()) or pa.int64()
        )
        path = write_parquet(tmp_path / "p.parquet", image=[b""], label=label.view(kind))
        with pytest.raises(DataError, match=r"p\.parquet.*(out of range|a text or a number)"):
            read_tables([path], "image", "label")


def test_parquet_without_rows(tmp_path: Path) -> None:
    """An empty file is not a set of nothing."""
    path = write_parquet(tmp_path / "none.parquet", image=pa.array([], pa.binary()), label=[])
    with pytest.raises(DataError, match=f"{path}: no rows"):
        read_tables([path], "image", "label")


@pytest.mark.parametrize(
    "damage",
    [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b"not an image", lambda b: None],
)
def test_an_unreadable_image_is_named(
    tmp_path: Path, damage: Callable[[bytes], bytes | None]
) -> None:
    """Empty, cut off, no image, or missing: file and row."""
    cells = [png(half(0, 0)), damage(png(half(1, 1, height=40, width=60)))]
    path = write_parquet(tmp_path / "two.parquet", image=cells, label=["left", "right"])
    images = read_tables([path], "image", "label")
    images.open(0)
    with pytest.raises(DataError, match=r"two\.parquet, row 2 cannot be read as an image"):
        images.open(1)


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("format", ["png", "jpeg", "gif", "bmp", "tiff", "webp", "avif", "ppm"])
def test_a_file_cut_off_anywhere(format: str) -> None:
    """Whatever is missing, there is an image or a DataError, and nothing else."""
    file = io.BytesIO()
    half(0, 0).convert("RGB").save(file, format)
    whole = file.getvalue()
    images = ImageSet(
        labels=np.zeros(len(whole), dtype=int),
        classes=["any"],
        names=[f"{size} bytes" for size in range(len(whole))],
        read=lambda size: Image.open(io.BytesIO(whole[:size])),
    )
    read = 0
    for size in range(len(whole)):
        with contextlib.suppress(DataError):
            COLOUR.pixels(images.open(size))
            read += 1
    assert read < len(whole) / 2


def test_open_image(tmp_path: Path) -> None:
    """A file by its path: missing, no image, a folder."""
    with pytest.raises(NotFoundError, match=f"no file {tmp_path / 'none.png'}"):
        open_image(tmp_path / "none.png")
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(DataError, match=r"text\.png cannot be read as an image: not an image"):
        open_image(tmp_path / "text.png")
    with pytest.raises(DataError, match=f"{tmp_path} cannot be read"):
        open_image(tmp_path)


def test_threads_are_given_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them come, in order; and whoever stops half-way need not wait for the rest."""
    monkeypatch.setattr(images_module, "BLOCK", 3)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    begun: list[int] = []

    def square(number: int) -> int:
        begun.append(number)
        return number**2

    assert list(in_threads(square, range(10))) == [number**2 for number in range(10)]
    begun.clear()
    assert next(in_threads(square, range(10))) == 0
    assert len(begun) <= 3


def test_select_takes_images_with_their_names_and_labels() -> None:
    """A part of a part is still the right images."""
    digits = read_digits()
    part = digits.select(np.array([5, 3, 8, 1])).select(np.array([2, 0]))
    assert part.names == ["digit 8", "digit 5"]
    assert part.labels.tolist() == digits.labels[[8, 5]].tolist()
    assert np.asarray(part.open(1)).tolist() == np.asarray(digits.open(5)).tolist()


def test_relabel_numbers_classes_as_the_model_does(tmp_path: Path) -> None:
    """Validation images may lack a class, and need not come in the order of the model's."""
    write_halves(tmp_path, count=2)
    images = read_folder(tmp_path / "halves").relabel(["right", "up", "left"])
    assert images.labels.tolist() == [2, 0]
    assert images.classes == ["right", "up", "left"]


def test_an_unknown_class_is_named(tmp_path: Path) -> None:
    """What the data have, and what the model knows."""
    write_halves(tmp_path, count=2)
    with pytest.raises(DataError, match=r"does not have: right\. The model has 2: left, up"):
        read_folder(tmp_path / "halves").relabel(["left", "up"])


# --- Digits and their fixed split ---------------------------------------------------------------


def test_digits() -> None:
    """1,797 images of 8 x 8; ink is bright, 16 levels are spread over 0..255."""
    digits = read_digits()
    assert len(digits) == 1797
    assert digits.classes == list("0123456789")
    image = np.asarray(digits.open(0))
    assert image.shape == (8, 8)
    assert (image.min(), image.max()) == (0, 239)  # 15 of 16


def test_hold_out_is_scikit_learns_stratified_split() -> None:
    """Contracts: digits are divided 1,437 / 360 by train_test_split, stratified, random_state 0."""
    digits = read_digits()
    train, held = hold_out(digits, 360, 0)
    labels = digits.labels
    rest, chosen = train_test_split(np.arange(1797), test_size=360, stratify=labels, random_state=0)
    assert held.names == [f"digit {index}" for index in chosen]
    assert train.names == [f"digit {index}" for index in rest]
    assert (len(train), len(held)) == (1437, 360)
    share = np.bincount(held.labels) / np.bincount(labels)
    assert share.min() > 0.19
    assert share.max() < 0.21


def test_hold_out_tells_once_what_was_left_out() -> None:
    """With the rest: of the held-out part it would be told again when that is evaluated."""
    digits = replace(read_digits(), left_out=("bad.png (it is empty)",))
    train, held = hold_out(digits, 360, 0)
    assert (train.left_out, held.left_out) == (digits.left_out, ())


@pytest.mark.parametrize("count", [1797, 5, 5000])
def test_hold_out_too_many_or_too_few(count: int) -> None:
    """A part smaller than the number of classes, or all: what was asked, what there is, the key."""
    with pytest.raises(DataError, match=rf"{count} images cannot be held out.*data\.hold_out"):
        hold_out(read_digits(), count, 0)


def test_an_image_is_cut_or_squeezed() -> None:
    """Of 8 x 4 pixels, white on the right, a square sees the middle or everything."""
    image = Image.new("L", (8, 4))
    image.paste(255, (6, 0, 8, 4))
    cut = Preprocessing(height=4, width=4, mode="L")
    squeezed = Preprocessing(
        height=4, width=4, mode="L", resize_mode="stretch", interpolation="box"
    )
    assert cut.box(8, 4) == (2, 0, 6, 4)
    assert squeezed.box(8, 4) == (0, 0, 8, 4)
    assert cut.pixels(image)[0, 0].tolist() == [0, 0, 0, 0]
    assert squeezed.pixels(image)[0, 0].tolist() == [0, 0, 0, 255]


def test_curves_of_interpolation() -> None:
    """Two pixels become four: copied, or on a line between them (Pillow's bilinear)."""
    image = Image.new("L", (2, 1))
    image.putpixel((1, 0), 100)
    rows = {
        name: Preprocessing(height=1, width=4, mode="L", resize_mode="stretch", interpolation=name)
        .pixels(image)[0, 0]
        .tolist()
        for name in ("nearest", "bilinear")
    }
    assert rows == {"nearest": [0, 0, 100, 100], "bilinear": [0, 25, 75, 100]}


@pytest.mark.parametrize("name", ["nearest", "bilinear", "bicubic", "lanczos"])
def test_bands_are_resized_as_the_recipe_says(name: Interpolation) -> None:
    """Three bands of an array, and the same three colours of an image."""
    values = np.random.default_rng(0).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    settings = {"height": 9, "width": 12, "interpolation": name}
    colours = Preprocessing(**settings).pixels(Image.fromarray(values))  # type: ignore[arg-type]
    bands = Preprocessing(mode="bands", num_channels=3, **settings).pixels(values)  # type: ignore[arg-type]
    assert (bands == colours).all()


# --- Odd files ----------------------------------------------------------------------------------


def test_a_decompression_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than Pillow's limit is refused, also where it would only warn."""
    plain(0, "L", (50, 50)).save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2500)
    assert open_image(tmp_path / "large.png").size == (50, 50)
    for limit, told in ((1500, "1,500"), (1000, "1,000")):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(DataError, match=rf"large\.png cannot.*more than {told} pixels.*bomb"):
            open_image(tmp_path / "large.png")


def test_what_a_file_is_follows_from_its_content(tmp_path: Path) -> None:
    """A PNG called .jpg is an image; an empty file is empty."""
    half(0, 0).save(tmp_path / "a.png")
    (tmp_path / "a.png").rename(tmp_path / "a.jpg")
    assert (np.asarray(open_image(tmp_path / "a.jpg")) == np.asarray(half(0, 0))).all()
    (tmp_path / "b.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"b\.png cannot be read as an image: it is empty"):
        open_image(tmp_path / "b.png")


def test_of_an_animation_the_first_frame_counts(tmp_path: Path) -> None:
    """Documented, and the same every time."""
    frames = [plain(50, "L"), plain(200, "L")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert COLOUR.pixels(open_image(tmp_path / "a.gif"))[0, 0, 0] == 50


def test_one_pixel(tmp_path: Path) -> None:
    """Is enlarged: there is no other answer."""
    plain((1, 2, 3), "RGB", (1, 1)).save(tmp_path / "a.png")
    assert COLOUR.pixels(open_image(tmp_path / "a.png"))[:, 1, 1].tolist() == [1, 2, 3]


def test_deep_and_transparent_modes() -> None:
    """32-bit greys are scaled as 16-bit ones; transparency and print colours can be kept."""
    deep = Image.fromarray(np.full((2, 2), 0x4D00, dtype=np.int32))
    assert COLOUR.pixels(deep)[0, 0, 0] == 77
    share = Image.fromarray(np.full((2, 2), 0.6, dtype=np.float32))
    assert COLOUR.pixels(share)[0, 0, 0] == 153
    kept = Preprocessing(height=2, width=2, mode="RGBA")
    assert kept.pixels(plain((1, 2, 3, 4), "RGBA"))[:, 0, 0].tolist() == [1, 2, 3, 4]
    assert Preprocessing(height=2, width=2, mode="CMYK").channels == 4


def test_restore_undoes_normalise() -> None:
    """For a teacher that is used to another scale."""
    preprocessing = Preprocessing(mean=(0.1, 0.5, 0.2), std=(0.3, 0.5, 0.1))
    pixels = torch.randint(0, 256, (2, 3, 4, 4)).float()
    torch.testing.assert_close(preprocessing.restore(preprocessing.normalise(pixels)), pixels)


@pytest.mark.parametrize("rounding", ["down", "even"])
def test_a_share_that_divides_the_side_is_not_rounded(rounding: Literal["down", "even"]) -> None:
    """224 / 0.875 is 256, of which 16 lie on each side: 32 of 512 pixels."""
    how = Preprocessing(height=224, width=224, crop=0.875, crop_rounding=rounding)
    assert how.box(512, 512) == (32, 32, 480, 480)
