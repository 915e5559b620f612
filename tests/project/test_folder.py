"""A run folder is a model folder: what is in it, and what is noticed when it is not whole."""

import hashlib
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from manyheads import __version__, load
from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.errors import FolderError
from manyheads.files import sha256
from manyheads.measure.stored_model import evaluate
from manyheads.project.base_recipe import read_recipe
from manyheads.project.card import card, last_step
from manyheads.project.folder import (
    FORMAT_VERSION,
    ModelFolder,
    append_evaluation,
    inputs,
    own_files,
)
from manyheads.project.model_facts import describe
from manyheads.project.paths import shipped
from manyheads.project.registry import TASKS
from manyheads.project.sentencepiece_files import tokenizers
from tests.made import CLASSIFY, run, write_halves, write_hashes, write_recipe


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manyheads.json").read_text())
    return found


def rewrite(folder: Path, **changes: Any) -> None:
    """Change the manifest, and let it vouch for the files as they now are."""
    document = manifest(folder) | changes
    if "sha256" not in changes:
        document["sha256"] = {name: sha256(folder / name) for name in document["sha256"]}
    (folder / "manyheads.json").write_text(json.dumps(document))


# --- Contents -----------------------------------------------------------------------------------

COMMON = {
    "manyheads.json",
    "recipe.toml",
    "model.safetensors",
    "metrics.jsonl",
    "evaluations.jsonl",
    "README.md",
    "index.html",
    "state",
}


def test_a_translators_folder(translator: Path) -> None:
    """Contracts: these files and no others, hidden ones included."""
    assert {path.name for path in translator.iterdir()} == COMMON | {"tokenizer.model"}


def test_others_can_read_all_of_it(translator: Path) -> None:
    """A model in a shared folder is for everybody: all its files have the same permissions."""
    assert len({path.stat().st_mode for path in translator.iterdir() if path.is_file()}) == 1


def test_a_classifiers_folder(classifier: Path) -> None:
    """Preprocessing and labels in place of the tokenizer."""
    assert {path.name for path in classifier.iterdir()} == COMMON | {
        "preprocessing.json",
        "labels.json",
    }
    assert json.loads((classifier / "labels.json").read_text()) == ["left", "right"]
    assert json.loads((classifier / "preprocessing.json").read_text())["mode"] == "L"


def test_the_manifest(translator: Path, classifier: Path) -> None:
    """Format, task, preset, versions, precision, threads, seed, and a hash of what matters."""
    found = manifest(translator)
    assert found["format_version"] == FORMAT_VERSION - 1 == 2  # 3: weights of eight bits
    assert (found["task"], found["preset"]) == ("translate", "transformer-tiny")
    assert (found["precision"], found["threads"], found["seed"]) == ("fp32", 1, 1)
    assert found["versions"]["manyheads"] == __version__
    assert found["versions"]["torch"] == torch.__version__
    assert set(found["sha256"]) == {"recipe.toml", "model.safetensors", "tokenizer.model"}
    for name, digest in found["sha256"].items():
        assert hashlib.sha256((translator / name).read_bytes()).hexdigest() == digest
    assert set(manifest(classifier)["sha256"]) == {
        "recipe.toml",
        "model.safetensors",
        "preprocessing.json",
        "labels.json",
    }


def test_the_stored_recipe_is_resolved(translator: Path) -> None:
    """The data's part of the model is written out, so the folder needs no data to be opened."""
    config = read_recipe(translator / "recipe.toml").config()
    assert config == read_recipe(translator / "recipe.toml").config(
        vocabulary=len(ModelFolder(translator).tokenizers().source)
    )


def test_the_model_card(translator: Path, classifier: Path) -> None:
    """What it is for, how to use it, how it was made, what was measured."""
    card = (translator / "README.md").read_text(encoding="utf-8")
    for part in ("from `en` to `de`", "manyheads translate --model", "transformer-tiny", "bleu"):
        assert part in card
    card = (classifier / "README.md").read_text(encoding="utf-8")
    for part in ("2 classes: left, right", "manyheads classify --model", "vit-ti", "accuracy"):
        assert part in card


def test_a_folder_can_be_moved_and_stripped(translator: Path, tmp_path: Path) -> None:
    """Shipped models have no training state, and live elsewhere than they were made."""
    moved = shutil.copytree(translator, tmp_path / "moved")
    shutil.rmtree(moved / "state")
    (moved / "metrics.jsonl").unlink()
    texts = ["one two", "nine"]
    assert load(moved)(texts) == load(translator)(texts)


