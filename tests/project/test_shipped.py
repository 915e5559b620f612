"""The models that come with the package: found by name, small, whole, and good at their task."""

import re
import tomllib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from manyheads import load
from manyheads.data.images.digits import read_digits
from manyheads.data.images.image_set import hold_out
from manyheads.data.text.public_corpora import public_sources
from manyheads.project.base_recipe import read_recipe, write_recipe
from manyheads.project.card import card
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model, find_recipe, shipped
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.tag.predictor import WordSpacer
from manyheads.tasks.translate.predictor import Translator
from tests.made import read_jsonl

ROOT = Path(__file__).parents[2]
MODELS = shipped("pretrained")
MEGABYTE = 1_000_000

# The contract's date grammar, one line a phrasing.
DATES = {
    "Friday, November 20, 2026": "2026년 11월 20일 금요일",
    "Friday, 20 November 2026": "2026년 11월 20일 금요일",
    "Fri 20 Nov 2026": "2026년 11월 20일 금요일",
    "Fri, Nov 20, '26": "2026년 11월 20일 금요일",
    "November 20, 2026": "2026년 11월 20일",
    "20 Nov 2026": "2026년 11월 20일",
    "Nov 20th, 2026": "2026년 11월 20일",
    "the 20th of November 2026": "2026년 11월 20일",
    "2026-11-20": "2026년 11월 20일",
    "11/20/2026": "2026년 11월 20일",
    "11/20/26": "2026년 11월 20일",
    "November 20": "11월 20일",
    "Friday, November 20": "11월 20일 금요일",
    "November 2026": "2026년 11월",
    "Nov 20, 2026 at 3:05 PM": "2026년 11월 20일 오후 3:05",
    "Nov 20, 2026, 15:05": "2026년 11월 20일 15:05",
    "12:30 a.m. on November 20, 2026": "2026년 11월 20일 오전 12:30",
    "Nov 20 – 22, 2026": "2026년 11월 20일~22일",
    "Nov 20 – Dec 2, 2026": "2026년 11월 20일 ~ 12월 2일",
    "from November 20, 2026 to January 2, 2027": "2026년 11월 20일 ~ 2027년 1월 2일",
}


