"""Classifiers and image encoders of other libraries become model folders.

`models/convert` maps settings and tensors; here files are found, checked and put together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter

from manyheads.convert.converted_folder import ConvertedImages, model_folder
from manyheads.convert.foreign_files import check_fit, misfits
from manyheads.convert.image_text import from_image_text, is_image_text
from manyheads.convert.preprocessing import (
    Prepared,
    from_default,
    from_timm,
    from_transformers,
    preprocessing,
)
from manyheads.convert.sources import Source, assumed, nearest_preset, opened
from manyheads.data.images.image_set import Mode
from manyheads.errors import UsageError
from manyheads.models.convert import families
from manyheads.models.convert.converter import Converter, table
from manyheads.models.convert.foreign import State, Tensors
from manyheads.models.convert.names import Family, Image, base_name, understand
from manyheads.models.convert.vit_weights import vit_of_timm
from manyheads.models.resize import resize
from manyheads.models.sized_tables import Size
from manyheads.project.base_recipe import CONVERTED
from manyheads.project.folder import refuse_used, write_labels, write_preprocessing
from manyheads.project.model_facts import count_parameters
from manyheads.recipe_data.image_data import ImageData, LabelledImageData
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.embed.recipe import EmbedRecipe

Library = Literal["timm", "hf", "torchvision", "google"]
HALF = Image(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), crop=1.0, resize_mode="stretch")
# Of Hugging Face: kinds whose config.json tells an image size; the first allow no other.
FIXED = ("clip", "clip_vision_model", "deit", "siglip", "siglip_vision_model", "vit")
SIZED = (*FIXED, "swin")
MODES: dict[int, Mode] = {1: "L", 3: "RGB"}
LARGEST = 1 << 14  # side of an image


class _Plan(NamedTuple):
    """How to convert a source: by which function, with what, and what images it expects."""

    convert: Converter[Any]
    settings: dict[str, Any]
    prepared: Prepared
    architecture: str | None
    remarks: list[str]


def from_images(
    library: Library,
    source: str | Source,
    out: Path,
    *,
    architecture: str | None = None,
    image_size: Size | None = None,
) -> ConvertedImages:
    """Make a model folder of another library's classifier of images, or of its image encoder.

    Of Hugging Face also of CLIP and SigLIP whole, and of image captioners.

    Args:
        library: whose it is.
        source: a file of weights; a folder of config.json and weights; a name on the hub, such as
            "hf:google/vit-base-patch16-224"; or what is open of one.
        out: the folder to write; new or empty.
        architecture: the library's own name for the model, which timm's and torchvision's files
            do not tell.
        image_size: height and width of images, in place of those it was made for.

    Raises:
        NotFoundError: no such file, folder or model.
        MissingExtraError: a name on the hub, without the package that fetches it.
        DataError: the hub cannot be reached.
        FolderError: a file is damaged, or files do not belong together.
        UsageError: not a model that ours can be; `out` is in use.
    """
    refuse_used(out)
    with opened(source) as origin:
        if library == "hf" and is_image_text(origin):
            return from_image_text(origin, out, image_size=image_size)
        plan = PLANS[library](origin, architecture)
        plan.convert.check(plan.settings)  # before the weights of the hub are fetched
        # A size that the user names may also be the one that the weights were made for.
        settings = plan.settings | {"wanted_size": image_size}
        with misfits(origin.where):
            config, state = plan.convert(settings, origin.tensors)
            named = config.height, config.width
            theirs = plan.prepared.size
            fixed = image_size is None and plan.architecture in FIXED
            if fixed and theirs and theirs != named:
                raise UsageError(
                    f"{origin.where} prepares images of {theirs[0]} x {theirs[1]} pixels "
                    f"(preprocessor_config.json), but its model is for {named[0]} x {named[1]} "
                    "(config.json): choose one with `image_size`."
                )
            size = image_size or theirs or named
            if max(size) > LARGEST:
                raise UsageError(
                    f"Images of {size[0]} x {size[1]} pixels are asked for; supported are up to "
                    f"{LARGEST:,} a side."
                )
            if size != named:
                config, state = resize(config, state, size, library)
            config = TypeAdapter(type(config)).validate_python(asdict(config))
            state = {name: tensor.contiguous().clone() for name, tensor in state.items()}
        check_fit(config, state, origin.where)
        encodes = _is_encoder(config, state, origin.tensors)
        recipe = _recipe(config, plan, origin, library, encodes=encodes)
        labels, remarks = ([], []) if encodes else _labels(origin.about, config.classes)
        with model_folder(out, recipe, config, state) as folder:
            if encodes:
                write_preprocessing(folder, recipe.image)
            else:
                write_labels(folder, recipe.image, labels)
        size, remarks = (config.height, config.width), [*plan.remarks, *remarks]
        classes = 0 if encodes else config.classes
        return ConvertedImages(out, count_parameters(config), classes, size, remarks, recipe.task)


# --- What a source says -------------------------------------------------------------------------


def _plan_timm(source: Source, architecture: str | None) -> _Plan:
    stated = source.about.get("architecture")
    name = _agreed(stated if isinstance(stated, str) else None, architecture, source.where)
    if name is None:
        raise UsageError(_without_name("timm", source.where, families.TIMM))
    family, settings = understand(name, families.TIMM)
    convert = family.convert
    pretrained, arguments = _pretrained(source), table(source.about, "model_args")
    if isinstance(source.about.get("global_pool"), str):
        arguments.setdefault("global_pool", source.about["global_pool"])
    if pretrained:
        prepared = from_timm(pretrained, source.where)
        settings["img_size"] = prepared.size
        return _Plan(convert, settings | arguments, prepared._replace(size=None), name, [])
    image, size = family.image, settings.get("img_size", 224)
    if convert is vit_of_timm and size > 256:  # as all of this kind that were tuned at larger sizes
        image = replace(image, crop=1.0)
    return _Plan(convert, settings | arguments, from_default(image), name, [assumed(name)])


def _plan_torchvision(source: Source, architecture: str | None) -> _Plan:
    if architecture is None:
        raise UsageError(_without_name("torchvision", source.where, families.TORCHVISION))
    family, settings = understand(architecture, families.TORCHVISION)
    prepared = from_default(family.images.get(base_name(architecture), family.image))
    return _Plan(family.convert, settings, prepared, architecture, [assumed(architecture)])


def _plan_hf(source: Source, architecture: str | None) -> _Plan:
    stated = source.about.get("model_type")
    if not isinstance(stated, str):
        raise UsageError(
            f"{source.where} comes without a config.json that tells its model_type: give the whole "
            "folder of a Hugging Face model."
        )
    kind = _agreed(stated, architecture, source.where)
    if kind not in families.HF:
        raise UsageError(
            f"The model_type {kind!r} is none that can be converted. Understood are "
            f"{', '.join(families.HF)}."
        )
    prepared = from_transformers(source.processor, kind, source.where)
    if source.processor is None and kind in SIZED:
        prepared = prepared._replace(size=None)
    remarks = [assumed(kind)] if source.processor is None else []
    return _Plan(families.HF[kind], source.about, prepared, kind, remarks)


def _plan_google(source: Source, architecture: str | None) -> _Plan:
    # Their code squeezes images, and has no file that says otherwise; the origin is its name.
    return _Plan(families.GOOGLE, {}, Prepared(asdict(HALF)), architecture or source.where.stem, [])


PLANS = {
    "timm": _plan_timm,
    "hf": _plan_hf,
    "torchvision": _plan_torchvision,
    "google": _plan_google,
}


def _agreed(stated: str | None, wanted: str | None, where: Path) -> str | None:
    """Return the architecture that a folder tells, or the user; both must say the same.

    Weights of one architecture often fit another, which answers something else.
    """
    if stated is not None and wanted is not None and base_name(stated) != base_name(wanted):
        raise UsageError(
            f"{where} says that its architecture is {stated!r}, but `architecture` is {wanted!r}: "
            "leave `architecture` out."
        )
    return stated if wanted is None else wanted


def _pretrained(source: Source) -> Mapping[str, Any]:
    """Return timm's pretrained_cfg, which is the whole file in its first form."""
    about = source.about
    is_first = "pretrained_cfg" not in about and {"input_size", "mean"} & about.keys()
    return about if is_first else table(source.about, "pretrained_cfg")


