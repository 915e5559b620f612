"""A pre-trained start: a translator begins with the weights of language models.

A language model's stack is the encoder, or the decoder without its attention to the source, which
begins with fresh weights. Ramachandran et al. 2017; Rothe et al. 2020.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import model_validator
from torch import nn

from manyheads.app.project.folder import ModelFolder
from manyheads.app.project.paths import find_model
from manyheads.app.project.recipe import Recipe, Table
from manyheads.app.project.vocabulary import (
    SHARED,
    SOURCE,
    TARGET,
    Vocabularies,
    learn_tokenizer,
)
from manyheads.data.tokenizers.tokenizer import PairTokenizerConfig, Tokenizer
from manyheads.errors import RecipeError
from manyheads.train.checkpoint import sha256, tensors

# Keys that must be equal for a layer's weights to fit.
SAME = ("dim", "heads", "ffn_dim", "norm", "activation", "positions", "norm_eps")


class Start(Table):
    """The [start] table: folders of language models whose weights a translator begins with.

    The vocabulary comes from there, too (Ramachandran et al. 2017, Rothe et al. 2020).
    """

    encoder: str | None = None
    decoder: str | None = None

    @model_validator(mode="after")
    def _names_one(self) -> "Start":
        if self.encoder is None and self.decoder is None:
            raise ValueError("name a language model as encoder, as decoder, or as both")
        return self


@dataclass(frozen=True)
class Pretrained:
    """The language model that one side of a translator starts from."""

    side: str  # "encoder" or "decoder"
    folder: ModelFolder

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary that its embedding belongs to."""
        return Tokenizer((self.folder.path / SHARED).read_bytes())


def pretrained(recipe: Recipe, start: Start, *, shared: bool) -> list[Pretrained]:
    """Open the language models that a recipe starts from, and check that they fit it."""
    named = (("encoder", start.encoder), ("decoder", start.decoder))
    found = [Pretrained(side, ModelFolder(find_model(name))) for side, name in named if name]
    for each in found:
        _check(each, recipe)
    config: Any = recipe.config()
    if len(found) == 2 and shared:
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
    recipe: Recipe,
    start: Start,
    tokenizer: PairTokenizerConfig,
    sources: Sequence[str],
    targets: Sequence[str],
) -> Vocabularies:
    """Take the vocabularies over from the language models; learn a missing one."""
    theirs = {
        each.side: each.tokenizer for each in pretrained(recipe, start, shared=tokenizer.shared)
    }
    if tokenizer.shared:
        return {SHARED: next(iter(theirs.values()))}
    return {
        SOURCE: theirs.get("encoder") or learn_tokenizer(sources, tokenizer),
        TARGET: theirs.get("decoder") or learn_tokenizer(targets, tokenizer),
    }


def load_pretrained(
    model: nn.Module, recipe: Recipe, start: Start, *, shared: bool
) -> dict[str, Any]:
    """Copy the weights of the language models that a recipe starts from into a new translator.

    Returns the entry of start.json for each side.
    """
    own = tensors(model)
    record: dict[str, Any] = {}
    for each in pretrained(recipe, start, shared=shared):
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
        record[each.side] = start_record(each.folder, copied)
    return record


def start_record(folder: ModelFolder, names: Iterable[str]) -> dict[str, Any]:
    """Describe for start.json which tensors of a new model hold the weights of which other one."""
    digest = sha256(folder.path / "model.safetensors")
    return {"model": str(folder.path), "sha256": digest, "tensors": sorted(names)}


def _places(side: str, theirs: Iterable[str], own: Iterable[str]) -> dict[str, str]:
    """Map names of the translator's tensors to those of a language model."""
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


def _check(start: Pretrained, recipe: Recipe) -> None:
    key, path = f"start.{start.side}", start.folder.path
    theirs: Any = start.folder.recipe.config()
    ours: Any = recipe.config()
    if not ours.starts_from:
        raise RecipeError(
            f"{key}: {path} cannot start model.preset = {recipe.model['preset']!r}. Choose a "
            "transformer- preset, or leave [start] out."
        )
    if start.folder.recipe.task not in ours.starts_from:
        raise RecipeError(
            f"{key}: the task of {path} is {start.folder.recipe.task!r}. A translator starts from "
            f"a language model, whose task is {' or '.join(map(repr, ours.starts_from))}."
        )
    layers = f"{start.side}_layers"
    pairs = {name: (getattr(theirs, name, None), getattr(ours, name)) for name in SAME}
    pairs[layers] = (getattr(theirs, "layers", None), getattr(ours, layers))
    if ours.positions == "learned":
        pairs["max_length"] = (theirs.max_length, ours.max_length)
    pairs["scale_embedding"] = (True, ours.scale_embedding)
    wrong = [f"- model.{name}: {a!r} there, {b!r} here" for name, (a, b) in pairs.items() if a != b]
    if wrong:
        raise RecipeError(
            "\n".join([f"{key}: the layers of {path} do not fit the translator's:", *wrong])
            + "\nGive both models the same values."
        )
