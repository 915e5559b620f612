"""A run folder is a model folder: written piece by piece atomically, checked when it is read."""

import math
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.errors import ChangedFolderError, FolderError, RecipeError, UsageError
from manyheads.files import append_line, reject_address, sha256, write_atomically, write_text
from manyheads.models.components import modules_of_parts
from manyheads.models.presets import REGISTERED_BY, preset
from manyheads.models.resize import resize
from manyheads.nn.layers.linear import pack
from manyheads.project.base_recipe import Converted, Recipe, read_recipe
from manyheads.project.capacity import at_most
from manyheads.project.hub_name import hub_name_of
from manyheads.project.int8_weights import SCALE, dequantize, quantize, scaled
from manyheads.project.migrate import RENAMED, rename
from manyheads.project.paths import shipped
from manyheads.project.plugins import LOADED, home
from manyheads.project.recipe_limits import short
from manyheads.project.registry import find_task
from manyheads.project.sentencepiece_files import Vocabularies, need_vocabularies, sizes, tokenizers
from manyheads.project.toml_file import read_toml
from manyheads.strict_json import dumps, loads
from manyheads.train.device import limited_threads, threads_for
from manyheads.train.model_tensors import not_finite, restore, tensors
from manyheads.train.train_config import Precision
from manyheads.version import __version__

if TYPE_CHECKING:  # most models need none of these
    from manyheads.data.images.image_set import Preprocessing
    from manyheads.data.tokenizers.characters import Characters

T = TypeVar("T")
FORMAT_VERSION = 3  # of a folder with int8 weights; others are of 2, and earlier versions read them
HELD_OUT = "held_out.tsv"  # pairs that data.hold_out took out of training: line, source, target
LEFT_OUT = "left_out.txt"  # images that could not be read, and why
AGAIN = "Copy the folder again."
OWN = ".manyheads-"  # what comes and goes while a run is at work: a lock, unfinished files
CACHE = f"{OWN}cache"  # what training made of a large corpus; gone when it has finished
FOREIGN = ("hf", "marian")  # folders of other libraries' own files
HASHED = (
    *("recipe.toml", "model.safetensors", "tokenizer.model", "source.model", "target.model"),
    *("characters.json", "preprocessing.json", "labels.json"),
)
UNHASHED = (
    *("manyheads.json", "README.md", "metrics.jsonl", "evaluations.jsonl", "start.json"),
    *(HELD_OUT, LEFT_OUT, "state", "events", "engines", *FOREIGN),
)


class Hashes(BaseModel, extra="allow"):
    """The sha256 of each file that makes a model what it is."""

    __pydantic_extra__: dict[str, str]
    recipe: str = Field(alias="recipe.toml")
    weights: str = Field(alias="model.safetensors")


class Manifest(BaseModel):
    """What manyheads.json must have."""

    task: str
    preset: str
    versions: dict[str, str]
    precision: str
    threads: int
    plugins: list[str] = []
    sha256: Hashes


class StoredScore(BaseModel):
    """A score of an evaluation; null where it was not a number."""

    value: float | None
    signature: str


class Evaluation(BaseModel):
    """What a line of evaluations.jsonl must have."""

    data: str
    final: bool
    all: dict[str, StoredScore]  # by metric
    groups: dict[str, float | None] | None = None
    remarks: list[str] = []


