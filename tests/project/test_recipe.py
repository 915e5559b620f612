"""Recipes: typed, every default in one place, every mistake answered before anything is read."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from manyheads.errors import RecipeError
from manyheads.models.transformer import TransformerConfig
from manyheads.project.base_recipe import read_recipe, write_recipe
from manyheads.project.paths import shipped
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.reconstruct.recipe import ReconstructRecipe
from manyheads.tasks.translate.recipe import TranslateRecipe
from tests.made import CLASSIFY, TRANSLATE

SHIPPED = shipped("recipes")


@pytest.fixture
def translate(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.toml"
    path.write_text(TRANSLATE, encoding="utf-8")
    return path


@pytest.fixture
def classify(tmp_path: Path) -> Path:
    path = tmp_path / "halves.toml"
    path.write_text(CLASSIFY, encoding="utf-8")
    return path


def complaint(path: Path, *overrides: str) -> str:
    """What a recipe is refused with."""
    with pytest.raises(RecipeError) as caught:
        read_recipe(path, overrides)
    assert caught.value.exit_code == 2
    return str(caught.value)


# --- Shipped recipes ----------------------------------------------------------------------------


def test_recipes_are_shipped() -> None:
    """The tests below would pass on nothing."""
    assert {"date-en-ko", "digits", "multi30k-en-de-tiny", "cifar10-vit-tiny"} <= set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_resolved_recipe_reads_back_the_same(tmp_path: Path, name: str) -> None:
    """With every default and the model's Config written out, nothing is left to change."""
    recipe = read_recipe(SHIPPED[name])
    derived = {"vocabulary": 300}
    if isinstance(recipe, ClassifyRecipe):
        derived = {"classes": 7}
    elif isinstance(recipe, ReconstructRecipe):
        derived = {}
    resolved = tmp_path / "recipe.toml"
    resolved.write_text(write_recipe(recipe, recipe.config(**derived)), encoding="utf-8")
    again = read_recipe(resolved)
    assert again.config() == again.config(**derived) == recipe.config(**derived)
    assert again.model_dump(exclude={"model"}) == recipe.model_dump(exclude={"model"})
    assert write_recipe(again, again.config()) == resolved.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_recipe_begins_with_its_command(name: str) -> None:
    """So that whoever opens it knows how to run it."""
    header = SHIPPED[name].read_text(encoding="utf-8").split("\n\n")[0]
    assert f"manyheads train {name}" in SHIPPED[name].read_text(encoding="utf-8")
    assert header.startswith("#")


def test_the_resolved_recipe_has_every_key(translate: Path) -> None:
    """Nobody has to know a default to know what a run did."""
    recipe = read_recipe(translate)
    table = tomllib.loads(write_recipe(recipe, recipe.config(vocabulary=300)))
    assert table["seed"] == 1
    said = {"beams": 4, "length_penalty": 1.0, "sample": False, "top_p": 1.0, "banned": []}
    assert table["decode"].items() >= said.items()
    assert table["model"]["vocabulary"] == 300
    assert table["model"]["norm"] == "post"
    assert table["train"].keys() >= {"clip", "beta2", "precision", "threads", "max_length"}


# --- Mistakes -----------------------------------------------------------------------------------

UNKNOWN = [
    ("seeed=1", "'seeed': did you mean 'seed'?"),
    ("data.trian=x", "'data.trian': did you mean 'train'?"),
    ("tokenizer.sise=300", "'tokenizer.sise': did you mean 'size'?"),
    ("model.heds=2", "'model.heds': did you mean 'heads'?"),
    ("train.learnin_rate=1", "'train.learnin_rate': did you mean 'learning_rate'?"),
    ("train.early_stop={metrik='val_bleu'}", "'train.early_stop.metrik': did you mean 'metric'?"),
    ("decode.beam=1", "'decode.beam': did you mean 'beams'?"),
    ("evaluate.metric='bleu'", "'evaluate.metric': did you mean 'metrics'?"),
    ("quantum.leap=1", "'quantum'. Allowed: task, seed, model, data"),
]


