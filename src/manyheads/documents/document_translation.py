"""Documents: translated sentence by sentence, given back with their structure and placeholders.

Whatever the model does, a document comes back with what is not text byte for byte
(`data/documents/document_formats.py`), and every sentence with its placeholders, markup, URLs and
numbers (`data/documents/placeholders.py`) and with the glossary's translations. What cannot be
promised of a model is so by construction (`fallbacks.py`).
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, Protocol

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.documents import document_formats as formats
from manyheads.data.documents.glossary import Glossary
from manyheads.data.documents.office import UNPACKED, Unpacked
from manyheads.data.documents.segments import split_line, split_long
from manyheads.data.documents.spans import Part
from manyheads.data.text.encoding import reject_surrogates
from manyheads.documents.fallbacks import FallbackTranslator, Sentence, TextTranslator, tidy
from manyheads.errors import DataError, NotFoundError, UsageError, nearest
from manyheads.predict.text_reader import one_line

LARGEST = 256 << 20  # bytes of a file
SHOWN = 5  # notes of a kind


@dataclass(frozen=True, slots=True)
class Line:
    r"""One line, without the \n at its end; or a paragraph, where a format has such."""

    number: int  # of its first line; or of the paragraph
    source: str
    translation: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A translated document."""

    text: str  # of a DOCX or XLSX: its lines
    lines: tuple[Line, ...]  # of a plain text all, else those with something to translate
    content: bytes  # what to write into a file
    unit: str = "line"  # what the numbers of lines and notes count
    summary: tuple[str, ...] | None = None  # the notes, where the lines were left out

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on its sentences: of each kind how many have one, and the first `SHOWN`.

        Notes are of one kind if they are the same up to a colon.
        """
        if self.summary is not None:
            return self.summary
        counts: Counter[str] = Counter()
        first: dict[str, list[str]] = {}
        for line in self.lines:
            for sentence in line.sentences:
                kinds = [note.partition(": ")[0] for note in sentence.notes]
                counts.update(dict.fromkeys(kinds, 1))
                for kind, note in zip(kinds, sentence.notes, strict=True):
                    if counts[kind] <= SHOWN:
                        place = f"{self.unit} {line.number}: {_excerpt(sentence.source)}"
                        first.setdefault(kind, []).append(f"{place}: {note}")
        among = sum(len(line.sentences) for line in self.lines)
        for kind, count in counts.items():
            if count > SHOWN:
                total = f"{count:,} of {among:,} sentences: {kind.removesuffix('.')}."
                first[kind].insert(0, f"{total} The first {SHOWN}:")
        return tuple(chain.from_iterable(first.values()))


class SentenceTranslator(Protocol):
    """Translates the sentences of a document so that nothing is lost."""

    @property
    def translator(self) -> TextTranslator:
        """The model, for lengths and languages."""

    def translate_with_fallbacks(self, sentences: Iterable[str]) -> Mapping[str, Sentence]:
        """Translate each of some different sentences."""


def translate_document(
    translator: TextTranslator,
    text: str,
    *,
    format: str = "text",
    glossary: Glossary | None = None,
    options: DecodeConfig | None = None,
    longest: int | None = None,
    seed: int = 1,
) -> Document:
    """Translate a text of any length and keep its structure, line ends included.

    Args:
        translator: the model.
        text: plain text, Markdown or HTML.
        format: "text", "markdown" or "html".
        glossary: required translations.
        options: how to search; the recipe's [decode] table if None.
        longest: a sentence of more tokens is divided; the limit of the model's training if None.
        seed: of sampling.

    Raises:
        UsageError: there is no such format of texts.
        DataError: the text contains a lone surrogate.
    """
    _check_texts([text], format)
    fallbacks = FallbackTranslator(translator, glossary, options, seed)
    return _translate(fallbacks, formats.open_text(text, format), longest)


def translate_texts(
    translator: TextTranslator,
    texts: Sequence[str],
    *,
    format: str = "text",
    glossary: Glossary | None = None,
) -> list[Document]:
    """Translate independent texts, each as `translate_document` does, and with its errors.

    Their sentences are translated together; lines are those with something to translate. HTML is
    taken as a part of a page, in which every character is written as it is.
    """
    _check_texts(texts, format)
    fallbacks = FallbackTranslator(translator, glossary)
    found = [Document(text, (), b"") for text in texts]
    for split in formats.PART_FORMATS[format]:
        lines = [list(split(each.text, translator.source)) for each in found]
        every = iter(translate_blocks(fallbacks, chain.from_iterable(lines)))
        for place, own in enumerate(lines):
            blocks = list(islice(every, len(own)))
            text = "".join(each.translation for each in blocks)
            named = [block.line(number) for number, block in _numbered(blocks) if block.sentences]
            found[place] = Document(text, (*found[place].lines, *named), text.encode())
    return found


def _check_texts(texts: Sequence[str], format: str) -> None:
    if format not in formats.TEXT_FORMATS:
        raise UsageError(
            f"`format` is {format!r}{nearest(format, formats.TEXT_FORMATS)}Allowed for texts: "
            f"{', '.join(formats.TEXT_FORMATS)}. Files in other formats: `translate_file()`."
        )
    reject_surrogates(texts)


def translate_file(
    translator: TextTranslator,
    content: bytes,
    name: str,
    *,
    format: str | None = None,
    glossary: Glossary | None = None,
    options: DecodeConfig | None = None,
    longest: int | None = None,
    seed: int = 1,
    unpacked: Unpacked = UNPACKED,
    through: Callable[[FallbackTranslator], SentenceTranslator] | None = None,
) -> Document:
    """Translate the content of a file; the answer's `content` has the same format and encoding.

    The ending of `name` decides the format, if `format` (one of `FORMATS`) does not; `unpacked` is
    the most that a DOCX or XLSX may unpack to. `through` makes what translates the sentences, such
    as several processes, from what would. The other arguments are as in `translate_document`.

    Raises:
        UsageError: there is no such format, or documents with this ending cannot be read.
        DataError: the content is damaged, or is not Unicode.
    """
    opened = formats.open_document(content, name, formats.format_of(name, format), unpacked)
    fallbacks = FallbackTranslator(translator, glossary, options, seed)
    return _translate(fallbacks if through is None else through(fallbacks), opened, longest)


def translate_lines(
    translator: TextTranslator,
    texts: Sequence[str],
    *,
    glossary: Glossary | None = None,
    options: DecodeConfig | None = None,
    seed: int = 1,
    first: int = 1,
) -> Document:
    """Translate texts that are independent of each other, and keep the structure of each.

    The document's text has one line for each text; notes count texts from `first`.
    """
    fallbacks = FallbackTranslator(translator, glossary, options, seed)
    found = translate_blocks(fallbacks, [split_line(text, translator.source) for text in texts])
    lines = [block.line(number) for number, block in enumerate(found, first)]
    translated = "".join(f"{one_line(line.translation)}\n" for line in lines)
    return Document(translated, tuple(lines), translated.encode())


def _translate(
    fallbacks: SentenceTranslator, doc: formats.OpenDocument, longest: int | None
) -> Document:
    language = fallbacks.translator.source
    lines: list[Line] = []
    changed: dict[str, str] = {}
    every = doc.passes is formats.TEXT_FORMATS["text"]
    for name, original in doc.texts.items():
        text = original
        for split in doc.passes:
            blocks = translate_blocks(fallbacks, split(text, language), longest)
            text = "".join(block.translation for block in blocks)
            for number, block in _numbered(blocks):
                if block.sentences or every:
                    count = number if doc.unit == "line" else len(lines) + 1
                    lines.append(block.line(count, doc.shown))
        if text != original:
            changed[name] = text
    content = doc.pack(changed)
    if "" in doc.texts:
        text = changed.get("", doc.texts[""])
    else:
        text = "".join(f"{line.translation}\n" for line in lines)
    return Document(text, tuple(lines), content, doc.unit)


def _numbered(blocks: Iterable["Block"]) -> Iterator[tuple[int, "Block"]]:
    """Yield blocks with the numbers of their first lines."""
    number = 1
    for block in blocks:
        yield number, block
        number += block.source.count("\n")


def read_content(path: Path | None) -> bytes:
    """Read a file as it is; None is the standard input.

    Raises:
        NotFoundError: there is no such file.
        DataError: it cannot be read, or is larger than any document.
    """
    try:
        if path is None:
            content = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > LARGEST:
        raise DataError(
            f"{path or 'stdin'} is larger than {LARGEST >> 20} MB. Divide the document."
        )
    return content


def translate_blocks(
    fallbacks: SentenceTranslator, lines: Iterable[Sequence[Part]], longest: int | None = None
) -> list["Block"]:
    """Translate the sentences of some lines, all of them together."""
    translator = fallbacks.translator
    limit = translator.longest if longest is None else longest

    def divided(part: Part) -> list[Part]:
        if part.kept or len(part.sentence.encode()) < limit:  # hardly ever more tokens than bytes
            return [part]
        return split_long(part, limit, translator.source_length)

    pieces = [[divided(part) for part in line] for line in lines]
    every = (part for line in pieces for parts in line for part in parts)
    sentences = dict.fromkeys(part.sentence for part in every if not part.kept)
    answers = fallbacks.translate_with_fallbacks(sentences)
    return [Block.of(line, answers, limit) for line in pieces]


class Block(NamedTuple):
    """A translated line or paragraph, and how each of its sentences came about."""

    source: str
    translation: str
    sentences: list[Sentence]  # as they are in the document

    @classmethod
    def of(
        cls, line: Sequence[Sequence[Part]], answers: Mapping[str, Sentence], limit: int
    ) -> "Block":
        """Put a line together; where nothing changes, it stays byte for byte."""
        parts = [part for pieces in line for part in pieces]
        written = [part.text if part.kept else _written(part, answers) for part in parts]
        changed = any(text != part.text for text, part in zip(written, parts, strict=True))
        translation = "".join(
            part.rewritten if changed and part.kept else text
            for text, part in zip(written, parts, strict=True)
        )
        texts = iter(written)
        sentences: list[Sentence] = []
        for pieces in line:
            own = [
                replace(answers[part.sentence], source=part.text, translation=text)
                for part, text in zip(pieces, texts, strict=False)
                if not part.kept
            ]
            if len(pieces) > 1:
                note = f"it begins one of more than {limit} tokens: divided into {len(own)} parts."
                own[0] = replace(own[0], notes=(note, *own[0].notes))
            sentences += own
        return cls("".join(part.text for part in parts), translation, sentences)

    def line(self, number: int, shown: Callable[[str], str] = str) -> Line:
        """Return it as a person is shown it."""
        return Line(
            number,
            shown(self.source).removesuffix("\n"),
            shown(self.translation).removesuffix("\n"),
            tuple(
                replace(each, source=shown(each.source), translation=shown(each.translation))
                for each in self.sentences
            ),
        )


def _written(part: Part, answers: Mapping[str, Sentence]) -> str:
    translation = answers[part.sentence].translation
    same = translation in (part.sentence, tidy(part.sentence, part.sentence))
    return part.text if same else part.write(translation)


def _excerpt(text: str, most: int = 120) -> str:
    return repr(text if len(text) <= most else f"{text[:most]}…")