class ModelFolder:
    """A model on disk: its recipe, its weights, and what turns raw input into tensors."""

    def __init__(self, path: Path, engines: Path | None = None) -> None:
        """Open a folder and check that it is whole.

        Args:
            path: of the folder.
            engines: where exports are; `engines` in the folder if None.

        Raises:
            FolderError: incomplete, changed since it was written, or of a later version.
        """
        self.path = path
        self.engines = path / "engines" if engines is None else engines
        manifest = path / "manyheads.json"
        if not manifest.is_file():
            hint = (
                "Its training has not reached the first validation yet: go on with `resume=True`."
                if (path / "recipe.toml").exists()
                else "Give a folder that `manyheads train` wrote."
            )
            raise FolderError(f"{path} is not a model folder: it has no manyheads.json. {hint}")
        self.manifest = read_versioned(manifest, FORMAT_VERSION, AGAIN)
        validated(Manifest, self.manifest, manifest, AGAIN)
        check_hashes(
            manifest,
            self.manifest["sha256"],
            "Copy the folder again; in a run folder, training with `resume=True` writes the last "
            "weights anew.",
        )
        try:
            self.recipe = read_recipe(path / "recipe.toml", stored=True)
        except RecipeError as error:
            # The plugins that the model needs; a folder never causes an import by itself.
            missing = [each for each in self.manifest.get("plugins", []) if each not in sys.modules]
            if not missing:
                raise
            given = " ".join(f"`plugin={name}`" for name in missing)
            raise FolderError(
                f"{self.path} needs a plugin that is not loaded: {', '.join(missing)}. If you "
                f"trust it, give {given}; of a single file its path: "
                f"`plugin=FOLDER/{missing[0]}.py`. In Python, import it first."
            ) from error
        if unknown := set(_hashed(path, self.recipe)) - self.manifest["sha256"].keys():
            raise FolderError(
                f"{manifest}, sha256: there is no hash of {', '.join(sorted(unknown))}. Copy the "
                "folder again."
            )

    @property
    def name(self) -> str:
        """The folder's name; of a model of the hub its name there."""
        return hub_name_of(self.path) or self.path.resolve().name

    @property
    def shipped(self) -> bool:
        """Whether it is one of the package's own models."""
        own = (manifest.parent.resolve() for manifest in shipped("pretrained").values())
        return self.path.resolve() in own

    @property
    def weights_hash(self) -> str:
        """The sha256 of the weights."""
        return str(self.manifest["sha256"]["model.safetensors"])

    @property
    def version(self) -> str:
        """What tells apart the contents of a folder: the hashes of its files, as a text."""
        return " ".join(map("=".join, sorted(self.manifest["sha256"].items())))

    def check_version(self, version: str) -> None:
        """Refuse a folder whose files are not, or not any more, those of a version.

        Raises:
            FolderError: a file is not the one of its hash.
            ChangedFolderError: the files are those of another version.
        """
        if not self.version == ModelFolder(self.path).version == version:
            raise ChangedFolderError(f"{self.path} was written anew meanwhile: load it again.")

    @property
    def weight_count(self) -> int:
        """The number of stored weights; none of them is read."""
        with safe_open(self.path / "model.safetensors", "np") as stored:
            parts = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118
            for name in scaled({name: part.get_dtype() for name, part in parts.items()}, "I8"):
                del parts[name + SCALE]
            return sum(math.prod(part.get_shape()) for part in parts.values())

    @property
    def library(self) -> str | None:
        """The library that the weights were converted from, if any."""
        return self.recipe.origin.format if self.recipe.origin else None

    def model(self, image_size: tuple[int, int] | None = None, *, finite: bool = True) -> nn.Module:
        """Build the model with its stored weights, in fp32, ready for use.

        At another image size, (height, width), weights are interpolated as in their library.

        Raises:
            FolderError: the weights cannot be read, do not fit, or hold NaN (unless not `finite`).
        """
        config = self.recipe.config()
        stored = read_weights(self.path / "model.safetensors")
        count = sum(map(Tensor.numel, stored.values()))
        with limited_threads(threads_for(count)):
            if finite and (bad := not_finite(stored)):
                raise FolderError(
                    f"{self.path / 'model.safetensors'} holds infinite numbers or NaN, in "
                    f"{len(bad)} tensors, the first {bad[0]}: no answer of this model would mean "
                    "anything. Train again with a lower train.learning_rate, or store as float32."
                )
            if image_size is not None:
                config, stored = resize(config, stored, image_size, self.library)
            # Not on the meta device: drawing weights there imports torch's compiler, which takes
            # longer than drawing them.
            with at_most(4 * count):  # tied weights are made twice
                model = find_task(self.recipe.task).build(self.recipe, config)
            restore(model, stored, self.path / "model.safetensors")
            return pack(model.eval())

    def tokenizers(self) -> Tokenizers:
        """Load the tokenizers, and check that they are those that the weights were trained with."""
        if self.recipe.origin is not None:
            return self._foreign_tokenizers(self.recipe.origin)
        found = need_vocabularies(self.path)
        config: Any = self.recipe.config()
        for (name, tokenizer), key in zip(found.items(), sizes(found), strict=True):
            self._check_size(name, len(tokenizer), "tokens", getattr(config, key, None))
        return tokenizers(found, getattr(self.recipe, "tokenizer", None))

    def _foreign_tokenizers(self, origin: Converted) -> Tokenizers:
        if origin.format == "marian":
            from manyheads.data.tokenizers.marian_tokenizer import read_marian

            found = read_marian(self.path / origin.format, prefix=origin.prefix)
        else:
            from manyheads.data.tokenizers.hub_tokenizers import read_hub

            one = read_hub(self.path / origin.format)
            found = Tokenizers(one, one)
        config: Any = self.recipe.config()
        target_size = getattr(config, "target_vocabulary", None) or config.vocabulary
        for tokenizer, size in zip(found, (config.vocabulary, target_size), strict=True):
            if len(tokenizer) > size:
                self._check_size(origin.format, len(tokenizer), "tokens", size)
        return found

    def _check_size(self, name: str, count: int, unit: str, expected: int | None) -> None:
        if count != expected:
            raise FolderError(
                f"{self.path / name} has {count} {unit}, the model {expected}: it belongs to "
                "another model. Copy the model's own folder again."
            )

    def characters(self) -> "Characters":
        """Load the characters of a tagger's vocabulary."""
        from manyheads.data.tokenizers.characters import Characters

        path = self.path / "characters.json"
        characters = Characters(validated(str, read_json(path), path, AGAIN))
        vocabulary = getattr(self.recipe.config(), "vocabulary", None)
        self._check_size(path.name, len(characters), "entries", vocabulary)
        return characters

    def preprocessing(self) -> "Preprocessing":
        """Load what happens to an image before the model sees it."""
        from manyheads.data.images.image_set import Preprocessing  # only models of images need it

        path = self.path / "preprocessing.json"
        stored = read_json(path)
        if isinstance(stored, dict):
            rename(stored, RENAMED["image"])
        found = validated(Preprocessing, stored, path, AGAIN)
        channels = self.recipe.derived().get("channels", found.channels)
        self._check_size(path.name, found.channels, "channels", channels)
        return found

    def labels(self) -> list[str]:
        """Load the names of the classes, in the order of the logits."""
        path = self.path / "labels.json"
        labels = validated(list[str], read_json(path), path, AGAIN)
        classes = getattr(self.recipe.config(), "classes", len(labels))
        self._check_size(path.name, len(labels), "classes", classes)
        return labels

    def evaluations(self) -> list[dict[str, Any]]:
        """Read the log of evaluations."""
        path = self.path / "evaluations.jsonl"
        if not path.is_file():
            return []
        lines = []
        try:
            # Not splitlines: names of data may hold other separators, such as U+2028.
            for text in filter(None, path.read_text(encoding="utf-8").split("\n")):
                lines.append(loads(text))
                Evaluation.model_validate(lines[-1])
        except (OSError, ValueError) as error:
            reason = str(error).partition(" [type=")[0]
            raise FolderError(f"{path} has a damaged line: {reason}. Remove that line.") from None
        for line in lines:
            for score in line["all"].values():
                score["value"] = math.nan if score["value"] is None else score["value"]
        return lines


