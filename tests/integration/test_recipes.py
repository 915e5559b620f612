"""Every shipped recipe runs: two steps, a stored model, an answer.

Data that a checkout does not have are made small, and found through MANYHEADS_DATA.
"""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from manyheads import load
from manyheads.project.base_recipe import Recipe, read_recipe
from manyheads.project.paths import shipped, split_selection
from manyheads.recipe_data.encoder_recipe import EncoderRecipe
from manyheads.recipe_data.image_data import ImageRecipe
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.caption.recipe import CaptionRecipe
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.fill.predictor import MaskFiller
from manyheads.tasks.fill.recipe import FillRecipe
from manyheads.tasks.generate.predictor import Generator
from manyheads.tasks.generate.recipe import GenerateRecipe
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.match.recipe import MatchRecipe
from manyheads.tasks.read.predictor import Reader
from manyheads.tasks.read.recipe import ReadRecipe
from manyheads.tasks.reconstruct.predictor import Reconstruction
from manyheads.tasks.reconstruct.recipe import ReconstructRecipe
from manyheads.tasks.tag.predictor import WordSpacer
from manyheads.tasks.tag.recipe import TagRecipe
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe
from tests.made import CLASSES, half, numbers, png, run, write_fonts, write_lines

RECIPES = shipped("recipes")
# Of these, another recipe has the task, the kind of data, the way to start and the type of numbers.
LIKE_OTHERS = {
    *("cifar10-cct-7-3x1", "cifar10-vit-tiny", "cifar10-vit-tuned", "photos-resnet-18"),
    *(
        "de-en",
        "en-de",
        "en-de-base",
        "en-de-everyday",
        "en-de-generated",
        "en-de-numbers",
        "en-de-phrases",
        "en-de-wide",
    ),
    *("en-fr", "en-ko", "en-ko-phrases", "ko-en", "ko-en-base", "ko-en-phrases"),
    *("enko-en-ko", "enko-ko-en"),
    *("multi30k-back-translation", "multi30k-en-de-distil", "multi30k-en-de-short"),
    "multi30k-en-de-teacher",
    *("multi30k-en-fr", "emoji-search", "read-ko-base"),
    "date-en-ko",  # whose data, which are made, are trained on in tests/data/test_dates.py
}


def make_data(recipe: Recipe, root: Path) -> list[str]:
    """Write what the recipe names, and return what it takes to use so little."""
    names = [recipe.data.train, recipe.data.valid]
    if isinstance(recipe, TranslateRecipe):
        names += [*recipe.data.additional, *recipe.data.exclude]
    files: dict[str, list[str]] = {}  # with what selects some of their rows, in a third column
    for file, rows in map(split_selection, filter(None, names)):
        files.setdefault(file, []).extend([rows[1]] if rows else [])
    for seed, (name, values) in enumerate(files.items()):
        if name == "digits" or name.startswith("dates:"):
            continue
        if isinstance(recipe, GenerateRecipe | FillRecipe | TagRecipe | ReadRecipe):
            source, target = numbers(60, seed)
            pairs = [f"{one}\t{other}" for one, other in zip(source, target, strict=True)]
            write_lines(root / name, pairs if recipe.data.column else target)
        elif isinstance(recipe, TranslateRecipe):
            source, target = numbers(60, seed)
            if name.endswith(".tsv"):
                pairs = [f"{one}\t{other}" for one, other in zip(source, target, strict=True)]
                third = [f"\t{each}" for each in values] or [""]
                write_lines(root / name, [pair + each for pair in pairs for each in third])
                continue
            write_lines(root / f"{name}.{recipe.data.source}", source)
            write_lines(root / f"{name}.{recipe.data.target}", target)
        elif isinstance(recipe, EncoderRecipe):
            write_captioned(recipe, root)
        elif isinstance(recipe, ImageRecipe):
            write_images(recipe, root / name)
    if isinstance(recipe, ReadRecipe):
        fonts = [f"data.fonts={write_fonts(root / 'fonts')}", 'data.held_out_fonts=["Two"]']
        return [*fonts, "data.valid_fonts=[]"]
    if isinstance(recipe, ImageRecipe) and recipe.data.train != "digits":
        held_out = isinstance(recipe, EncoderRecipe) and recipe.data.valid is not None
        return [] if held_out else ["data.hold_out=6"]
    if isinstance(recipe, TranslateRecipe) and recipe.augment.beginnings:
        return ["augment.beginnings=0"]  # so few pairs do not begin alike
    return []


