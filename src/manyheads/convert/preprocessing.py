"""How other libraries prepare images, from their configurations to the keys of `Preprocessing`.

What their own code reads is read, with the defaults that it has; what has no equivalent here is
refused. `make parity` compares the pixels.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import Ge, Gt, Le, Len
from PIL.Image import Resampling
from pydantic import BaseModel, ConfigDict, FiniteFloat, TypeAdapter, ValidationError

from manyheads.data.images.image_set import Interpolation, Mode, Preprocessing
from manyheads.errors import UsageError
from manyheads.models.convert.names import Image
from manyheads.models.sized_tables import Size

Side = Annotated[int, Ge(1), Le(1 << 14)]  # pixels
Share = Annotated[FiniteFloat, Gt(0)]
Numbers = FiniteFloat | Annotated[list[FiniteFloat], Len(1, 4)]
Deviations = Share | Annotated[list[Share], Len(1, 4)]


class Prepared(NamedTuple):
    """How images are prepared: keys of Preprocessing but for the size, which may be unknown."""

    image: dict[str, Any]
    size: Size | None = None


def preprocessing(prepared: Prepared, size: Size, mode: Mode, where: Path) -> Preprocessing:
    """Prepare images of a size, height and width, as asked.

    Raises:
        UsageError: a value does not fit.
    """
    values = prepared.image | {"height": size[0], "width": size[1], "mode": mode}
    for key in ("mean", "std"):  # of three colours, but the model sees grey
        if len(values[key]) > 1 and mode == "L":
            values[key] = (sum(values[key]) / len(values[key]),)
    try:
        return TypeAdapter(Preprocessing).validate_python(values)
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join(map(str, detail["loc"])) or "the whole"
        raise _refusal(where, key, detail["input"], detail["msg"]) from None


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


# --- transformers -------------------------------------------------------------------------------


class _Processor(_Strict):
    """What a Hugging Face image processor reads of preprocessor_config.json.

    A null is not the default: it switches off.
    """

    do_resize: bool | None = True
    size: Side | Annotated[list[Side], Len(2, 2)] | dict[str, Side]
    default_to_square: bool | None = True
    resample: Annotated[int, Ge(0), Le(5)]
    do_center_crop: bool | None = False
    crop_size: Side | Annotated[list[Side], Len(2, 2)] | dict[str, Side] | None = None
    crop_pct: Annotated[FiniteFloat, Gt(0), Le(1)] = 224 / 256  # of ConvNext only
    do_rescale: bool | None = True
    rescale_factor: Share = 1 / 255
    do_normalize: bool | None = True
    image_mean: Numbers
    image_std: Deviations
    do_pad: bool | None = False
    pad_size: object = None


TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PROCESSORS: dict[str, dict[str, Any]] = TABLES["processors"]
USUAL: dict[str, tuple[str, dict[str, Any]]] = {
    kind: (settings.pop("class"), settings) for kind, settings in TABLES["models"].items()
}
ENDINGS = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")


def from_transformers(settings: Mapping[str, Any] | None, kind: str, where: Path) -> Prepared:
    """Read the content of preprocessor_config.json, for a model of this model_type.

    Without the file, images are prepared as published models of this kind ask.

    Raises:
        UsageError: a value is wrong, or its meaning has no equivalent here.
    """
    processor, usual = USUAL[kind]
    if settings is not None:
        processor = _class(settings, processor, where)
    settings = usual if settings is None else settings
    read = _checked(_Processor, PROCESSORS[processor] | dict(settings), where)
    if not read.do_resize:
        raise _refusal(where, "do_resize", read.do_resize, "images would keep their sizes")
    if read.do_pad and processor != "ConvNext" and read.pad_size is not None:
        raise _refusal(where, "pad_size", read.pad_size, "images are never padded")
    image = {"interpolation": Resampling(read.resample).name.lower(), "crop_rounding": "down"}
    geometry = _warped if processor == "ConvNext" else _resized
    prepared = geometry(read, where)
    image |= prepared.image | _values(read)
    return prepared._replace(image=image)


def _class(settings: Mapping[str, Any], usual: str, where: Path) -> str:
    named = settings.get("image_processor_type") or settings.get("feature_extractor_type") or usual
    if isinstance(named, str):
        plain = next((named.removesuffix(end) for end in ENDINGS if named.endswith(end)), named)
        if plain in PROCESSORS:
            return plain
    raise _refusal(
        where,
        "image_processor_type",
        named,
        f"known are {', '.join(f'{name}ImageProcessor' for name in PROCESSORS)}",
    )


def _resized(read: _Processor, where: Path) -> Prepared:
    """Read the resize and crop of the plain classes."""
    size, shortest = _sides(read.size, square=read.default_to_square, where=where, key="size")
    crop = size
    if read.do_center_crop:
        if read.crop_size is None:
            raise _refusal(where, "do_center_crop", True, "crop_size is missing")
        crop, _ = _sides(read.crop_size, square=True, where=where, key="crop_size")
    elif shortest:
        raise _refusal(where, "size", read.size, "without a crop images would not be of one size")
    if crop[0] > size[0] or crop[1] > size[1]:
        raise _refusal(where, "crop_size", read.crop_size, "the crop is larger than the image")
    share = crop[0] / size[0]
    if (shortest and crop[0] != crop[1]) or abs(crop[1] / share - size[1]) > 1e-9 * size[1]:
        raise _refusal(
            where, "crop_size", read.crop_size, "it has other proportions than the resized image"
        )
    return Prepared({"resize_mode": "crop" if shortest else "stretch", "crop": share}, crop)


def _warped(read: _Processor, where: Path) -> Prepared:
    """Read the resize of ConvNext's class: below 384 pixels with a crop, above by stretching."""
    (side, _), shortest = _sides(read.size, square=read.default_to_square, where=where, key="size")
    if not shortest:
        raise _refusal(where, "size", read.size, "this class needs a shortest_edge")
    square = (side, [side, side], {"height": side, "width": side})
    if read.do_center_crop and read.crop_size not in square:
        raise _refusal(where, "crop_size", read.crop_size, "it would crop twice")
    if side >= 384:
        return Prepared({"resize_mode": "stretch", "crop": 1.0}, (side, side))
    return Prepared({"resize_mode": "crop", "crop": read.crop_pct}, (side, side))


