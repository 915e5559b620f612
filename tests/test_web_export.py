"""The page of `manyheads export --to web`: in a browser without a network, Python's answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import manyheads
from manyheads.data.images.image_set import Preprocessing
from manyheads.data.tokenizers.tokenizer import Tokenizer
from manyheads.engine_export import export
from manyheads.engines.web import exporter, runtime
from manyheads.errors import NotFoundError, UsageError
from manyheads.project.folder import ModelFolder
from tests import browser
from tests.browser import Page
from tests.exports import exported
from tests.web_page import answers, answers_to_images, image_input, opened, served

pytestmark = pytest.mark.skipif(
    browser.found() is None, reason=f"{browser.MISSING}. {browser.REMEDY}"
)
ODD = ["  two  spaces ", "naïve café 東京 🙂", "x", "▁odd ▁", "", "한국어", "a\nb\tc", "ÀÉ ±½"]


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with the modules that need no runtime."""
    folder = tmp_path_factory.mktemp("modules")
    for each in exporter.PAGE.glob("*.js"):
        (folder / each.name).write_bytes(each.read_bytes())
    script = "document.documentElement.dataset.ready = 'yes';"
    (folder / "ready.js").write_text(
        "import * as t from './tokenizer.js'; import * as p from './pixels.js';"
        f"window.t = t; window.p = p; {script}"
    )
    (folder / "index.html").write_text("<script type=module src=ready.js></script>")
    with opened(folder, folder / "profile") as (page, _):
        yield page


@pytest.mark.parametrize("name", ["date-en-ko", "multi30k-en-de", "emoji-caption"])
def test_the_tokenizer_is_sentencepiece(modules: Page, name: str) -> None:
    """Ids of texts, and texts of ids, one that breaks off inside a character among them."""
    folder = ModelFolder(manyheads.load(name).folder.path)
    tokenizer = folder.tokenizers().target
    assert isinstance(tokenizer, Tokenizer)
    generator = np.random.default_rng(1)
    pieces = [tokenizer.piece(token).replace("▁", " ") for token in range(4, len(tokenizer))]
    mixed = ["".join(generator.choice(pieces, 8)) for _ in range(150)]
    texts = [*ODD, *mixed]
    given = json.dumps([exporter.tokenizer_tables(folder, tokenizer), texts])
    run = f"(([tables, texts]) => texts.map(x => new t.Tokenizer(tables).encode(x)))({given})"
    ids = tokenizer.encode(texts)
    assert modules.evaluate(run) == ids
    given = json.dumps([exporter.tokenizer_tables(folder, tokenizer), ids])
    run = f"(([tables, ids]) => ids.map(x => new t.Tokenizer(tables).decode(x)))({given})"
    assert modules.evaluate(run) == tokenizer.decode(ids)


@pytest.mark.parametrize(
    "how",
    [
        Preprocessing(height=8, width=8, mode="L"),
        Preprocessing(height=12, width=9, interpolation="bilinear", resize_mode="stretch"),
        Preprocessing(height=16, width=16, crop=0.875, crop_rounding="even"),
        Preprocessing(height=10, width=7, crop=0.9, crop_rounding="down", interpolation="lanczos"),
        Preprocessing(height=11, width=11, interpolation="box", mean=(0.1, 0.5, 0.9)),
    ],
    ids=lambda how: f"{how.height}x{how.width}-{how.interpolation}-{how.crop_rounding}",
)
def test_pixels_are_pillows(modules: Page, how: Preprocessing) -> None:
    """Wide images: of tall ones Pillow 13 resizes the columns first, a level may differ there."""
    import torch

    generator = np.random.default_rng(2)
    for size in ((8, 8), (40, 53), (16, 31), (9, 9), (33, 64)):
        image = Image.fromarray(generator.integers(0, 256, (*size, 3), dtype=np.uint8))
        expected = how.normalise(torch.from_numpy(how.pixels(image).copy())[None]).numpy()
        found = np.array(image_input(modules, image, how)).reshape(expected.shape)
        assert np.abs(found - expected).max() < 1e-5


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """onnxruntime-web, if npm has put it into the cache: tests ask no network."""
    folder = runtime.package_folder()
    try:
        runtime.copy_runtime(tmp_path_factory.mktemp("runtime") / "ort", folder)
    except NotFoundError as error:
        pytest.skip(f"onnxruntime-web is not in the cache: {error}")
    return folder


