"""Sets of images, from folders or files, and the preprocessing stored with a model.

Training and prediction preprocess images by the same code with the same stored numbers.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from zlib import crc32

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from PIL import Image, ImageOps
from torch import Tensor

from manyheads.bounded_numbers import MOST_PIXELS
from manyheads.data.images.image_file import (
    PLAIN,
    SUFFIXES,
    ImageContent,
    eight_bit_array,
    eight_bits,
    is_image,
    load,
    naming,
    read_content,
)
from manyheads.data.regular_files import files_below, size_of
from manyheads.data.text.encoding import is_valid_unicode
from manyheads.errors import DataError, UnreadableError, optional_import

Found = list[int | str]  # of each image a checksum, or why it cannot be read

Interpolation = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
Mode = Literal["RGB", "L", "RGBA", "CMYK", "bands"]
LARGEST = 1 << 26  # pixels of a resized image; of a strip, the part is resized that is seen
BLOCK = 1024  # images submitted to the threads at a time, so that they can be interrupted

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """From any image to the input of a model: the [image] table, stored with the model."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

    height: Annotated[int, Ge(1), Le(MOST_PIXELS)] = 224
    width: Annotated[int, Ge(1), Le(MOST_PIXELS)] = 224
    mode: Mode = "RGB"  # L: grey; "bands": the channels of the file, `num_channels` of them
    num_channels: Annotated[int, Ge(0)] = 0
    # Share of the resized image that the centre crop keeps.
    crop: Annotated[float, Gt(0), Le(1)] = 1.0
    # How an image of another aspect ratio is fitted: cropped or stretched.
    resize_mode: Literal["crop", "stretch"] = "crop"
    # "none": the crop is cut at fractions of a pixel, in one step with the resize. Else the whole
    # image is resized to whole pixels first, then cropped; an odd margin is rounded "down", as in
    # transformers, or to "even" halves, as in torchvision and timm.
    crop_rounding: Literal["none", "down", "even"] = "none"
    interpolation: Interpolation = "bicubic"
    mean: tuple[float, ...] = (0.5,)  # per channel, of values scaled to 0..1; or one for all
    std: tuple[Annotated[float, Gt(0)], ...] = (0.5,)

    def __post_init__(self) -> None:
        """Refuse a mean or standard deviation with a wrong number of channels."""
        if (self.mode == "bands") != (self.num_channels > 0):
            raise ValueError(
                f"mode is {self.mode!r} and num_channels {self.num_channels}: num_channels is for "
                'mode "bands" only'
            )
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, self.channels):
                raise ValueError(
                    f"{name} has {len(values)} numbers, mode {self.mode!r} takes 1 or "
                    f"{self.channels}"
                )

    @property
    def channels(self) -> int:
        """The number of channels: 1 for L, 3 for RGB, 4 for RGBA and CMYK, or `num_channels`."""
        return self.num_channels or len(self.mode)

    def box(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Return the crop of a width x height image: left, top, right, bottom."""
        if self.crop_rounding != "none":
            (across, down), (x, y) = self._resized(width, height)
            scales = (width / across, height / down) * 2
            edges = (x, y, x + self.width, y + self.height)
            left, top, right, bottom = (e * scale for e, scale in zip(edges, scales, strict=True))
            return left, top, right, bottom
        if self.resize_mode == "stretch":
            seen_width, seen_height = width * self.crop, height * self.crop
        else:
            scale = min(width / self.width, height / self.height) * self.crop
            seen_width, seen_height = self.width * scale, self.height * scale
        left, top = (width - seen_width) / 2, (height - seen_height) / 2
        return left, top, left + seen_width, top + seen_height

    def _resized(self, width: int, height: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the size of the whole image before a rounded crop, and the crop's corner."""
        # Both libraries round down; a little is added for shares that are such a fraction.
        across = math.floor(self.width / self.crop + 1e-9)
        down = math.floor(self.height / self.crop + 1e-9)
        if self.resize_mode == "crop" and across == down:  # the shorter side of the image
            short = min(width, height)
            across, down = int(across * width / short), int(down * height / short)
        elif self.resize_mode == "crop":
            ratio = min(width / across, height / down)
            across, down = round(width / ratio), round(height / ratio)
        margins = across - self.width, down - self.height
        if self.crop_rounding == "down":
            return (across, down), (margins[0] // 2, margins[1] // 2)
        return (across, down), (round(margins[0] / 2), round(margins[1] / 2))

    def _fit(self, image: Image.Image) -> Image.Image:
        """Crop and resize an image to the shape of the model's input."""
        size, curve = (self.width, self.height), Image.Resampling[self.interpolation.upper()]
        if self.crop_rounding != "none":
            whole, (x, y) = self._resized(*image.size)
            if whole[0] * whole[1] <= LARGEST:
                return image.resize(whole, curve).crop((x, y, x + size[0], y + size[1]))
        box = self.box(*image.size)
        return image if box == (0, 0, *size) else image.resize(size, curve, box=box)

    def upright(self, image: Image.Image) -> Image.Image:
        """Apply the EXIF orientation, put transparent images on white, and convert the mode."""
        image = eight_bits(ImageOps.exif_transpose(image))
        if self.mode == "bands":  # only 1-bit and palette images are converted
            return image.convert(PLAIN.get(image.mode, image.mode))
        return (image if self.mode == "RGBA" else _on_white(image)).convert(self.mode)

    def pixels(self, image: ImageContent) -> np.ndarray:
        """Crop and resize to the shape of the model's input: (channel, height, width), 0..255.

        Raises:
            ValueError: the image has another number of channels than the recipe declares, or its
                values are not colours.
        """
        if isinstance(image, np.ndarray):
            array = eight_bit_array(image)
            if self.mode == "bands" or array.shape[2] not in (1, 3, 4):
                return self._bands(array)
            image = Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)
        image = self.upright(image)
        if self.mode == "bands":
            return self._bands(eight_bit_array(np.asarray(image)))
        values = np.asarray(self._fit(image), dtype=np.uint8)
        return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)

    def _bands(self, array: np.ndarray) -> np.ndarray:
        """Crop and resize each channel of (height, width, channel)."""
        if array.shape[2] != self.channels:
            raise ValueError(
                f"it has {array.shape[2]} channels, the recipe declares {self.channels} "
                "(image.mode, image.num_channels)"
            )
        channels = map(np.ascontiguousarray, np.moveaxis(array, 2, 0))
        fitted = [self._fit(Image.fromarray(channel)) for channel in channels]
        return np.stack([np.asarray(each, dtype=np.uint8) for each in fitted])

    def normalise(self, pixels: Tensor) -> Tensor:
        """Scale a batch of pixels to 0..1, subtract the mean, divide by the standard deviation."""
        mean = torch.tensor(self.mean, device=pixels.device).view(-1, 1, 1)
        std = torch.tensor(self.std, device=pixels.device).view(-1, 1, 1)
        return (pixels.float() / 255 - mean) / std

    def restore(self, images: Tensor) -> Tensor:
        """Undo `normalise`: return values in 0..255."""
        mean = torch.tensor(self.mean, device=images.device).view(-1, 1, 1)
        std = torch.tensor(self.std, device=images.device).view(-1, 1, 1)
        return (images.float() * std + mean) * 255


