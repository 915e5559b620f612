"""Pictures from folders, parquet files or arrays, and the preprocessing stored with a model.

What was done to pictures in training is done to every picture later, by the same code from the
same stored numbers.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from PIL import Image, ImageOps
from torch import Tensor

from manyheads.errors import DataError, MissingExtraError, NotFoundError

Interpolation = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".npy"}
NPY = b"\x93NUMPY"  # how a file of numpy begins
ANIMATED = "animated"  # in the info of the first frame of several

# What a file holds: a picture, or an array (height, width, channel) of any number of channels.
Picture = Image.Image | np.ndarray
Mode = Literal["RGB", "L", "RGBA", "CMYK", "bands"]


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
        """Turn a picture as its camera says, lay it on white if transparent, and set its mode."""
        picture = _eight_bits(ImageOps.exif_transpose(picture))
        if self.mode == "bands":
            return picture
        return (picture if self.mode == "RGBA" else _on_white(picture)).convert(self.mode)

    def pixels(self, picture: Picture) -> np.ndarray:
        """Crop to the shape of the model's input, then resize: (channel, height, width), 0..255.

        Raises:
            ValueError: it has another number of channels than the recipe declares.
        """
        if isinstance(picture, np.ndarray):
            array = _eight_bit_array(picture)
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
            channels = [each.resize(size, Image.Resampling.BICUBIC, box=box) for each in channels]
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


def _eight_bits(picture: Image.Image) -> Image.Image:
    """Scale deep greys to 0..255; Pillow's convert would cut off what is brighter."""
    if picture.mode.startswith("I;16"):
        return picture.point(lambda value: value * (1 / 256))
    if picture.mode in ("I", "F"):
        values = np.asarray(picture, dtype=np.float64)
        largest = values.max(initial=0)
        scale = 255 if picture.mode == "F" and largest <= 1 else 1 / 256 if largest > 255 else 1
        return Image.fromarray(np.clip(values * scale, 0, 255).astype(np.uint8))
    return picture


