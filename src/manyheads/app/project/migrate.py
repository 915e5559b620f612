"""Recipes and preprocessing of format 1, whose keys have other names since format 2."""

from dataclasses import fields
from typing import Any

from manyheads.errors import UsageError
from manyheads.models.presets import preset

RENAMED = {
    "data": {"bad": "on_error"},
    "image": {"bands": "num_channels", "fit": "resize_mode"},
    "train": {"store": "save_dtype"},
}
# What model.hidden is called now: the width of a feed-forward layer, of a recurrent state, of the
# layers of an MLP, or of the layer in front of CoAtNet's head.
HIDDEN = ("ffn_dim", "hidden_size", "hidden_sizes", "representation")


def migrate(table: dict[str, Any]) -> list[str]:
    """Rename the old keys of a recipe in place; return them, such as "data.bad (now on_error)"."""
    renamed = []
    for name, keys in (RENAMED | {"model": _model_keys(table.get("model"))}).items():
        if isinstance(part := table.get(name), dict):
            old = rename(part, keys)
            renamed += [f"{name}.{key} (now {keys[key]})" for key in old]
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
    return {"hidden": next(n for n in HIDDEN if n in names)} if {*HIDDEN} & {*names} else {}
