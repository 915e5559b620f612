"""Facts about a model."""

import tomllib
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import torch

from manyheads.data.text.public_corpora import public_sources, training_sets
from manyheads.errors import NotFoundError, UsageError
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build, preset
from manyheads.project.base_recipe import Recipe
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model
from manyheads.project.registry import find_task, import_installed


def describe(name: str) -> dict[str, Any]:
    """Describe a shipped model, a model folder, or a preset.

    Raises:
        NotFoundError: none of these.
    """
    try:
        folder = ModelFolder(find_model(name))
    except NotFoundError as error:
        import_installed({"model": {"preset": name}})
        try:
            config = preset(name)
        except UsageError:
            raise NotFoundError(f"{error} Nor is it a preset (`manyheads models`).") from None
        facts = {"preset": name, "parameters": count_parameters(config)}
        sizes = tomllib.loads(files(__package__).joinpath("paper_sizes.toml").read_text("utf-8"))
        paper = sizes.get(name) or sizes.get(name.partition("/")[0])
        return facts | ({"paper": paper} if paper else {}) | {"config": asdict(config)}
    config = folder.recipe.config()
    data = folder.recipe.data.model_dump()
    origin = folder.recipe.origin
    return {
        "model": folder.name,
        "path": str(folder.path),
        "task": folder.recipe.task,
        **({} if origin else {"preset": folder.manifest["preset"]}),
        "parameters": count_parameters(config, folder.recipe),
        "bytes": sum(path.stat().st_size for path in folder.path.iterdir() if path.is_file()),
        "config": asdict(config),
        "trained": origin.model_dump(exclude_none=True)
        if origin
        else {
            "data": ", ".join(training_sets(data)),
            "licences": {each.name: each.licence for each in public_sources(data)},
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


def count_parameters(config: ModelConfig, recipe: Recipe | None = None) -> int:
    """Count parameters, tied ones once, without allocating any; of a recipe, as it trains them."""
    with torch.device("meta"):
        model = build(config) if recipe is None else find_task(recipe.task).build(recipe, config)
        return sum(parameter.numel() for parameter in model.parameters())
