"""`manyheads index` and `manyheads search`."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from manyheads.project.lock import locked
from tests import digit_search
from tests.cli.conftest import Call
from tests.cli.test_bad_input import refused
from tests.cli.test_terminal import Terminal
from tests.digit_search import write_digits

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def searchable(monkeypatch: pytest.MonkeyPatch) -> None:
    digit_search.give(monkeypatch)


INDEX = ("index", "digits", "--out", "i", "--model", "digits")


def test_index_and_search(call: Call, tmp_path: Path) -> None:
    """What was done in one line; a line for each image, its path relative to where one is."""
    write_digits(tmp_path / "digits", 60)
    assert call(*INDEX) == (0, "i: 60 images (60 added)\n", "")
    code, out, err = call("search", "seven", "--index", "i", "--top", "2")
    assert (code, err) == (0, "")
    first, second = (line.split("  ") for line in out.splitlines())
    assert [first[:2], second[:2]] == [["", "1"], ["", "2"]]
    assert first[-1].startswith("digits/7/")
    assert 1 > float(first[-2]) > float(second[-2]) > 0.5
    shutil.rmtree(tmp_path / "digits" / "1")
    code, out, err = call(*INDEX)
    assert code == 0
    assert out == "i: 60 images (54 unchanged)\n"
    assert "the files of 6 images in the index are gone: --prune removes them." in err
    assert call("index", "--prune", "--out", "i").out == "i: 54 images (6 removed)\n"
    assert call("index", "--prune", "--out", "i").out == "i: 54 images (nothing to do)\n"


def test_a_bar_on_a_terminal(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images done, all of them, and how many a second."""
    write_digits(tmp_path / "digits", 60)
    raw = io.BytesIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal(raw, encoding="utf-8", write_through=True))
    assert call(*INDEX).code == 0
    assert re.search(r"60/60 [\d,]+ images/s", raw.getvalue().decode())


