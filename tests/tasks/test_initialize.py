"""A pre-trained start (T20): a translator begins with the weights of language models."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import manyheads
from manyheads.data.tokenizers.tokenizer import Tokenizer
from manyheads.errors import NotFoundError, RecipeError
from manyheads.files import sha256
from manyheads.models.presets import build
from manyheads.models.transformer import Transformer
from manyheads.project.base_recipe import read_recipe
from manyheads.project.folder import ModelFolder
from manyheads.tasks.translate.initialize import common_pieces, load_pretrained, pretrained
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import Start, TranslateRecipe
from manyheads.train.model_tensors import tensors
from tests import language
from tests.made import run

SHAPE = ["model.norm=pre", "model.activation=gelu"]  # as the language models have it


def begun(*changes: str) -> tuple[Transformer, dict[str, list[str]]]:
    """A new translator, and which of its tensors come from language models."""
    recipe = read_recipe(language.recipe("translate"), [*SHAPE, *changes])
    assert isinstance(recipe, TranslateRecipe)
    theirs: Any = ModelFolder(language.trained("fill")).recipe.config()
    size = theirs.vocabulary
    torch.manual_seed(0)
    shared = recipe.tokenizer.shared
    names = ("tokenizer.model",) if shared else ("source.model", "target.model")
    vocabularies = dict.fromkeys(
        names, Tokenizer((language.trained("fill") / "tokenizer.model").read_bytes())
    )
    model = build(recipe.config(vocabulary=size, **({} if shared else {"target_vocabulary": size})))
    assert isinstance(model, Transformer)
    assert recipe.start is not None
    record = load_pretrained(model, recipe, recipe.start, vocabularies)
    return model, {side: entry["tensors"] for side, entry in record.items()}


def stored(task: str) -> dict[str, torch.Tensor]:
    return load_file(language.trained(task) / "model.safetensors")


@pytest.mark.parametrize("task", ["fill", "generate"])
def test_an_encoder(task: str) -> None:
    """Every layer and the embedding are the language model's; the decoder is fresh."""
    model, copied = begun(f"start.encoder={language.trained(task)}")
    theirs, own = stored(task), tensors(model)
    assert set(copied["encoder"]) == set(theirs)
    for name, tensor in theirs.items():
        assert torch.equal(own[name], tensor), name
    torch.manual_seed(0)
    fresh = tensors(build(model.config))
    for name in own.keys() - theirs.keys():
        assert torch.equal(own[name], fresh[name]), name


def test_a_decoder() -> None:
    """Self-attention and feed-forward are the language model's, attention to the source fresh."""
    model, copied = begun(f"start.decoder={language.trained('generate')}")
    theirs, own = stored("generate"), tensors(model)
    for name, tensor in theirs.items():
        assert torch.equal(own[name.replace("encoder.", "decoder.")], tensor), name
    assert not any(".cross." in name or "around_cross" in name for name in copied["decoder"])
    assert {name for name in own if name.startswith("decoder.")} - set(copied["decoder"]) == {
        name for name in own if "cross" in name
    }


def test_both_sides() -> None:
    """Each brings its own embedding; the output layer speaks the decoder's."""
    model, _ = begun(
        f"start.encoder={language.trained('fill')}",
        f"start.decoder={language.trained('generate')}",
        "model.tied=false",
    )
    assert torch.equal(model.embedding.weight, stored("fill")["embedding.weight"])
    assert torch.equal(model.target_embedding.weight, stored("generate")["embedding.weight"])
    assert torch.equal(model.output.weight, stored("generate")["embedding.weight"])


def test_training_from_a_start(tmp_path: Path) -> None:
    """Logged in the folder; the vocabulary is taken over; the folder stands on its own."""
    folder = language.trained("fill")
    changes = [*SHAPE, f"start.encoder={folder}", "train.steps=4"]
    run(language.recipe("translate"), tmp_path / "out", *changes)
    record = json.loads((tmp_path / "out" / "start.json").read_text(encoding="utf-8"))
    assert record["encoder"]["model"] == str(folder)
    assert record["encoder"]["sha256"] == sha256(folder / "model.safetensors")
    ours, theirs = (path / "tokenizer.model" for path in (tmp_path / "out", folder))
    assert ours.read_bytes() == theirs.read_bytes()
    translator = manyheads.load(tmp_path / "out")
    assert isinstance(translator, Translator)
    assert isinstance(translator("one"), str)
    trained = load_file(tmp_path / "out" / "model.safetensors")
    assert not torch.equal(trained["embedding.weight"], stored("fill")["embedding.weight"])


def test_a_vocabulary_of_its_own_for_the_other_side(tmp_path: Path) -> None:
    """With two vocabularies the side without a language model learns one."""
    folder = language.trained("generate")
    changes = [*SHAPE, f"start.decoder={folder}", "tokenizer.shared=false", "train.steps=2"]
    run(language.recipe("translate"), tmp_path / "out", *changes)
    assert sha256(tmp_path / "out" / "target.model") == sha256(folder / "tokenizer.model")
    assert sha256(tmp_path / "out" / "source.model") != sha256(folder / "tokenizer.model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["model.dim=32"], r"model\.dim: 16 there, 32 here"),
        (["model.heads=4"], r"model\.heads: 2 there, 4 here"),
        (["model.encoder_layers=2"], r"model\.encoder_layers: 1 there, 2 here"),
        (["model.norm=post", "model.ffn_dim=16"], r"(?s)norm: 'pre' there.*ffn_dim: 32 there, 16"),
        (["model.positions=learned"], r"model\.positions: 'sinusoidal' there, 'learned' here"),
    ],
)
def test_another_shape_is_refused(changes: list[str], message: str, tmp_path: Path) -> None:
    """Before any training, with both values."""
    with pytest.raises(RecipeError, match=message):
        run(
            language.recipe("translate"),
            tmp_path / "out",
            *SHAPE,
            f"start.encoder={language.trained('fill')}",
            *changes,
        )
    assert not (tmp_path / "out").exists()


