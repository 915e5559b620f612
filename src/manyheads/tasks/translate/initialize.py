"""A pre-trained start: a translator begins with the weights of language models or of translators.

A language model's stack is the encoder, or the decoder without its attention to the source, which
begins with fresh weights (Ramachandran et al. 2017; Rothe et al. 2020). Of a translator each side
is taken whole, also for another language pair (Zoph et al. 2016, "Transfer Learning for
Low-Resource Neural Machine Translation").

The feed-forward layers may be wider than theirs. New units begin with fresh weights and the layer
reads them with zeros, so the translator begins with the outputs of its start (Chen et al. 2016,
"Net2Net").
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.data.tokenizers.marian_tokenizer import read_marian
from manyheads.data.tokenizers.tokenizer import Tokenizer
from manyheads.errors import RecipeError
from manyheads.files import write_atomically
from manyheads.fit.inputs import start_record
from manyheads.project.base_recipe import Recipe
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model
from manyheads.project.sentencepiece_files import (
    SHARED,
    SOURCE,
    TARGET,
    Vocabularies,
    learn_tokenizer,
    need_vocabularies,
)
from manyheads.tasks.translate.recipe import Start, TranslateRecipe
from manyheads.train.model_tensors import restore, tensors

# Names of tensors with a row for each token, of the target or of both sides.
OF_TARGET = ("target_embedding.weight", "output.weight")
OF_TOKENS = ("embedding.weight", *OF_TARGET, "output.bias")
# Keys that must be equal for a layer's weights to fit.
SAME = ("dim", "heads", "norm", "activation", "positions", "norm_eps")


@dataclass(frozen=True)
class Pretrained:
    """The model that one side of a translator starts from."""

    side: str  # "encoder" or "decoder"
    folder: ModelFolder

    @property
    def translates(self) -> bool:
        """Whether it has both sides, or is a language model."""
        return self.folder.recipe.data.has_pairs

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary that the embedding of this side belongs to."""
        source, *_ = found = list(need_vocabularies(self.folder.path).values())
        return source if self.side == "encoder" else found[-1]

    def embedding(self, names: Collection[str]) -> str:
        """Name the tensor with the vectors of this side's tokens; tied ones have the first name."""
        own = OF_TARGET if self.side == "decoder" else ()
        return next((name for name in own if name in names), "embedding.weight")


def pretrained(recipe: Recipe, start: Start, *, shared: bool) -> list[Pretrained]:
    """Open the models that a recipe starts from, and check that they fit it."""
    named = (("encoder", start.encoder), ("decoder", start.decoder))
    models = [Pretrained(side, ModelFolder(find_model(name))) for side, name in named if name]
    for each in models:
        _check(each, recipe)
    config: Any = recipe.config()
    if len(models) == 2 and shared and models[0].folder.path != models[1].folder.path:
        if start.vocabulary == "theirs" and models[0].tokenizer.model != models[1].tokenizer.model:
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
    return models


def start_vocabularies(
    recipe: TranslateRecipe, start: Start, sources: Sequence[str], targets: Sequence[str]
) -> Vocabularies:
    """Take the vocabularies over from the models to start from; learn a missing one."""
    tokenizer = recipe.tokenizer
    models = pretrained(recipe, start, shared=tokenizer.shared)
    theirs = {each.side: each.tokenizer for each in models}
    if tokenizer.shared:
        return {SHARED: next(iter(theirs.values()))}
    return {
        SOURCE: theirs.get("encoder") or learn_tokenizer(sources, tokenizer),
        TARGET: theirs.get("decoder") or learn_tokenizer(targets, tokenizer),
    }


def load_pretrained(
    model: nn.Module, recipe: Recipe, start: Start, vocabularies: Vocabularies
) -> dict[str, Any]:
    """Copy the weights of the models that a recipe starts from into a new translator.

    `vocabularies` are the translator's. Returns the entry of start.json for each side.
    """
    own = tensors(model)
    record: dict[str, Any] = {}
    source, *_ = both = list(vocabularies.values())
    for each in pretrained(recipe, start, shared=SHARED in vocabularies):
        theirs = tensors(each.folder.model())
        side = source if each.side == "encoder" else both[-1]
        rows = None if side.model == each.tokenizer.model else common_pieces(side, each.tokenizer)
        copied = _places(each, theirs.keys(), own.keys())
        for place, name in copied.items():
            by_piece = rows is not None and place in OF_TOKENS
            if ".feedforward." in place:
                theirs[name] = widened(theirs[name], own[place])
            if own[place].shape[by_piece:] != theirs[name].shape[by_piece:]:
                raise RecipeError(
                    f"start.{each.side}: {name} of {each.folder.path} is "
                    f"{tuple(theirs[name].shape)}, but {place} of the translator is "
                    f"{tuple(own[place].shape)}. Give both models the same sizes."
                )
            with torch.no_grad():
                if rows is not None and by_piece:
                    own[place][rows[0]] = theirs[name][rows[1]]
                else:
                    own[place].copy_(theirs[name])
        record[each.side] = start_record(each.folder, copied)
        if rows is not None:
            record[each.side] |= {"pieces": len(rows[0]), "vocabulary": len(side)}
    return record