def write_json(path: Path, value: Any) -> None:
    """Write JSON that people can read, atomically."""
    write_text(path, dumps(value, indent=2) + "\n")


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a file of weights; matrices that are stored as int8 become float32.

    Raises:
        FolderError: it is damaged.
    """
    try:
        stored = load_file(path)
    except (SafetensorError, OSError) as error:
        raise FolderError(f"{path} cannot be read: {error}.") from error
    with limited_threads(threads_for(sum(map(Tensor.numel, stored.values())))):
        return dequantize(stored, path)


def write_weights(folder: Path, model: nn.Module, store: str) -> None:
    """Write model.safetensors atomically, in the type that the recipe asks for."""
    state = {name: tensor.cpu() for name, tensor in tensors(model).items()}
    dtype = getattr(torch, "float16" if store == "int8" else store)
    stored = quantize(state) if store == "int8" else {}
    for name in state.keys() - stored.keys():
        kind = dtype if state[name].is_floating_point() else state[name].dtype
        stored[name] = state[name].to(kind).contiguous()
    write_tensors(folder, stored)


def write_tensors(folder: Path, state: dict[str, Tensor]) -> None:
    """Write model.safetensors atomically."""
    # As bytes: safetensors' own files can be read by nobody else.
    write_atomically(folder / "model.safetensors", save(state, metadata={"format": "pt"}))


def own_files(folder: Path) -> list[Path]:
    """List what Manyheads reads and writes in a model folder; other files there are their owner's.

    A folder stands for all that is in it. The task's own files are those of the folder's recipe.
    """
    of_task: tuple[str, ...] = ()
    with suppress(RecipeError, OSError):
        of_task = find_task(read_toml(folder / "recipe.toml").get("task")).files
    return [folder / name for name in (*HASHED, *UNHASHED, *of_task)]


def check_out(out: Path, *, resume: bool) -> None:
    """Refuse a folder that is not the run's own: training writes and removes files there."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file. Choose another `out`.")
    if not out.exists() or all(path.name.startswith(OWN) for path in out.iterdir()):
        return
    if not (out / "recipe.toml").exists():
        raise UsageError(f"{out} is not empty, and no run (no recipe.toml). Choose another `out`.")
    if not resume:
        raise UsageError(
            f"{out} is not empty. Go on with the run in it with `resume=True`, or choose "
            "another `out`."
        )