def test_models_are_shipped() -> None:
    """By these names."""
    assert set(MODELS) >= {
        "cifar10-cct-2-3x2",
        "date-en-ko",
        "de-en",
        "digits",
        "en-de",
        "en-fr",
        "en-ko",
        "enko-en-ko",
        "enko-ko-en",
        "ko-en",
        "korean-spacing-lstm",
        "multi30k-en-de",
    }


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("cifar10-cct-2-3x2", 1),
        ("date-en-ko", 2),
        ("digits", 1),
        ("korean-spacing-lstm", 1),
        ("en-de", 12),
        ("de-en", 6),
        ("en-fr", 6),
        ("en-ko", 6),
        ("ko-en", 6),
        ("multi30k-en-de", 8),
        ("enko-en-ko", 8),
        ("enko-ko-en", 8),
    ],
)
def test_shipped_models_are_small(name: str, limit: int) -> None:
    """Everything in the folder counted."""
    files = [path for path in find_model(name).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < limit * MEGABYTE


@pytest.mark.parametrize("name", MODELS)
def test_a_shipped_model_is_a_model_folder(name: str) -> None:
    """Whole, in 16 or 8 bits, measured, with a card, without training state."""
    folder = ModelFolder(find_model(name))
    assert not (folder.path / "state").exists()
    half, eight = {torch.float16}, {torch.float16, torch.float32}  # float32: scales of int8 rows
    stored = {"float16": half, "int8": eight}[folder.recipe.train.save_dtype]
    assert {tensor.dtype for tensor in _weights(folder.path)} == stored
    assert folder.path.joinpath("README.md").read_text(encoding="utf-8").startswith(f"# {name}\n")
    assert read_jsonl(folder.path / "metrics.jsonl")[-1]["step"] == folder.recipe.train.steps
    assert folder.evaluations()[0]["split"] == "valid"


@pytest.mark.parametrize("name", MODELS)
def test_a_card_names_source_and_licence_of_the_data(name: str) -> None:
    """As `card` generates it now (`python scripts/ship.py` writes all anew); so does NOTICE."""
    folder = ModelFolder(find_model(name))
    text = folder.path.joinpath("README.md").read_text(encoding="utf-8")
    assert text == card(folder)
    sources = public_sources(folder.recipe.data.model_dump())
    assert sources
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for each in sources:
        assert each.licence in text
        assert each.home in text
        testing = ("korean-parallel", "NTREX", "huggingface")  # nothing is trained on these
        homes = [home for home in each.home.split(", ") if not any(map(home.count, testing))]
        assert all(home in notice for home in homes), homes


def test_sources_of_several_corpora() -> None:
    """Also those of data.additional, each once; of a user's own data nothing is known."""
    data = {"train": "tatoeba/train.en-de.tsv", "additional": ["multi30k/train", "tatoeba/x.tsv"]}
    tatoeba, multi30k = public_sources(data)
    assert tatoeba.licence == "CC BY 2.0 FR; attribution: tatoeba.org and manythings.org/anki"
    assert (multi30k.name, public_sources({"train": "mine/train"})) == ("multi30k", [])
    assert [each.name for each in public_sources({"train": "dates:train"})] == ["dates"]


def test_the_notice_is_in_the_wheel_and_names_the_code_of_others() -> None:
    """And every licence that lies beside a file of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license-files"] == ["LICENSE", "NOTICE"]
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    beside = {path.parent.name for path in (ROOT / "src").rglob("LICENSE*")}
    assert beside == {"d3", "examples"}
    for name in ("static/d3/", "static/examples/line.png", "onnxruntime-web", "Nanum Gothic"):
        assert name in notice


@pytest.mark.parametrize("name", MODELS)
def test_a_shipped_model_was_made_by_the_shipped_recipe(name: str) -> None:
    """Whoever changes the recipe trains the model anew."""
    folder = ModelFolder(find_model(name))
    recipe = read_recipe(find_recipe(name))
    stored = folder.recipe.config()
    derived = "vocabulary" if hasattr(stored, "vocabulary") else "classes"
    config = recipe.config(**{derived: getattr(stored, derived)})
    # Written anew: a key that came after the model was made has its default in both.
    assert write_recipe(folder.recipe, stored) == write_recipe(recipe, config)


def _weights(folder: Path) -> list[torch.Tensor]:
    stored = load_file(folder / "model.safetensors").values()
    return [tensor for tensor in stored if tensor.is_floating_point()]  # batch norm counts batches


def test_dates() -> None:
    """Every example of the contract, weekday and word order included; alone and together."""
    translate = load("date-en-ko")
    assert isinstance(translate, Translator)
    assert dict(zip(DATES, translate(list(DATES)), strict=True)) == DATES
    assert translate("Friday, 20 November 2026") == "2026년 11월 20일 금요일"


def test_digits() -> None:
    """On the fixed split: at least 98% of 360, through the same door that users take."""
    classify = load("digits")
    assert isinstance(classify, Classifier)
    _, held = hold_out(read_digits(), 360, 0)
    found = classify([held.open(index) for index in range(len(held))])
    right = sum(
        guess == held.classes[label] for guess, label in zip(found, held.labels, strict=True)
    )
    assert right / len(held) >= 0.98


def test_spaces() -> None:
    """A documentation sentence, whatever spaces it comes with; what is no Korean stays."""
    space = load("korean-spacing-lstm")
    assert isinstance(space, WordSpacer)
    right = "이 함수는 리스트의 길이를 반환합니다."
    assert space([right, right.replace(" ", ""), " ".join(right)]) == [right] * 3
    assert space("").strip() == ""


@pytest.mark.parametrize("name", MODELS)
def test_records_name_no_machine(name: str) -> None:
    """Where data lay when a model was measured means nothing to whoever has it now."""
    texts = [path for path in find_model(name).iterdir() if path.suffix in (".jsonl", ".md")]
    assert texts
    for path in texts:
        content = path.read_text("utf-8")
        assert not re.search(r'"(/|[A-Z]:\\\\)[^" ]+/', content), path
        assert not re.search(r"/(home|root|tmp|Users|mnt)/", content), path
