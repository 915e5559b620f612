"""Recipes and preprocessing of format 1, whose keys have other names since format 2."""

from dataclasses import fields, is_dataclass
from typing import Any, get_args

from manyheads.errors import RecipeError, UsageError
from manyheads.models.presets import preset
from manyheads.project.registry import find_task

RENAMED = {
    "data": {"bad": "on_error"},
    "image": {"bands": "num_channels", "fit": "resize_mode"},
    "train": {"store": "save_dtype"},
}
# What model.hidden is called now: the width of a feed-forward layer, of a recurrent state, of the
# layers of an MLP, or of the layer in front of CoAtNet's head.
HIDDEN = ("ffn_dim", "hidden_size", "hidden_sizes", "representation")


def migrate(table: dict[str, Any]) -> list[str]:
    """Rename the old keys of a recipe in place; return them, such as "data.bad (now on_error)".

    Models and tasks from outside the package may use an old key for something of their own: only
    a key that its table does not know, and whose new name it does know, is renamed.
    """
    try:
        known = find_task(table.get("task")).recipe.model_fields
    except RecipeError:
        return []  # the recipe is checked later, and this is reported there
    tables = {
        name: _renamed(known[name].annotation, keys)
        for name, keys in RENAMED.items()
        if name in known
    }
    renamed = []
    for name, keys in (tables | {"model": _model_keys(table.get("model"))}).items():
        if isinstance(part := table.get(name), dict):
            renamed += [f"{name}.{key} (now {keys[key]})" for key in rename(part, keys)]
    return renamed


def rename(table: dict[str, Any], keys: dict[str, str]) -> list[str]:
    """Rename keys of one table in place, unless it has the new name too; return the old names."""
    old = [key for key, new in keys.items() if key in table and new not in table]
    for key in old:
        table[keys[key]] = table.pop(key)
    return old


def _model_keys(model: Any) -> dict[str, str]:
    try:
        config = preset(str(model["preset"]))
    except (UsageError, TypeError, KeyError):
        return {}  # the recipe is checked later, and this is reported there
    names = [field.name for field in fields(config)]
    new = [name for name in HIDDEN if name in names and "hidden" not in names]
    return {"hidden": new[0]} if new else {}


def _renamed(table: Any, keys: dict[str, str]) -> dict[str, str]:
    """Choose the keys that a recipe's table knows by their new names only."""
    names: set[str] = set()
    for each in get_args(table) or (table,):
        names |= {*getattr(each, "model_fields", ())}
        names |= {field.name for field in fields(each)} if is_dataclass(each) else set()
    return {old: new for old, new in keys.items() if new in names and old not in names}
