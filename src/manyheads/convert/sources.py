"""What a source of foreign weights holds: a file, a folder, or a model of the hub."""

import tomllib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from torch import Tensor

from manyheads.convert.foreign_files import (
    SUFFIXES,
    find_table,
    read_license,
    read_table,
    read_tensors,
)
from manyheads.convert.hub_files import Repository, open_repository
from manyheads.errors import FolderError, NotFoundError, UsageError
from manyheads.files import expand_user
from manyheads.models.convert import families
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import PRESETS
from manyheads.project.base_recipe import Converted
from manyheads.project.hub_name import HUB

Load = Callable[[], dict[str, Tensor]]
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
HUB_FILES = tomllib.loads(Path(__file__).with_name("hub_files.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Source:
    """What a source holds, of whichever library."""

    load: Load
    where: Path  # for messages; a folder with all but the weights
    origin: str
    about: dict[str, Any]  # config.json
    processor: dict[str, Any] | None = None  # preprocessor_config.json
    license: str | None = None
    revision: str | None = None  # on the hub: a commit

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """The weights; those of the hub are fetched now.

        Raises:
            FolderError: the file is damaged, or holds more than tensors.
            DataError: the download breaks off, or brings something else.
        """
        return self.load()

    def converted(self, library: str, **more: Any) -> Converted:
        """Write the [converted] table of a recipe."""
        told = {"origin": self.origin, "revision": self.revision, "license": self.license}
        return Converted.model_validate({"format": library, **told, **more})


@contextmanager
def opened(source: str | Source) -> Iterator[Source]:
    """Open a file of weights, a folder of config.json and weights, or a model of the hub.

    Of the hub only what a converter needs is fetched, the weights last.

    Raises:
        NotFoundError: there is none.
        FolderError: a file is missing or damaged.
        UsageError: a model of the hub that cannot be converted.
        MissingExtraError: a name on the hub, without the package that fetches it.
        DataError: the hub cannot be reached, or sends something else than it announces.
    """
    if isinstance(source, Source):
        yield source
        return
    path = expand_user(source)
    if path.is_file():
        yield Source(partial(read_tensors, path), path, path.name, {})
    elif path.is_dir():
        weights = _weights([each.name for each in path.iterdir()], str(path))
        # A path means nothing on other machines.
        yield _read(lambda: read_tensors(path / weights), path, path.resolve().name)
    elif source.startswith(HUB):
        with open_repository(source) as repository:
            yield _of_hub(repository)
    else:
        raise NotFoundError(
            f"There is no file or folder {source!r}. Give a file of weights "
            f"({', '.join(SUFFIXES)}), a folder with config.json and weights, or a name on the "
            "hub, such as hf:timm/vit_small_patch32_224.augreg_in21k_ft_in1k."
        )


def _of_hub(repository: Repository) -> Source:
    """Fetch the small files that the library of a model has; its configuration first."""
    if "config.json" not in repository.files:
        raise UsageError(
            f"{repository.name} has no config.json, so that nothing says what its weights are. "
            "Fetch them yourself, and give `manyheads convert` the file."
        )
    repository.fetch("config.json")
    about = read_table(repository.folder / "config.json")
    library = families.check(about)
    weights = _weights(repository.files, repository.name)
    repository.fetch(*HUB_FILES["library"][library])
    if library == "hf" and families.has_texts(about):
        forms = (form for form in HUB_FILES["tokenizers"] if repository.files.keys() >= {*form})
        repository.fetch(*HUB_FILES["texts"], *next(forms, ()))

    def load() -> dict[str, Tensor]:
        repository.fetch(weights)
        return read_tensors(repository.folder / weights)

    return _read(load, repository.folder, repository.repository, repository.commit)


def _weights(names: Collection[str], where: str) -> str:
    found = next((name for name in WEIGHTS if name in names), None)
    if found is None:
        raise FolderError(
            f"{where} has no weights: looked for {' and '.join(WEIGHTS)}. Weights in several "
            "parts, or of other libraries, are not read; if the file has another name, give the "
            "file itself."
        )
    return found


def _read(load: Load, folder: Path, origin: str, revision: str | None = None) -> Source:
    about, processor = read_table(folder / "config.json"), _read_processor(folder)
    return Source(load, folder, origin, about, processor, read_license(folder), revision)


def _read_processor(folder: Path) -> dict[str, Any] | None:
    """Read how images are prepared, as Hugging Face looks for it; None if nothing says it."""
    nested = (find_table(folder / "processor_config.json") or {}).get("image_processor")
    return nested if isinstance(nested, dict) else find_table(folder / "preprocessor_config.json")


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
