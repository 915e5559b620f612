"""Captioners: a stored model that writes texts for images, called with images or their paths."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import torch
from torch import Tensor

from manyheads.asks.caption_request import Caption, CaptionAnswer, CaptionRequest, CaptionToken
from manyheads.asks.decode_config import DecodeConfig
from manyheads.asks.load_options import LoadOptions
from manyheads.data.text.languages import base
from manyheads.errors import FolderError, UsageError, nearest
from manyheads.generation.text_decoding import Translation
from manyheads.predict.base_predictor import text_positions
from manyheads.predict.image_inputs import AnImage, ImageInput, ImagePredictor, answer_images
from manyheads.predict.text_reader import check_seed
from manyheads.predict.unusual import unsure_of_text
from manyheads.project.folder import ModelFolder
from manyheads.project.sentencepiece_files import SHARED
from manyheads.tasks.caption.task import caption


class Captioner(ImagePredictor):
    """Call it with an image, a path, or a list of either."""

    request = CaptionRequest
    page = "caption"

    @classmethod
    def positions(cls, recipe: Any) -> int:
        """Those of texts longer than in training, or of [decode]."""
        return max(text_positions(recipe.train.max_length), recipe.decode.max_length or 0)

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        """Load a folder.

        Raises:
            FolderError: its tokenizer belongs to another model.
        """
        super().__init__(folder, options)
        recipe: Any = folder.recipe
        self.decode: DecodeConfig = recipe.decode
        tokenizer: Any = folder.tokenizers().target
        self.tokenizer = tokenizer
        self.languages = list(self.tokenizer.languages)
        if not self.languages and folder.recipe.origin is None:
            raise FolderError(
                f"{folder.path / SHARED} has no token of a language: it belongs to another model. "
                "Copy the model's own folder again."
            )

    @overload
    def __call__(self, image: ImageInput, language: str = "") -> str: ...
    @overload
    def __call__(
        self, image: list[AnImage] | tuple[AnImage, ...], language: str = ""
    ) -> list[str]: ...
    def __call__(
        self, image: AnImage | list[AnImage] | tuple[AnImage, ...], language: str = ""
    ) -> str | list[str]:
        """Write the text of one image, or of several, in a language; the first one if none."""
        if not isinstance(image, list | tuple):
            return self.caption([image], language)[0][0].text
        return [best.text for best, *_ in self.caption(image, language)]

    def caption(
        self,
        images: Sequence[ImageInput | Tensor],
        language: str = "",
        *,
        n_best: int = 1,
        options: DecodeConfig | None = None,
        seed: int = 1,
        details: bool = False,
    ) -> list[list[Translation]]:
        """Return the n_best texts of each image with their scores.

        Args:
            images: paths, Pillow images, arrays, or what `pixels` made of them.
            language: one of `languages`; the first if empty.
            n_best: texts an image; more than the beams widen the search.
            options: how to search; the recipe's [decode] table if None.
            seed: of sampling.
            details: describe the tokens of each text.
        """
        if not images:
            return []
        language = self.known(language)
        check_seed(seed)
        pixels = torch.stack(
            [each if isinstance(each, Tensor) else self.pixels(each) for each in images]
        )
        with self.engine.running():
            return caption(
                self.model,
                self.tokenizer,
                (pixels, self.preprocessing),
                [(n, language) for n in range(len(pixels))],
                self.decode if options is None else options,
                n_best=n_best,
                seed=seed,
                details=details,
            )

    def known(self, language: str) -> str:
        """Return a language that the model writes: the first one for an empty text.

        Of one with a region, such as "ko-KR", the language is taken.
        A converted model does not tell which it writes: for it the language is an empty text.

        Raises:
            UsageError: it does not write this one.
        """
        if not self.languages:
            if language:
                raise UsageError(
                    f"`language` is {language!r}, but {self.folder.name} does not know languages: "
                    "leave it out."
                )
            return ""
        if language not in self.languages and base(language.lower()) in self.languages:
            language = base(language.lower())
        if language and language not in self.languages:
            raise UsageError(
                f"`language` is {language!r}{nearest(language, self.languages)}"
                f"{self.folder.name} writes {', '.join(self.languages)}."
            )
        return language or self.languages[0]

    def respond(self, request: CaptionRequest) -> list[CaptionAnswer]:
        """Answer a request: one answer for each image; what cannot be read is told in its place."""
        language = self.known(request.language or "")
        options, searched = request.decode(self.decode), not request.samples

        def write(pixels: Sequence[Tensor]) -> Iterable[tuple[list[Translation], str | None]]:
            strange = self.unlike(pixels)
            written = self.caption(
                pixels,
                language,
                n_best=request.n_best,
                options=options,
                seed=request.seed,
                details=request.probabilities,
            )
            return zip(written, strange, strict=True)

        def answer(path: str, found: tuple[Sequence[Translation], str | None]) -> CaptionAnswer:
            written, strange = found
            return CaptionAnswer(
                path=path,
                text=written[0].text,
                language=language,
                n_best=tuple(map(_caption, written)),
                notes=tuple(self.notes(written[0], strange, searched=searched)) or None,
            )

        return answer_images(request.images, self.pixels, write, answer, CaptionAnswer)

    def notes(
        self, best: Translation, strange: str | None, *, searched: bool = True
    ) -> Iterator[str]:
        """Say what to know about a caption; `strange` says what is unusual in its image."""
        if strange:
            yield strange
        # What is drawn may be improbable.
        if searched and (unsure := unsure_of_text(self.folder.name, best)):
            yield unsure
        if not best.finished:
            yield "the text was cut off at the length limit."


def _caption(written: Translation) -> Caption:
    details = written.details
    tokens = None if details is None else tuple(CaptionToken(**t.rounded()) for t in details)
    return Caption(text=written.text, score=written.score, finished=written.finished, tokens=tokens)
