"""The page for users with sentences: its keys, recipes and options of commands exist."""

import re
import shlex
from pathlib import Path

import pytest

from manyheads.cli.main import whole
from manyheads.cli.train import FAST
from manyheads.models.presets import PRESETS
from manyheads.models.transformer import TransformerConfig
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import find_recipe
from manyheads.tasks.translate.initialize import SAME
from manyheads.tasks.translate.recipe import TranslateRecipe
from tests.made import TRANSLATE, write_recipe

PAGE = (Path(__file__).parents[1] / "docs" / "translation.md").read_text(encoding="utf-8")
BASH = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)).replace("\\\n", "")
SHOWN = re.findall(r"^\$ (manyheads .*)$", PAGE, flags=re.MULTILINE)
COMMANDS = [shlex.split(line, comments=True)[1:] for line in [*BASH.splitlines(), *SHOWN] if line]
TRAINING = [words for words in COMMANDS if words[0] == "train"]


def test_every_key_of_the_table_is_one_of_a_recipe(tmp_path: Path) -> None:
    """With its value; what is averaged in two ways is one or the other."""
    recipe = write_recipe(tmp_path / "r.toml", TRANSLATE, tmp_path)
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    settings = [setting for row in rows for setting in re.findall(r"`(\w+\.\w+ = .*?)`", row)]
    for setting in settings:
        read_recipe(recipe, [setting.replace(" = ", "=", 1), "train.steps=20000"])
    assert len(settings) >= 8


@pytest.mark.parametrize("words", TRAINING, ids=" ".join)
def test_a_training_command_is_a_valid_recipe(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its recipe is shipped, or a file; its changes are allowed; what it starts from fits."""
    monkeypatch.chdir(tmp_path)
    write_recipe(tmp_path / "my.toml", TRANSLATE, tmp_path)  # the reader's own
    changes = [word for word in words[2:] if "=" in word]
    recipe = read_recipe(find_recipe(words[1]), [*(FAST if "--fast" in words else ()), *changes])
    if isinstance(recipe, TranslateRecipe) and recipe.start is not None:
        for name in filter(None, (recipe.start.encoder, recipe.start.decoder)):
            theirs = read_recipe(find_recipe(Path(name).name))
            ours, preset = recipe.config(), PRESETS[theirs.model["preset"]]
            assert isinstance(ours, TransformerConfig)
            assert {key: getattr(ours, key) for key in SAME} == {
                key: getattr(preset, key) for key in SAME
            }
            assert "tokenizer.shared=false" in changes


@pytest.mark.parametrize("words", [w for w in COMMANDS if w[0] != "train"], ids=" ".join)
def test_the_options_of_a_command_exist(words: list[str]) -> None:
    """Every --option is one of the command's own."""
    command = whole()
    for word in words[: 1 + (words[0] == "convert")]:
        command = command.commands[word]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
