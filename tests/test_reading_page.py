"""The page about reading: its keys exist, its recipe is one, and its commands run as written."""

import re
import shlex
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from manyheads import read
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import shipped
from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.made import READ

PAGE = (Path(__file__).parents[1] / "docs" / "reading.md").read_text(encoding="utf-8")
BASH = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)).splitlines()
COMMANDS = [line for line in BASH if line.startswith(("manyheads read ", "manyheads caption "))]


def draw(path: Path) -> None:
    image = Image.new("L", (420, 90), 255)
    canvas = ImageDraw.Draw(image)
    for top, text in ((8, "Read the manual"), (48, "before you begin.")):
        canvas.text((12, top), text, fill=0, font=ImageFont.load_default(28))
    image.save(path)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands(line: str, call: Call, tmp_path: Path) -> None:  # noqa: F811
    draw(tmp_path / "sign.png")
    draw(tmp_path / "line.png")
    (tmp_path / "pages").mkdir()
    draw(tmp_path / "pages" / "1.png")
    found = call(*shlex.split(line)[1:])
    assert found.code == 0, found.err
    assert found.out.strip()


def test_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw(tmp_path / "sign.png")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    assert names["text"] == read(["sign.png"])[0].text


def test_every_key_is_one_of_a_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "read.toml"
    recipe.write_text(READ, encoding="utf-8")
    keys = re.findall(r"`((?:data|image|render)\.[a-z_]+)`", PAGE)
    assert len(set(keys)) > 12
    stored = read_recipe(recipe).model_dump()
    for key in keys:
        table, name = key.split(".")
        assert name in stored[table], key


def test_the_recipe_for_own_images(tmp_path: Path) -> None:
    recipe = tmp_path / "own.toml"
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    recipe.write_text(text, encoding="utf-8")
    assert read_recipe(recipe).task == "read"


def test_the_model_and_the_recipe_are_shipped() -> None:
    assert "read-ko" in shipped("recipes")
    assert "read-ko" in shipped("pretrained")