def _on_white(image: Image.Image) -> Image.Image:
    """Put a transparent image on white; the colour of transparent pixels is arbitrary."""
    if "A" not in image.getbands() and "transparency" not in image.info:
        return image
    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)


@dataclass(frozen=True)
class ImageSet:
    """Images with classes, opened on demand: a set may be larger than memory."""

    labels: np.ndarray  # (image,) index into classes; (image, class) 0 or 1 if several apply
    classes: list[str]  # empty if the images have no labels
    names: Sequence[str]  # of each image, for messages
    # The bytes of an image's file; or an image, where there is no file.
    read: Callable[[int], bytes | ImageContent] = field(repr=False)
    origin: str = ""
    hashes: tuple[str, ...] = ()  # sha256 of each file, for the register of splits
    left_out: tuple[str, ...] = ()  # images that could not be read, and why
    content: str = ""  # sha256 over the pixels of all images, once they were read
    other_files: tuple[str, ...] = ()  # of the same folder, not taken for images
    # The file that holds each image: its own, then named like it, or a table or archive.
    files: Sequence[Path] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def multi_label(self) -> bool:
        """Whether an image may have any number of classes."""
        return self.labels.ndim == 2

    def open(self, index: int) -> ImageContent:
        """Open one image; of an animated image the first frame."""
        with naming(self.names[index]):
            return load(lambda: self.read(index))

    def image(self, index: int) -> Image.Image:
        """Open one image as a Pillow image.

        Raises:
            UnreadableError: the image cannot be read, or is an array.
        """
        image = self.open(index)
        if isinstance(image, np.ndarray):
            raise UnreadableError(self.names[index], "it is an array of numbers, not colours")
        return image

    def pixels(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        """Open and preprocess one image: (channel, height, width), 0..255."""
        image = self.open(index)
        with naming(self.names[index]):
            return preprocessing.pixels(image)

    def readable(
        self,
        preprocessing: Preprocessing,
        *,
        rank: int = 0,
        world: int = 1,
        gather: Callable[[Found], Sequence[Found]] = lambda found: [found],
    ) -> "ImageSet":
        """Leave out the images that cannot be read and preprocessed; every image is read once.

        Several processes read a part each, and `gather` tells each what all have found.
        """

        def read(index: int) -> int | str:
            try:
                return crc32(self.pixels(index, preprocessing).tobytes())
            except UnreadableError as error:
                return f"{error.name} ({error.reason})"

        own = list(in_threads(read, range(rank, len(self), world)))
        found: Found = [""] * len(self)
        for number, part in enumerate(gather(own)):
            found[number::world] = part
        kept = np.array([isinstance(each, int) for each in found], dtype=bool)
        unreadable = tuple(each for each in found if isinstance(each, str))
        return replace(
            self.select(kept.nonzero()[0]),
            left_out=self.left_out + unreadable,
            content=hashlib.sha256(str(found).encode()).hexdigest(),
        )

    def select(self, indices: np.ndarray) -> "ImageSet":
        """Return the images at these indices as a set."""
        chosen = [int(index) for index in indices]
        return replace(
            self,
            labels=self.labels[indices],
            names=[self.names[index] for index in chosen],
            files=[self.files[index] for index in chosen] if self.files else (),
            read=lambda index: self.read(chosen[index]),
        )

    def relabel(self, classes: list[str]) -> "ImageSet":
        """Number the classes in the order of `classes`.

        Raises:
            DataError: this set has a class that is not in `classes`.
        """
        if self.classes == classes:
            return self
        if unknown := sorted(set(self.classes) - set(classes)):
            raise DataError(
                f"{self.origin} has classes that the model does not have: "
                f"{', '.join(unknown[:8])}. The model has {len(classes)}: "
                f"{', '.join(classes[:8])}{', ...' * (len(classes) > 8)}."
            )
        number = np.array([classes.index(name) for name in self.classes], dtype=int)
        if not self.multi_label:
            return replace(self, labels=number[self.labels], classes=classes)
        labels = np.zeros((len(self), len(classes)), dtype=self.labels.dtype)
        labels[:, number] = self.labels
        return replace(self, labels=labels, classes=classes)

    def describe(self, indices: Iterable[int]) -> str:
        """Return the names of images, for messages."""
        names = [self.names[int(index)] for index in indices]
        return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def in_threads(function: Callable[[A], T], inputs: Sequence[A]) -> Iterator[T]:
    """Apply a function in torch's number of threads, in order; Pillow releases the GIL."""
    threads = min(torch.get_num_threads(), len(inputs))
    if threads < 2:
        yield from map(function, inputs)
        return
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(inputs), BLOCK):
            yield from pool.map(function, inputs[start : start + BLOCK])