@pytest.mark.parametrize(("override", "answer"), UNKNOWN)
def test_an_unknown_key_is_answered_with_the_nearest(
    translate: Path, override: str, answer: str
) -> None:
    """At every level, with the file and all keys that would have been right."""
    message = complaint(translate, override)
    assert message.startswith(f"{translate}: ")
    assert f"there is no key {answer}" in message
    assert "Allowed: " in message


@pytest.mark.parametrize(
    ("override", "answer"),
    [
        ("image.higth=8", "'image.higth': did you mean 'height'?"),
        ("augment.fliip=true", "'augment.fliip': did you mean 'flip'?"),
        ("train.max_tokens=100", "'train.max_tokens'"),  # a translator's key
    ],
)
def test_an_unknown_key_of_a_classifier(classify: Path, override: str, answer: str) -> None:
    """The keys of the other task are unknown here."""
    assert f"there is no key {answer}" in complaint(classify, override)


WRONG = [
    ("seed=-1", ("seed = -1", "greater than or equal to 0")),
    ("train.steps=many", ("train.steps = 'many'", "integer")),
    ("train.steps=0", ("train.steps = 0", "greater than or equal to 1")),
    ("train.steps=1.5", ("train.steps = 1.5", "integer")),
    ("train.learning_rate=-1", ("train.learning_rate = -1", "greater than 0")),
    ("train.learning_rate=nan", ("train.learning_rate", "greater than 0")),
    ("train.label_smoothing=1", ("train.label_smoothing = 1", "less than 1")),
    ("train.precision=fp16", ("train.precision = 'fp16'", "'fp32', 'bf16' or 'auto'")),
    ("train.schedule=triangle", ("train.schedule = 'triangle'", "'inverse-sqrt'", "'constant'")),
    ("train.save_dtype=int4", ("train.save_dtype = 'int4'", "'float16' or 'int8'")),
    ("train=3", ("train = 3", "table")),
    ("train.early_stop=3", ("train.early_stop = 3", "table")),
    ("data.train=[1]", ("data.train = [1]", "string")),
    ("tokenizer.kind=words", ("tokenizer.kind = 'words'", "'unigram' or 'bpe'")),
    ("tokenizer.size=0", ("tokenizer.size = 0", "greater than or equal to 1")),
    ("tokenizer.shared=both", ("tokenizer.shared = 'both'", "boolean")),
    ("tokenizer.sampling=2", ("tokenizer.sampling = 2", "less than or equal to 1")),
    ("decode.beams=0", ("decode.beams = 0", "greater than or equal to 1")),
    ("evaluate.metrics=['blue']", ("evaluate.metrics.0 = 'blue'", "'exact' or 'bleu_lc_tok'")),
    ("evaluate.metrics=[]", ("evaluate", "metrics is empty", "bleu, chrf")),
    ("model=3", ("model = 3", "table")),
    ("model.norm=middle", ("model.norm = 'middle'", "'post' or 'pre'")),
    ("model.dim=0", ("model.dim is 0", "at least 1")),
    ("model.heads=-2", ("model.heads is -2", "at least 1")),
    ("model.dropout=1.5", ("model.dropout is 1.5", "at least 0 and below 1")),
    ("model.dropout=nan", ("model.dropout is nan", "at least 0 and below 1")),
    ("model.preset=transformer-tin", ("'transformer-tin'", "did you mean 'transformer-tiny'?")),
    ("model.preset=vit-ti", ("'vit-ti' does not fit the task 'translate'", "transformer-tiny")),
    ("model.pad=3", ("model.pad is 3, but the data make it 0",)),
    ("task=translat", ("task is 'translat'", "'translate', 'classify'")),
    (
        "train.early_stop={metric='val_accuracy'}",
        ("'val_accuracy'", "Validation measures val_bleu"),
    ),
]


