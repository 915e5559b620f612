"""Models of the hub on the command line: fetched, and named wherever a model is named."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests import opus
from tests.cli.conftest import Call
from tests.convert.test_convert_classifiers import write_hf
from tests.hub import Hub, serving
from tests.models.test_golden_images import load as golden

OPUS, VIT = "hf:Helsinki-NLP/opus-mt-en-ko", "hf:google/vit-base-patch16-224"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving() as found:
        opus.write_random(tmp_path / "opus")
        write_hf(golden("hf-vit-resized"), tmp_path / "vit")
        found.repositories["Helsinki-NLP/opus-mt-en-ko"] = tmp_path / "opus"
        found.repositories["google/vit-base-patch16-224"] = tmp_path / "vit"
        monkeypatch.setenv("HF_ENDPOINT", found.address)
        monkeypatch.setenv("MANYHEADS_CACHE", str(tmp_path / "cache"))
        yield found


def test_fetch(hub: Hub, call: Call, tmp_path: Path) -> None:
    code, out, err = call("fetch", OPUS)
    assert code == 0
    folder = tmp_path / "cache" / "hf" / "Helsinki-NLP" / "opus-mt-en-ko"
    assert f"{folder}: licence cc-by-4.0\n" in out
    assert f'Use it with: manyheads translate --model {OPUS} "..."' in out
    assert f"manyheads: {OPUS}: The model knows language codes (>>kor<<, >>deu<<)" in err
    assert call("fetch").out.splitlines()[-1] == OPUS
    code, _, err = call("fetch", OPUS, "--root", "data")
    assert (code, "goes to MANYHEADS_CACHE: leave out --from and --root" in err) == (2, True)


def test_wherever_a_model_is_named(hub: Hub, call: Call, tmp_path: Path) -> None:
    """Fetched by the first command; the others need no hub."""
    Image.new("RGB", (20, 12), "red").save(tmp_path / "a.png")
    assert call("classify", "--model", VIT, "a.png", "--json").code == 0
    assert json.loads(call("info", VIT, "--json").out)["model"] == VIT
    assert call("translate", "--model", OPUS, "A dog.").code == 0
    asked = list(hub.asked)
    hub.repositories.clear()
    assert call("look", OPUS, "A dog.", "--out", "look.json").code == 0
    assert json.loads((tmp_path / "look.json").read_text())["model"] == OPUS
    assert call("look", VIT, "a.png", "--shapes").code == 0
    assert call("doctor", OPUS).code in (0, 1)
    (tmp_path / "lines.txt").write_text("A dog.\n")
    bulk = ("--file", "lines.txt", "--workers", "1", "--out", "out.txt")
    assert call("translate", "--model", OPUS, *bulk).code == 0
    assert call("convert", "to-marian", OPUS, "published").code == 0
    assert hub.asked == asked


def test_names_that_cannot_be(call: Call) -> None:
    """Each with what to do."""
    code, _, err = call("translate", "--model", "Helsinki-NLP/opus-mt-en-de", "A dog.")
    assert (code, "or give the path of your own, or hf:USER/MODEL" in err) == (2, True)
    code, _, err = call("classify", "--model", "hf:vit", "a.png")
    assert (code, "write hf:USER/MODEL, or hf:USER/MODEL@REVISION" in err) == (2, True)
    code, _, err = call("serve", "hf:someone/else")
    assert (code, "Fetch it first: `manyheads fetch hf:someone/else`" in err) == (2, True)
