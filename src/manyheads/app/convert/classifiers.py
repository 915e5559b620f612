"""Classifiers of other libraries become model folders.

`models/convert` maps settings and tensors; here files are found, checked and put together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError
from safetensors.torch import save_file
from torch import Tensor

from manyheads.app.convert.foreign_files import (
    SUFFIXES,
    fetch_model,
    looks_like_hub_name,
    read_license,
    read_table,
    read_tensors,
)
from manyheads.app.data.tables import LabelledImageData
from manyheads.app.pipelines.classify import ClassifyRecipe
from manyheads.app.project.card import write_card
from manyheads.app.project.folder import (
    ModelFolder,
    new_folder,
    refuse_used,
    write_labels,
    write_manifest,
)
from manyheads.app.project.info import count_parameters
from manyheads.app.project.recipe import CONVERTED, Converted, write_recipe
from manyheads.data.images.image_set import Preprocessing
from manyheads.errors import FolderError, NotFoundError, UsageError, nearest
from manyheads.models.config import ModelConfig
from manyheads.models.convert import families, timm
from manyheads.models.convert.names import Converter, Family, Image, understand
from manyheads.models.presets import PRESETS, build
from manyheads.models.resize import resize
from manyheads.models.sized_tables import Size
from manyheads.train.checkpoint import restore

Library = Literal["timm", "hf", "torchvision", "google"]
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
SMALL = ("*.json", "README.md")
HALF = Image(mean=families.HALF, std=families.HALF, crop=1.0, resize_mode="stretch")
MODES = {1: "L", 3: "RGB"}
# Arguments of timm's constructors that tensors show, that converters read, or that matter to
# training only.
KNOWN = {
    *("class_token", "fc_norm", "global_pool", "img_size", "no_embed_class", "num_heads"),
    *("depth", "embed_dim", "in_chans", "mlp_ratio", "num_classes", "patch_size", "qkv_bias"),
    *("attn_drop_rate", "drop_path_rate", "drop_rate", "dynamic_img_size", "proj_drop_rate"),
}
# Pillow's numbers for its ways to resize, which Hugging Face's files use.
RESAMPLE = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")


class ConvertedImages(NamedTuple):
    """What was written, and what its user should know."""

    folder: Path
    parameters: int
    classes: int
    size: Size
    remarks: list[str]


class _Source(NamedTuple):
    """What a source holds, of whichever library."""

    tensors: dict[str, Tensor]
    where: Path  # for messages
    origin: str
    about: dict[str, Any]  # config.json
    processor: dict[str, Any]  # preprocessor_config.json
    license: str | None


class _Plan(NamedTuple):
    """How to convert a source: by which function, with what, and what images it expects."""

    convert: Converter
    settings: dict[str, Any]
    image: dict[str, Any]  # of Preprocessing, but for the size
    architecture: str | None
    remarks: list[str]


def from_images(
    library: Library,
    source: str,
    out: Path,
    *,
    architecture: str | None = None,
    image_size: Size | None = None,
) -> ConvertedImages:
    """Make a model folder of another library's classifier of images.

    Args:
        library: whose it is.
        source: a file of weights; a folder of config.json and weights; a name on the hub.
        out: the folder to write; new or empty.
        architecture: the library's own name for the model, which timm's and torchvision's files
            do not tell.
        image_size: height and width of images, in place of those it was made for.

    Raises:
        NotFoundError: no such file, folder or model.
        MissingExtraError: a name on the hub, without the package that fetches it.
        FolderError: a file is damaged, or files do not belong together.
        UsageError: not a model that ours can be; `out` is in use.
    """
    refuse_used(out)
    given = _read_source(source)
    plan = PLANS[library](given, architecture)
    # A size that the user names may also be the one that the weights were made for.
    config, state = plan.convert(plan.settings | {"wanted_size": image_size}, given.tensors)
    named = config.height, config.width
    if image_size is not None and image_size != named:
        config, state = resize(config, state, image_size, library)
    config = TypeAdapter(type(config)).validate_python(asdict(config))
    state = {name: tensor.contiguous().clone() for name, tensor in state.items()}
    try:
        restore(build(config), state, given.where)
    except FolderError as error:
        differences = str(error).partition("\n")[2].rpartition("\n")[0]
        raise FolderError(
            f"The tensors of {given.where} do not go together:\n{differences}\nGet the file again."
        ) from error
    recipe = _recipe(config, plan, given, library)
    labels, remarks = _labels(given.about, config.classes)
    with new_folder(out) as folder:
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "recipe.toml").write_text(write_recipe(recipe, config), encoding="utf-8")
        write_labels(folder, recipe.image, labels)
        write_manifest(folder, recipe)
    write_card(ModelFolder(out))
    return ConvertedImages(
        out,
        count_parameters(config),
        config.classes,
        (config.height, config.width),
        [*plan.remarks, *remarks],
    )


# --- What a source says -------------------------------------------------------------------------


def _plan_timm(given: _Source, architecture: str | None) -> _Plan:
    name = architecture or given.about.get("architecture")
    if not isinstance(name, str):
        raise UsageError(_without_name("timm", given.where, families.TIMM))
    family, settings = understand(name, families.TIMM)
    convert = family.convert
    told = given.about.get("pretrained_cfg") or {}
    arguments = dict(given.about.get("model_args") or {})
    strange = arguments.keys() - KNOWN
    if strange:
        raise UsageError(
            f"{given.where} was built with model_args {', '.join(sorted(strange))}, which may mean "
            "parts that ours has not: only plain models can be converted."
        )
    if isinstance(given.about.get("global_pool"), str):
        arguments.setdefault("global_pool", given.about["global_pool"])
    if isinstance(told.get("input_size"), Sequence) and len(told["input_size"]) == 3:
        settings["img_size"] = tuple(told["input_size"][1:])
    image = asdict(family.image) | {
        key: value
        for key, value in {
            "mean": told.get("mean"),
            "std": told.get("std"),
            "interpolation": told.get("interpolation"),
            "crop": told.get("crop_pct"),
            "resize_mode": {"squash": "stretch", "center": "crop"}.get(told.get("crop_mode", "")),
        }.items()
        if value is not None
    }
    size = settings.get("img_size", 224)
    if not told and convert is timm.vit and isinstance(size, int) and size > 256:
        image["crop"] = 1.0  # as all of this kind that were tuned at larger sizes
    return _Plan(convert, settings | arguments, image, name, [] if told else [_assumed(name)])


def _plan_torchvision(given: _Source, architecture: str | None) -> _Plan:
    if architecture is None:
        raise UsageError(_without_name("torchvision", given.where, families.TORCHVISION))
    family, settings = understand(architecture, families.TORCHVISION)
    image = asdict(family.image)
    return _Plan(family.convert, settings, image, architecture, [_assumed(architecture)])


def _plan_hf(given: _Source, architecture: str | None) -> _Plan:
    kind = architecture or given.about.get("model_type")
    if not isinstance(kind, str):
        raise UsageError(
            f"{given.where} comes without a config.json that tells its model_type: give the whole "
            "folder of a Hugging Face model."
        )
    if kind not in families.HF:
        raise UsageError(
            f"The model_type {kind!r} is none that can be converted{nearest(kind, families.HF)}"
            f"Understood are {', '.join(families.HF)}."
        )
    remarks = [] if given.processor else [_assumed(kind)]
    return _Plan(families.HF[kind], given.about, _processor(given.processor), kind, remarks)


def _plan_google(given: _Source, architecture: str | None) -> _Plan:
    # Their code squeezes images, and has no file that says otherwise; the origin is its name.
    return _Plan(families.GOOGLE, {}, asdict(HALF), architecture or given.where.stem, [])


PLANS = {
    "timm": _plan_timm,
    "hf": _plan_hf,
    "torchvision": _plan_torchvision,
    "google": _plan_google,
}


def _without_name(library: str, where: Path, known: Sequence[Family]) -> str:
    examples = ", ".join(example for family in known for example in family.examples)
    return (
        f"{where} does not tell its architecture: set `architecture` to {library}'s own name "
        f"for it, such as {examples}."
    )


def _assumed(name: str) -> str:
    return (
        f"The file does not say how images are prepared; preprocessing.json has what is usual "
        f"for {name}. Compare it with where the weights come from."
    )


def _processor(told: Mapping[str, Any]) -> dict[str, Any]:
    """Read preprocessor_config.json as keys of Preprocessing; without it, what ViT's class does."""
    image = asdict(HALF)
    if not told:
        return image
    if told.get("do_normalize", True):
        image["mean"] = tuple(told.get("image_mean") or image["mean"])
        image["std"] = tuple(told.get("image_std") or image["std"])
    else:
        image |= {"mean": (0.0,), "std": (1.0,)}
    number = told.get("resample")
    if isinstance(number, int) and 0 <= number < len(RESAMPLE):
        image["interpolation"] = RESAMPLE[number]
    size, crop = told.get("size"), told.get("crop_size")
    edge = size.get("shortest_edge") if isinstance(size, Mapping) else None
    if edge and told.get("do_center_crop", False) and isinstance(crop, Mapping):
        image |= {"resize_mode": "crop", "crop": min(crop.get("height", edge) / edge, 1.0)}
    elif edge and edge < 384:  # ConvNeXt's class, which ResNets have too: larger ones are squeezed
        image |= {"resize_mode": "crop", "crop": told.get("crop_pct") or 224 / 256}
    return image


