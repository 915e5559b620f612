"""Predictors: a model folder, ready to be called with raw text or with pictures."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, overload

import torch
from pydantic import TypeAdapter, ValidationError

from manyheads.app.alignment import stored
from manyheads.app.folder import ModelFolder
from manyheads.app.language import Filler, Generator
from manyheads.app.paths import find_model
from manyheads.app.recipe import (
    ClassifyRecipe,
    FillRecipe,
    GenerateRecipe,
    ReconstructRecipe,
    TagRecipe,
    TranslateRecipe,
)
from manyheads.app.tagging import Spacer
from manyheads.app.texts import OneOrMany
from manyheads.data.pictures import Picture as Content
from manyheads.data.pictures import naming, open_picture
from manyheads.errors import ManyheadsError, UsageError, nearest
from manyheads.tasks.classify import answers, classify
from manyheads.tasks.decoding import DecodeConfig, Translation, translate
from manyheads.train.device import best_device

Picture = str | Path | Content
LINES = 1024  # texts taken from a stream at a time


class Guess(NamedTuple):
    """One class and its probability."""

    label: str
    probability: float


class Translator(OneOrMany):
    """Call it with a text or a list of texts. `model` is the torch module."""

    def __init__(self, folder: ModelFolder) -> None:
        assert isinstance(folder.recipe, TranslateRecipe)
        self.folder = folder
        self.decode = folder.recipe.decode
        self.tokenizers = folder.tokenizers()
        self.alignment = stored(folder)  # the attention that says where words come from
        self.model = folder.model().to(best_device())

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Translate each text."""
        return [best.text for best, *_ in self.translate(texts)]

    def options(self, **changes: Any) -> DecodeConfig:
        """Return the recipe's [decode] table with changes, for `translate`.

        For example `options(sample=True, temperature=0.7)`.

        Raises:
            UsageError: an unknown key, a value out of its range, or keys that contradict.
        """
        allowed = [field.name for field in fields(DecodeConfig)]
        for key in changes:
            if key not in allowed:
                raise UsageError(
                    f"there is no option {key!r}{nearest(key, allowed)}"
                    f"Allowed: {', '.join(allowed)}."
                )
        try:
            return TypeAdapter(DecodeConfig).validate_python(asdict(self.decode) | changes)
        except ValidationError as error:
            detail = error.errors()[0]
            reason = detail["msg"].removeprefix("Value error, ")
            given = f"{detail['loc'][0]} = {detail['input']!r}: " if detail["loc"] else ""
            raise UsageError(f"{given}{reason[0].lower()}{reason[1:]}.") from None

    def translate(
        self,
        texts: Sequence[str],
        *,
        beams: int | None = None,
        n_best: int = 1,
        options: DecodeConfig | None = None,
        prefixes: Sequence[str] | None = None,
        constraints: Sequence[Sequence[Sequence[int]]] | None = None,
        seed: int = 1,
        details: bool = False,
        align: bool = False,
    ) -> list[list[Translation]]:
        """Return the n_best translations of each text with their scores.

        Args:
            texts: raw texts.
            beams: of the search, 1 is greedy; that of the options if None.
            n_best: translations a text; more than `beams` widen the search.
            options: how to search; the recipe's [decode] table if None.
            prefixes: for each text what its translations begin with.
            constraints: for each text sequences of target tokens that its translations contain.
            seed: of sampling.
            details: describe the tokens of each translation.
            align: with the token of the text that each comes from.
        """
        options = self.decode if options is None else options
        if (beams is not None and beams < 1) or n_best < 1:
            raise UsageError(f"beams is {beams} and n_best {n_best}: both must be at least 1.")
        if beams is not None:
            options = self.options(**asdict(options) | {"beams": beams})
        return translate(
            self.model,
            self.tokenizers,
            texts,
            options,
            n_best=n_best,
            prefixes=None if prefixes is None else self.tokenizers.target.encode(prefixes),
            constraints=constraints,
            seed=seed,
            details=details,
            align=align,
            reader=None if self.alignment is None else self.alignment.reader,
        )

    def stream(
        self,
        texts: Iterable[str],
        *,
        beams: int | None = None,
        n_best: int = 1,
        options: DecodeConfig | None = None,
        prefix: str = "",
        seed: int = 1,
        details: bool = False,
        align: bool = False,
        lines: int = LINES,
    ) -> Iterator[list[Translation]]:
        """Translate any number of texts, such as the lines of a file, `lines` at a time.

        The arguments are those of `translate`; every translation begins with the same prefix.
        """
        waiting = iter(texts)
        failure: ManyheadsError | None = None
        while failure is None:
            chunk: list[str] = []
            try:
                chunk.extend(islice(waiting, lines))  # keeps what came before an error
            except ManyheadsError as error:  # a bad line: answer those before it first
                failure = error
            if not chunk:
                break
            yield from self.translate(
                chunk,
                beams=beams,
                n_best=n_best,
                options=options,
                prefixes=[prefix] * len(chunk),
                seed=seed,
                details=details,
                align=align,
            )
        if failure is not None:
            raise failure


