"""The page for users with images: its keys exist, and its commands run as written."""

import re
import shlex
from pathlib import Path

import pytest

from manyheads.project.base_recipe import read_recipe
from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.convert.test_convert_classifiers import write_hf
from tests.hub import serving
from tests.made import CLASSIFY, half, write_halves, write_recipe
from tests.models.test_golden_images import load as golden

PAGE = (Path(__file__).parents[1] / "docs" / "vision.md").read_text(encoding="utf-8")
BASH = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)).splitlines()


def test_every_key_is_one_of_a_recipe(tmp_path: Path) -> None:
    """Each setting in the tables of [augment] and [train] is accepted, with its value."""
    large = CLASSIFY.replace("height = 4\nwidth = 6", "height = 32\nwidth = 32")
    recipe = write_recipe(tmp_path / "r.toml", large, tmp_path)
    rows = [line for line in PAGE.splitlines() if line.startswith("| `") and "=" in line]
    augment = PAGE.index("`class_weights")
    read = 0
    for row in rows:
        table = "augment" if PAGE.index(row) < augment - 60 else "train"
        settings = re.findall(r"`([a-z_]+ = [^`]+)`", row.split("|")[1])
        changes = [f"{table}.{setting.replace(' = ', '=')}" for setting in settings]
        if any("resized_crop" in change for change in changes):
            changes.append("augment.shift=0")
        read_recipe(recipe, changes)
        read += len(changes)
    assert read > 15
    teacher = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)[0]
    recipe.write_text(recipe.read_text() + teacher)
    assert read_recipe(recipe).distil.hard is False  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", [line for line in BASH if line and " train " not in line])
def test_commands(
    line: str,
    call: Call,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a few images of two classes, with the model of digits, and a hub on this machine."""
    write_halves(tmp_path)
    (tmp_path / "halves").rename(tmp_path / "photos")
    (tmp_path / "photos-test" / "left").mkdir(parents=True)
    (tmp_path / "more-photos").mkdir()
    for path in ("photo.jpg", "more-photos/a.png", "photos-test/left/a.png"):
        half(0, 99).save(tmp_path / path)
    stdin = f"{tmp_path / 'photo.jpg'}\n".encode()
    command = line.partition("| ")[2] or line
    words = shlex.split(command.partition(" > ")[0])[1:]
    monkeypatch.setenv("MANYHEADS_CACHE", str(tmp_path / "cache"))
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.repositories = {
            "google/vit-base-patch16-224": write_hf(golden("hf-vit-resized"), tmp_path / "vit"),
            "timm/resnet50.a1_in1k": write_hf(
                golden("timm-resnet-bottleneck"),
                tmp_path / "resnet",
                architecture="resnet50.a1_in1k",
            ),
        }
        found = call(*words, stdin=stdin)
    # The images are tiny, and only one class is in the test folder: checking says so.
    assert found.code == 0, found.err
    assert found.out