def _read_source(source: str) -> _Source:
    path = Path(source).expanduser()
    if path.is_file():
        return _Source(read_tensors(path), path, path.name, {}, {}, None)
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
    origin = path.resolve().name if Path(source).expanduser().is_dir() else source
    return _Source(
        read_tensors(weights),
        path,
        origin,
        read_table(path / "config.json"),
        read_table(path / "preprocessor_config.json", needed=False),
        read_license(path),
    )


# --- What becomes of it -------------------------------------------------------------------------


def _recipe(config: Any, plan: _Plan, given: _Source, library: Library) -> ClassifyRecipe:
    if config.channels not in MODES:
        raise UsageError(
            f"This model looks at images of {config.channels} channels; folders are written for "
            "those of 1 (grey) or 3 (colour)."
        )
    values = dict(plan.image)
    for key in ("mean", "std"):  # of three colours, but the model sees grey
        if len(values[key]) not in (1, config.channels):
            values[key] = (sum(values[key]) / len(values[key]),)
    values["crop"] = min(values["crop"], 1.0)
    try:
        image = TypeAdapter(Preprocessing).validate_python(
            {
                "height": config.height,
                "width": config.width,
                "mode": MODES[config.channels],
                **values,
            }
        )
    except ValidationError as error:
        detail = error.errors()[0]
        raise UsageError(
            f"Images cannot be prepared as {given.where} asks: "
            f"{'.'.join(map(str, detail['loc']))} = {detail['input']!r}: {detail['msg']}."
        ) from None
    return ClassifyRecipe(
        task="classify",
        data=LabelledImageData(
            train=f"{CONVERTED}{given.origin}", valid=f"{CONVERTED}{given.origin}"
        ),
        image=image,
        converted=Converted(
            format=library,
            origin=given.origin,
            architecture=plan.architecture,
            license=given.license,
        ),
        model={"preset": _preset(config)},
    )


def _preset(config: ModelConfig) -> str:
    """Name the preset of a model's kind that is nearest to it; its numbers are all written out."""
    kin = {name: preset for name, preset in PRESETS.items() if type(preset) is type(config)}
    wanted = asdict(config)

    def differences(name: str) -> int:
        return sum(value != wanted[key] for key, value in asdict(kin[name]).items())

    return min(kin, key=differences)


def _labels(about: Mapping[str, Any], classes: int) -> tuple[list[str], list[str]]:
    """Return the names of the classes, or their numbers where nobody tells; and what to say."""
    told = about.get("label_names") or (about.get("pretrained_cfg") or {}).get("label_names")
    if told is None and isinstance(about.get("id2label"), Mapping):
        numbered = about["id2label"]
        told = [numbered.get(str(number)) for number in range(classes)]
    numbers = [str(number) for number in range(classes)]
    if not isinstance(told, list) or len(told) != classes or None in told:
        return numbers, ["The names of the classes are not known: they are numbers, from 0."]
    return [str(name) for name in told], []