def _without_name(library: str, where: Path, known: Sequence[Family]) -> str:
    examples = ", ".join(example for family in known for example in family.examples)
    return (
        f"{where} does not tell its architecture: set `architecture` to {library}'s own name "
        f"for it, such as {examples}."
    )


# --- What becomes of it -------------------------------------------------------------------------


def _is_encoder(config: Any, state: State, tensors: Tensors) -> bool:
    """Say whether there is no classifier: no head, or CLIP's projection, which has no bias."""
    if not config.classes:
        return True
    projects = getattr(config, "embedding_norm", False) and "classifier.weight" not in tensors
    return projects and not state["head.bias"].any()


def _recipe(
    config: Any, plan: _Plan, source: Source, library: Library, *, encodes: bool
) -> ClassifyRecipe | EmbedRecipe:
    if config.channels not in MODES:
        raise UsageError(
            f"This model looks at images of {config.channels} channels; folders are written for "
            "those of 1 (grey) or 3 (colour)."
        )
    size = (config.height, config.width)
    image = preprocessing(plan.prepared, size, MODES[config.channels], source.where)
    problem = source.about.get("problem_type")
    if problem == "regression":
        raise UsageError(f"{source.where} is a regression (problem_type), not a classifier.")
    data = f"{CONVERTED}{source.origin}"
    tables: dict[str, Any] = {
        "image": image,
        "converted": source.converted(library, architecture=plan.architecture),
        "model": {"preset": nearest_preset(config)},
    }
    if encodes:
        return EmbedRecipe(task="embed", data=ImageData(train=data, valid=data), **tables)
    several = problem == "multi_label_classification"
    labelled = LabelledImageData(train=data, valid=data, multi_label=several)
    return ClassifyRecipe(task="classify", data=labelled, **tables)


def _labels(about: Mapping[str, Any], classes: int) -> tuple[list[str], list[str]]:
    """Return the names of the classes, or their numbers where nobody tells; and what to say."""
    inner = about.get("pretrained_cfg")
    names = about.get("label_names") or about.get("labels")
    if names is None and isinstance(inner, Mapping):
        names = inner.get("label_names")
    if names is None and isinstance(about.get("id2label"), Mapping):
        names = [about["id2label"].get(str(number)) for number in range(classes)]
    numbers = [str(number) for number in range(classes)]
    if not isinstance(names, list) or len(names) != classes or None in names:
        return numbers, ["The names of the classes are not known: they are numbers, from 0."]
    return [str(name) for name in names], []
