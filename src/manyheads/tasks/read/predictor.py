"""The predictor of a line reader: an image in, the text that is printed on it out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np
from torch import Tensor

from manyheads.asks.caption_request import Caption, CaptionAnswer, CaptionRequest, CaptionToken
from manyheads.asks.load_options import LoadOptions
from manyheads.data.images.image_file import naming
from manyheads.data.images.line_images import LineImage, grey, line_pixels, padded_width
from manyheads.data.images.line_layout import cut_wide, find_lines
from manyheads.data.text.languages import base
from manyheads.decode.ctc import best_path, prefix_search
from manyheads.errors import UsageError
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.image_inputs import AnImage, ImageInput, answer_images, named, opened
from manyheads.project.folder import ModelFolder
from manyheads.tasks.read.task import BLANK, ReadCharacter, predict_logits, spell

# Mean probability of the letters of a line below which the answer says so
# (`python -m benchmarks.reading notes`).
UNSURE = 0.9


class ReadText(NamedTuple):
    """One text of a line or an image, and how probable it is."""

    characters: tuple[ReadCharacter, ...]
    score: float  # log-probability

    @property
    def text(self) -> str:
        """The characters together."""
        return "".join(each.character for each in self.characters)


@dataclass(frozen=True)
class ReadLine:
    """What was read in one line of an image."""

    texts: tuple[ReadText, ...]  # the most probable first
    paragraph: int  # its number
    columns: bool = False  # a wide gap is in it, as between columns

    @property
    def sure(self) -> float:
        """The mean probability of its characters."""
        each = [character.probability for character in self.texts[0].characters]
        return sum(each) / len(each) if each else 1.0

    @property
    def text(self) -> str:
        """The most probable text."""
        return self.texts[0].text


class _Prepared(NamedTuple):
    """A line as the model sees it."""

    pieces: list[tuple[np.ndarray, bool]]  # (height, width), 0..255, and whether a space follows
    paragraph: int
    columns: bool


class Reader(Predictor):
    """Call it with an image, a path, or a list of either."""

    request = CaptionRequest

    @classmethod
    def positions(cls, recipe: Any) -> int:
        """A column of the widest line each."""
        return padded_width(recipe.image.max_width) // recipe.config().column_width

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        recipe: Any = folder.recipe
        self.characters = folder.characters()
        self.image: LineImage = recipe.image
        self.language: str | None = recipe.data.language

    @overload
    def __call__(self, image: ImageInput) -> str: ...
    @overload
    def __call__(self, image: list[AnImage] | tuple[AnImage, ...]) -> list[str]: ...
    def __call__(self, image: AnImage | list[AnImage] | tuple[AnImage, ...]) -> str | list[str]:
        """Read the text of one image, or of several, line by line."""
        read = self.read(image if isinstance(image, list | tuple) else [image])
        texts = [combine([line.texts for line in lines], 1, separators(lines)) for lines in read]
        written = [best.text for best, *_ in texts]
        return written if isinstance(image, list | tuple) else written[0]

    def respond(self, request: CaptionRequest) -> list[CaptionAnswer]:
        """Answer a request: one answer for each image; what cannot be read is told in its place."""
        if request.samples:
            raise UsageError(
                f"{self.folder.name} reads what is there and draws nothing: leave out `sample`, "
                "`temperature`, `top_k` and `top_p`."
            )
        asked, own = request.language, self.language
        if asked not in (None, own) and base(asked.lower()) != base(own or ""):
            raise UsageError(
                f"{self.folder.name} reads {self.language or 'one language'}, not "
                f"{request.language!r}: leave out `language`."
            )
        beams = max(request.beams or 1, request.n_best)

        def answer(path: str, lines: Sequence[ReadLine]) -> CaptionAnswer:
            best = combine([line.texts for line in lines], request.n_best, separators(lines))
            return CaptionAnswer(
                path=path,
                text=best[0].text,
                language=self.language,
                n_best=tuple(
                    Caption(
                        text=each.text,
                        score=round(each.score, 4),
                        tokens=tuple(_tokens(each)) if request.probabilities else None,
                    )
                    for each in best
                ),
                notes=tuple(self.notes(lines)) or None,
            )

        run = partial(self._read, beams=beams)
        return answer_images(request.images, self._prepare, run, answer, CaptionAnswer)

    def notes(self, lines: Sequence[ReadLine]) -> Iterator[str]:
        """Say what to know about what was read in an image."""
        if not any(line.text.strip() for line in lines):
            yield "there is no text to be seen in it."
        if len(lines) > 1 and any(line.columns for line in lines):
            yield "lines of it have wide gaps: columns of text and tables are read across."
        unsure = [number for number, line in enumerate(lines, 1) if line.sure < UNSURE]
        if unsure:
            listed = ", ".join(map(str, unsure))
            where = f" of line {listed}" if len(lines) > 1 else ""
            lowest = min(line.sure for line in lines)
            yield (
                f"it is unlike what {self.folder.name} learned to read: a character{where} has a "
                f"probability of {lowest:.0%} on average. Check the text."
            )

    def read(self, images: Sequence[ImageInput], *, beams: int = 1) -> list[list[ReadLine]]:
        """Read the lines of each image, from top to bottom.

        Args:
            images: paths, Pillow images or arrays (height, width, channel).
            beams: 1 takes the best path; more search for so many texts of each line.
        """
        if not isinstance(images, list | tuple):
            raise UsageError(f"The images are {images!r:.80}: give a list, also for one alone.")
        return self._read([self._prepare(image) for image in images], beams)

    def _prepare(self, image: ImageInput) -> list[_Prepared]:
        """Cut an image into lines, and these into pieces that are not wider than in training."""
        content = opened(image)
        with naming(named(image)):
            return [
                _Prepared(
                    cut_wide(line_pixels(line.pixels, self.image), self.image.max_width),
                    line.paragraph,
                    line.columns,
                )
                for line in find_lines(grey(content))
            ]

    def _read(self, images: Sequence[list[_Prepared]], beams: int) -> list[list[ReadLine]]:
        pieces = [pixels for image in images for line in image for pixels, _ in line.pieces]
        with self.engine.running():
            scores = iter(predict_logits(self.model, pieces))
        read = [
            [ReadLine(self._texts(line, scores, beams), *line[1:]) for line in image]
            for image in images
        ]
        return [[line for line in image if _is_text(line)] for image in read]

    def _texts(self, line: _Prepared, scores: Iterator[Tensor], beams: int) -> tuple[ReadText, ...]:
        parts = []
        for _, spaced in line.pieces:
            own = next(scores)
            found = prefix_search(own, BLANK, beams=beams) if beams > 1 else [best_path(own, BLANK)]
            space = (ReadCharacter(" ", 1.0),) * spaced
            parts.append(
                [ReadText((*spell(self.characters, each), *space), each.score) for each in found]
            )
        return tuple(combine(parts, beams, [""] * len(parts)))


def _is_text(line: ReadLine) -> bool:
    """Tell a text from what is read where there is none: unsure letters that make no syllable."""
    alone = sum("\u1100" <= each <= "\u11ff" for each in line.text)
    return 2 * alone < max(1, len(line.text)) or line.sure >= UNSURE


def separators(lines: Sequence[ReadLine]) -> list[str]:
    """Return what is written in front of each line: an empty line before another paragraph."""
    numbers = [line.paragraph for line in lines]
    return ["\n" if now == before else "\n\n" for before, now in pairwise([0, *numbers])]


def combine(
    parts: Sequence[Sequence[ReadText]], count: int, before: Sequence[str]
) -> list[ReadText]:
    """Join one text of each part, so that the `count` most probable wholes come out.

    `parts` has the texts of each, the most probable first; `before` is what is written in front of
    each part but the first.
    """
    best = [ReadText((), 0.0)]
    for number, (texts, glue) in enumerate(zip(parts, before, strict=True)):
        between = tuple(ReadCharacter(each, 1.0) for each in glue) if number else ()
        wholes = [
            ReadText((*whole.characters, *between, *text.characters), whole.score + text.score)
            for whole in best
            for text in texts
        ]
        best = sorted(wholes, key=lambda whole: -whole.score)[:count]
    return best


def _tokens(read: ReadText) -> Iterator[CaptionToken]:
    place = 0
    for character, probability in read.characters:
        end = place + len(character)
        if character.strip():
            yield CaptionToken(
                token=character, probability=round(probability, 4), begin=place, end=end
            )
        place = end
