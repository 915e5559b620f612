"""The page of recipe keys is what the classes say, and says something of every key."""

import re
from pathlib import Path

import pytest

from manyheads.project.base_recipe import read_recipe, write_recipe
from manyheads.project.paths import shipped
from manyheads.project.toml_file import read_toml
from scripts import recipe_keys

ROWS = [line.strip("| ").split(" | ") for line in recipe_keys.page().splitlines() if "| `" in line]
KEYS = {row[0].strip("`") for row in ROWS}


def test_the_page_is_current() -> None:
    """Otherwise: python scripts/recipe_keys.py."""
    assert recipe_keys.PAGE.read_text(encoding="utf-8") == recipe_keys.page()


def test_every_key_has_a_meaning() -> None:
    lines = [line for line in recipe_keys.page().splitlines() if line.startswith("| `")]
    assert [line for line in lines if re.search(r"\|\s*\|$", line)] == []


@pytest.mark.parametrize("name", shipped("pretrained"))
def test_every_key_of_a_stored_recipe_is_listed(name: str, tmp_path: Path) -> None:
    """Written with every default, so these are most of the keys there are."""
    recipe = read_recipe(shipped("pretrained")[name].with_name("recipe.toml"), stored=True)
    (tmp_path / "whole.toml").write_text(write_recipe(recipe, recipe.config()), encoding="utf-8")
    table = read_toml(tmp_path / "whole.toml")

    def flat(part: object, prefix: str = "") -> set[str]:
        if not isinstance(part, dict):
            return {prefix.removesuffix(".")}
        return {key for name, each in part.items() for key in flat(each, f"{prefix}{name}.")}

    missing = {key for key in flat(table) if key not in KEYS}
    # Tables whose keys are names that the data have: of languages, of classes.
    assert {key for key in missing if key.rpartition(".")[0] not in KEYS} == set()


def test_a_limit_and_a_default_as_the_class_has_them() -> None:
    rows = {row[0]: row for row in ROWS}
    assert rows["`train.layer_decay`"][1:3] == ["number > 0, ≤ 1", "`1.0`"]
    assert rows["`image.crop`"][1] == "number > 0, ≤ 1"
    assert '`"cosine"`' in rows["`train.schedule`"][1]
