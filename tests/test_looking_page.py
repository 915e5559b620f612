"""The page about looking: its commands and its Python run, its keys are those of the schema."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.schema import SCHEMA

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "looking.md").read_text(encoding="utf-8")


def with_image(folder: Path) -> None:
    image = folder / "docs" / "images" / "seven.png"
    image.parent.mkdir(parents=True)
    image.write_bytes((ROOT / "docs" / "images" / "seven.png").read_bytes())


def test_the_commands_run(call: Call, tmp_path: Path) -> None:  # noqa: F811
    """As written, from a folder with the image in it; each writes what its name says."""
    pytest.importorskip("matplotlib")
    with_image(tmp_path)
    (block,) = re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)
    for line in block.splitlines():
        words = shlex.split(line, comments=True)[1:]
        code, out, err = call(*words)
        assert code == 0, err
        assert out
        assert (
            tmp_path
            / (
                [*words, "--out", "look.html"][words.index("--out") + 1]
                if "--out" in words
                else "look.html"
            )
        ).exists()


def test_the_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And gives what its comments say."""
    monkeypatch.chdir(tmp_path)
    with_image(tmp_path)
    block, arrays, maps = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    found: dict[str, Any] = {}
    exec(block, found)
    assert (tmp_path / "look.html").exists()
    promised = re.findall(r"^(found\.\S+) +# '(.*?)(?: \.\.\.)?'$", block, flags=re.MULTILINE)
    assert len(promised) == 2
    for code, answer in promised:
        assert str(eval(code, found)).startswith(answer), code
    exec(arrays, found)
    stored = np.load(tmp_path / "maps.npz")
    assert stored["decoder layer 1 cross"].shape[0] == 4
    assert len(stored.files) == len(found["found"].view.maps)
    exec(maps, found)
    assert str(found["found"].layer_id) == "encoder layer 4 self"


def test_the_keys_are_those_of_the_schema() -> None:
    """What is said of the JSON is what the schema requires."""
    section = PAGE.partition("## The numbers")[2]
    for kind, sentence in (("text", "A text has "), ("image", "an image has\n")):
        said = re.findall(
            r"`(\w+)`", section.partition(sentence)[2].partition(".")[0].partition(";")[0]
        )
        assert {"schema", "kind", *said} == set(SCHEMA["$defs"][kind]["required"])


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / link).exists(), link
