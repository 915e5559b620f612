"""Read the text of images, and translate what was read: two models in a row."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from manyheads.asks.caption_request import CaptionAnswer, CaptionRequest
from manyheads.asks.read_request import ReadAnswer, ReadRequest
from manyheads.asks.translate_request import TranslateRequest
from manyheads.data.text.languages import base
from manyheads.documents.document_translation import translate_lines
from manyheads.documents.fallbacks import TextTranslator
from manyheads.errors import UsageError
from manyheads.predict.base_predictor import Predictor, answers
from manyheads.predict.load import load_for, loaded
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import shipped
from manyheads.tasks.translate.predictor import Translator

READER = "read-ko"
Pair = tuple[str | None, str | None]  # of languages: the source's, and the target's
# Gives translations of texts, and what to note.
Translate = Callable[[Sequence[str]], tuple[list[str], Sequence[str]]]


def read(
    images: Sequence[str | Path], *, model: str | Path | Predictor = READER, **parameters: Any
) -> list[ReadAnswer]:
    """Read the text in images, and translate it if `to` names a language.

    Args:
        images: paths.
        model: a reader: the name of a shipped model, a model folder, or what `load` returned.
        parameters: those of `ReadRequest`, such as `to="en"`; of a model that is not loaded yet
            those of `load`, too.

    Returns:
        One answer for each image, in the same order; `error` says why one could not be read.

    Raises:
        UsageError: the model writes no texts for images, or no translator has these languages.
    """
    reader, parameters = loaded(model, parameters)
    request = ReadRequest(images=tuple(images), **parameters)
    return ReadingTranslator(reader, request).answer(request)


class ReadingTranslator:
    """A reader, and a translator for what it reads."""

    def __init__(self, reader: Predictor, request: ReadRequest) -> None:
        """Load the translator that a request asks for; its images are not read.

        Raises:
            UsageError: the reader writes no texts for images, the translator does not translate
                from its language or into that of the request, or none is shipped that does; the
                reader's language is not known, and no translator is named.
        """
        if not answers(reader, CaptionRequest):
            raise UsageError(
                f"{reader.folder.name} does not read: its task is {reader.folder.recipe.task!r}. "
                f"Give a model that does, such as {READER}."
            )
        self.reader = reader
        self.to = request.to
        self.translator: Predictor | None = None
        if request.to is None and request.translator is None:
            return
        # The language that it writes by itself; None: converted models do not tell.
        language = getattr(reader, "language", None)
        language = language or next(iter(getattr(reader, "languages", ())), None)
        check_language(reader.folder.name, language, request)
        name = request.translator or shipped_translator(language, request.to)
        self.translator = load_for(TranslateRequest, name, verb="translate")
        sides = self.translator.folder.recipe.data
        pair = getattr(sides, "source", None), getattr(sides, "target", None)
        self.to = check_translator(name, pair, request, reader=reader.folder.name, reads=language)

    def answer(self, request: ReadRequest) -> list[ReadAnswer]:
        """Read images and translate their texts: one answer for each, in the same order."""
        captions: list[CaptionAnswer] = self.reader.answer(CaptionRequest(images=request.images))
        translate = None if self.translator is None else self.translate
        return [read_answer(caption, self.to, translate) for caption in captions]

    def translate(self, texts: Sequence[str]) -> tuple[list[str], Sequence[str]]:
        """Translate texts, long ones sentence by sentence; return them and what to note."""
        if isinstance(self.translator, Translator):
            return translate_paragraphs(self.translator, texts)
        assert self.translator is not None
        answers = self.translator.answer(TranslateRequest(texts=tuple(texts)))
        return [each.translation for each in answers], [
            n for each in answers for n in each.notes or ()
        ]


def check_language(reader: str, language: str | None, request: ReadRequest) -> None:
    """Refuse to choose a translator for a reader whose language is not known.

    Raises:
        UsageError: the language is None, and no translator is named.
    """
    if language is None and request.translator is None:
        raise UsageError(
            f"{reader} does not say which language it reads, so no translator can be chosen for "
            "it: name one as `translator`."
        )


def check_translator(
    name: str, pair: Pair, request: ReadRequest, *, reader: str, reads: str | None
) -> str | None:
    """Return the language of the translation; refuse a translator that does not suit a reader.

    Args:
        name: of the translator.
        pair: the languages that it translates from and into.
        request: may name the language of the translation.
        reader: name of the reader.
        reads: the language of the reader; None is any.

    Raises:
        UsageError: it does not translate what the reader reads into that language.
    """
    source, target = pair
    to = request.to or target
    if (reads is not None and not _same(reads, source)) or not _same(to, target):
        raise UsageError(
            f"{name} translates from {source} to {target}, but {reader} reads "
            f"{reads or 'an unknown language'} and the translation is to be in {to}: "
            "choose another `translator`, or leave it out."
        )
    return to


def read_answer(read: CaptionAnswer, to: str | None, translate: Translate | None) -> ReadAnswer:
    """Make the answer for one image from what was read.

    Args:
        read: the answer of the reader.
        to: the language of the translation.
        translate: translates paragraphs; None: nothing is translated.
    """
    notes = list(read.notes or ())
    translation = None
    if translate is not None and read.text is not None:
        # Lines of a paragraph are one text: sentences go on in the next line.
        paragraphs = [" ".join(each.split()) for each in read.text.split("\n\n")]
        translated, more = translate([each for each in paragraphs if each])
        translation = "\n\n".join(translated)
        notes += more
    return ReadAnswer(
        path=read.path,
        text=read.text,
        language=read.language,
        to=None if translation is None else to,
        translation=translation,
        notes=tuple(notes) or None,
        error=read.error,
    )


def translate_paragraphs(
    translator: TextTranslator, texts: Sequence[str]
) -> tuple[list[str], Sequence[str]]:
    """Translate texts sentence by sentence; return them and what to note."""
    document = translate_lines(translator, texts)
    return [line.translation for line in document.lines], document.notes


def shipped_translator(source: str | None, target: str | None) -> str:
    """Name the shipped translator between two languages: the one of everyday text, if there is one.

    Raises:
        UsageError: there is none.
    """
    known = {}
    for name, manifest in shipped("pretrained").items():
        recipe = read_recipe(manifest.parent / "recipe.toml", stored=True)
        if recipe.data.has_pairs:
            known[name] = recipe.data.language_pair
    # The names of general translators are their two languages: en-de before multi30k-en-de.
    for name, (one, other) in sorted(known.items(), key=lambda each: len(each[0])):
        if _same(source, one) and _same(target, other):
            return name
    listed = ", ".join(f"{name} ({one} to {other})" for name, (one, other) in known.items())
    raise UsageError(
        f"No shipped model translates from {source} to {target!r}: there are {listed}. Name one of "
        "your own."
    )


def _same(first: str | None, second: str | None) -> bool:
    return first is not None and second is not None and base(first) == base(second)
