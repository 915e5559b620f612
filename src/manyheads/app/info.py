"""What a model is, in facts."""

from dataclasses import asdict
from typing import Any

import torch

from manyheads.app.folder import ModelFolder
from manyheads.app.model import build_model
from manyheads.app.paths import find_model
from manyheads.app.recipe import ClassifyRecipe, Recipe, TranslateRecipe
from manyheads.errors import NotFoundError, UsageError
from manyheads.models.build import build
from manyheads.models.presets import Config, preset

# The figure of the paper's own table, beside which ours is printed.
PAPER = {
    "transformer-base": "65M (Vaswani et al. 2017, table 3)",
    "transformer-big": "213M (Vaswani et al. 2017, table 3)",
    "gpt2-small": "117M (Radford et al. 2019, table 2; its released weights are 124M)",
    "bert-base": "110M (Devlin et al. 2019, section 3)",
    "cct-2/3x2": "0.28M (Hassani et al. 2021, table 1)",
    "cct-7/3x1": "3.76M (Hassani et al. 2021, table 1)",
    "swin-t": "29M (Liu et al. 2021, table 1)",
    "swin-s": "50M (Liu et al. 2021, table 1)",
    "swin-b": "88M (Liu et al. 2021, table 1)",
    "cvt-13": "20M (Wu et al. 2021, table 3)",
    "cvt-21": "32M (Wu et al. 2021, table 3)",
    "coatnet-0": "25M (Dai et al. 2021, table 4)",
    "coatnet-1": "42M (Dai et al. 2021, table 4)",
    "coatnet-2": "75M (Dai et al. 2021, table 4)",
    "coatnet-3": "168M (Dai et al. 2021, table 4)",
    "vit-b": "86M (Dosovitskiy et al. 2021, table 1; B/16 without its head is 85.8M)",
    "vit-l": "307M (Dosovitskiy et al. 2021, table 1; that is L/32, 306.5M with 1,000 classes)",
    "vit-h": "632M (Dosovitskiy et al. 2021, table 1)",
    "vgg-16": "138M (Simonyan & Zisserman 2015, table 2)",
    "resnet-20": "0.27M (He et al. 2016, table 6)",
    "resnet-32": "0.46M (He et al. 2016, table 6)",
    "resnet-56": "0.85M (He et al. 2016, table 6)",
}


def describe(name: str) -> dict[str, Any]:
    """Describe a shipped model, a model folder, or a preset.

    Raises:
        NotFoundError: none of these.
    """
    try:
        folder = ModelFolder(find_model(name))
    except NotFoundError as error:
        try:
            config = preset(name)
        except UsageError:
            raise NotFoundError(f"{error} Nor is it a preset (`manyheads models`).") from None
        facts = {"preset": name, "parameters": count_parameters(config)}
        paper = PAPER.get(name) or PAPER.get(name.partition("/")[0])
        return facts | ({"paper": paper} if paper else {}) | {"config": asdict(config)}
    config = folder.recipe.config()
    origin = _origin(folder.recipe)
    return {
        "model": folder.name,
        "path": str(folder.path),
        "task": folder.recipe.task,
        **({} if origin else {"preset": folder.manifest["preset"]}),
        "parameters": count_parameters(config, folder.recipe),
        "bytes": sum(path.stat().st_size for path in folder.path.iterdir() if path.is_file()),
        "config": asdict(config),
        "trained": origin
        or {
            "data": folder.recipe.data.train,
            "steps": folder.recipe.train.steps,
            "seed": folder.recipe.seed,
            "precision": folder.manifest["precision"],
            "threads": folder.manifest["threads"],
            **folder.manifest["versions"],
        },
        "measured": {
            f"{line['data']} {metric}": round(score["value"], 2)
            for line in folder.evaluations()
            for metric, score in line["all"].items()
        },
    }


def _origin(recipe: Recipe) -> dict[str, Any]:
    """Say where a converted model comes from; nothing of others."""
    origin = recipe.converted if isinstance(recipe, TranslateRecipe | ClassifyRecipe) else None
    return origin.model_dump(exclude_none=True) if origin else {}


def count_parameters(config: Config, recipe: Recipe | None = None) -> int:
    """Count parameters, tied ones once, without allocating any; of a recipe, as it trains them."""
    with torch.device("meta"):
        model = build(config) if recipe is None else build_model(recipe, config)
        return sum(parameter.numel() for parameter in model.parameters())
