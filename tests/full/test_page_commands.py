"""Every command of every page is run as it is written, each page in a folder of its own.

The commands of the atlas, experiments among them, have a test of their own. Trainings take two
steps. What a page calls MODEL or FOLDER is named here, and what needs the hub of Hugging Face
or Ray is left out where they cannot be had, and reported as skipped.
"""

import importlib.util
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from manyheads.project.paths import find_recipe, shipped
from manyheads.recipe_data.pair_splits import read_corpus
from manyheads.recipe_data.text_data import PairData
from tests.documents.test_document_formats import docx
from tests.full.test_atlas_commands import DATA, SHORT
from tests.made import CLASSIFY, write_halves, write_recipe
from tests.test_atlas_page import COMMANDS, DOCS
from tests.test_commands_of_pages import EVERY, is_mention, parsed

ROOT = DOCS.parent
# What only somebody with such machines can run; ranks and clusters have tests of their own.
OUT_OF_REACH = {
    "train multi30k-en-de one host: eight processes (ranks)": "a torchrun of eight processes",
    "train big.toml four hosts, elastic: the same command on each": "a torchrun on four hosts",
    "translate --file corpus.en --out corpus.de --ray auto": "a Ray cluster",
}
LABS = {words[1] for words in COMMANDS.values() if words[0] == "lab" and len(words) > 1}
INSTEAD = {  # of the words of a page that stand for others
    "evaluate --model MODEL --alignment": "evaluate --model date-en-ko --alignment",
    "evaluate --model NAME --engine torch-bf16": "evaluate --model date-en-ko --engine torch-bf16",
    "evaluate --model NAME --metric chrf --group 3 --by-length": (
        "evaluate --model enko-en-ko --metric chrf --group 3 --by-length"
    ),
    "evaluate --model RUN": "evaluate --model digits",
    "doctor RUN": "doctor digits",
    "export MODEL --to NAME": "export digits --to onnx --out made.onnx",
    "fetch hf:USER/MODEL": "fetch hf:Helsinki-NLP/opus-mt-en-de",
    "generate --model MODEL --engine onnx": "generate --model runs/gpt --engine onnx",
    "info NAME": "info digits",
    "init DATA": "init pairs.tsv",
    "look MODEL INPUT --shapes": "look digits docs/images/seven.png --shapes",
    "look MODEL INPUT": "look digits docs/images/seven.png",
    "recipe NAME": "recipe digits",
    "train RECIPE": "train digits",
    "train en-de-wide": "train en-de-wide train.max_tokens=2048",  # else 24 GiB are not enough
    "train my.toml 'train.learning_rate=$rate' --out 'runs/my-$rate'": (
        "train my.toml train.learning_rate=1e-3 --out runs/my-1e-3"
    ),
    "train RECIPE start.model=hf:facebook/dinov2-base": (
        "train photos-resnet-18 data.train=photos start.model=hf:facebook/dinov2-base"
    ),
}
BEFORE = {  # commands that a page takes as given
    "docs/decisions/vocabularies.md": ("train en-de-base",),
    "docs/engines.md": (
        "train multi30k-de-gpt-tiny --out runs/made",
        "export runs/made --to onnx --out runs/gpt",
    ),
    "docs/translation.md": (
        "convert to-marian multi30k-en-de opus-mt-en-de",
        "translate --model date-en-ko --beam 4 --file dates.en --out beam4.ko",
        "train multi30k-de-bert-tiny",
        "train multi30k-de-gpt-tiny",
    ),
}
PROBLEMS = {  # what is asked is wrong with images of noise and trainings of two steps: exit code 1
    "check-data photos --test photos-test",
    "doctor runs/hot --plot hot.png",
    "doctor runs/mine",
    "doctor runs/photos",
    "export vit-run --to openvino --quantization int8 --calibrate photos/",
}
MADE_BY_THE_HUB = {
    "search --index photos.index 'a cat on a sofa'",
    "look runs/clip photo.png --shapes",
}
COPIES = {  # models that a page takes as given
    "docs/decisions/eight-bits.md": {"runs/en-de-int8": "en-de"},
    "docs/engines.md": {"vit-run": "digits"},
    "docs/own-data.md": {"mine-run": "multi30k-en-de"},
    "docs/serve.md": {"runs/mine": "multi30k-en-de"},
}


