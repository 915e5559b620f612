"""Weights of eight bits: what is stored, and that all readers see the same numbers."""

import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from safetensors.torch import load_file, save_file

from manyheads import evaluate, export, load, look
from manyheads.convert.marian_folder import to_marian
from manyheads.errors import FolderError, RecipeError
from manyheads.project.folder import ModelFolder, read_weights, refresh_manifest
from manyheads.project.int8_weights import LARGEST, dequantize, quantize
from manyheads.project.paths import find_model
from manyheads.train.model_tensors import not_finite, tensors
from scripts.store_again import store_again
from tests.made import CLASSIFY, TRANSLATE, run, write_halves, write_hashes, write_numbers
from tests.made import write_recipe as write_own_recipe

HERE = Path("model.safetensors")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.fixture(scope="module")
def eight(translator: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator with weights of eight bits: look, don't touch."""
    out = tmp_path_factory.mktemp("eight") / "model"
    store_again(str(translator), "int8", out)
    return out


@pytest.fixture(scope="module")
def plain(eight: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same numbers in float32: look, don't touch."""
    out = tmp_path_factory.mktemp("plain") / "model"
    store_again(str(eight), "float32", out)
    return out


# --- One matrix ---------------------------------------------------------------------------------


def test_a_matrix_by_hand() -> None:
    """The largest of a row is 127 steps; others are rounded to the nearest step; zeros stay."""
    matrix = torch.zeros(16, 16)
    matrix[0, :4] = torch.tensor([254.0, -3.2, 0.9, 1.1])  # a step is 2: 127, -1.6, 0.45, 0.55
    matrix[1, :2] = torch.tensor([-0.127, 0.001])
    stored = quantize({"a": matrix})
    assert stored["a"].dtype == torch.int8
    assert stored["a"][0, :5].tolist() == [127, -2, 0, 1, 0]
    assert stored["a"][1, :3].tolist() == [-127, 1, 0]
    assert stored["a_scale"].shape == (16, 1)
    assert stored["a_scale"][:3, 0].tolist() == pytest.approx([2, 0.001, 0])
    back = dequantize(stored, HERE)
    assert back.keys() == {"a"}
    assert back["a"][0, :5].tolist() == [254, -4, 0, 2, 0]
    assert not back["a"][2:].any()  # rows of zeros, whose scale is 0


@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(16, 40),
    columns=st.integers(16, 40),
    exponent=st.integers(-30, 30),
)
def test_no_weight_moves_by_more_than_half_a_step(
    seed: int, rows: int, columns: int, exponent: int
) -> None:
    """Whatever its size; zeros are exact, and storing again changes no step."""
    random = torch.Generator().manual_seed(seed)
    matrix = torch.randn(rows, columns, generator=random) * 10.0**exponent
    matrix[torch.rand(rows, columns, generator=random) < 0.2] = 0
    stored = quantize({"a": matrix})
    back = dequantize(stored, HERE)["a"]
    assert back.dtype == torch.float32
    assert ((back - matrix).abs() <= stored["a_scale"] * (0.5 + 1e-4)).all()
    assert (back[matrix == 0] == 0).all()
    assert stored["a"].abs().max() == LARGEST
    assert torch.equal(quantize({"a": back})["a"], stored["a"])


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_weight_that_is_no_number_is_not_hidden(value: float) -> None:
    """Reading finds it, as it does in other types."""
    matrix = torch.randn(16, 16)
    matrix[3, 4] = value
    assert not_finite(dequantize(quantize({"a": matrix}), HERE)) == ["a"]


def test_what_stays_as_it_is() -> None:
    """Vectors, convolutions, whole numbers, small matrices; one whose scale's name is used."""
    state = {
        "vector": torch.randn(99),
        "convolution": torch.randn(20, 20, 3, 3),
        "few_rows": torch.randn(15, 99),
        "few_columns": torch.randn(99, 15),
        "count": torch.ones(20, 20, dtype=torch.int64),
        "used": torch.randn(20, 20),
        "used_scale": torch.randn(20),
    }
    assert quantize(state) == {}
    own = {"mask": torch.ones(20, 20, dtype=torch.int8)}  # of a model from outside
    assert dequantize(own, HERE) == own


# --- A model folder -----------------------------------------------------------------------------


def test_what_is_in_the_file(translator: Path, eight: Path) -> None:
    """Matrices int8 with scales in float32, all else float16; the tied embedding is stored once."""
    before, stored = weights(translator), weights(eight)
    matrices = {n for n, each in before.items() if each.dim() == 2 and min(each.shape) >= 16}
    assert {n for n, each in stored.items() if each.dtype == torch.int8} == matrices
    assert {n for n in stored if n not in before} == {f"{name}_scale" for name in matrices}
    assert {stored[name].dtype for name in before.keys() - matrices} == {torch.float16}
    assert {stored[f"{name}_scale"].dtype for name in matrices} == {torch.float32}
    rows = len(load(translator).tokenizers.source)  # type: ignore[attr-defined]
    assert {name for name, each in stored.items() if len(each) == rows} == {
        "embedding.weight",
        "embedding.weight_scale",
    }


def test_a_folder_of_eight_bits_says_so(translator: Path, eight: Path, plain: Path) -> None:
    """In its version, recipe and card; scales are not counted as weights."""
    folders = [ModelFolder(each) for each in (translator, eight, plain)]
    assert [each.manifest["format_version"] for each in folders] == [2, 3, 2]
    assert [each.recipe.train.save_dtype for each in folders] == ["float32", "int8", "float32"]
    assert len({each.weight_count for each in folders}) == 1
    assert "| stored as | int8 |" in (eight / "README.md").read_text("utf-8")


def test_a_refreshed_folder_of_eight_bits_keeps_its_version(eight: Path, tmp_path: Path) -> None:
    store_again(str(eight), "int8", tmp_path / "out")
    refresh_manifest(tmp_path / "out", ["recipe.toml"])
    assert ModelFolder(tmp_path / "out").manifest["format_version"] == 3
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == (
        eight / "model.safetensors"
    ).read_bytes()


def test_every_reader_sees_the_same_numbers(eight: Path, plain: Path, tmp_path: Path) -> None:
    """The file, the model, translations, a look, Marian's format and both exports."""
    stored = read_weights(plain / "model.safetensors")
    for found in (read_weights(eight / "model.safetensors"), tensors(ModelFolder(eight).model())):
        assert found.keys() == stored.keys()
        for name, tensor in found.items():
            assert torch.equal(tensor, stored[name]), name
    texts = ["one two", "nine three four"]
    one, two = load(eight), load(plain)
    assert one(texts) == two(texts)
    assert look(one, texts[0]).view == look(two, texts[0]).view
    for name, folder in (("eight", eight), ("plain", plain)):
        to_marian(str(folder), tmp_path / name)
    one_file, other = (tmp_path / name / "model.safetensors" for name in ("eight", "plain"))
    assert one_file.read_bytes() == other.read_bytes()
    for name, folder in (("eight", eight), ("plain", plain)):
        made = export(str(folder), to="ctranslate2", texts=texts, out=tmp_path / f"{name}-faster")
        assert made.parity.changed == 0
        assert made.parity.difference <= 1e-4
    one_file, other = (
        next((tmp_path / f"{name}-faster").rglob("model.bin")) for name in ("eight", "plain")
    )
    assert one_file.read_bytes() == other.read_bytes()


def test_images_and_their_exports(tmp_path: Path) -> None:
    """Of a classifier, too: the same classes as in 16 bits, on torch and on ONNX Runtime."""
    store_again("digits", "int8", tmp_path / "digits")
    before, after = (
        weights(ModelFolder(find_model(each)).path) for each in ("digits", str(tmp_path / "digits"))
    )
    assert sum(each.nbytes for each in after.values()) < 0.6 * sum(
        each.nbytes for each in before.values()
    )
    made = export(str(tmp_path / "digits"), to="onnx", out=tmp_path / "out", limit=60)
    assert made.parity.changed == 0
    assert made.parity.difference <= 1e-4


def test_a_start_from_eight_bits(eight: Path, tmp_path: Path) -> None:
    """[start] takes the numbers over that the model computes with."""
    write_numbers(tmp_path)
    recipe = write_own_recipe(tmp_path / "r.toml", TRANSLATE, tmp_path)
    changes = [f"start.encoder={eight}", "train.steps=1", "train.learning_rate=1e-30"]
    run(recipe, tmp_path / "out", *changes, "train.warmup=1")
    begun, theirs = (read_weights(each / "model.safetensors") for each in (tmp_path / "out", eight))
    for name in ("embedding.weight", "encoder.blocks.0.feedforward.expand.weight"):
        assert torch.allclose(begun[name], theirs[name], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("task", ["translate", "classify"])
def test_training_and_what_is_measured(tmp_path: Path, task: str) -> None:
    """Two steps, stored, loaded; the scores are those of what is stored, and a run can go on."""
    write_numbers(tmp_path)
    write_halves(tmp_path)
    text = TRANSLATE if task == "translate" else CLASSIFY.replace("dim = 8", "dim = 16")
    recipe = write_own_recipe(tmp_path / "r.toml", text, tmp_path)
    out, changes = (
        tmp_path / "out",
        ("train.save_dtype=int8", "train.warmup=1", "train.schedule=constant"),
    )
    line = run(recipe, out, *changes, "train.steps=2")
    assert torch.int8 in {each.dtype for each in weights(out).values()}
    predictor = load(out)
    assert {each.dtype for each in predictor.model.parameters()} == {torch.float32}
    assert evaluate(predictor)["all"] == line["all"]
    run(recipe, out, *changes, "train.steps=4", resume=True)
    run(recipe, tmp_path / "whole", *changes, "train.steps=4")
    assert (out / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_no_other_type(tmp_path: Path, eight: Path) -> None:
    with pytest.raises(RecipeError, match="'float32', 'float16' or 'int8'"):
        store_again(str(eight), "int4", tmp_path / "out")


# --- Damage -------------------------------------------------------------------------------------


def _without(stored: dict[str, torch.Tensor], name: str) -> None:
    del stored[f"{name}_scale"]


def _without_matrix(stored: dict[str, torch.Tensor], name: str) -> None:
    del stored[name]


def _one_row_less(stored: dict[str, torch.Tensor], name: str) -> None:
    stored[f"{name}_scale"] = stored[f"{name}_scale"][1:].clone()


def _for_each_column(stored: dict[str, torch.Tensor], name: str) -> None:
    stored[f"{name}_scale"] = stored[f"{name}_scale"].T.contiguous()


def _whole_numbers(stored: dict[str, torch.Tensor], name: str) -> None:
    stored[f"{name}_scale"] = stored[f"{name}_scale"].int()


def _a_number(stored: dict[str, torch.Tensor], name: str) -> None:
    stored[name] = stored[name][0, 0].clone()


def _not_finite(stored: dict[str, torch.Tensor], name: str) -> None:
    stored[f"{name}_scale"][3] = float("nan")


@pytest.mark.parametrize(
    ("damage", "answer"),
    [
        (_without, r"- {}: stored torch\.int8, the model has torch\.float32"),
        (_without_matrix, r"- {}: missing"),
        (_one_row_less, r"is damaged: {}_scale is \(\d+, 1\) of torch\.float32.*one for each row"),
        (_for_each_column, r"is damaged: {}_scale is \(1, \d+\)"),
        (_whole_numbers, r"is damaged: {}_scale is \(\d+, 1\) of torch\.int32"),
        (_a_number, r"is damaged: {}_scale is .*of {}, \(\), must be"),
        (_not_finite, r"NaN, in 1 tensors, the first {}"),
    ],
)
def test_a_damaged_file(eight: Path, tmp_path: Path, damage: Any, answer: str) -> None:
    """Named, with the tensor, also where the hash is right."""
    folder = tmp_path / "own"
    store_again(str(eight), "int8", folder)
    stored = {name: each.clone() for name, each in weights(folder).items()}
    name = "embedding.weight"
    damage(stored, name)
    save_file(stored, folder / "model.safetensors")
    write_hashes(folder / "manyheads.json")
    with pytest.raises(FolderError, match=answer.replace("{}", r"embedding\.weight")):
        load(folder)


def test_a_later_version_is_refused(eight: Path, tmp_path: Path) -> None:
    """As an earlier Manyheads, which reads up to 2, refuses 3."""
    store_again(str(eight), "int8", tmp_path / "out")
    manifest = tmp_path / "out" / "manyheads.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text("utf-8")) | {"format_version": 4}))
    with pytest.raises(FolderError, match=r"format_version 4;.*reads 1 up to 3\. Update"):
        ModelFolder(tmp_path / "out")
