"""Pictures from folders, parquet files or arrays, and the preprocessing stored with a model.

What was done to pictures in training is done to every picture later, by the same code from the
same stored numbers.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from PIL import Image, ImageOps
from torch import Tensor

from manyheads.data.pictures import (
    NO_COLOURS,
    PLAIN,
    SUFFIXES,
    Picture,
    eight_bit_array,
    eight_bits,
    load,
    naming,
    open_cell,
    open_content,
)
from manyheads.errors import DataError, MissingExtraError, UnreadableError

Interpolation = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
Mode = Literal["RGB", "L", "RGBA", "CMYK", "bands"]
BLOCK = 1024  # pictures that threads are given at a time: between blocks they can be stopped

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """From any picture to what the model was trained on: the [image] table, kept with the model."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    height: Annotated[int, Ge(1)] = 224
    width: Annotated[int, Ge(1)] = 224
    mode: Mode = "RGB"  # L: grey; "bands": whatever the file has, `bands` channels of it
    bands: Annotated[int, Ge(0)] = 0
    # Share of the resized picture that the centre crop keeps.
    crop: Annotated[float, Gt(0), Le(1)] = 1.0
    # How a picture of another shape is made to fit: its sides cut off, or squeezed together.
    fit: Literal["crop", "stretch"] = "crop"
    interpolation: Interpolation = "bicubic"
    mean: tuple[float, ...] = (0.5,)  # a channel, of values scaled to 0..1; one number serves all
    std: tuple[Annotated[float, Gt(0)], ...] = (0.5,)

    def __post_init__(self) -> None:
        """Refuse a mean or deviation for another number of channels."""
        if (self.mode == "bands") != (self.bands > 0):
            raise ValueError(
                f"mode is {self.mode!r} and bands {self.bands}: bands is the number of channels of "
                'mode "bands", and of no other'
            )
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, self.channels):
                raise ValueError(
                    f"{name} has {len(values)} numbers, mode {self.mode!r} takes 1 or "
                    f"{self.channels}"
                )

    @property
    def channels(self) -> int:
        """1 for grey, 3 for colour, 4 with transparency or as printed, or as many as declared."""
        return self.bands or len(self.mode)

    def box(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Say which part of a width x height picture the model sees: left, top, right, bottom."""
        if self.fit == "stretch":
            seen_width, seen_height = width * self.crop, height * self.crop
        else:
            scale = min(width / self.width, height / self.height) * self.crop
            seen_width, seen_height = self.width * scale, self.height * scale
        left, top = (width - seen_width) / 2, (height - seen_height) / 2
        return left, top, left + seen_width, top + seen_height

    def upright(self, picture: Image.Image) -> Image.Image:
        """Turn a picture as its camera says, lay it on white if transparent, and set its mode.

        Raises:
            ValueError: its numbers are no pixels.
        """
        picture = eight_bits(ImageOps.exif_transpose(picture))
        if self.mode == "bands":  # as the file has them; but black and white are 0 and 255,
            return picture.convert(PLAIN.get(picture.mode, picture.mode))  # and palettes colours
        return (picture if self.mode == "RGBA" else _on_white(picture)).convert(self.mode)

    def pixels(self, picture: Picture) -> np.ndarray:
        """Crop to the shape of the model's input, then resize: (channel, height, width), 0..255.

        Raises:
            ValueError: it has another number of channels than the recipe declares, or numbers
                that are no pixels.
        """
        if isinstance(picture, np.ndarray):
            array = eight_bit_array(picture)
            if self.mode == "bands" or array.shape[2] not in (1, 3, 4):
                return self._bands(array)
            picture = Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)
        picture = self.upright(picture)
        if self.mode == "bands":
            values = np.asarray(picture, dtype=np.uint8)
            return self._bands(values[:, :, None] if values.ndim == 2 else values)
        box = self.box(*picture.size)
        size = (self.width, self.height)
        if box != (0, 0, *size):
            curve = Image.Resampling[self.interpolation.upper()]
            picture = picture.resize(size, curve, box=box)
        values = np.asarray(picture, dtype=np.uint8)
        return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)

    def _bands(self, array: np.ndarray) -> np.ndarray:
        """Crop and resize (height, width, channel), each channel by itself."""
        if array.shape[2] != self.channels:
            raise ValueError(
                f"it has {array.shape[2]} channels, the recipe declares {self.channels} "
                "(image.mode, image.bands)"
            )
        box, size = self.box(array.shape[1], array.shape[0]), (self.width, self.height)
        channels = [
            Image.fromarray(np.ascontiguousarray(each)) for each in np.moveaxis(array, 2, 0)
        ]
        if box != (0, 0, *size):
            curve = Image.Resampling[self.interpolation.upper()]
            channels = [each.resize(size, curve, box=box) for each in channels]
        return np.stack([np.asarray(each, dtype=np.uint8) for each in channels])

    def normalise(self, pixels: Tensor) -> Tensor:
        """Scale a batch of pixels to 0..1, subtract the mean and divide by the deviation."""
        mean = torch.tensor(self.mean, device=pixels.device).view(-1, 1, 1)
        std = torch.tensor(self.std, device=pixels.device).view(-1, 1, 1)
        return (pixels.float() / 255 - mean) / std

    def restore(self, images: Tensor) -> Tensor:
        """Undo `normalise`: values of 0..255 again."""
        mean = torch.tensor(self.mean, device=images.device).view(-1, 1, 1)
        std = torch.tensor(self.std, device=images.device).view(-1, 1, 1)
        return (images.float() * std + mean) * 255


def _on_white(picture: Image.Image) -> Image.Image:
    """Lay a transparent picture on white; the colour under transparency is meaningless."""
    if "A" not in picture.getbands() and "transparency" not in picture.info:
        return picture
    picture = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)


@dataclass(frozen=True)
class ImageSet:
    """Pictures with classes. Pictures are opened when asked for: a set may exceed memory."""

    labels: np.ndarray  # (picture,) index into classes; (picture, class) 0 or 1 if several apply
    classes: list[str]  # none if the pictures have no labels
    names: Sequence[str]  # of each picture, for messages
    read: Callable[[int], Picture] = field(repr=False)
    origin: str = ""
    hashes: tuple[str, ...] = ()  # sha256 of each file, for the register of splits
    left_out: tuple[str, ...] = ()  # pictures that could not be read, and why

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.labels)

    @property
    def multi_label(self) -> bool:
        """Whether a picture may have any number of classes."""
        return self.labels.ndim == 2

    def open(self, index: int) -> Picture:
        """Open one picture; of an animated one the first frame.

        Raises:
            UnreadableError: it cannot be read.
        """
        with naming(self.names[index]):
            return load(lambda: self.read(index))

    def image(self, index: int) -> Image.Image:
        """Open one picture that Pillow can show and save.

        Raises:
            UnreadableError: it cannot be read, or is an array.
        """
        picture = self.open(index)
        if isinstance(picture, np.ndarray):
            raise UnreadableError(self.names[index], NO_COLOURS)
        return picture

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        """Open one picture as the model sees it: (channel, height, width), 0..255.

        Raises:
            UnreadableError: it cannot be read, or has the wrong number of channels.
        """
        picture = self.open(index)
        with naming(self.names[index]):
            return preprocessing.pixels(picture)

    def readable(self, preprocessing: Preprocessing, threads: int = 1) -> "ImageSet":
        """Leave out what cannot be read as the model sees it; every picture is read once to know.

        Args:
            preprocessing: what the model sees of a picture.
            threads: pictures that are decoded at a time.
        """

        def fault(index: int) -> str:
            try:
                self.pixels(index, preprocessing)
            except UnreadableError as error:
                return f"{error.name} ({error.reason})"
            return ""

        faults = list(spread(fault, range(len(self)), threads))
        kept = np.array([not each for each in faults], dtype=bool)
        lost = tuple(each for each in faults if each)
        return replace(self.select(kept.nonzero()[0]), left_out=self.left_out + lost)

    def select(self, indices: np.ndarray) -> "ImageSet":
        """Take some of the pictures."""
        chosen = [int(index) for index in indices]
        return replace(
            self,
            labels=self.labels[indices],
            names=[self.names[index] for index in chosen],
            read=lambda index: self.read(chosen[index]),
        )

    def relabel(self, classes: list[str]) -> "ImageSet":
        """Number the classes as another set does.

        Raises:
            DataError: this set has a class that the other does not know.
        """
        if self.classes == classes:
            return self
        unknown = sorted(set(self.classes) - set(classes))
        if unknown:
            raise DataError(
                f"{self.origin} has classes that the model does not know: "
                f"{', '.join(unknown[:8])}. It knows {len(classes)}: "
                f"{', '.join(classes[:8])}{', ...' * (len(classes) > 8)}."
            )
        number = np.array([classes.index(name) for name in self.classes], dtype=int)
        if not self.multi_label:
            return replace(self, labels=number[self.labels], classes=classes)
        labels = np.zeros((len(self), len(classes)), dtype=self.labels.dtype)
        labels[:, number] = self.labels
        return replace(self, labels=labels, classes=classes)

    def describe(self, indices: Iterable[int]) -> str:
        """Name pictures as the user knows them."""
        names = [self.names[int(index)] for index in indices]
        return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def spread(function: Callable[[int], T], indices: Sequence[int], threads: int) -> Iterator[T]:
    """Apply a function on so many threads, in order: Pillow lets others work meanwhile."""
    if threads < 2:
        yield from map(function, indices)
        return
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(indices), BLOCK):
            yield from pool.map(function, indices[start : start + BLOCK])


def number_labels(
    values: Sequence[object] | None, names: Sequence[str], separator: str | None
) -> tuple[np.ndarray, list[str]]:
    """Number class names in alphabetical order.

    Args:
        values: of each picture, a name or number; with a separator a list of them, or a text;
            None: there are no labels, and no classes.
        names: of the pictures, for messages.
        separator: between the names in a text; None: every picture has exactly one class.

    Returns:
        The labels as `ImageSet` has them, and the classes.

    Raises:
        DataError: a picture has no class, or several where it should have one; no picture has any.
    """
    if values is None:
        return np.zeros(len(names), dtype=int), []
    if separator is None:
        for name, value in zip(names, values, strict=True):
            if isinstance(value, list | tuple):
                raise DataError(
                    f"{name} has a list of labels, {value!r}: set data.multi_label = true."
                )
            if value is None or not str(value).strip():
                raise DataError(f"{name} has no label. Give it one, or remove it.")
        texts = [str(value) for value in values]
        classes = sorted(set(texts))
        number = {each: index for index, each in enumerate(classes)}
        return np.array([number[text] for text in texts], dtype=int), classes
    lists = [_listed(value, separator) for value in values]
    classes = sorted({each for listed in lists for each in listed})
    if not classes:
        raise DataError(f"None of {len(names):,} pictures has a label, from {names[0]} on.")
    number = {each: index for index, each in enumerate(classes)}
    labels = np.zeros((len(lists), len(classes)), dtype=np.float32)
    for row, listed in zip(labels, lists, strict=True):
        row[[number[each] for each in listed]] = 1
    return labels, classes


def _listed(value: object, separator: str) -> list[str]:
    if value is None:
        return []
    parts = value if isinstance(value, list | tuple) else str(value).split(separator)
    return [text for text in (str(part).strip() for part in parts) if text]


def read_folder(folder: Path) -> ImageSet:
    """Read a folder with one sub-folder of pictures a class.

    Raises:
        DataError: there are no class folders, or no pictures in them.
    """
    classes = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.name.startswith((".", "__"))  # .git, __MACOSX
    )
    found = [
        (path, label)
        for label, name in enumerate(classes)
        for path in sorted((folder / name).rglob("*"))
        if path.suffix.lower() in SUFFIXES
    ]
    if not found:
        raise DataError(
            f"{folder} has no pictures: expected one folder a class with pictures in it, for "
            f"example {folder / 'cat' / '1.png'} ({', '.join(sorted(SUFFIXES))})."
        )
    paths = [path for path, _ in found]
    return ImageSet(
        labels=np.array([label for _, label in found]),
        classes=classes,
        names=[str(path) for path in paths],
        read=lambda index: open_content(paths[index].read_bytes()),
        origin=str(folder),
        hashes=(_listing_hash(paths, folder),),
    )


def _listing_hash(paths: Sequence[Path], folder: Path) -> str:
    """Let names and sizes stand for the content: reading every picture could take hours."""
    listing = "\n".join(f"{path.relative_to(folder)}\t{path.stat().st_size}" for path in paths)
    return hashlib.sha256(listing.encode()).hexdigest()


def read_unlabelled(folder: Path) -> ImageSet:
    """Read all pictures in a folder, at any depth, without classes.

    Raises:
        DataError: there are none.
    """
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES]
    if not paths:
        raise DataError(f"{folder} has no pictures ({', '.join(sorted(SUFFIXES))}).")
    names = [str(path) for path in paths]
    labels, classes = number_labels(None, names, None)
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: open_content(paths[index].read_bytes()),
        origin=str(folder),
        hashes=(_listing_hash(paths, folder),),
    )


def read_parquet(
    paths: Sequence[Path], image: str, label: str | None, separator: str | None = None
) -> ImageSet:
    """Read parquet files with a column of encoded pictures and a column of class names.

    The picture column holds bytes, paths, or the struct of both that Hugging Face writes.

    Raises:
        MissingExtraError: pyarrow is not installed.
        DataError: not a parquet file, or without these columns.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError(package="pyarrow", extra="images") from None
    cells: list[tuple[object, Path]] = []  # each with the folder of its table
    values: list[object] = []
    names: list[str] = []
    columns = [image] if label is None else [image, label]
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                known = file.schema_arrow.names
                missing = set(columns) - set(known)
                if missing:
                    raise DataError(
                        f"{path} has no column {' or '.join(sorted(missing))}; "
                        f"it has {', '.join(known)}. Name them with data.image and data.label."
                    )
                table = file.read(columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} cannot be read as parquet: {error}.") from error
        cells += [(cell, path.parent) for cell in table[image].to_pylist()]
        values += [] if label is None else table[label].to_pylist()
        names += [f"{path}, row {row}" for row in range(1, table.num_rows + 1)]
    if not cells:
        raise DataError(f"{', '.join(map(str, paths))}: no rows.")
    labels, classes = number_labels(None if label is None else values, names, separator)
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: open_cell(*cells[index]),
        origin=", ".join(map(str, paths)),
        hashes=tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths),
    )


def hold_out(images: ImageSet, count: int, random_state: int) -> tuple[ImageSet, ImageSet]:
    """Divide a set into a rest and a stratified part of `count` pictures, as scikit-learn does.

    Pictures with several classes each are divided by chance alone.

    Raises:
        MissingExtraError: scikit-learn is not installed.
        DataError: the set is too small.
    """
    try:
        from sklearn.model_selection import train_test_split
    except ImportError:
        raise MissingExtraError(package="scikit-learn", extra="images") from None
    try:
        rest, held = train_test_split(
            np.arange(len(images)),
            test_size=count,
            stratify=None if images.multi_label else images.labels,
            random_state=random_state,
        )
    except ValueError as error:
        raise DataError(
            f"{count} pictures cannot be held out of {images.origin} ({len(images)} pictures, "
            f"{len(images.classes)} classes): {error} Change data.hold_out."
        ) from error
    # What could not be read belongs to neither: it is told once, with the rest.
    return images.select(rest), replace(images.select(held), left_out=())