class Classifier:
    """Call it with a picture, a path, or a list of either. `model` is the torch module."""

    def __init__(
        self, folder: ModelFolder, image_size: int | tuple[int, int] | None = None
    ) -> None:
        self.folder = folder
        self.preprocessing = folder.preprocessing()
        self.labels = folder.labels()
        size = (image_size, image_size) if isinstance(image_size, int) else image_size
        if size is not None:
            self.preprocessing = replace(self.preprocessing, height=size[0], width=size[1])
        recipe = folder.recipe
        assert isinstance(recipe, ClassifyRecipe)
        self.multi_label = recipe.data.multi_label
        self.model = folder.model(size).to(best_device())

    @overload
    def __call__(self, picture: Picture) -> str: ...
    @overload
    def __call__(self, picture: list[Picture]) -> list[str]: ...
    def __call__(self, picture: Picture | list[Picture]) -> str | list[str]:
        """Name the likeliest class of one picture, or of several."""
        if not isinstance(picture, list):
            return self.classify([picture])[0][0].label
        return [best.label for best, *_ in self.classify(picture)]

    def classify(self, pictures: Sequence[Picture], *, top: int = 5) -> list[list[Guess]]:
        """Return the `top` likeliest classes of each picture with their probabilities.

        Where several classes may apply to a picture, each has a probability of its own.
        """
        if not pictures:
            return []
        return self.guesses(torch.stack([self.pixels(picture) for picture in pictures]), top=top)

    def guesses(self, pixels: torch.Tensor, *, top: int = 5) -> list[list[Guess]]:
        """The same for pictures that are `pixels` already: (picture, channel, height, width)."""
        if self.multi_label:
            probabilities = answers(self.model, self.preprocessing, pixels).sigmoid()
        else:
            probabilities = classify(self.model, self.preprocessing, pixels).exp()
        values, classes = probabilities.topk(min(top, len(self.labels)))
        return [
            [Guess(self.labels[c], p) for c, p in zip(row_classes, row_values, strict=True)]
            for row_classes, row_values in zip(classes.tolist(), values.tolist(), strict=True)
        ]

    def pixels(self, picture: Picture) -> torch.Tensor:
        """Preprocess a picture as in training: (channel, height, width), 0..255."""
        named = isinstance(picture, str | Path)
        image = open_picture(Path(picture)) if isinstance(picture, str | Path) else picture
        with naming(str(picture) if named else "The picture"):  # other channels than the model's
            return torch.from_numpy(self.preprocessing.pixels(image).copy())


class Reconstruction:
    """A model that has learned from pictures alone, for classifiers to start from."""

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder
        self.preprocessing = folder.preprocessing()
        self.model = folder.model().to(best_device())


Predictor = Translator | Classifier | Reconstruction | Generator | Filler | Spacer


def load(model: str | Path, *, image_size: int | tuple[int, int] | None = None) -> Predictor:
    """Load a shipped model by name, or a model folder by path.

    Args:
        model: the name or the path.
        image_size: of a classifier of pictures, in place of the size it was made for: one number,
            or height and width. Learned positions are interpolated.

    Raises:
        NotFoundError: there is no such model.
        FolderError: the folder is damaged, incomplete, or of a later version.
        UsageError: the model cannot have this image size.
    """
    folder = ModelFolder(find_model(str(model)))
    if isinstance(folder.recipe, ClassifyRecipe):
        return Classifier(folder, image_size)
    if image_size is not None:
        raise UsageError(f"{model} does not look at pictures: it takes no image_size.")
    if isinstance(folder.recipe, GenerateRecipe):
        return Generator(folder)
    if isinstance(folder.recipe, FillRecipe):
        return Filler(folder)
    if isinstance(folder.recipe, TagRecipe):
        return Spacer(folder)
    if isinstance(folder.recipe, ReconstructRecipe):
        return Reconstruction(folder)
    return Translator(folder)