def _sides(
    size: int | list[int] | dict[str, int] | None, *, square: bool | None, where: Path, key: str
) -> tuple[Size, bool]:
    """Return height and width, and whether only the shortest edge is stated."""
    if isinstance(size, int):
        return (size, size), not square
    if isinstance(size, list):
        return (size[0], size[1]), False
    if size is not None and size.keys() == {"height", "width"}:
        return (size["height"], size["width"]), False
    if size is not None and size.keys() == {"shortest_edge"} and key == "size":
        return (size["shortest_edge"], size["shortest_edge"]), True
    raise _refusal(where, key, size, "known are one number, height and width, or shortest_edge")


def _values(read: _Processor) -> dict[str, Any]:
    """Read what happens to the values, as mean and deviation of values from 0 to 1."""
    unit = 255 * (read.rescale_factor if read.do_rescale else 1.0)  # theirs, of a white pixel
    mean = read.image_mean if read.do_normalize else 0.0
    std = read.image_std if read.do_normalize else 1.0
    return {
        key: tuple(each / unit for each in (value if isinstance(value, list) else [value]))
        for key, value in (("mean", mean), ("std", std))
    }


# --- timm ---------------------------------------------------------------------------------------


class _PretrainedCfg(_Strict):
    """What timm reads of pretrained_cfg for its evaluation transform, with timm's defaults."""

    input_size: Annotated[list[Side], Len(3, 3)] = [3, 224, 224]
    mean: Annotated[list[FiniteFloat], Len(1, 4)] = [*Image().mean]
    std: Annotated[list[Share], Len(1, 4)] = [*Image().std]
    interpolation: Interpolation = "bicubic"
    crop_pct: Annotated[FiniteFloat, Gt(0), Le(1)] = 0.875
    crop_mode: Literal["center", "squash"] = "center"


MODES = {"center": "crop", "squash": "stretch"}


def from_timm(settings: Mapping[str, Any], where: Path) -> Prepared:
    """Read pretrained_cfg of a config.json of timm.

    Raises:
        UsageError: a value is wrong, or its meaning has no equivalent here.
    """
    # Theirs takes the default in place of whatever counts as nothing.
    read = _checked(_PretrainedCfg, {key: value for key, value in settings.items() if value}, where)
    image = {
        "mean": tuple(read.mean),
        "std": tuple(read.std),
        "interpolation": read.interpolation,
        "crop": read.crop_pct,
        "resize_mode": MODES[read.crop_mode],
        "crop_rounding": "even",
    }
    return Prepared(image, (read.input_size[1], read.input_size[2]))


def from_default(image: Image) -> Prepared:
    """Take what timm or torchvision does for a family by default."""
    return Prepared(asdict(image) | {"crop_rounding": "even"})


# --- Both ---------------------------------------------------------------------------------------


def _checked(kind: type[Any], settings: Mapping[str, Any], where: Path) -> Any:
    try:
        return kind.model_validate(dict(settings))
    except ValidationError as error:
        detail = error.errors()[0]
        key = str(detail["loc"][0])
        raise _refusal(where, key, settings[key], detail["msg"]) from None


def _refusal(where: Path, key: str, value: object, reason: str) -> UsageError:
    return UsageError(
        f"Images cannot be prepared as {where} asks: {key} = {value!r:.200}: {reason}. Correct "
        "it, if it is a mistake; otherwise this model cannot be converted."
    )
