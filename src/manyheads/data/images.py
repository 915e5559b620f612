"""Pictures from folders, parquet files or arrays, and the preprocessing stored with a model.

What was done to pictures in training is done to every picture later, by the same code from the
same stored numbers.
"""

import hashlib
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from PIL import Image, ImageOps
from torch import Tensor

from manyheads.errors import DataError, MissingExtraError, NotFoundError

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
Interpolation = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """From any picture to what the model was trained on: the [image] table, kept with the model."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    height: Annotated[int, Ge(1)] = 224
    width: Annotated[int, Ge(1)] = 224
    mode: Literal["RGB", "L"] = "RGB"  # L: grey
    # Share of the resized picture that the centre crop keeps.
    crop: Annotated[float, Gt(0), Le(1)] = 1.0
    # How a picture of another shape is made to fit: its sides cut off, or squeezed together.
    fit: Literal["crop", "stretch"] = "crop"
    interpolation: Interpolation = "bicubic"
    mean: tuple[float, ...] = (0.5,)  # a channel, of values scaled to 0..1; one number serves all
    std: tuple[Annotated[float, Gt(0)], ...] = (0.5,)

    def __post_init__(self) -> None:
        """Refuse a mean or deviation for another number of channels."""
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, self.channels):
                raise ValueError(
                    f"{name} has {len(values)} numbers, mode {self.mode!r} takes 1 or "
                    f"{self.channels}"
                )

    @property
    def channels(self) -> int:
        """1 for grey, 3 for colour."""
        return len(self.mode) if self.mode == "RGB" else 1

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
        """Turn a picture as its camera says, lay it on white if transparent, and set its mode."""
        picture = ImageOps.exif_transpose(picture)
        if picture.mode.startswith("I;16"):  # 16 bits a pixel: convert would cut off, not scale
            picture = picture.point(lambda value: value * (1 / 256))
        return _on_white(picture).convert(self.mode)

    def pixels(self, picture: Image.Image) -> np.ndarray:
        """Crop to the shape of the model's input, then resize: (channel, height, width), 0..255."""
        picture = self.upright(picture)
        box = self.box(*picture.size)
        size = (self.width, self.height)
        if box != (0, 0, *size):
            curve = Image.Resampling[self.interpolation.upper()]
            picture = picture.resize(size, curve, box=box)
        values = np.asarray(picture, dtype=np.uint8)
        return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)

    def normalise(self, pixels: Tensor) -> Tensor:
        """Scale a batch of pixels to 0..1, subtract the mean and divide by the deviation."""
        mean = torch.tensor(self.mean).view(-1, 1, 1)
        std = torch.tensor(self.std).view(-1, 1, 1)
        return (pixels.float() / 255 - mean) / std


def _on_white(picture: Image.Image) -> Image.Image:
    """Lay a transparent picture on white; the colour under transparency is meaningless."""
    if "A" not in picture.getbands() and "transparency" not in picture.info:
        return picture
    picture = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)


@dataclass(frozen=True)
class ImageSet:
    """Pictures with classes. Pictures are opened when asked for: a set may exceed memory."""

    labels: np.ndarray  # (picture,) index into classes
    classes: list[str]
    names: Sequence[str]  # of each picture, for messages
    read: Callable[[int], Image.Image] = field(repr=False)
    origin: str = ""
    hashes: tuple[str, ...] = ()  # sha256 of each file, for the register of splits

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.labels)

    def open(self, index: int) -> Image.Image:
        """Open one picture.

        Raises:
            DataError: it cannot be read; the message names it.
        """
        try:
            with self.read(index) as picture:
                picture.load()
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise unreadable(self.names[index], error) from error
        return picture

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
        unknown = sorted(set(self.classes) - set(classes))
        if unknown:
            raise DataError(
                f"{self.origin} has classes that the model does not know: "
                f"{', '.join(unknown[:8])}. It knows {len(classes)}: "
                f"{', '.join(classes[:8])}{', ...' * (len(classes) > 8)}."
            )
        number = np.array([classes.index(name) for name in self.classes])
        return replace(self, labels=number[self.labels], classes=classes)

    def describe(self, indices: Iterable[int]) -> str:
        """Name pictures as the user knows them."""
        names = [self.names[int(index)] for index in indices]
        return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def unreadable(name: str | Path, error: Exception) -> DataError:
    """Say that a picture cannot be read."""
    reason = (
        str(error) if "cannot identify" not in str(error) else "not a picture, or a damaged one"
    )
    return DataError(f"{name} cannot be read as a picture: {reason}. Remove it or save it again.")


def open_image(path: Path) -> Image.Image:
    """Open a picture file.

    Raises:
        NotFoundError: no such file.
        DataError: it is not a picture, or a damaged one.
    """
    try:
        with Image.open(path) as picture:
            picture.load()
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise unreadable(path, error) from error
    return picture


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
    # Names and sizes stand for the content: reading every picture could take hours.
    listing = "\n".join(f"{path.relative_to(folder)}\t{path.stat().st_size}" for path in paths)
    return ImageSet(
        labels=np.array([label for _, label in found]),
        classes=classes,
        names=[str(path) for path in paths],
        read=lambda index: Image.open(paths[index]),
        origin=str(folder),
        hashes=(hashlib.sha256(listing.encode()).hexdigest(),),
    )


def read_parquet(paths: Sequence[Path], image: str, label: str) -> ImageSet:
    """Read parquet files with a column of encoded pictures and a column of class names.

    The picture column holds bytes, or the struct with a field `bytes` that Hugging Face writes.

    Raises:
        MissingExtraError: pyarrow is not installed.
        DataError: not a parquet file, or without these columns.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError(package="pyarrow", extra="images") from None
    contents: list[bytes] = []
    values: list[str] = []
    names: list[str] = []
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                known = file.schema_arrow.names
                missing = {image, label} - set(known)
                if missing:
                    raise DataError(
                        f"{path} has no column {' or '.join(sorted(missing))}; "
                        f"it has {', '.join(known)}. Name them with data.image and data.label."
                    )
                table = file.read(columns=[image, label])
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} cannot be read as parquet: {error}.") from error
        cells = table[image].to_pylist()
        contents += [cell["bytes"] if isinstance(cell, dict) else cell for cell in cells]
        values += [str(value) for value in table[label].to_pylist()]
        names += [f"{path}, row {row}" for row in range(len(cells))]
    if not contents:
        raise DataError(f"{', '.join(map(str, paths))}: no rows.")
    classes = sorted(set(values))
    number = {name: index for index, name in enumerate(classes)}
    return ImageSet(
        labels=np.array([number[value] for value in values]),
        classes=classes,
        names=names,
        read=lambda index: Image.open(io.BytesIO(contents[index])),
        origin=", ".join(map(str, paths)),
        hashes=tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths),
    )


def hold_out(images: ImageSet, count: int, random_state: int) -> tuple[ImageSet, ImageSet]:
    """Divide a set into a rest and a stratified part of `count` pictures, as scikit-learn does.

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
            stratify=images.labels,
            random_state=random_state,
        )
    except ValueError as error:
        raise DataError(
            f"{count} pictures cannot be held out of {images.origin} ({len(images)} pictures, "
            f"{len(images.classes)} classes): {error} Change data.hold_out."
        ) from error
    return images.select(rest), images.select(held)