def write_manifest(folder: Path, recipe: Recipe, precision: Precision | None = None) -> None:
    """Write manyheads.json: what the folder holds, and how it came to be."""
    write_json(
        folder / "manyheads.json",
        {
            "format_version": FORMAT_VERSION - (recipe.train.save_dtype != "int8"),
            "task": recipe.task,
            "preset": recipe.model["preset"],
            "versions": versions(),
            "precision": precision or recipe.train.precision,
            "threads": torch.get_num_threads(),
            "seed": recipe.seed,
            **({"plugins": plugins} if (plugins := _plugins(recipe)) else {}),
            "sha256": {name: sha256(folder / name) for name in _hashed(folder, recipe)},
        },
    )


def _plugins(recipe: Recipe) -> list[str]:
    """Name the plugins in use, and what defines the recipe's task, model or preset."""
    name = str(recipe.model["preset"])
    parts = (find_task(recipe.task), recipe, preset(name))
    modules = [type(part).__module__ for part in parts]
    modules += [REGISTERED_BY.get(name, "manyheads"), *modules_of_parts(preset(name), recipe.model)]
    return sorted(LOADED.keys() | set(filter(None, map(home, modules))))


def stored_entry(folder: ModelFolder, key: str, kind: type[T], again: str) -> T | None:
    """Read an entry of manyheads.json; None if there is none. `again`: what to do if damaged."""
    if (entry := folder.manifest.get(key)) is None:
        return None
    return validated(kind, entry, folder.path / "manyheads.json", again, key)


def store_entry(folder: ModelFolder, key: str, entry: Mapping[str, Any]) -> None:
    """Keep an entry in manyheads.json."""
    path = folder.path / "manyheads.json"
    folder.manifest = read_json(path) | {key: entry}
    write_json(path, folder.manifest)


def refresh_manifest(folder: Path, names: Iterable[str]) -> None:
    """Write the hashes of files that a later version has written anew."""
    manifest = folder / "manyheads.json"
    if manifest.exists():
        stored = read_json(manifest)
        stored["sha256"].update({name: sha256(folder / name) for name in names})
        version = max(stored["format_version"], FORMAT_VERSION - 1)
        write_json(manifest, stored | {"format_version": version})