def make_start(recipe: Recipe, root: Path) -> None:
    """Make the model that a recipe starts from, with its data: the folder has its recipe's name."""
    name = None
    if isinstance(recipe, ClassifyRecipe | ReadRecipe) and recipe.start is not None:
        name = recipe.start.model
    elif isinstance(recipe, TranslateRecipe) and recipe.start is not None:
        name = recipe.start.encoder
    if name is not None and name not in shipped("pretrained"):
        out = Path(name)
        # runs/en-ko-3 is one of several trainings of a recipe; the first stands for it.
        own = out.name if out.name in RECIPES else re.sub(r"-\d+$", "-base", out.name)
        start = read_recipe(RECIPES[own])
        make_start(start, root)
        changes = make_data(start, root)
        run(RECIPES[own], out, "train.steps=2", "train.warmup=1", *changes)


def write_images(recipe: ImageRecipe, pattern: Path) -> None:
    """Parquet files as the recipe's pattern has them, a few images in each; or class folders."""
    if not pattern.suffix:
        for index in range(40):
            image = pattern / CLASSES[index % 2] / f"{index}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            image.write_bytes(png(half(index % 2, index, height=32, width=32)))
        return
    for part in range(2):
        path = pattern.with_name(pattern.name.replace("*", str(part)))
        path.parent.mkdir(parents=True, exist_ok=True)
        images = [half(index % 2, index, height=32, width=32) for index in range(20)]
        labels = [CLASSES[index % 2] for index in range(20)]
        columns = {recipe.data.image: list(map(png, images)), recipe.data.label: labels}
        pq.write_table(pa.table(columns), path)


def write_captioned(recipe: EncoderRecipe, root: Path) -> None:
    """Images with texts of their own in every column; the splits that are named are rows."""
    data = recipe.data
    named = [each for each in (data.train, data.valid, data.test) if each is not None]
    columns = {key for keys in data.texts.values() for key in keys}
    if isinstance(recipe, MatchRecipe):
        columns |= {key for keys in recipe.data.queries.values() for key in keys}
    rows: dict[str, list[dict[str, object]]] = {}
    for seed, name in enumerate(named):
        file, selected = split_selection(name)
        for index in range(20):
            image = half(index % 2, 100 * seed + index, height=32, width=32)
            row: dict[str, object] = {data.image: png(image)}
            row |= {key: f"{key} number {seed}{index}" for key in columns}
            row |= dict([selected] if selected else [])
            rows.setdefault(file, []).append(row)
    for file, several in rows.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(several), root / file)


def test_all_that_are_like_others_are_there() -> None:
    assert RECIPES.keys() >= LIKE_OTHERS


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.full if name in LIKE_OTHERS else ()) for name in RECIPES],
)
def test_two_steps(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From raw data to a model folder that opens, measures as stored, and answers."""
    monkeypatch.setenv("MANYHEADS_DATA", str(tmp_path / "sets"))
    recipe = read_recipe(RECIPES[name])
    monkeypatch.chdir(tmp_path)
    make_start(recipe, tmp_path / "sets")
    changes = make_data(recipe, tmp_path / "sets")
    if recipe.train.restart:
        changes.append("train.restart=")
    torch.manual_seed(0)
    line = run(RECIPES[name], tmp_path / "out", "train.steps=2", "train.warmup=1", *changes)
    assert 0 <= line["value"] <= (10_000 if line["metric"] == "perplexity" else 100)
    stored = load_file(tmp_path / "out" / "model.safetensors").values()
    kinds = {tensor.dtype for tensor in stored if tensor.is_floating_point()}
    eight = {torch.float16, torch.float32}  # float32: scales of int8 rows
    dtype = recipe.train.save_dtype
    assert kinds == (eight if dtype == "int8" else {getattr(torch, dtype)})
    predictor = load(tmp_path / "out")
    if isinstance(recipe, TranslateRecipe):
        assert isinstance(predictor, Translator)
        assert isinstance(predictor("Friday, 20 November 2026"), str)
    elif isinstance(recipe, GenerateRecipe):
        assert isinstance(predictor, Generator)
        assert predictor("eins").startswith("eins")
    elif isinstance(recipe, FillRecipe):
        assert isinstance(predictor, MaskFiller)
        assert predictor("eins <mask>").startswith("eins")
    elif isinstance(recipe, TagRecipe):
        assert isinstance(predictor, WordSpacer)
        assert predictor("einszwei").replace(" ", "") == "einszwei"
    elif isinstance(recipe, ReadRecipe):
        assert isinstance(predictor, Reader)
        assert isinstance(predictor(half(0, 1, height=32, width=64)), str)
    elif isinstance(recipe, CaptionRecipe):
        assert isinstance(predictor, Captioner)
        assert isinstance(predictor(half(0, 1)), str)
    elif isinstance(recipe, MatchRecipe):
        assert isinstance(predictor, Matcher)
        assert predictor([half(0, 1)], ["one", "two"]).shape == (1, 2)
    elif isinstance(recipe, ReconstructRecipe):
        assert isinstance(predictor, Reconstruction)
    else:
        assert isinstance(predictor, Classifier)
        assert predictor(half(0, 1)) in predictor.labels