@pytest.mark.parametrize(("override", "parts"), WRONG)
def test_a_wrong_value(translate: Path, override: str, parts: tuple[str, ...]) -> None:
    """What it is, and what would be right; never a traceback from somewhere deep."""
    message = complaint(translate, override)
    assert message.startswith(f"{translate}: ")
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("image.mean=[0.1,0.2]", ("mean has 2 numbers", "mode 'L' takes 1")),
        ("image.height=5", ("5 x 6 pixels", "patches of 2 x 2")),
        ("image.std=[0]", ("image.std.0 = 0", "greater than 0")),
        ("augment.shift=-1", ("augment.shift = -1",)),
        ("model.patch=0", ("model.patch is 0", "at least 1")),
        ("model.channels=3", ("model.channels is 3, but the data make it 1",)),
        ("model.preset=transformer-tiny", ("does not fit the task",)),
        ("data.hold_out=-1", ("data.hold_out = -1",)),
    ],
)
def test_a_wrong_value_of_a_classifier(
    classify: Path, override: str, parts: tuple[str, ...]
) -> None:
    """The same for images."""
    message = complaint(classify, override)
    for part in parts:
        assert part in message


@pytest.mark.parametrize("of", [3, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("task", [TRANSLATE, CLASSIFY], ids=["translate", "classify"])
def test_no_value_of_any_key_ends_in_a_traceback(tmp_path: Path, task: str, of: int) -> None:
    """Odd values for every key there is: each is taken, or refused as a mistake in the recipe.

    All values for a key, or a third of them: others for the next key.
    """
    path = tmp_path / "any.toml"
    path.write_text(task, encoding="utf-8")
    recipe = read_recipe(path)
    table = tomllib.loads(write_recipe(recipe, recipe.config()))
    keys = [*table, *(f"{name}.{key}" for name in table for key in _keys(table[name]))]
    odd = ["0", "-1", "nan", "inf", "x", "''", "[]", "{}", "true", "[1]", "{a=1}", "2026-11-20"]
    refused = 0
    for number, key in enumerate(keys):
        for value in odd[number % of :: of]:
            try:
                read_recipe(path, [f"{key}={value}"])
            except RecipeError as error:
                refused += key.rpartition(".")[2] in str(error)
    assert of * refused > 5 * len(keys)


def _keys(value: Any) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def test_several_mistakes_are_listed_together(translate: Path) -> None:
    """One look, one correction."""
    message = complaint(translate, "train.stesp=3", "data.trian=x", "train.clip=much", "sed=2")
    assert "4 mistakes:" in message
    for part in ("'train.stesp'", "'data.trian'", "train.clip = 'much'", "'sed'"):
        assert part in message


def test_mistakes_of_the_model_are_among_them(translate: Path) -> None:
    """Whether other tables have mistakes or not; of a number, a key and early stopping, all."""
    own = ("model.dmi=64", "model.layers=many", "model.encoder_layers=-1", "model.norm=middle")
    stop = ("train.early_stop={metric='val_belu'}",)
    for others, count in ((stop, 5), (("train.stesp=3", "sed=2"), 6)):
        message = complaint(translate, *own, *others)
        assert f"{count} mistakes:" in message, message
        for part in ("'model.dmi'", "'model.layers'", "model.encoder_layers", "model.norm"):
            assert part in message


def test_a_share_of_the_weights_before_needs_a_model_to_start_from(translate: Path) -> None:
    with pytest.raises(RecipeError, match=r"keeps weights of the model in \[start\]"):
        read_recipe(translate, ["train.toward_start=0.3"])
    start = ["start.encoder=en-de", "start.decoder=en-de"]
    assert read_recipe(translate, ["train.toward_start=0.3", *start]).train.toward_start == 0.3


def test_one_name_where_a_list_is_meant(translate: Path) -> None:
    """The list is shown."""
    message = complaint(translate, "data.additional=more.tsv")
    assert "data.additional = 'more.tsv': it must be a list: ['more.tsv']." in message


@pytest.mark.parametrize("left_out", ["task", "data", "model", "data.train", "model.preset"])
def test_what_is_missing_is_named(tmp_path: Path, left_out: str) -> None:
    """A key that has no default."""
    table: dict[str, Any] = tomllib.loads(TRANSLATE)
    *tables, last = left_out.split(".")
    inner = table[tables[0]] if tables else table
    del inner[last]
    path = tmp_path / "partial.toml"
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    message = complaint(path)
    assert f"{left_out} is" in message


@pytest.mark.parametrize("content", [b"task = \n", b"[train", b"\xff\xfe", b"steps: 3\n"])
def test_not_toml(tmp_path: Path, content: bytes) -> None:
    """The file is named; YAML is not TOML."""
    path = tmp_path / "recipe.toml"
    path.write_bytes(content)
    assert f"{path} is not valid TOML" in complaint(path)


@pytest.mark.parametrize("override", ["train.steps", "steps 3", ""])
def test_an_override_without_a_value(translate: Path, override: str) -> None:
    """Shows the form by example."""
    assert f"{override!r} is not of the form key=value" in complaint(translate, override)


def test_an_override_below_a_value(translate: Path) -> None:
    """train.steps is no table."""
    assert "steps is a value, not a table" in complaint(translate, "train.steps.first=3")


# --- key=value ----------------------------------------------------------------------------------


def test_overrides(translate: Path) -> None:
    """Numbers, words with and without quotes, lists, tables, truth; the last one wins."""
    recipe = read_recipe(
        translate,
        [
            "train.steps=7",
            "train.steps=8",
            "train.learning_rate=3e-4",
            "train.schedule=linear",
            'tokenizer.kind="bpe"',
            "tokenizer.split_digits=true",
            "evaluate.metrics=['exact','bleu']",
            "train.early_stop={metric='val_exact', patience=3}",
            "model.norm=pre",
            "data.source=has=equals",
        ],
    )
    assert isinstance(recipe, TranslateRecipe)
    assert (recipe.train.steps, recipe.train.learning_rate) == (8, 3e-4)
    assert (recipe.train.schedule, recipe.tokenizer.kind) == ("linear", "bpe")
    assert recipe.tokenizer.split_digits is True
    assert recipe.evaluate.metrics == ("exact", "bleu")
    assert recipe.train.early_stop is not None
    assert recipe.train.early_stop.patience == 3
    config = recipe.config()
    assert isinstance(config, TransformerConfig)
    assert config.norm == "pre"
    assert recipe.data.source == "has=equals"


def test_nothing_behind_the_equals_sign_takes_a_key_out(tmp_path: Path, translate: Path) -> None:
    """A table, a key, what is not there: TOML has no other word for it."""
    path = tmp_path / "restarts.toml"
    path.write_text(translate.read_text().replace("[train]", "[train]\nrestart = { step = 50 }"))
    assert "restart.step is 50 and steps 9" in complaint(path, "train.steps=9")
    changes = ["train.steps=9", "train.restart=", "train.warmup=", "start.encoder=", "decode="]
    recipe = read_recipe(path, changes)
    assert isinstance(recipe, TranslateRecipe)
    assert (recipe.train.restart, recipe.train.warmup, recipe.start) == (None, 100, None)
    assert "data.train is missing" in complaint(path, "data.train=")


def test_an_override_can_make_a_table(translate: Path) -> None:
    """A table that the file does not have."""
    recipe = read_recipe(translate, ["decode.beams=2"])
    assert isinstance(recipe, TranslateRecipe)
    assert recipe.decode.beams == 2


def test_paths_in_overrides_are_relative_to_the_current_folder(
    translate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When something lies there; else they stay relative to the data root, as in the file."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "corpus.en").write_text("one\n")
    (tmp_path / "mine" / "corpus.de").write_text("eins\n")
    monkeypatch.chdir(tmp_path / "mine")
    recipe = read_recipe(translate, ["data.train=corpus", "data.valid=elsewhere/valid"])
    assert recipe.data.train == str(tmp_path / "mine" / "corpus")
    assert recipe.data.valid == "elsewhere/valid"


def test_languages_count_for_paths_in_whatever_order(
    translate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """data.train=corpus means corpus.fr when data.source=fr comes behind it."""
    (tmp_path / "corpus.fr").write_text("un\n")
    (tmp_path / "corpus.de").write_text("eins\n")
    monkeypatch.chdir(tmp_path)
    recipe = read_recipe(translate, ["data.train=corpus", "data.source=fr"])
    assert recipe.data.train == str(tmp_path / "corpus")


def test_only_paths_are_paths(
    translate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is called as a language does not change the language."""
    (tmp_path / "fr").mkdir()
    monkeypatch.chdir(tmp_path)
    recipe = read_recipe(translate, ["data.source=fr"])
    assert isinstance(recipe, TranslateRecipe)
    assert recipe.data.source == "fr"


def test_a_pattern_in_an_override(
    classify: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With * in it, it is taken from the current folder if any file there fits."""
    (tmp_path / "part-1.parquet").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    recipe = read_recipe(classify, ["data.train=part-*.parquet", "data.valid=other-*.parquet"])
    assert isinstance(recipe, ClassifyRecipe)
    assert recipe.data.train == str(tmp_path / "part-*.parquet")
    assert recipe.data.valid == "other-*.parquet"


# --- What the data say --------------------------------------------------------------------------


def test_the_data_fix_part_of_the_model(classify: Path) -> None:
    """Image size and channels come from [image]; the number of classes from the data."""
    config: Any = read_recipe(classify).config(classes=5)
    assert (config.height, config.width, config.channels, config.classes) == (4, 6, 1, 5)


def test_a_contradiction_with_the_data(classify: Path) -> None:
    """Found as soon as the data are known."""
    recipe = read_recipe(classify, ["model.classes=10"])
    with pytest.raises(RecipeError, match=r"model\.classes is 10, but the data make it 5"):
        recipe.config(classes=5)


# --- Numbers that cannot work -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "answer"),
    [
        ("model.encoder_layers=1000000000", "at most 1000"),
        ("model.dim=1000000000000", "model.dim is 1000000000000: numbers are finite, whole"),
        ("model.norm_eps=inf", "model.norm_eps is inf"),
        ("train.learning_rate=inf", "train.learning_rate is inf"),
        ("train.clip=1e400", "train.clip is inf"),
        ("train.threads=" + "9" * 30, "train.threads is 9"),
        ("seed=-1", "seed = -1"),
        ("seed=" + "9" * 30, "seed is 9"),
        ("train.steps=" + "9" * 5000, "train.steps = '9999"),
        ("train.steps=" + "[" * 9999, "train.steps = '[[["),
        ("train.steps=[[[[[[[1]]]]]]]", "nested too deeply"),
        ("a." * 3000 + "b=1", "nested too deeply"),
        ("tokenizer.size=2000000", "less than or equal to 1000000"),
    ],
)
def test_a_number_that_cannot_work(translate: Path, override: str, answer: str) -> None:
    """Refused at once, in a message that fits on a screen."""
    message = complaint(translate, override)
    assert answer in message
    assert len(message) < 4000


@pytest.mark.parametrize(
    ("override", "answer"),
    [
        ("image.std=[inf]", "image.std.0 is inf"),
        ("image.height=1000000", "image.height = 1000000"),
        ("augment.shift=1000000000", "augment.shift is 1000000000, but the images have only 4"),
        ("augment.shift=4", "augment.shift is 4, but the images have only 4"),
        ("augment.operations=100000000", "augment.operations"),
    ],
)
def test_a_number_that_no_image_can_have(classify: Path, override: str, answer: str) -> None:
    """Pixels and what is done to them."""
    assert answer in complaint(classify, override)


@pytest.mark.parametrize(
    ("key", "value"),
    [("layers", "[1, 100000, 1, 1]"), ("layers", "[0, 1, 1, 1]"), ("heads", "[-1, 1, 1, 1]")],
)
def test_stages_that_cannot_work(classify: Path, key: str, value: str) -> None:
    """Of each stage its own number."""
    preset = "model={preset='swin-t', window=[2, 2]}"
    message = complaint(classify, preset, f"model.{key}={value}")
    assert f"model.{key} is" in message


def test_numbers_with_too_many_digits_in_a_file(tmp_path: Path) -> None:
    """And brackets without an end: Python's reader gives up, and says so."""
    for value in ("9" * 5000, "[" * 9999):
        path = tmp_path / "recipe.toml"
        path.write_text(f"seed = {value}\n")
        assert f"{path} is not valid TOML" in complaint(path)