def _page(name: str, files: Path, out: Path, *more: str) -> Path:
    done = exported(name, "--to", "web", "--out", out, "--runtime", files, "--limit", "3", *more)
    assert done.returncode == 0, done.stderr
    return out


def _offline(page: Page, origin: str) -> None:
    assert not page.problems
    assert all(each.startswith((origin, "data:", "blob:")) for each in page.requests)


def test_dates(files: Path, tmp_path: Path) -> None:
    """Typed into the page, and asked of its model."""
    model: Any = manyheads.load("date-en-ko")
    texts = ["Friday, 20 November 2026", "1 May 2027", "", "Sat 7 Jun 1997", *ODD[:3]]
    folder = _page("date-en-ko", files, tmp_path / "web", "--text", "1 May 2027")
    with opened(folder, tmp_path / "profile") as (page, origin):
        expected = [best.text for best, *_ in model.translate(texts, beams=1)]
        assert answers(page, texts) == expected
        page.evaluate(f"document.getElementById('text').value = {json.dumps(texts[0])}")
        page.click("button")
        page.wait(f"document.getElementById('answer').textContent === {json.dumps(expected[0])}")
        _offline(page, origin)


def test_a_translation_that_repeats_itself_ends(
    files: Path, tmp_path: Path, translator: Path
) -> None:
    """As soon as in the library: of a text of bytes, which a small model has never seen."""
    model: Any = manyheads.load(translator)
    texts = ["two seven one", *ODD[:3], "nine " * 30]
    folder = _page(str(translator), files, tmp_path / "web", "--text", "nine")
    with opened(folder, tmp_path / "profile") as (page, _):
        expected = [best.text for best, *_ in model.translate(texts, beams=1)]
        assert max(len(each.split()) for each in expected) > model.folder.recipe.decode.max_loop
        assert answers(page, texts) == expected


def test_digits(files: Path, tmp_path: Path) -> None:
    model: Any = manyheads.load("digits")
    generator = np.random.default_rng(3)
    images = [Image.fromarray(generator.integers(0, 256, (n, n + 3), np.uint8)) for n in (8, 20)]
    folder = _page("digits", files, tmp_path / "web")
    with opened(folder, tmp_path / "profile") as (page, origin):
        found = answers_to_images(page, images)
        for best, expected in zip(found, model.classify(images, top=10), strict=True):
            assert best[0]["label"] == expected[0].label
            probabilities = {each.label: each.probability for each in expected}
            for each in best:
                assert each["probability"] == pytest.approx(probabilities[each["label"]], abs=1e-4)
        _offline(page, origin)


@pytest.mark.full
def test_captions(files: Path, tmp_path: Path) -> None:
    """In both languages."""
    from dataclasses import replace

    model: Any = manyheads.load("emoji-caption")
    generator = np.random.default_rng(4)
    images = [Image.fromarray(generator.integers(0, 256, (64, 64, 3), np.uint8)) for _ in "ab"]
    folder = tmp_path / "web"
    done = exported("emoji-caption", "--to", "web", "--out", folder, "--runtime", files)
    if "is not" in done.stderr and done.returncode:
        pytest.skip(f"the emoji are not here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    greedy = replace(model.decode, beams=1)
    with opened(folder, tmp_path / "profile") as (page, origin):
        for language in model.languages:
            expected = [best.text for best, *_ in model.caption(images, language, options=greedy)]
            assert answers_to_images(page, images, language) == expected
        _offline(page, origin)


@pytest.mark.parametrize("name", ["emoji-search", "korean-spacing-lstm"])
def test_what_the_page_lacks(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be exported to a page"):
        export(name, to="web", out=tmp_path / "web")


def test_the_runtime_must_be_whole(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"npm pack onnxruntime-web@1\.30\.0`, unpack it"):
        export("digits", to="web", out=tmp_path / "web", runtime=tmp_path)
    for name in runtime.FILES:
        (tmp_path / name).write_text("// another one")
    with pytest.raises(NotFoundError, match=r"is not that of onnxruntime-web 1\.30\.0"):
        export("digits", to="web", out=tmp_path / "web", runtime=tmp_path)
    assert not (tmp_path / "web").exists()


def test_without_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANYHEADS_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFoundError, match="npm is not installed"):
        export("digits", to="web", out=tmp_path / "web")


def test_files_are_served_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.mjs").write_text("1")
    with served(tmp_path) as origin:
        assert origin.startswith("http://127.0.0.1:")
