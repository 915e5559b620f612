"""manyheads convert, as its users call it."""

import json
from pathlib import Path

from PIL import Image
from safetensors.torch import save_file

from tests import opus
from tests.cli.conftest import Call
from tests.made import trained
from tests.models.test_golden_images import load as golden


def test_there_and_back(call: Call, tmp_path: Path) -> None:
    """Each command says what it made; the converted model is used like any other."""
    opus.write_random(tmp_path / "opus")
    code, out, err = call("convert", "marian", "opus", "ours", "--prefix", ">>kor<<")
    assert (code, err) == (0, "")
    assert out.startswith("ours: eng to kor, 12,076 parameters\n")
    assert "manyheads translate --model ours" in out
    code, out, err = call("translate", "--model", "ours", "The cat sits on the mat.")
    assert code == 0
    assert "characters that the vocabulary does not have" in err
    assert len(out.splitlines()) == 1
    assert call("convert", "to-marian", "ours", "back").code == 0
    assert (tmp_path / "back" / "vocab.json").exists()


def test_what_differs_is_said_on_stderr(call: Call) -> None:
    code, out, err = call("convert", "to-marian", str(trained("translator")), "published")
    assert code == 0
    assert out.startswith("published: en to de, ")
    assert "manyheads: Ours ends an output at 2 * source + 16 tokens" in err


def test_mistakes(call: Call) -> None:
    """A message and 2, no traceback."""
    code, out, err = call("convert", "marian", "nowhere", "ours")
    assert (code, out) == (2, "")
    assert "There is no file or folder 'nowhere'" in err
    assert call("convert", "maryan", "a", "b").code == 2


def test_a_classifier(call: Call, tmp_path: Path) -> None:
    """From a file of weights to a guess: what was assumed on stderr, what was made on stdout."""
    reference = golden("timm-resnet-basic")
    save_file(reference.tensors, tmp_path / "weights.safetensors")
    words = ("convert", "timm", "weights.safetensors", "ours", "--arch", "resnet18")
    code, out, err = call(*words, "--image-size", "24x16")
    assert code == 0
    assert out.startswith("ours: 5 classes, images of 24 x 16, ")
    assert "preprocessing.json has what is usual for resnet18" in err
    assert "manyheads classify --model ours image.png" in out
    Image.new("RGB", (30, 20), "blue").save(tmp_path / "blue.png")
    code, out, err = call("classify", "--model", "ours", "blue.png")
    assert code == 0
    assert "ours is unsure: the most probable class, " in err  # of five, with drawn weights
    assert call("info", "ours").code == 0
    code, out, err = call("look", "ours", "blue.png", "--out", "look.json")  # no attention
    assert code == 0
    view = json.loads((tmp_path / "look.json").read_text(encoding="utf-8"))
    assert view["maps"] == []
    assert {each["name"] for each in view["overlays"]} == {"grad-cam"}


def test_mistakes_with_classifiers(call: Call, tmp_path: Path) -> None:
    """A message, 1 for a bad file and 2 for a bad call, no traceback, nothing left behind."""
    (tmp_path / "weights.safetensors").write_bytes(b"no weights")
    words = ("convert", "timm", "weights.safetensors", "ours")
    code, out, err = call(*words, "--arch", "resnet18")
    assert (code, out) == (1, "")
    assert "weights.safetensors cannot be read" in err
    for more, message in (
        (("--arch", "resnet18", "--image-size", "big"), "such as 384 or 256x384"),
        (("--arch", "resnet18", "--image-size", "0"), "--image-size is '0'"),
    ):
        code, out, err = call(*words, *more)
        assert (code, out) == (2, "")
        assert message in err
    code, out, err = call("convert", "hf", "nowhere", "ours")
    assert (code, out) == (2, "")
    assert "no file or folder 'nowhere'" in err
    assert not (tmp_path / "ours").exists()
