"""A pre-trained start: a translator begins with the weights of language models.

A language model's stack is the encoder, or the decoder without its attention to the source, which
begins with fresh weights. Ramachandran et al. 2017; Rothe et al. 2020.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from manyheads.app.folder import ModelFolder, read_json, write_json
from manyheads.app.paths import find_model
from manyheads.app.recipe import (
    ClassifyRecipe,
    FillRecipe,
    GenerateRecipe,
    Recipe,
    TranslateRecipe,
)
from manyheads.app.start_images import start_classifier
from manyheads.app.vocabulary import SHARED, SOURCE, TARGET, Vocabularies
from manyheads.data.tokenizer import Tokenizer
from manyheads.errors import RecipeError
from manyheads.models.language_model import LanguageModelConfig
from manyheads.models.transformer import TransformerConfig
from manyheads.train.checkpoint import checkpoints, sha256, tensors

# What has to be equal for a layer's weights to mean the same.
SAME = ("dim", "heads", "hidden", "norm", "activation", "positions", "norm_eps")


@dataclass(frozen=True)
class Pretrained:
    """The language model that one side of a translator starts from."""

    side: str  # "encoder" or "decoder"
    folder: ModelFolder

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary that its embedding belongs to."""
        return Tokenizer((self.folder.path / SHARED).read_bytes())


def pretrained(recipe: TranslateRecipe) -> list[Pretrained]:
    """Open the language models that a recipe starts from, and check that they fit it.

    Raises:
        NotFoundError: there is no such model.
        FolderError: its folder is damaged.
        RecipeError: it is no language model, or of another shape than the recipe's model.
    """
    if recipe.start is None:
        return []
    named = (("encoder", recipe.start.encoder), ("decoder", recipe.start.decoder))
    found = [Pretrained(side, ModelFolder(find_model(name))) for side, name in named if name]
    for each in found:
        _check(each, recipe)
    config = recipe.config()
    assert isinstance(config, TransformerConfig)
    if len(found) == 2 and recipe.tokenizer.shared:
        if found[0].tokenizer.model != found[1].tokenizer.model:
            raise RecipeError(
                "start.encoder and start.decoder have different vocabularies, but the translator "
                "has one for both languages (tokenizer.shared). Set tokenizer.shared = false, or "
                "train both language models with the same data.vocabulary."
            )
        if config.tied:
            raise RecipeError(
                "start.encoder and start.decoder bring an embedding each, but the translator has "
                "one for both (model.tied). Set model.tied = false, or start only one of them."
            )
    return found


def start_vocabularies(
    recipe: TranslateRecipe, sources: Sequence[str], targets: Sequence[str]
) -> Vocabularies:
    """Take the vocabularies over from the language models; learn the one that none brings.

    Raises:
        DataError: the text cannot support a vocabulary of the recipe's size.
    """
    theirs = {each.side: each.tokenizer for each in pretrained(recipe)}
    if recipe.tokenizer.shared:
        return {SHARED: next(iter(theirs.values()))}
    return {
        SOURCE: theirs.get("encoder") or Tokenizer.train(sources, recipe.tokenizer),
        TARGET: theirs.get("decoder") or Tokenizer.train(targets, recipe.tokenizer),
    }


def begin(model: nn.Module, recipe: Recipe, out: Path, say: Callable[[str], None]) -> None:
    """Start a new run's model as its recipe says, and note in start.json what came from where."""
    if not isinstance(recipe, TranslateRecipe | ClassifyRecipe) or recipe.start is None:
        return
    if checkpoints(out / "state"):  # resumed: the weights have learned since
        return
    if isinstance(recipe, ClassifyRecipe):
        record = start_classifier(model, recipe, read_json(out / "labels.json"))
    else:
        record = start(model, recipe)
    write_json(out / "start.json", record)
    for side, entry in record.items():
        say(f"{side}: {len(entry['tensors'])} tensors from {entry['model']}")


def start(model: nn.Module, recipe: TranslateRecipe) -> dict[str, Any]:
    """Copy the weights of the language models that a recipe starts from into a new translator.

    Returns:
        For each side the model, the sha256 of its weights, and the names of the translator's
        tensors that now hold them.

    Raises:
        RecipeError: a tensor has another shape than the translator's.
    """
    own = tensors(model)
    record: dict[str, Any] = {}
    for each in pretrained(recipe):
        theirs = tensors(each.folder.model())
        copied = _places(each.side, theirs.keys(), own.keys())
        for place, name in copied.items():
            if own[place].shape != theirs[name].shape:
                raise RecipeError(
                    f"start.{each.side}: {name} of {each.folder.path} is "
                    f"{tuple(theirs[name].shape)}, but {place} of the translator is "
                    f"{tuple(own[place].shape)}. Give both models the same sizes."
                )
            with torch.no_grad():
                own[place].copy_(theirs[name])
        record[each.side] = {
            "model": str(each.folder.path),
            "sha256": sha256(each.folder.path / "model.safetensors"),
            "tensors": sorted(copied),
        }
    return record


def _places(side: str, theirs: Iterable[str], own: Iterable[str]) -> dict[str, str]:
    """Say which tensor of a language model goes to which place in the translator."""
    places = {
        f"{side}.{name.removeprefix('encoder.')}": name
        for name in theirs
        if name.startswith("encoder.")
    }
    if "positions.table" in theirs:
        places["positions.table"] = "positions.table"
    embeddings = ["embedding.weight"]
    if side == "decoder":
        # A tied output layer is listed under the embedding's name only.
        embeddings = [n for n in ("target_embedding.weight", "output.weight") if n in own]
    return places | dict.fromkeys(embeddings or ["embedding.weight"], "embedding.weight")


def _check(start: Pretrained, recipe: TranslateRecipe) -> None:
    key, path = f"start.{start.side}", start.folder.path
    theirs, ours = start.folder.recipe.config(), recipe.config()
    if not isinstance(start.folder.recipe, GenerateRecipe | FillRecipe):
        raise RecipeError(
            f"{key}: the task of {path} is {start.folder.recipe.task!r}. A translator starts from "
            'a language model, whose task is "generate" or "fill".'
        )
    if not isinstance(ours, TransformerConfig):
        raise RecipeError(
            f"{key}: {path} is a Transformer, so it cannot start model.preset = "
            f"{recipe.model['preset']!r}. Choose a transformer- preset, or leave [start] out."
        )
    assert isinstance(theirs, LanguageModelConfig)
    layers = f"{start.side}_layers"
    pairs = {name: (getattr(theirs, name), getattr(ours, name)) for name in SAME}
    pairs[layers] = (theirs.layers, getattr(ours, layers))
    if ours.positions == "learned":
        pairs["max_length"] = (theirs.max_length, ours.max_length)
    pairs["scale_embedding"] = (True, ours.scale_embedding)
    wrong = [f"- model.{name}: {a!r} there, {b!r} here" for name, (a, b) in pairs.items() if a != b]
    if wrong:
        listed = "\n".join(wrong)
        raise RecipeError(
            f"{key}: the layers of {path} do not fit the translator's:\n{listed}\n"
            "Give both models the same values."
        )