def widened(theirs: Tensor, own: Tensor) -> Tensor:
    """Extend a feed-forward layer's tensor: own rows make new units, columns of zeros read them.

    A tensor that is too large is returned as it is.
    """
    rows, *columns = theirs.shape
    if any(a > b for a, b in zip(theirs.shape, own.shape, strict=True)):
        return theirs
    result = own.clone()
    for column in columns:
        result[:, column:] = 0
    result[(slice(rows), *map(slice, columns))] = theirs
    return result


def common_pieces(ours: Tokenizer, theirs: Tokenizer) -> tuple[list[int], list[int]]:
    """Return the ids of the pieces that two vocabularies share: in the one, and in the other."""
    known = {theirs.piece(token): token for token in range(len(theirs))}
    shared = [token for token in range(len(ours)) if ours.piece(token) in known]
    return shared, [known[ours.piece(token)] for token in shared]


def _places(each: Pretrained, theirs: Collection[str], own: Collection[str]) -> dict[str, str]:
    """Map names of the translator's tensors to those of the model that one side starts from."""
    side, vectors = each.side, each.embedding(theirs)
    prefix = f"{side}." if each.translates else "encoder."
    places = {
        f"{side}.{name.removeprefix(prefix)}": name for name in theirs if name.startswith(prefix)
    }
    if "positions.table" in theirs:
        places["positions.table"] = "positions.table"
    mine = [name for name in OF_TARGET if name in own] if side == "decoder" else []
    if each.translates and side == "decoder" and "output.bias" in theirs and "output.bias" in own:
        places["output.bias"] = "output.bias"
    return places | {
        name: name if each.translates and name in theirs else vectors
        for name in mine or ["embedding.weight"]
    }


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
            f"a model whose task is {' or '.join(map(repr, ours.starts_from))}."
        )
    layers = f"{start.side}_layers"
    their_layers = getattr(theirs, layers if start.translates else "layers", None)
    pairs = {name: (getattr(theirs, name, None), getattr(ours, name)) for name in SAME}
    pairs[layers] = (their_layers, getattr(ours, layers))
    if (width := getattr(theirs, "ffn_dim", None)) is None or width > ours.ffn_dim:
        pairs["ffn_dim"] = (width, ours.ffn_dim)
    if ours.positions == "learned":
        pairs["max_length"] = (theirs.max_length, ours.max_length)
    pairs["scale_embedding"] = (getattr(theirs, "scale_embedding", True), ours.scale_embedding)
    wrong = [f"- model.{name}: {a!r} there, {b!r} here" for name, (a, b) in pairs.items() if a != b]
    if wrong:
        raise RecipeError(
            "\n".join([f"{key}: the layers of {path} do not fit the translator's:", *wrong])
            + "\nGive both models the same values; model.ffn_dim may be larger here."
        )


def initialize(model: nn.Module, recipe: TranslateRecipe, out: Path) -> dict[str, Any] | None:
    """Copy the weights of the models that [start] names."""
    if recipe.start is None:
        return None
    if recipe.converted:
        folder = ModelFolder(find_model(str(recipe.start.encoder)))
        restore(model, tensors(folder.model()), folder.path)
        return {"encoder and decoder": start_record(folder, tensors(model))}
    return load_pretrained(model, recipe, recipe.start, need_vocabularies(out))


def foreign_vocabularies(recipe: TranslateRecipe, out: Path) -> Mapping[str, Any]:
    """Return the tokenizers of a converted model that is continued; none for other recipes.

    A resumed run has them in its folder.
    """
    if recipe.converted is None or recipe.start is None:
        return {}
    kept = out / recipe.converted.format
    if not kept.is_dir():
        kept = find_model(str(recipe.start.encoder)) / recipe.converted.format
    both = read_marian(kept, prefix=recipe.converted.prefix)
    return dict(zip((SOURCE, TARGET), both, strict=True))


def copy_foreign_files(recipe: TranslateRecipe, out: Path) -> None:
    """Copy the files of a converted model that turn text into tokens."""
    assert recipe.converted is not None
    assert recipe.start is not None
    theirs, ours = find_model(str(recipe.start.encoder)), out / recipe.converted.format
    if not ours.is_dir():
        for path in sorted((theirs / recipe.converted.format).iterdir()):
            write_atomically(ours / path.name, path.read_bytes())
