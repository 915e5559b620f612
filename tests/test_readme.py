"""Every command of the README runs as written, in both languages."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import find_recipe
from tests import opus
from tests.cli.conftest import Answer, Call, call  # noqa: F401 - a fixture
from tests.hub import serving
from tests.own_data.test_tables import sentences, table

ROOT = Path(__file__).parents[1]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md")}


def blocks(page: str, language: str) -> list[str]:
    """Find the code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], flags=re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """Find the calls of manyheads, without their comments."""
    lines = [line for block in blocks(page, "bash") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("manyheads")]


OPEN_SIZES = ("export",)  # which shapes that are checked, as they are here, would fix
OF_RUNS = ("train", "evaluate", "serve", "compare")  # that the reader has
ANSWERING = [words for words in commands("README.md") if words[0] not in OF_RUNS]
# Answers that a person accepts, by the command without its quotation marks.
ACCEPTED = {
    "translate I will call you back tomorrow.": "^Ich rufe dich morgen zurück.$",
    "translate Ich rufe dich morgen zurück.": "^I'll call you back tomorrow.$",
    "translate --to ko How much do these shoes cost?": r"^이 신발은 얼마예요\?$",
    "translate 이 가방은 얼마예요?": r"^How much is this bag\?$",
    "translate --model enko-en-ko Return a copy of the list.": "^리스트의 복사본을 반환합니다.$",
    "translate --model enko-ko-en 목록의 복사본을 반환합니다.": "^Return a copy of the list.$",
    "translate --model date-en-ko Friday, 20 November 2026": "^2026년 11월 20일 금요일$",
    "classify docs/images/seven.png": r"\t7 \d",
    "classify --model cifar10-cct-2-3x2 docs/images/ship.png": r"\tship \d",
    "caption docs/images/heart.png": "heart",
    "read docs/images/line.png --to en": "Return a copy of the list",
    "classify docs/images/heart.png --model emoji-search --labels heart,dog,house": r"\theart \d",
    "search red heart --index images.index": r"\A +1 .*heart.png",
    "tag --model korean-spacing-lstm 이함수는리스트의길이를반환합니다.": "^이 함수는 리스트의",
}
TRAINING = [words for words in commands("README.md") if words[0] == "train"]


def test_both_languages_show_the_same_commands() -> None:
    """Neither page falls behind the other."""
    assert commands("README.md") == commands("README.ko.md")
    assert len(ANSWERING) >= 8
    assert len(TRAINING) >= 5


@pytest.mark.parametrize("words", ANSWERING, ids=" ".join)
def test_a_command_answers(
    words: list[str],
    call: Call,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the shipped models, from any folder."""
    image = tmp_path / "docs" / "images" / "seven.png"
    image.parent.mkdir(parents=True)
    for name in ("seven.png", "line.png", "heart.png", "ship.png"):
        shutil.copyfile(ROOT / "docs" / "images" / name, image.with_name(name))
    Image.new("RGB", (60, 40), "skyblue").save(tmp_path / "photo.jpg")  # the reader's own
    (tmp_path / "pairs.tsv").write_text(table(sentences(60)), encoding="utf-8")
    before = [each for each in ANSWERING if each[0] == "index" and "--index" in words]
    with serving() as hub:
        opus.write_random(tmp_path / "opus")
        hub.repositories["Helsinki-NLP/opus-mt-en-de"] = tmp_path / "opus"
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("MANYHEADS_CACHE", str(tmp_path / "cache"))
        for each in (*before, words):
            answer = started(each, tmp_path) if words[0] in OPEN_SIZES else call(*each)
            assert answer.code == 0, answer.err
    assert answer.out or words[0] == "index"
    expected = ACCEPTED.get(" ".join(words))
    assert expected is None or re.search(expected, answer.out), answer.out


def started(words: list[str], folder: Path) -> Answer:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "manyheads", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def test_the_first_commands_are_among_them() -> None:
    """Whose answers are judged."""
    assert ACCEPTED.keys() <= {" ".join(words) for words in ANSWERING}


@pytest.mark.parametrize("words", TRAINING, ids=" ".join)
def test_a_training_command_is_a_valid_recipe(words: list[str]) -> None:
    """Its recipe is shipped and its changes are allowed; some names stand for the reader's own."""
    _, recipe, *rest = words
    changes = [part for part in rest if "=" in part]
    name = "multi30k-en-de-tiny" if recipe in ("my.toml", "mine.toml") else recipe
    read_recipe(find_recipe(name), changes)


def test_the_python_of_the_readme_runs() -> None:
    """And gives what its comments say."""
    (block,) = blocks("README.md", "python")
    found: dict[str, Any] = {}
    exec(block, found)
    assert found["trace"].records
    promised = re.findall(r"^(translate\(.*?\)) +# (['\[].*)$", block, flags=re.MULTILINE)
    assert len(promised) == 2
    for code, answer in promised:
        assert eval(code, found) == ast.literal_eval(answer)