def number_labels(
    values: Sequence[object] | None, names: Sequence[str], separator: str | None
) -> tuple[np.ndarray, list[str]]:
    """Number class names in alphabetical order.

    Args:
        values: the class name or number of each image; with a separator, a list of them or a text
            of several names; None: there are no labels and no classes.
        names: of the images, for messages.
        separator: between the names in a text; None: every image has exactly one class.

    Returns:
        The labels as in `ImageSet`, and the classes.

    Raises:
        DataError: an image has no class, or several instead of one; no image has any class.
    """
    if values is None:
        return np.zeros(len(names), dtype=int), []
    if separator is None:
        for name, value in zip(names, values, strict=True):
            if isinstance(value, list | tuple):
                message = "set data.multi_label = true."
                raise DataError(f"{name} has a list of labels, {value!r}: {message}")
            if value is None or value != value or not str(value).strip():  # of NaN, too
                raise DataError(f"{name} has no label. Give it one, or remove it.")
    lists = [_listed(value, separator, name) for name, value in zip(names, values, strict=True)]
    classes = sorted({each for listed in lists for each in listed})
    number = {each: index for index, each in enumerate(classes)}
    if separator is None:
        return np.array([number[only] for (only,) in lists], dtype=int), classes
    if not classes:
        raise DataError(f"None of {len(names):,} images has a label; the first is {names[0]}.")
    labels = np.zeros((len(lists), len(classes)), dtype=np.float32)
    for row, listed in zip(labels, lists, strict=True):
        row[[number[each] for each in listed]] = 1
    return labels, classes


