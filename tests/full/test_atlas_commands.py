"""Every command of the atlas, from top to bottom in one folder; trainings of two steps."""

import os
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manyheads.project.paths import find_recipe
from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.test_atlas_page import DOCS, EVERY

DATA = os.environ.get("MANYHEADS_DATA")  # before tests are kept from it
SHORT = ("train.steps=2", "train.warmup=1", "train.validate_every=2", "train.threads=1")


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.skipif(DATA is None, reason="needs the public data sets: set MANYHEADS_DATA")
def test_every_command_in_order(call: Call, tmp_path: Path) -> None:  # noqa: F811
    """As they are written, but for the length of trainings and labs."""
    (tmp_path / "docs").mkdir()
    shutil.copytree(DOCS / "images", tmp_path / "docs" / "images")
    random = np.random.default_rng(0)
    for name in ("left", "right"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(110):
            pixels = random.integers(0, 256, (48, 48, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
    places = {"FOLDER": str(DATA), "PHOTOS": str(tmp_path / "photos")}
    for _, line in EVERY:
        words = shlex.split(line)
        for name, path in places.items():
            words = [word.replace(name, path) for word in words]
        if words[0] == "train":
            words[2:2] = SHORT
            if "restart = " in find_recipe(words[1]).read_text(encoding="utf-8"):
                words.insert(2, "train.restart=")
        if words[0] == "lab" and "--quick" not in words:
            words.append("--quick")
        found = call(*words)
        assert found.code == 0, (line, found.err)
