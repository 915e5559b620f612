"""What a source of foreign weights holds: a file, a folder, or a name on the hub."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from manyheads.app.convert.foreign_files import (
    SUFFIXES,
    fetch_model,
    looks_like_hub_name,
    read_license,
    read_table,
    read_tensors,
)
from manyheads.errors import FolderError, NotFoundError
from manyheads.files import expand_user
from manyheads.models.config import ModelConfig
from manyheads.models.presets import PRESETS

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
SMALL = ("*.json", "*.txt", "*.model", "README.md")


class Source(NamedTuple):
    """What a source holds, of whichever library."""

    tensors: dict[str, Tensor]
    where: Path  # for messages
    origin: str
    about: dict[str, Any]  # config.json
    processor: dict[str, Any] | None  # preprocessor_config.json
    license: str | None


def read_source(source: str) -> Source:
    """Read a file of weights, a folder of config.json and weights, or a model of the hub.

    Raises:
        NotFoundError: there is none.
        FolderError: a file is missing or damaged.
        MissingExtraError: a name on the hub, without the package that fetches it.
    """
    path = expand_user(source)
    if path.is_file():
        return Source(read_tensors(path), path, path.name, {}, None, None)
    if not path.is_dir():
        if not looks_like_hub_name(source):
            raise NotFoundError(
                f"There is no file or folder {source!r}. Give a file of weights "
                f"({', '.join(SUFFIXES)}), a folder with config.json and weights, or a name on "
                'the hub, such as "timm/vit_small_patch32_224.augreg_in21k_ft_in1k".'
            )
        path = fetch_model(source, SMALL, WEIGHTS)
    weights = next((path / name for name in WEIGHTS if (path / name).exists()), None)
    if weights is None:
        raise FolderError(
            f"{path} has no weights: looked for {' and '.join(WEIGHTS)}. Get the whole folder "
            "again, or give the file of weights itself."
        )
    # A path means nothing on other machines.
    origin = path.resolve().name if expand_user(source).is_dir() else source
    return Source(
        read_tensors(weights),
        path,
        origin,
        read_table(path / "config.json"),
        _read_processor(path),
        read_license(path),
    )


def _read_processor(folder: Path) -> dict[str, Any] | None:
    """Read how images are prepared, as Hugging Face looks for it; None if nothing says it."""
    both = read_table(folder / "processor_config.json", needed=False)
    nested = (both or {}).get("image_processor")
    if isinstance(nested, dict):
        return nested
    return read_table(folder / "preprocessor_config.json", needed=False)


def nearest_preset(config: ModelConfig) -> str:
    """Name the preset of a model's kind that is nearest to it; its numbers are all written out."""
    # Of the same class: each has Field objects of its own.
    kin = {name: each for name, each in PRESETS.items() if fields(each) == fields(config)}
    wanted = asdict(config)

    def differences(name: str) -> int:
        return sum(value != wanted[key] for key, value in asdict(kin[name]).items())

    return min(kin, key=differences)


def assumed(name: str) -> str:
    """Say that nothing told how images are prepared."""
    return (
        f"The file does not say how images are prepared; preprocessing.json has what is usual "
        f"for {name}. Compare it with where the weights come from."
    )