def labelled(
    names: Sequence[str],
    values: Sequence[object] | None = None,
    separator: str | None = None,
    **fields: Any,
) -> ImageSet:
    """Make a set with the labels of `number_labels`, and its errors; `fields` are the others."""
    labels, classes = number_labels(values, names, separator)
    return ImageSet(labels=labels, classes=classes, names=names, **fields)


def _listed(value: object, separator: str | None, name: str) -> list[str]:
    if separator is None:
        return [_label_name(value, name)]
    if value is None or value != value:
        return []
    whole = value if isinstance(value, list | tuple) else _label_name(value, name).split(separator)
    return [text for text in (_label_name(part, name).strip() for part in whole) if text]


def _label_name(value: object, name: str) -> str:
    """Return the name of a class, which a table may give as a number."""
    if isinstance(value, str | int | float | np.number) and is_valid_unicode(str(value)):
        return str(value)
    raise DataError(f"{name} has the label {value!a:.100}: a label is a text or a number.")


def read_folder(folder: Path) -> ImageSet:
    """Read a folder with one sub-folder of images per class.

    Raises:
        DataError: there are no class folders, no images in them, or one that cannot be read.
    """
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror}.") from error
    places = [each for each in inside if each.is_dir() and not each.name.startswith((".", "__"))]
    classes = [each.name for each in places]  # without .git, __MACOSX
    for name in classes:
        if not is_valid_unicode(name):
            raise DataError(f"{folder}: the name of the class {name!a} is not UTF-8: rename it.")
    files = [(path, label) for label, each in enumerate(places) for path in files_below(each)]
    found = [(path, label) for path, label in files if is_image(path)]
    if not found:
        raise DataError(
            f"{folder} has no images: expected one folder of images per class, for "
            f"example {folder / 'cat' / '1.png'} ({', '.join(sorted(SUFFIXES))})."
        )
    paths = [path for path, _ in found]
    labels = np.array([label for _, label in found])
    of_no_class = [path for path in inside if not path.is_dir() and is_image(path)]
    return _from_files(folder, paths, labels, classes, [path for path, _ in files] + of_no_class)


def _from_files(
    folder: Path, paths: Sequence[Path], labels: np.ndarray, classes: list[str], files: list[Path]
) -> ImageSet:
    # Hash names and sizes instead of the content: reading every image could take hours.
    listing = "\n".join(f"{path.relative_to(folder)}\t{size_of(path)}" for path in paths)
    return ImageSet(
        labels=labels,
        classes=classes,
        names=[str(path) for path in paths],
        read=lambda index: read_content(paths[index]),
        origin=str(folder),
        files=paths,
        hashes=(hashlib.sha256(listing.encode(errors="surrogateescape")).hexdigest(),),
        other_files=tuple(
            str(path)
            for path in sorted({*files}.difference(paths))
            if not path.name.startswith(".")  # .DS_Store
        ),
    )


def read_unlabelled(folder: Path) -> ImageSet:
    """Read all images in a folder, at any depth, without classes.

    Raises:
        DataError: there are no images, or a folder cannot be read.
    """
    files = files_below(folder)
    paths = [path for path in files if is_image(path)]
    if not paths:
        raise DataError(f"{folder} has no images ({', '.join(sorted(SUFFIXES))}).")
    return _from_files(folder, paths, np.zeros(len(paths), dtype=int), [], files)


def read_files(paths: Sequence[Path]) -> ImageSet:
    """Read single image files, without classes."""
    names = [str(path) for path in paths]
    return labelled(
        names, read=lambda index: read_content(paths[index]), origin=", ".join(names), files=paths
    )


def hold_out(images: ImageSet, count: int, random_state: int) -> tuple[ImageSet, ImageSet]:
    """Split a set into the rest and `count` held-out images, stratified by class.

    Images with several classes each are split at random.

    Raises:
        MissingExtraError: scikit-learn is not installed.
        DataError: the set is too small.
    """
    with optional_import("scikit-learn", extra="images"):
        from sklearn.model_selection import train_test_split
    try:
        rest, held = train_test_split(
            np.arange(len(images)),
            test_size=count,
            stratify=None if images.multi_label else images.labels,
            random_state=random_state,
        )
    except ValueError as error:
        raise DataError(
            f"{count} images cannot be held out of {images.origin} ({len(images)} images, "
            f"{len(images.classes)} classes): {error} Change data.hold_out."
        ) from error
    # Unreadable images belong to neither part: they are reported once, with the rest.
    return images.select(rest), replace(images.select(held), left_out=())
