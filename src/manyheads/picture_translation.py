"""Read the text of images, and translate what was read: two models in a row."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from manyheads.asks.caption_request import CaptionAnswer, CaptionRequest
from manyheads.asks.read_request import ReadAnswer, ReadRequest
from manyheads.asks.translate_request import TranslateRequest
from manyheads.data.text.languages import base, recognise, script
from manyheads.documents.document_translation import translate_lines
from manyheads.documents.fallbacks import TextTranslator
from manyheads.errors import UsageError
from manyheads.predict.base_predictor import Predictor, answers
from manyheads.predict.load import load_for, loaded
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import shipped
from manyheads.tasks.translate.predictor import Translator

READER = "read-ko"
# Ends of sentences; Korean ones on signs often have no mark.
_ENDS = re.compile(r"(?<![ap]\.m)[.!?…。][\"'”’)]*$|(?:니다|[어아여해세에예이]요|죠|시오)$")
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
        self._translators: dict[str | None, Predictor] = {}  # by the language of a text
        self.languages: tuple[str | None, ...] = ()
        if request.to is None and request.translator is None:
            return
        # The language that it writes by itself; None: converted models do not tell.
        language = getattr(reader, "language", None)
        language = language or next(iter(getattr(reader, "languages", ())), None)
        check_language(reader.folder.name, language, request)
        if request.translator is None:
            self.languages = languages_read(language)
            for each in self.languages:
                if not stays(each, request.to, self.languages):
                    shipped_translator(each, request.to)  # refused before anything is read
            return
        name = request.translator
        named = load_for(TranslateRequest, name, verb="translate")
        sides = named.folder.recipe.data
        pair = getattr(sides, "source", None), getattr(sides, "target", None)
        self.to = check_translator(name, pair, request, reader=reader.folder.name, reads=language)
        self.languages = (pair[0],)
        self._translators[pair[0]] = named

    def answer(self, request: ReadRequest) -> list[ReadAnswer]:
        """Read images and translate their texts: one answer for each, in the same order."""
        captions: list[CaptionAnswer] = self.reader.answer(CaptionRequest(images=request.images))
        return [self._answer(caption) for caption in captions]

    def _answer(self, caption: CaptionAnswer) -> ReadAnswer:
        if not self.languages or caption.text is None:
            return read_answer(caption, None, None)
        caption = with_language(caption, self.languages)
        language = caption.language
        if stays(language, self.to, self.languages):
            return untranslated(caption, self.to)
        translate = partial(self.translate, self.translator_from(language))
        return read_answer(caption, self.to, translate)

    def translator_from(self, language: str | None) -> Predictor:
        """Load the translator from a language, once.

        Raises:
            UsageError: none is shipped.
        """
        if language not in self._translators:
            name = shipped_translator(language, self.to)
            self._translators[language] = load_for(TranslateRequest, name, verb="translate")
        return self._translators[language]

    def translate(
        self, translator: Predictor, texts: Sequence[str]
    ) -> tuple[list[str], Sequence[str]]:
        """Translate texts, long ones sentence by sentence; return them and what to note."""
        if isinstance(translator, Translator):
            return translate_paragraphs(translator, texts)
        answers = translator.answer(TranslateRequest(texts=tuple(texts)))
        return [each.translation for each in answers], [
            n for each in answers for n in each.notes or ()
        ]


def languages_read(language: str | None) -> tuple[str | None, ...]:
    """Return the languages of what a reader of one language reads.

    A reader of Korean, whose texts have English words, reads English; one of Latin letters or of a
    language whose script is not known reads its own.
    """
    alone = language is None or script(language) in (None, "Latin")
    return (language,) if alone else (language, "en")


def with_language(caption: CaptionAnswer, languages: Sequence[str | None]) -> CaptionAnswer:
    """Say in which of these languages a text is; in doubt, in the first."""
    if caption.text is None:
        return caption
    known = [each for each in languages if each is not None]
    language = recognise(caption.text, known) if len(known) > 1 else None
    return caption.model_copy(update={"language": language or languages[0]})


def stays(language: str | None, to: str | None, languages: Sequence[str | None]) -> bool:
    """Whether a text of a reader of several languages is in the one that is asked for."""
    return len(languages) > 1 and same_language(language, to)


def untranslated(read: CaptionAnswer, to: str | None) -> ReadAnswer:
    """Make the answer for an image whose text is in the language that is asked for."""
    same = {} if read.text is None else {"to": to, "translation": read.text}
    return read_answer(read, None, None).model_copy(update=same)


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
    fits = reads is None or any(same_language(each, source) for each in languages_read(reads))
    if not fits or not same_language(to, target):
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
        paragraphs = [*map(_units, filter(str.strip, read.text.split("\n\n")))]
        translated, more = translate([unit for units in paragraphs for unit in units])
        each = iter(translated)
        translation = "\n\n".join("\n".join(islice(each, len(units))) for units in paragraphs)
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


def _units(paragraph: str) -> list[str]:
    r"""Return what is translated by itself: lines up to one that ends a sentence are one text.

    Lines after the last end of a sentence are one text each, as on a menu or a receipt.

    Examples:
        >>> _units("The shop is open from\nnine to five.")
        ['The shop is open from nine to five.']
        >>> _units("Coffee  4,500\nTea  3,000")
        ['Coffee 4,500', 'Tea 3,000']
    """
    lines = [" ".join(line.split()) for line in paragraph.splitlines() if line.strip()]
    units, begun = [], []
    for line in lines:
        begun.append(line)
        if _ENDS.search(line):
            units.append(" ".join(begun))
            begun = []
    return units + begun


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
        if same_language(source, one) and same_language(target, other):
            return name
    listed = ", ".join(f"{name} ({one} to {other})" for name, (one, other) in known.items())
    raise UsageError(
        f"No shipped model translates from {source} to {target!r}: there are {listed}. Name one of "
        "your own: as `translator` of what is read, as `model` of texts."
    )


def same_language(first: str | None, second: str | None) -> bool:
    """Whether both are known, and one language; regions and scripts do not count."""
    return first is not None and second is not None and base(first) == base(second)