def _hashed(folder: Path, recipe: Recipe) -> list[str]:
    """Name the files that make a model what it is."""
    found = (path for name in FOREIGN for path in sorted(folder.glob(f"{name}/*")))
    foreign = [path.relative_to(folder).as_posix() for path in found]
    names = (*HASHED, *find_task(recipe.task).files)
    return [name for name in names if (folder / name).exists()] + foreign


def inputs(folder: Path, recipe: Recipe) -> dict[str, str]:
    """Return the sha256 of each file that gives ids their meaning: tokenizers, characters."""
    others = {"recipe.toml", "model.safetensors", "preprocessing.json", "labels.json"}
    names = set(_hashed(folder, recipe)) - others  # those are compared by what they say
    return {name: sha256(folder / name) for name in sorted(names)}


def write_vocabularies(folder: Path, vocabularies: Vocabularies) -> None:
    """Write what turns text into token ids."""
    for name, tokenizer in vocabularies.items():
        write_atomically(folder / name, tokenizer.model)


def write_preprocessing(folder: Path, preprocessing: "Preprocessing") -> None:
    """Write what turns images into tensors."""
    write_json(folder / "preprocessing.json", asdict(preprocessing))


def write_labels(folder: Path, preprocessing: "Preprocessing", labels: list[str]) -> None:
    """Write what turns images into tensors, and classes into words."""
    write_preprocessing(folder, preprocessing)
    write_json(folder / "labels.json", labels)


def write_left_out(folder: Path, faults: list[str]) -> None:
    """List the images that are not trained or validated on, if there are any."""
    if faults:
        write_text(folder / LEFT_OUT, "".join(f"{each}\n" for each in faults))


def append_evaluation(folder: Path, line: Mapping[str, Any]) -> None:
    """Add a line to the log of evaluations."""
    append_line(folder / "evaluations.jsonl", dumps(dict(line)))


def refuse_used(out: Path) -> None:
    """Refuse a file, a folder with something in it, or an address."""
    reject_address(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is there already. Choose a new folder.")


def versions() -> dict[str, str]:
    """Return the versions that the results of a run depend on."""
    return {
        "manyheads": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def check_hashes(record: Path, hashes: Mapping[str, str], again: str) -> None:
    """Check that the files beside a record are there, inside its folder, and as they were written.

    `record` is the JSON file that has the hashes, by each file's path from its folder; `again` says
    what to do about a file that is not.
    """
    for name, expected in hashes.items():
        path = record.parent / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise FolderError(f"{record}, sha256: {short(name)} is not in the folder. {again}")
        if not os.path.isfile(path):  # noqa: PTH113 - Path raises on a name too long
            raise FolderError(f"{path} is missing. {again}")
        if sha256(path) != expected:
            raise FolderError(
                f"{path} is not the file that was written with this model (its sha256 differs): it "
                f"was changed or cut off. {again}"
            )


def read_json(path: Path, again: str = AGAIN) -> Any:
    """Read a JSON file of a folder; `again` says what to do if it is damaged."""
    try:
        return loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read: {error}. {again}") from error


def read_versioned(path: Path, newest: int, again: str) -> dict[str, Any]:
    """Read a JSON file whose format_version is from 1 to `newest`.

    Raises:
        FolderError: it is damaged, or of another version; `again` says what to do.
    """
    stored = read_json(path, again)
    version = stored.get("format_version") if isinstance(stored, dict) else None
    if type(version) is not int or not 1 <= version <= newest:
        raise FolderError(
            f"{path} has format_version {version}; this Manyheads ({__version__}) reads 1 up to "
            f"{newest}. Update Manyheads if the file is newer. {again}"
        )
    return dict(stored)


def validated(kind: type[T], stored: Any, path: Path, again: str, *under: str) -> T:
    """Check a value that is stored in a file, under these keys.

    Raises:
        FolderError: it is not of this kind; the first key that is not is named, and `again` says
            what to do.
    """
    try:
        return TypeAdapter(kind).validate_python(stored)
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join(map(str, (*under, *detail["loc"])))
        reason = detail["msg"].removeprefix("Value error, ")
        raise FolderError(f"{path}{key and f', {key}'}: {reason}. {again}") from None