def _eight_bit_array(array: np.ndarray) -> np.ndarray:
    """Bring an array to (height, width, channel) of bytes: 16 bits and shares are scaled."""
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(f"its shape is {array.shape}, not (height, width, channel)")
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.uint16:
        return (array >> 8).astype(np.uint8)
    if array.dtype.kind == "f" and array.min() >= 0 and array.max() <= 1:
        return np.rint(array * 255).astype(np.uint8)
    raise ValueError(
        f"its numbers are {array.dtype} from {array.min()} to {array.max()}: allowed are uint8, "
        "uint16, and fractions from 0 to 1"
    )


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
    classes: list[str]
    names: Sequence[str]  # of each picture, for messages
    read: Callable[[int], Picture] = field(repr=False)
    origin: str = ""
    hashes: tuple[str, ...] = ()  # sha256 of each file, for the register of splits
    left_out: tuple[str, ...] = ()  # names of pictures that could not be read

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
            DataError: it cannot be read; the message names it.
        """
        try:
            return _load(lambda: self.read(index))
        except UNREADABLE as error:
            raise unreadable(self.names[index], error) from error

    def image(self, index: int) -> Image.Image:
        """Open one picture that Pillow can show.

        Raises:
            DataError: it cannot be read, or is an array.
        """
        picture = self.open(index)
        if isinstance(picture, np.ndarray):
            raise unreadable(self.names[index], ValueError(NO_COLOURS))
        return picture

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        """Open one picture as the model sees it: (channel, height, width), 0..255.

        Raises:
            DataError: it cannot be read, or has the wrong number of channels.
        """
        picture = self.open(index)
        try:
            return preprocessing.pixels(picture)
        except UNREADABLE as error:
            raise unreadable(self.names[index], error) from error

    def readable(self, threads: int = 1) -> "ImageSet":
        """Leave out the pictures that cannot be read; every one is opened once to know."""

        def fine(index: int) -> bool:
            try:
                self.open(index)
            except DataError:
                return False
            return True

        with ThreadPoolExecutor(threads) as pool:
            kept = np.array(list(pool.map(fine, range(len(self)))), dtype=bool)
        lost = tuple(self.names[int(index)] for index in (~kept).nonzero()[0])
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


NO_COLOURS = "it is an array of numbers, not colours"
# What Pillow and numpy raise about files that are damaged or something else.
UNREADABLE = (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError)


def unreadable(name: str | Path, error: BaseException) -> DataError:
    """Say that a picture cannot be read."""
    reason = str(error)
    if "cannot identify" in reason:
        reason = "not a picture, or a damaged one"
    if isinstance(error, Image.DecompressionBombError):
        limit = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        reason = f"it has more than {limit:,} pixels (a decompression bomb?); make it smaller"
    return DataError(
        f"{name} cannot be read as a picture: {reason}. Remove it or save it again; "
        'data.bad = "skip" trains without such pictures.'
    )


def open_content(content: bytes) -> Picture:
    """Open a picture, or an array of numpy, from the content of its file.

    Raises:
        ValueError: there is nothing in it.
    """
    if not content:
        raise ValueError("it is empty (0 bytes)")
    if content.startswith(NPY):
        array: np.ndarray = np.load(BytesIO(content), allow_pickle=False)
        return array
    return Image.open(BytesIO(content))


def open_picture(path: Path) -> Picture:
    """Open a file of pixels; what it is follows from its content, not from its ending.

    Raises:
        NotFoundError: no such file.
        DataError: it is not a picture, or a damaged one.
    """
    try:
        return _load(lambda: open_content(path.read_bytes()))
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except UNREADABLE as error:
        raise unreadable(path, error) from error


def open_image(path: Path) -> Image.Image:
    """Open a picture file.

    Raises:
        NotFoundError: no such file.
        DataError: it is not a picture, or a damaged one.
    """
    picture = open_picture(path)
    if isinstance(picture, np.ndarray):
        raise unreadable(path, ValueError(NO_COLOURS))
    return picture


def _load(read: Callable[[], Picture]) -> Picture:
    """Decode all of a picture, or raise: nothing is left to be read later."""
    with warnings.catch_warnings():
        # Up to twice Pillow's limit a picture is only large; beyond, it raises.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        picture = read()
        if isinstance(picture, np.ndarray):
            return picture
        with picture:
            picture.load()
            if getattr(picture, "is_animated", False):
                picture = picture.copy()  # its first frame; the file of the others is closed now
                picture.info[ANIMATED] = True
    return picture


def number_labels(
    values: Sequence[object], names: Sequence[str], separator: str | None
) -> tuple[np.ndarray, list[str]]:
    """Number class names in alphabetical order.

    Args:
        values: of each picture, a name or number; with a separator a list of them, or a text.
        names: of the pictures, for messages.
        separator: between the names in a text; None: every picture has exactly one class.

    Returns:
        The labels as `ImageSet` has them, and the classes.

    Raises:
        DataError: a picture has no class, or several where it should have one.
    """
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
    """Read all pictures in a folder, at any depth, as one class.

    Raises:
        DataError: there are none.
    """
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES]
    if not paths:
        raise DataError(f"{folder} has no pictures ({', '.join(sorted(SUFFIXES))}).")
    return ImageSet(
        labels=np.zeros(len(paths), dtype=int),
        classes=["picture"],
        names=[str(path) for path in paths],
        read=lambda index: open_content(paths[index].read_bytes()),
        origin=str(folder),
        hashes=(_listing_hash(paths, folder),),
    )


def read_parquet(
    paths: Sequence[Path], image: str, label: str, separator: str | None = None
) -> ImageSet:
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
    values: list[object] = []
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
        values += table[label].to_pylist()
        names += [f"{path}, row {row}" for row in range(len(cells))]
    if not contents:
        raise DataError(f"{', '.join(map(str, paths))}: no rows.")
    labels, classes = number_labels(values, names, separator)
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: open_content(contents[index] or b""),
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
    return images.select(rest), images.select(held)