def can_run(words: Sequence[str]) -> bool:
    """Tell whether a call is whole: one of a verb or an option alone may be a mention of it."""
    command, rest = parsed(words)
    if not is_mention(words) or rest == ["--help"]:
        return True
    if not rest:  # more read from stdin, and pages mean no run of them
        return words == ("models",)
    try:
        command.make_context(words[0], rest)
    except Exception:
        return False
    return True


def commands(page: str) -> list[str]:
    """What a page calls, once each, in its order; the experiments are the atlas's."""
    calls = [each.words for each in EVERY if each.page == page and can_run(each.words)]
    return [line for line in dict.fromkeys(map(shlex.join, calls)) if not line.startswith("lab ")]


PAGES = {
    page: lines
    for page in dict.fromkeys(each.page for each in EVERY)
    if "atlas" not in page and ".ko." not in page and (lines := commands(page))
}


def test_experiments_are_those_of_the_atlas() -> None:
    """Where they are run; and what is out of reach is on a page."""
    named = {each.words[1] for each in EVERY if each.words[0] == "lab" and len(each.words) > 1}
    assert {name for name in named if not name.startswith("-")} <= LABS
    assert commands("README.ko.md") == commands("README.md")
    assert len(OUT_OF_REACH) <= 5
    every = {shlex.join(each.words).replace("'", "") for each in EVERY}
    assert every >= OUT_OF_REACH.keys()
    assert {shlex.join(each.words) for each in EVERY} >= INSTEAD.keys()


