"""The page about finding images: its commands and its Python run as written."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.digit_search import write_digits

PAGE = (Path(__file__).parents[1] / "docs" / "search.md").read_text(encoding="utf-8")
BASH = "".join(re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)).splitlines()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture(autouse=True)
def icons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Some images, though they show digits."""
    monkeypatch.chdir(tmp_path)
    (path, *_) = write_digits(tmp_path / "icons", 12)
    path.rename(tmp_path / "icons" / "cat.png")
    write_digits(tmp_path / "more-icons", 4, first=12)


def test_commands(call: Call) -> None:  # noqa: F811
    """In the order of the page."""
    assert len(BASH) == 7
    answers = []
    for line in BASH:
        words = shlex.split(line.partition("| ")[2] or line)[1:]
        answers.append(call(*words, stdin="seven\n다섯\n".encode()))
        assert answers[-1].code == 0, answers[-1].err
    assert answers[0].out == "icons.index: 12 images (12 added)\n"
    assert answers[1].out == "named.index: 12 images (12 added)\n"
    assert json.loads(answers[4].out)["kind"] == "image"
    assert answers[6].out == "icons.index: 16 images (4 added, 12 unchanged)\n"


def test_python(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = PYTHON
    exec(compile(program, "docs/search.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 10
