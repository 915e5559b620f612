"""A translator that is continued on other pairs: its model, its languages, and its own pairs.

Pairs of the general kind, mixed in, keep what it knows (Chu et al. 2017, "An Empirical Comparison
of Domain Adaptation Methods for Neural Machine Translation").
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.text.exclusion import near_key
from manyheads.data.text.formats import Pair
from manyheads.errors import ManyheadsError, UsageError
from manyheads.models.presets import preset
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model, shipped
from manyheads.recipe_data.pair_splits import corpus_split, training_corpus
from manyheads.streams import generator

GENERAL = 300  # pairs to validate what must not be forgotten
LEAST_MIXED = 2000  # pairs mixed in, at least
MIXED = 4  # for each own one: fewer are soon known by heart (docs/decisions/forgetting.md)
AGAIN = 2  # own pairs are named so often more, where general ones are many times as many
DERIVED = ("pad", "start", "end", "vocabulary", "target_vocabulary")


class Base(NamedTuple):
    """The model to continue."""

    name: str  # as a recipe names it
    recipe: Any  # of a translator

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target."""
        return self.recipe.data.source, self.recipe.data.target

    def tables(self) -> str:
        """Write the tables of a recipe that say what is continued: [start], [model], ..."""
        recipe, config = self.recipe, asdict(self.recipe.config())
        usual = asdict(preset(str(recipe.model["preset"])))
        model: dict[str, Any] = {"preset": recipe.model["preset"]}
        kept = () if recipe.converted else DERIVED
        model |= {
            key: value
            for key, value in config.items()
            if value != usual[key] and key not in kept and value is not None
        }
        tables: dict[str, Any] = {"start": {"encoder": self.name, "decoder": self.name}}
        if recipe.converted:
            # All that its vocabulary decides is written out: none is learned.
            model |= {key: config[key] for key in DERIVED if config[key] is not None}
            tables["converted"] = recipe.converted.model_dump(exclude_none=True)
        elif not recipe.tokenizer.shared:
            tables["tokenizer"] = {"shared": False}
        search, plain = asdict(recipe.decode), asdict(DecodeConfig())
        if changed := {k: v for k, v in search.items() if v != plain[k] and v is not None}:
            tables["decode"] = changed
        return tomli_w.dumps(tables | {"model": model})


class General(NamedTuple):
    """Pairs of what the model learned before; none if its data are not here."""

    train: Sequence[Pair]
    valid: Sequence[Pair]
    why_not: str = ""


def open_base(name: str) -> Base:
    """Open the model to continue.

    Raises:
        NotFoundError: there is none of this name.
        UsageError: it is no translator.
    """
    folder = ModelFolder(find_model(name))
    if not folder.recipe.data.has_pairs:
        raise UsageError(
            f"{name} has the task {folder.recipe.task!r}: name a translator to continue with "
            "sentence pairs, as `base_model`."
        )
    known = name in shipped("pretrained") or name.startswith("hf:")
    return Base(name if known else str(Path(name).absolute()), folder.recipe)


def general_pairs(base: Base, count: int, held_out: Collection[str], seed: int) -> General:
    """Draw pairs that the model has learned from, and some that it was validated on.

    Args:
        base: the model.
        count: own pairs to train on.
        held_out: sources that must not be trained on.
        seed: of the draw.
    """
    data = base.recipe.data
    try:
        train = list(training_corpus(data).pairs())
        valid = list(corpus_split("valid", data).pairs())
    except ManyheadsError as error:
        return General((), (), str(error).partition(": ")[0].rstrip("."))
    random = generator(seed, "general")
    keys = set(map(near_key, held_out))
    train = [pair for pair in train if near_key(pair[0]) not in keys]

    def some(pairs: Sequence[tuple[str, str]], number: int) -> list[Pair]:
        chosen = sorted(random.permutation(len(pairs))[:number].tolist())
        return [Pair(index + 1, *pairs[index]) for index in chosen]

    return General(some(train, max(MIXED * count, LEAST_MIXED)), some(valid, GENERAL))