def images(folder: Path, count: int, ending: str = "png", size: int = 48) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(int.from_bytes(folder.name.encode()[:4], "big"))
    for number in range(count):
        pixels = random.integers(0, 256, (size, size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.{ending}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that pages name."""
    (tmp_path / "docs").mkdir()
    shutil.copytree(DOCS / "images", tmp_path / "docs" / "images")
    for place in ("photos/left", "photos/right", "photos-test/left", "photos-test/right"):
        images(tmp_path / place, 110 if "test" not in place else 4, "jpg")
    for place in ("icons", "more-icons", "more-photos"):
        images(tmp_path / place, 3)
    shutil.copy(DOCS / "images" / "heart.png", tmp_path / "icons" / "cat.png")
    for name in ("smile.png", "photo.png", "image.png"):
        shutil.copy(DOCS / "images" / "heart.png", tmp_path / name)
    Image.open(DOCS / "images" / "ship.png").convert("RGB").save(tmp_path / "photo.jpg")
    (tmp_path / "pages").mkdir()
    for name in ("sign.png", "line.png", "pages/1.png"):
        shutil.copy(DOCS / "images" / "line.png", tmp_path / name)
    write_halves(tmp_path)
    recipe = re.sub(r"\[model\]\n[^\[]*", '[model]\npreset = "mixer-tiny"\n\n', CLASSIFY)
    write_recipe(tmp_path / "recipe.toml", recipe, tmp_path)
    shutil.copy(ROOT / "examples" / "extend" / "own_model.py", tmp_path)
    guide = (DOCS / "extending.md").read_text(encoding="utf-8")
    (parts,) = re.findall(r"```python\n(# own_text_parts\.py\n.*?)```", guide, flags=re.DOTALL)
    (tmp_path / "own_text_parts.py").write_text(parts, encoding="utf-8")
    assert DATA is not None
    corpus = Path(DATA, "multi30k")
    for language in ("en", "de"):
        lines = (corpus / f"val.{language}").read_text("utf-8").splitlines(keepends=True)
        for name in ("my/train", "my/valid", "my/test", "newstest", "corpus", "a"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            text = "".join(lines[: 300 if name == "my/train" else 12])
            (tmp_path / f"{name}.{language}").write_text(text, encoding="utf-8")
    pairs = [
        "\t".join(pair)
        for pair in zip(
            *((tmp_path / f"my/train.{x}").read_text("utf-8").splitlines() for x in ("en", "de")),
            strict=True,
        )
    ]
    for name in ("pairs.tsv", "valid.tsv", "valid.refs.tsv"):
        (tmp_path / name).write_text("\n".join(pairs) + "\n", encoding="utf-8")
    more = [f"{en};{de}" for en, de in (pair.split("\t") for pair in pairs[:40])]
    (tmp_path / "more.csv").write_text("\n".join(["en;de", *more]) + "\n", encoding="utf-8")
    shutil.copy(find_recipe("multi30k-en-de-tiny"), tmp_path / "my.toml")
    table = pa.table({"en": ["A dog runs.", "Two men."]})
    (tmp_path / "corpus").mkdir()
    pq.write_table(table, tmp_path / "corpus" / "0.parquet")
    dates = PairData(train="dates:train", valid="dates:valid", source="en", target="ko")
    sources = read_corpus("dates:valid", dates).source
    (tmp_path / "dates.en").write_text("\n".join(sources) + "\n", encoding="utf-8")
    (tmp_path / "terms.tsv").write_text("dog\tHund\n", encoding="utf-8")
    (tmp_path / "letter.docx").write_bytes(docx())
    return tmp_path


def reachable() -> bool:
    """Tell whether the hub can be asked."""
    try:
        socket.create_connection(("huggingface.co", 443), 5).close()
    except OSError:
        return False
    return True


def missing(line: str) -> str | None:
    """What a command needs that is not here."""
    if (re.search(r"hf:|^fetch ", line) or line in MADE_BY_THE_HUB) and not reachable():
        return "the hub of Hugging Face, or another source on the net"
    if "--ray" in line and importlib.util.find_spec("ray") is None:
        return "Ray"
    return OUT_OF_REACH.get(line.replace("'", ""))


def run(words: list[str], folder: Path, code: int) -> str:
    """Run a command; return what is wrong. A server gets Ctrl-C when it says where it is."""
    serves = words[0] == "serve"
    given = b"photos/left/0.jpg\n" if words[0] == "classify" else b"A dog runs.\n"
    (folder / "stdin").write_bytes(given)
    command = [sys.executable, "-m", "manyheads", *words, *(("--port", "0") if serves else ())]
    own = os.environ | {"MANYHEADS_DATA": str(DATA), "BROWSER": "true", "NO_COLOR": "1"}
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    with (
        (folder / "stdin").open("rb") as source,
        subprocess.Popen(
            command, cwd=folder, env=own, stdin=source, stdout=subprocess.DEVNULL, stderr=-1
        ) as process,
    ):
        signal.signal(signal.SIGINT, inherited)
        assert process.stderr is not None
        told = b""
        if serves:
            told = process.stderr.readline()
            process.send_signal(signal.SIGINT)
        told += process.communicate()[1]
    found = told.decode(errors="replace")
    if serves:
        done = "serving" in found and process.returncode in (0, 130, -signal.SIGINT)
    else:
        done = process.returncode == code
    return "" if done else f"manyheads {shlex.join(words)}: {process.returncode}, {found[-900:]}"


def changed(words: list[str], folder: Path) -> Iterator[str]:
    """Name the data, and shorten trainings."""
    yield from (word.replace("FOLDER", str(DATA)) for word in words if word != "...")
    if words[-1] == "...":
        yield "A dog runs."
    if words[0] == "train" and "--help" not in words:
        path = Path(folder, words[1])
        recipe = path if path.is_file() else find_recipe(words[1])
        if "restart = " in recipe.read_text(encoding="utf-8"):
            yield "train.restart="
        yield from SHORT
        named = any(word.startswith("data.root=") for word in words)
        if not named and not re.search(r"^root = ", recipe.read_text("utf-8"), re.MULTILINE):
            yield f"data.root={DATA}"


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.skipif(DATA is None, reason="needs the public data sets: set MANYHEADS_DATA")
@pytest.mark.parametrize("page", PAGES)
def test_commands_in_order(page: str, folder: Path) -> None:
    """As they are written, but for the length of trainings."""
    for name, model in COPIES.get(page, {}).items():
        shutil.copytree(shipped("pretrained")[model].parent, folder / name)
    failures, left_out = [], []
    for line in (*BEFORE.get(page, ()), *PAGES[page]):
        if needed := missing(line):
            left_out.append(f"`manyheads {line}` needs {needed}")
            continue
        words = list(changed(shlex.split(INSTEAD.get(line, line)), folder))
        if words[0] == "train" and "--resume" not in words:
            out = words[words.index("--out") + 1] if "--out" in words else None
            shutil.rmtree(folder / (out or f"runs/{Path(words[1]).stem}"), ignore_errors=True)
        if words[0] == "init" and "--out" not in words:  # again, of other data
            shutil.rmtree(folder / "mine", ignore_errors=True)
            (folder / "mine.toml").unlink(missing_ok=True)
        if wrong := run(words, folder, int(line in PROBLEMS)):
            failures.append(wrong)
    assert not failures, "\n\n".join(failures)
    if left_out:  # so that it is reported
        pytest.skip(f"all but {len(left_out)} ran: {'; '.join(left_out)}")