def test_preprocessing_of_other_channels(own_classifier: Path) -> None:
    """It would only be noticed by the first layer, as sizes that do not fit."""
    path = own_classifier / "preprocessing.json"
    stored = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(stored | {"mode": "RGB"}), "utf-8")
    write_hashes(own_classifier / "manyheads.json")
    with pytest.raises(FolderError, match=r"preprocessing\.json has 3 channels, the model 1"):
        load(own_classifier)


def test_own_files_are_those_of_the_folders_task(
    own_translator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else is registered, and whatever has been imported."""
    monkeypatch.setitem(TASKS, "own-task", SimpleNamespace(files=("own.json",)))
    assert own_translator / "own.json" not in own_files(own_translator)
    (own_translator / "recipe.toml").write_text('task = "own-task"', "utf-8")
    assert own_translator / "own.json" in own_files(own_translator)
    (own_translator / "recipe.toml").write_bytes(b"\xff")
    assert own_translator / "model.safetensors" in own_files(own_translator)


# --- float16 ------------------------------------------------------------------------------------


def test_stored_in_16_bit_computed_in_32(tmp_path: Path) -> None:
    """Shipped models are half as large; what is stored is what is measured."""
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    line = run(recipe, tmp_path / "half", "train.save_dtype=float16", "train.steps=10")
    run(recipe, tmp_path / "full", "train.steps=10")
    half, full = (load_file(tmp_path / name / "model.safetensors") for name in ("half", "full"))
    assert {tensor.dtype for tensor in half.values()} == {torch.float16}
    assert all(torch.equal(half[name], full[name].half()) for name in full)
    model = load(tmp_path / "half").model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, half[name].float())
    assert evaluate(load(tmp_path / "half"))["all"] == line["all"]


# --- Damage -------------------------------------------------------------------------------------


def test_not_a_model_folder(tmp_path: Path) -> None:
    """Says what is missing and what would do."""
    with pytest.raises(FolderError, match=r"has no manyheads\.json.*manyheads train"):
        ModelFolder(tmp_path)


def test_a_run_that_has_not_validated_yet(translator: Path, tmp_path: Path) -> None:
    """It may become a model folder: go on."""
    shutil.copy(translator / "recipe.toml", tmp_path)
    with pytest.raises(FolderError, match=r"first validation.*`resume=True`"):
        ModelFolder(tmp_path)


@pytest.mark.parametrize("name", ["recipe.toml", "model.safetensors", "tokenizer.model"])
@pytest.mark.parametrize("place", [0, -1])
def test_one_flipped_bit_is_noticed(own_translator: Path, name: str, place: int) -> None:
    """Before anything is computed with it; the file and a remedy are named."""
    content = bytearray((own_translator / name).read_bytes())
    content[place] ^= 1
    (own_translator / name).write_bytes(content)
    with pytest.raises(FolderError) as caught:
        load(own_translator)
    assert f"{own_translator / name} is not the file that was written" in str(caught.value)
    assert "Copy the folder again" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["recipe.toml", "model.safetensors", "preprocessing.json", "labels.json"]
)
def test_a_missing_file_is_named(own_classifier: Path, name: str) -> None:
    """Each of the hashed files is needed."""
    (own_classifier / name).unlink()
    with pytest.raises(FolderError, match=f"{own_classifier / name} is missing"):
        load(own_classifier)


def test_a_truncated_model(own_classifier: Path) -> None:
    """As an interrupted copy leaves it."""
    path = own_classifier / "model.safetensors"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FolderError, match=r"model\.safetensors is not the file.*cut off"):
        load(own_classifier)


def test_a_truncated_model_that_somebody_vouches_for(own_classifier: Path) -> None:
    """Even with a matching hash it is not weights."""
    path = own_classifier / "model.safetensors"
    path.write_bytes(path.read_bytes()[:200])
    rewrite(own_classifier)
    with pytest.raises(FolderError, match=r"model\.safetensors cannot be read"):
        load(own_classifier)


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 99, None, "2", 1.5, 0, -1, True])
def test_a_later_format(own_translator: Path, version: object) -> None:
    """Asks for an update instead of guessing; says what this version reads."""
    rewrite(own_translator, format_version=version)
    with pytest.raises(FolderError, match=rf"format_version {version};.*up to 3\. Update"):
        load(own_translator)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"3", b"null", b"{}", b"\xff", b'{"format_version": 1}']
)
def test_a_damaged_manifest(own_translator: Path, content: bytes) -> None:
    """Not JSON, not an object, or without its keys."""
    (own_translator / "manyheads.json").write_bytes(content)
    with pytest.raises(FolderError, match=str(own_translator)):
        load(own_translator)


@pytest.mark.parametrize("hashes", [[], None, "abc", 3])
def test_hashes_that_are_no_table(own_translator: Path, hashes: object) -> None:
    """Named with what stands there."""
    rewrite(own_translator, sha256=hashes)
    with pytest.raises(FolderError, match=r"manyheads\.json, sha256: Input should be"):
        load(own_translator)


def test_the_tokenizer_of_another_model(own_translator: Path, tmp_path: Path) -> None:
    """With its hash put right: the vocabulary does not fit the weights."""
    other = Tokenizer.train(["quite another text"] * 9, TokenizerConfig(size=400))
    (own_translator / "tokenizer.model").write_bytes(other.model)
    with pytest.raises(FolderError, match="not the file that was written"):
        load(own_translator)
    rewrite(own_translator)
    with pytest.raises(FolderError) as caught:
        load(own_translator)
    message = str(caught.value)
    assert f"tokenizer.model has {len(other)} tokens" in message
    assert "belongs to another model" in message


def test_a_damaged_tokenizer_that_somebody_vouches_for(own_translator: Path) -> None:
    """Not a tokenizer at all."""
    (own_translator / "tokenizer.model").write_bytes(b"hello")
    rewrite(own_translator)
    with pytest.raises(FolderError, match=r"tokenizer\.model.*not a valid sentencepiece model"):
        load(own_translator)


def test_the_labels_of_another_model(own_classifier: Path) -> None:
    """Their number does not fit."""
    (own_classifier / "labels.json").write_text('["left", "right", "up"]')
    rewrite(own_classifier)
    with pytest.raises(FolderError, match=r"labels\.json has 3 classes, the model 2"):
        load(own_classifier)


def test_the_weights_of_another_model(own_classifier: Path, translator: Path) -> None:
    """The differences are listed."""
    shutil.copy(translator / "model.safetensors", own_classifier)
    rewrite(own_classifier)
    with pytest.raises(FolderError, match=r"does not match the model.*differences"):
        load(own_classifier)


def test_a_damaged_log_of_evaluations(own_translator: Path) -> None:
    """A line cut off by a full disk is found and named."""
    with (own_translator / "evaluations.jsonl").open("a") as file:
        file.write('{"data": "x", "met')
    with pytest.raises(FolderError, match=r"evaluations\.jsonl has a damaged line"):
        describe(str(own_translator))


def test_a_line_separator_in_the_log_of_evaluations(own_translator: Path) -> None:
    r"""Data may be called anything: lines end at \n and nowhere else."""
    folder = load(own_translator).folder
    before = folder.evaluations()
    line = {"data": "a\u2028b\x85c", "final": False, "all": {}}
    append_evaluation(own_translator, line)
    assert folder.evaluations() == [*before, line]


def test_a_half_line_of_metrics(own_translator: Path) -> None:
    """A run that was killed, or goes on, can be evaluated: the card leaves that line out."""
    before = last_step(own_translator)
    with (own_translator / "metrics.jsonl").open("a") as file:
        file.write('{"step": 9, "los')
    evaluate(load(own_translator))
    assert last_step(own_translator) == before != "unknown"


def test_hashes_are_not_left_out(own_translator: Path) -> None:
    """A manifest that vouches for nothing is none, and one that leaves out a part is damaged."""
    for hashes in ({}, {"recipe.toml": sha256(own_translator / "recipe.toml")}):
        rewrite(own_translator, sha256=hashes)
        with pytest.raises(FolderError, match=r"manyheads\.json, sha256\..*: Field required"):
            load(own_translator)
    names = ("recipe.toml", "model.safetensors")
    rewrite(own_translator, sha256={name: sha256(own_translator / name) for name in names})
    with pytest.raises(FolderError, match=r"no hash of tokenizer\.model"):
        load(own_translator)


@pytest.mark.parametrize(
    "changes", [{"versions": []}, {"plugins": 5}, {"sha256": {"recipe.toml": 3}}, {"task": None}]
)
def test_a_manifest_with_values_of_another_kind(
    own_translator: Path, changes: dict[str, Any]
) -> None:
    """Its key is named."""
    rewrite(own_translator, **changes)
    with pytest.raises(FolderError, match=rf"manyheads\.json, {next(iter(changes))}"):
        load(own_translator)


@pytest.mark.parametrize("name", ["recipe.toml", "model.safetensors", "tokenizer.model"])
def test_a_folder_in_place_of_a_file(own_translator: Path, name: str) -> None:
    """Nothing to read."""
    (own_translator / name).unlink()
    (own_translator / name).mkdir()
    with pytest.raises(FolderError, match=f"{name} is missing"):
        load(own_translator)


@pytest.mark.parametrize("content", ["3", '{"left": 0, "right": 1}', "[1, 2]", '"ab"', "[" * 9999])
def test_labels_that_are_no_list_of_texts(own_classifier: Path, content: str) -> None:
    """Two of anything."""
    (own_classifier / "labels.json").write_text(content)
    rewrite(own_classifier)
    with pytest.raises(FolderError, match=r"labels\.json"):
        load(own_classifier)


def poisoned(folder: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> str:
    """Change the first matrix of a model; return its name."""
    weights = load_file(folder / "model.safetensors")
    name = next(name for name, tensor in weights.items() if tensor.ndim == 2)
    save_file(weights | {name: change(weights[name])}, folder / "model.safetensors")
    rewrite(folder)
    return name


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_no_numbers(own_translator: Path, value: float) -> None:
    """Every answer would be one; the doctor opens the folder nevertheless, to say so."""
    name = poisoned(own_translator, lambda tensor: tensor.index_fill(0, torch.tensor([1]), value))
    with pytest.raises(FolderError, match=f"NaN, in 1 tensors, the first {name}"):
        load(own_translator)
    assert ModelFolder(own_translator).model(finite=False) is not None


@pytest.mark.parametrize("dtype", [torch.int8, torch.complex64, torch.bool])
def test_weights_of_another_kind(own_classifier: Path, dtype: torch.dtype) -> None:
    """Copied into a model, whole numbers lose their scale and complex ones a half."""
    name = poisoned(own_classifier, lambda tensor: tensor.to(dtype))
    with pytest.raises(FolderError, match=rf"- {name}: stored {dtype}, the model has"):
        load(own_classifier)


@pytest.mark.parametrize(
    "line", ["[]", "3", "{}", '{"data": "x", "final": false, "all": {"bleu": 3}}', "[" * 9999]
)
def test_an_evaluation_of_another_kind(own_translator: Path, line: str) -> None:
    """JSON, but no evaluation."""
    with (own_translator / "evaluations.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(FolderError, match=r"evaluations\.jsonl has a damaged line"):
        describe(str(own_translator))


def test_a_score_that_was_no_number(own_translator: Path) -> None:
    """It is written as null, and read as what it was."""
    score = {"value": math.nan, "signature": "s"}
    append_evaluation(own_translator, {"data": "x", "final": False, "all": {"bleu": score}})
    assert "NaN" not in (own_translator / "evaluations.jsonl").read_text()
    folder = ModelFolder(own_translator)
    assert math.isnan(folder.evaluations()[-1]["all"]["bleu"]["value"])
    assert "bleu nan" in card(folder)


def test_damaged_metrics_do_not_stop_an_evaluation(own_translator: Path) -> None:
    """The model is whole; its card says that the steps are unknown."""
    with (own_translator / "metrics.jsonl").open("a") as file:
        file.write('{"step": "many"}\n')
    assert last_step(own_translator) == "unknown"


@pytest.mark.parametrize("name", ["x" * 300, "../model.safetensors", "/etc/hostname", "a\0b"])
def test_a_manifest_names_files_of_its_folder(own_classifier: Path, name: str) -> None:
    """Others are neither looked for nor hashed."""
    manifest = json.loads((own_classifier / "manyheads.json").read_text())
    manifest["sha256"][name] = "0" * 64
    (own_classifier / "manyheads.json").write_text(json.dumps(manifest))
    with pytest.raises(FolderError, match=r"is missing|is not in the folder"):
        ModelFolder(own_classifier)


@pytest.mark.parametrize(
    ("name", "files"), [("date-en-ko", {"tokenizer.model"}), ("digits", set())]
)
def test_what_gives_ids_their_meaning(name: str, files: set[str]) -> None:
    """Not weights, recipe, preprocessing and labels, which are compared by what they say."""
    folder = ModelFolder(shipped("pretrained")[name].parent)
    found = inputs(folder.path, folder.recipe)
    assert found == {
        each: hashlib.sha256((folder.path / each).read_bytes()).hexdigest() for each in files
    }


def test_tokenizers_of_each_side() -> None:
    """One for both, or one of its own."""
    lines = [f"one two three {n}" for n in range(99)]
    one, other = (Tokenizer.train(lines, TokenizerConfig(size=size)) for size in (280, 290))
    assert tokenizers({"tokenizer": one}) == (one, one)
    assert tokenizers({"source": one, "target": other}) == (one, other)
