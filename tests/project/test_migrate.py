"""Recipes and model folders of format 1 are read as what they say now."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from manyheads import load
from manyheads.models.presets import PRESETS
from manyheads.models.vit import VitConfig
from manyheads.project.base_recipe import DataTable, read_recipe
from manyheads.project.folder import ModelFolder, refresh_manifest
from manyheads.project.migrate import migrate
from manyheads.project.paths import shipped
from manyheads.project.registry import TASKS
from manyheads.tasks.classify.recipe import ClassifyRecipe
from tests.remarks import remarks

OLD = Path(__file__).parents[1] / "golden" / "format-1"


@pytest.mark.parametrize(
    "name", sorted(set(shipped("pretrained")) & {p.name for p in OLD.iterdir()})
)
def test_every_shipped_folder_is_read_as_format_1(name: str, tmp_path: Path) -> None:
    """As it was before the keys were renamed, hashes included: the same recipe, the same model."""
    now = shipped("pretrained")[name].parent
    before = shutil.copytree(now, tmp_path / name)
    for path in (OLD / name).iterdir():
        shutil.copyfile(path, before / path.name)
    assert json.loads((before / "manyheads.json").read_text())["format_version"] == 1
    old, new = ModelFolder(before), ModelFolder(now)
    assert old.recipe == new.recipe
    assert old.recipe.config() == new.recipe.config()
    if (now / "preprocessing.json").exists():
        assert old.preprocessing() == new.preprocessing()
    load(before)


def test_a_manifest_that_is_refreshed_is_of_this_version(tmp_path: Path) -> None:
    """With the hash of what was written, and those of what was not."""
    before = shutil.copytree(shipped("pretrained")["digits"].parent, tmp_path / "digits")
    shutil.copyfile(OLD / "digits" / "manyheads.json", before / "manyheads.json")
    old = json.loads((before / "manyheads.json").read_text())
    (before / "labels.json").write_bytes(b"[]")
    refresh_manifest(before, ["labels.json"])
    new = json.loads((before / "manyheads.json").read_text())
    hashes = {"labels.json": hashlib.sha256(b"[]").hexdigest()}
    assert new == old | {"format_version": 2, "sha256": old["sha256"] | hashes}


def test_each_renamed_key() -> None:
    """What is called otherwise now, and the width that every kind of model has under `hidden`."""
    table = {
        "task": "classify",
        "data": {"bad": "skip"},
        "image": {"bands": 5, "fit": "crop"},
        "train": {"store": "float16"},
        "model": {"preset": "vit-ti", "hidden": 8},
    }
    assert migrate(table) == [
        "data.bad (now on_error)",
        "image.bands (now num_channels)",
        "image.fit (now resize_mode)",
        "train.store (now save_dtype)",
        "model.hidden (now ffn_dim)",
    ]
    assert table == {
        "data": {"on_error": "skip"},
        "image": {"num_channels": 5, "resize_mode": "crop"},
        "train": {"save_dtype": "float16"},
        "model": {"preset": "vit-ti", "ffn_dim": 8},
        "task": "classify",
    }
    for preset, key in {
        "seq2seq-gru": "hidden_size",
        "tagger-lstm": "hidden_size",
        "tagger-encoder": "ffn_dim",
        "mlp": "hidden_sizes",
        "coatnet-0": "representation",
        "vgg-16": "hidden_size",
        "transformer-tiny": "ffn_dim",
    }.items():
        model = {"preset": preset, "hidden": 8}
        migrate({"task": "classify", "model": model})
        assert model == {"preset": preset, key: 8}


def test_nothing_is_lost_where_both_names_are_given() -> None:
    """Both stay, and the recipe is refused later for the one that is unknown."""
    train = {"store": "float16", "save_dtype": "float32"}
    table: dict[str, Any] = {"task": "tag", "train": train, "model": {"preset": "no"}}
    assert migrate(table) == []
    assert table["train"] == {"store": "float16", "save_dtype": "float32"}


@dataclass(frozen=True, kw_only=True)
class Narrow(VitConfig):
    """Knows an old key beside the new one."""

    hidden: int = 8


class OwnData(DataTable):
    """An own task may call something `bad`."""

    bad: int = 0


class OwnRecipe(ClassifyRecipe):
    """The classifier's, but for its data."""

    data: OwnData  # type: ignore[assignment]


def test_keys_of_own_models_and_tasks_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that its table knows is no old one; nor is one without its new name."""
    monkeypatch.setitem(PRESETS, "narrow", Narrow())
    pipeline = SimpleNamespace(recipe=OwnRecipe)
    monkeypatch.setitem(TASKS, "own", pipeline)
    table = {
        "task": "own",
        "data": {"bad": 3},
        "train": {"store": "float16"},
        "model": {"preset": "narrow", "hidden": 4},
    }
    assert migrate(table) == ["train.store (now save_dtype)"]
    assert table["data"] == {"bad": 3}
    assert table["model"] == {"preset": "narrow", "hidden": 4}


def test_a_recipe_with_old_keys_warns_and_means_the_same() -> None:
    """Of a user's own file; what a model folder stores is renamed in silence."""
    old = OLD / "digits" / "recipe.toml"
    with remarks(r"model\.hidden \(now ffn_dim\)"):
        found = read_recipe(old)
    assert found == read_recipe(old, stored=True)
    assert found == read_recipe(shipped("pretrained")["digits"].with_name("recipe.toml"))