def test_what_is_no_language_model_is_refused() -> None:
    """A tagger, a name that is not there, an empty table."""
    with pytest.raises(RecipeError, match=r"start\.encoder.*task of .* is 'tag'"):
        begun(f"start.encoder={language.trained('tag')}")
    with pytest.raises(NotFoundError, match="no model 'nothing'"):
        begun("start.encoder=nothing")
    with pytest.raises(RecipeError, match="name a model as encoder"):
        read_recipe(language.recipe("translate"), ["start={}"])


def test_a_recurrent_translator_cannot_start_from_it() -> None:
    """Another kind of layer."""
    recipe = read_recipe(language.recipe("translate"))
    changes = {
        "model": {"preset": "seq2seq-lstm"},
        "start": Start(encoder=str(language.trained("fill"))),
    }
    changed = recipe.model_copy(update=changes)
    assert isinstance(changed, TranslateRecipe)
    with pytest.raises(RecipeError, match=r"cannot start model\.preset = 'seq2seq-lstm'"):
        pretrained(changed, changes["start"], shared=True)  # type: ignore[arg-type]


def test_two_embeddings_do_not_fit_into_one() -> None:
    """One matrix for both sides cannot hold both; says how to choose."""
    with pytest.raises(RecipeError, match=r"an embedding each.*model\.tied = false"):
        begun(
            f"start.encoder={language.trained('fill')}",
            f"start.decoder={language.trained('generate')}",
        )


def translator(tmp_path: Path, name: str, *changes: str) -> Path:
    run(language.recipe("translate"), tmp_path / name, *SHAPE, "train.steps=2", *changes)
    return tmp_path / name


@pytest.mark.parametrize("shared", [True, False])
def test_a_whole_translator(tmp_path: Path, shared: bool) -> None:
    """Both sides of one translator, its vocabulary too: training goes on where it ended."""
    sides = f"tokenizer.shared={str(shared).lower()}"
    first = translator(tmp_path, "first", sides)
    changes = [f"start.{side}={first}" for side in ("encoder", "decoder")]
    second = translator(tmp_path, "second", sides, *changes, "train.learning_rate=1e-12")
    theirs, ours = (load_file(path / "model.safetensors") for path in (first, second))
    assert theirs.keys() == ours.keys()
    for key, tensor in theirs.items():
        torch.testing.assert_close(ours[key], tensor, atol=1e-6, rtol=0)
    for file in first.glob("*.model"):
        assert (second / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_wider_feed_forward_layers_compute_the_same(tmp_path: Path, activation: str) -> None:
    """Their new units are read with zeros, and learn from there on (Net2Net)."""
    shape = f"model.activation={activation}"
    first = translator(tmp_path, "first", shape)
    changes = [shape, *(f"start.{side}={first}" for side in ("encoder", "decoder"))]
    model, _ = begun(*changes, "model.ffn_dim=80")
    theirs = ModelFolder(first).model()
    assert isinstance(theirs, Transformer)
    source, target = torch.randint(5, 200, (2, 3, 7)).unbind()
    torch.testing.assert_close(model.eval()(source, target), theirs.eval()(source, target))
    second = translator(tmp_path, "second", *changes, "model.ffn_dim=80")
    ours = load_file(second / "model.safetensors")
    name = "decoder.blocks.0.feedforward.contract.weight"
    assert ours[name].shape[1] == 80
    assert ours[name][:, 32:].abs().min() > 0


def test_an_encoder_for_another_vocabulary(tmp_path: Path) -> None:
    """With a vocabulary of its own, pieces that both have begin with their vectors."""
    first = translator(tmp_path, "first")
    changes = [f"start.encoder={first}", "start.vocabulary=own", "tokenizer.size=290"]
    second = translator(tmp_path, "second", *changes, "train.learning_rate=1e-12")
    theirs, ours = (load_file(path / "model.safetensors") for path in (first, second))
    vocabularies = [Tokenizer((path / "tokenizer.model").read_bytes()) for path in (second, first)]
    mine, other = common_pieces(*vocabularies)
    assert 256 < len(mine) < len(vocabularies[1])
    for a, b in zip(mine, other, strict=True):
        assert vocabularies[0].piece(a) == vocabularies[1].piece(b)
    torch.testing.assert_close(
        ours["embedding.weight"][mine], theirs["embedding.weight"][other], atol=1e-6, rtol=0
    )
    for key in theirs:
        if key.startswith("encoder."):
            torch.testing.assert_close(ours[key], theirs[key], atol=1e-6, rtol=0)
    entry = json.loads((second / "start.json").read_text(encoding="utf-8"))["encoder"]
    assert entry["pieces"] == len(mine)
    assert not any(name.startswith("decoder.") for name in entry["tensors"])