def test_the_model_of_a_new_index(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is a shipped one of images and texts; an index knows its own."""
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    (path, *_) = write_digits(tmp_path / "digits", 3)
    assert call("index", "digits", "--out", "i").out == "i: 3 images (3 added)\n"
    assert json.loads((tmp_path / "i" / "index.json").read_text())["model"] == "emoji-search"
    assert len(call("search", "웃는 고양이", "--index", "i").out.splitlines()) == 3
    out = call("search", path, "--index", "i", "--top", "1").out
    assert out == f"  1   1.000  {path.relative_to(tmp_path)}\n"
    refused(call(*INDEX), 2, "digits cannot be searched with", "emoji-search")


def test_images_that_are_gone_are_marked(call: Call, tmp_path: Path) -> None:
    (path, *_) = write_digits(tmp_path / "digits", 3)
    call(*INDEX)
    path.rename(tmp_path / "kept.png")
    out = call("search", "kept.png", "--index", "i", "--top", "1").out
    assert out == f"  1   1.000  {path.relative_to(tmp_path)}  (gone)\n"


def test_several_queries(call: Call, tmp_path: Path) -> None:
    """As arguments or as lines, each is named before its answer; one fails, the others do not."""
    paths = write_digits(tmp_path / "digits", 10)
    call(*INDEX)
    shutil.copy(paths[0], tmp_path / "a.png")
    code, out, err = call("search", "one", "none.png", "a.png", "--index", "i", "--top", "1")
    assert code == 2
    assert [line for line in out.splitlines() if not line.startswith(" ")] == ["one", "a.png"]
    assert out.endswith(f"a.png\n  1   1.000  {paths[0].relative_to(tmp_path)}\n")
    assert err == "manyheads: There is no file none.png. If these are words: --kind text.\n"
    words = ("search", "--index", "i", "--top", "1")
    lines = call(*words, stdin=b"one\na.png\n")
    assert lines.code == 0
    assert lines.out.splitlines()[:4] == out.splitlines()
    (tmp_path / "b.png").write_text("text")
    code, out, err = call(*words, "b.png")
    assert (code, out) == (1, "")
    assert "b.png cannot be read as an image: not an image, or damaged" in err
    assert call(*words, "b.png", "--kind", "text").code == 0


def test_a_query_without_words(call: Call, tmp_path: Path) -> None:
    """Is told in its place, as what cannot be read is; it is like no image more than others."""
    write_digits(tmp_path / "digits", 3)
    assert call(*INDEX).code == 0
    code, out, err = call("search", "--index", "i", "--json", "seven", " ")
    assert code == 1
    seven, blank = map(json.loads, out.splitlines())
    assert len(seven["images"]) == 3
    assert blank == {"query": " ", "kind": "text", "error": blank["error"]}
    assert "The query is empty" in err


def test_json(call: Call, tmp_path: Path) -> None:
    """A line for each query; paths are absolute, whatever bytes they are of."""
    (path, *_) = write_digits(tmp_path / "digits", 3)
    name = os.fsdecode(b"caf\xe9.png")
    path.rename(tmp_path / "digits" / name)
    (tmp_path / "digits" / "bad.png").write_text("text")
    code, out, err = call(*INDEX, "--json")
    assert code == 1
    assert "bad.png cannot be read as an image: not an image, or damaged." in err
    answer = json.loads(out)
    assert {key: answer[key] for key in ("images", "added", "embedded", "gone")} == {
        "images": 3,
        "added": 3,
        "embedded": 3,
        "gone": 0,
    }
    assert [each["path"] for each in answer["unreadable"]] == [str(tmp_path / "digits/bad.png")]
    code, out, err = call("search", "zero", "x.png", "--index", "i", "--json")
    assert code == 2
    found, missing = map(json.loads, out.splitlines())
    assert (found["query"], found["kind"]) == ("zero", "text")
    assert found["images"][0]["path"] == str(tmp_path / "digits" / name)
    assert found["images"][0].keys() == {"path", "score"}
    assert missing.keys() == {"query", "kind", "error"}


def test_labels_of_a_table(call: Call, tmp_path: Path) -> None:
    """Shown beside the name of a row."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    paths = write_digits(tmp_path / "digits", 3)
    names = ["nought", "one", "two"]
    images = [path.read_bytes() for path in paths]
    pq.write_table(pa.table({"picture": images, "name": names}), tmp_path / "t.parquet")
    words = ("index", "t.parquet", "--out", "i", "--model", "digits")
    answer = call(*words)
    refused(answer, 1, "has no image. It has picture, name. Name them with --image-column")
    assert call(*words, "--image-column", "picture", "--label-column", "name").code == 0
    out = call("search", paths[0], "--index", "i", "--top", "1").out
    assert out == "  1   1.000  t.parquet, row 1  nought\n"


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (("index", "digits", "--out", "i", "--model", "digit"), 2, ["did you mean 'digits'?"]),
        (("index", "--out", "i", "--model", "digits"), 2, ["no images to index", "--prune"]),
        (("index", "--prune", "--out", "i", "--model", "digits"), 2, ["i is no index of images"]),
        (
            ("index", "nothing", "--out", "i", "--model", "digits"),
            2,
            ["no 'nothing', neither in the current folder nor"],
        ),
        (("index", "empty", "--out", "i", "--model", "digits"), 1, ["empty has no images"]),
        (("index", "digits", "--out", "digits", "--model", "digits"), 2, ["is not empty, and no"]),
        (("index", "digits", "--out", "a.txt", "--model", "digits"), 2, ["a.txt is a file"]),
        (
            ("index", "a.txt", "--out", "i", "--model", "digits"),
            2,
            ["a.txt' is not read as images"],
        ),
        (("index", "", "--out", "i"), 2, ["IMAGES is empty"]),
        (("search", "one", "--index", "i"), 2, ["i is no index of images: it is not there"]),
        (("search", "one", "--index", "empty"), 2, ["it has no index.json. Make one with"]),
        (("search", "one", "--index", "a.txt"), 2, ["a.txt is no index of images"]),
        (("search", "one"), 2, ["Missing option '--index'"]),
        (("search", "one", "--index", "i", "--kind", "x"), 2, ["--kind is 'x'", "text, image"]),
    ],
)
def test_refusals(
    call: Call, tmp_path: Path, words: list[str], code: int, parts: list[str]
) -> None:
    write_digits(tmp_path / "digits", 3)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    answer = call(*words)
    assert answer.code == code
    for part in parts:
        assert part in answer.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_model_that_does_not_embed(call: Call, tmp_path: Path, translator: Path) -> None:
    """It is named, and so is what fits."""
    write_digits(tmp_path / "digits", 3)
    words = ("index", "digits", "--out", "i", "--model", translator)
    refused(call(*words), 2, "model cannot be searched with: it has no vectors", "'match'")


def test_two_at_once(call: Call, tmp_path: Path) -> None:
    write_digits(tmp_path / "digits", 3)
    call(*INDEX)
    with locked(tmp_path / "i", "adds images"):
        refused(call(*INDEX), 2, "i is in use: process", "adds images there", "--out")


def test_ctrl_c(tmp_path: Path) -> None:
    """130, what is done is saved, and the same command goes on."""
    write_digits(tmp_path / "digits", 400)
    command = [sys.executable, "-m", "manyheads", *INDEX, "--plugin", "tests.digit_search"]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "NO_COLOR": "1",
        "DIGIT_SEARCH": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment | {"SLOW": "0.3"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    vectors = tmp_path / "i" / "vectors.f32"
    end = time.monotonic() + 120
    while not (vectors.exists() and vectors.stat().st_size):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    done = vectors.stat().st_size // 40
    assert f"manyheads: Stopped after {done} of 400 images, which are saved." in err
    assert 0 < done < 400
    again = subprocess.run(
        [*command, "--json"],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(again.stdout)["embedded"] == 400 - done
    assert vectors.stat().st_size == 400 * 40
