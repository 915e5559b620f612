"""read: the text of images on stdout, with its translation behind; mistakes explained."""

import json
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from tests.cli.conftest import Call
from tests.made import trained


@pytest.fixture
def sign(tmp_path: Path) -> Path:
    image = Image.new("L", (300, 90), 255)
    canvas = ImageDraw.Draw(image)
    for top, text in ((8, "one two"), (48, "three")):
        canvas.text((12, top), text, fill=0, font=ImageFont.load_default(24))
    image.save(tmp_path / "sign.png")
    return tmp_path / "sign.png"


def test_lines_in_order(call: Call, sign: Path) -> None:
    code, out, err = call("read", "--model", trained("reader"), sign)
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "2 lines" not in err
    told = json.loads(call("read", "--model", trained("reader"), sign, "--json").out)
    assert told["text"] == out.removesuffix("\n")
    assert "translation" not in told
    (line,) = call("caption", "--model", trained("reader"), sign).out.splitlines()
    assert line == " ".join(out.split("\n")).strip()


def test_translation_follows(call: Call, sign: Path) -> None:
    models = ("--model", trained("reader"), "--translator", trained("translator"))
    code, out, _ = call("read", sign, *models, "--to", "de")
    assert code == 0
    text, _, translation = out.partition("\n\n")
    assert len(text.splitlines()) == 2
    assert len(translation.splitlines()) == 2  # no line ends a sentence
    told = json.loads(call("read", sign, *models, "--json").out)
    assert (told["language"], told["to"]) == ("en", "de")
    assert told["translation"] == translation.strip()


def test_several_images_are_named(call: Call, sign: Path, tmp_path: Path) -> None:
    Image.new("L", (9, 9)).save(tmp_path / "none.png")
    code, out, err = call("read", "--model", trained("reader"), sign, tmp_path / "none.png")
    assert code == 0
    assert out.startswith(f"{sign}:\n")
    assert f"{tmp_path / 'none.png'}:\n" in out
    assert f"{tmp_path / 'none.png'}: there is no text" in err


def test_mistakes(call: Call, sign: Path, tmp_path: Path) -> None:
    model = ("--model", trained("reader"))
    code, out, err = call("read", *model, tmp_path / "missing.png", sign)
    assert code == 2
    assert "missing.png" in err
    assert len(out.splitlines()) >= 2  # the other one is read
    (tmp_path / "bad.png").write_bytes(b"x")
    assert call("read", *model, tmp_path / "bad.png").code == 1
    (tmp_path / "empty").mkdir()
    code, out, err = call("read", *model, tmp_path / "empty")
    assert (code, out) == (1, "")
    assert "has no images" in err
    code, out, err = call("read", sign, "--model", trained("translator"))
    assert (code, out) == (2, "")
    assert "does not read images" in err
    code, _, err = call("read", sign, *model, "--to", "es")
    assert code == 2
    assert "--translator" in err
    code, _, err = call("translate", "one", *model)
    assert code == 2
    assert "manyheads read" in err
