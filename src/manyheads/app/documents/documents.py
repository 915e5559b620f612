"""Documents: translated sentence by sentence, given back with their structure and placeholders.

Whatever the model does, a document comes back with the same lines, blank lines, indentation,
bullets and line ends, and every sentence with its placeholders, tags, URLs and numbers
(`data/documents/placeholders.py`) and with the glossary's translations. What cannot be promised of
a model is so by construction. A sentence's translation is the first of these that has everything:

1. whole: one of the translations that the search finds for the sentence as it is.
2. guided: all but numbers and terms is left out, and put back between the words where the
   decoder's attention says (`data/documents/markup_transfer.py`). Numbers and terms, if they are
   missing, are demanded of the search.
3. pieces: what is between the items is translated, and the items are put back in between.
4. kept: the sentence stays as it is, but for the glossary's terms.
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from manyheads.app.predictors.text_predictor import one_line
from manyheads.app.predictors.translator import Translator
from manyheads.data.documents.formats import (
    TEXT_FORMATS,
    OpenDocument,
    format_of,
    open_document,
    open_text,
)
from manyheads.data.documents.glossary import Glossary, with_terms
from manyheads.data.documents.markup_transfer import Link, MarkupSpan, extract_markup, reinsert
from manyheads.data.documents.placeholders import (
    Item,
    Kind,
    cut,
    find,
    has_words,
    preserves,
    put_together,
)
from manyheads.data.documents.segments import is_bullet, split_line, split_long
from manyheads.data.documents.spans import Part
from manyheads.data.text.surrogates import reject_surrogates
from manyheads.errors import DataError, NotFoundError, UsageError, nearest
from manyheads.tasks.decoding import DecodeConfig, Translation

LARGEST = 256 << 20  # bytes of a file
How = Literal["whole", "guided", "pieces", "kept"]
# A guided translation may be this much less likely a token, in nats, than the free one.
PATIENCE = 2.0
MOST = 32  # tokens demanded of a search, which gets as many beams more
SPACE = "\u2581"  # as sentencepiece writes it
_DEMANDED: tuple[Kind, ...] = ("number", "term")  # words of the language, which a model can write


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, and how its translation came about."""

    source: str
    translation: str
    how: How
    finished: bool = True  # False: cut off at the length limit


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
    notes: tuple[str, ...]
    content: bytes  # what to write into a file
    unit: str = "line"  # what the numbers of lines and notes count


def translate_document(
    translator: Translator,
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
    if format not in TEXT_FORMATS:
        raise UsageError(
            f"`format` is {format!r}{nearest(format, TEXT_FORMATS)}Allowed for texts: "
            f"{', '.join(TEXT_FORMATS)}. Files in other formats: `translate_file`."
        )
    reject_surrogates([text])
    fallbacks = FallbackTranslator(
        translator, glossary or Glossary([]), options or translator.decode, seed
    )
    return _translate(fallbacks, open_text(text, format), longest)


def translate_file(
    translator: Translator,
    content: bytes,
    name: str,
    *,
    format: str | None = None,
    glossary: Glossary | None = None,
    options: DecodeConfig | None = None,
    longest: int | None = None,
    seed: int = 1,
) -> Document:
    """Translate the content of a file; the answer's `content` has the same format and encoding.

    Args:
        translator: the model.
        content: of the file.
        name: of the file; its ending decides the format.
        format: one of `FORMATS`, if the name does not tell.
        glossary: required translations.
        options: how to search; the recipe's [decode] table if None.
        longest: a sentence of more tokens is divided; the limit of the model's training if None.
        seed: of sampling.

    Raises:
        UsageError: there is no such format, or documents with this ending cannot be read.
        DataError: the content is damaged, or is not Unicode.
    """
    opened = open_document(content, name, format_of(name, format))
    fallbacks = FallbackTranslator(
        translator, glossary or Glossary([]), options or translator.decode, seed
    )
    return _translate(fallbacks, opened, longest)


def translate_lines(
    translator: Translator,
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
    options = options or translator.decode
    fallbacks = FallbackTranslator(translator, glossary or Glossary([]), options, seed)
    found = fallbacks.blocks([split_line(text, translator.source) for text in texts])
    lines = [block.line(number) for number, block in enumerate(found, first)]
    translated = "".join(f"{one_line(line.translation)}\n" for line in lines)
    notes = [
        note for number, block in enumerate(found, first) for note in block.notes("line", number)
    ]
    return Document(translated, tuple(lines), (*notes, *fallbacks.overlaps), translated.encode())


def _translate(
    fallbacks: "FallbackTranslator", opened: OpenDocument, longest: int | None
) -> Document:
    language = fallbacks.translator.source
    lines: list[Line] = []
    notes: list[str] = []
    changed: dict[str, str] = {}
    every = opened.passes is TEXT_FORMATS["text"]
    for name, original in opened.texts.items():
        text = original
        for split in opened.passes:
            blocks = fallbacks.blocks(split(text, language), longest)
            text = "".join(block.translation for block in blocks)
            number = 1
            for block in blocks:
                count = number if opened.unit == "line" else len(lines) + 1
                if block.sentences or every:
                    lines.append(block.line(count, opened.shown))
                    notes += block.notes(opened.unit, count)
                number += block.source.count("\n")
        if text != original:
            changed[name] = text
    content = opened.pack(changed)
    if "" in opened.texts:
        text = changed.get("", opened.texts[""])
    else:
        text = "".join(f"{line.translation}\n" for line in lines)
    return Document(text, tuple(lines), (*notes, *fallbacks.overlaps), content, opened.unit)


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


def longest_source(translator: Translator) -> int:
    """Return the maximum number of source tokens in training, the end token included."""
    train: Any = translator.folder.recipe.train
    return int(train.max_length)


def source_length(translator: Translator, text: str) -> int:
    """Count the tokens of a source, its end included."""
    return len(translator.tokenizers.source.encode([text])[0]) + 1


class Output(NamedTuple):
    """One output of the model."""

    text: str
    score: float
    finished: bool

    @classmethod
    def of(cls, found: Translation, source: str, text: str) -> "Output":
        """Tidy the text of an output; score and end are those of the search."""
        return cls(_tidy(source, text), found.score, found.finished)


class _Job(NamedTuple):
    """A sentence to be guided."""

    text: str
    rest: str  # without its spans
    spans: list[MarkupSpan]
    demands: list[list[int]]


@dataclass(frozen=True, slots=True)
class FallbackTranslator:
    """Translates sentences, and step by step again those that lost something."""

    translator: Translator
    glossary: Glossary
    options: DecodeConfig
    seed: int
    overlaps: list[str] = field(default_factory=list)

    def blocks(self, lines: Iterable[Sequence[Part]], longest: int | None = None) -> list["Block"]:
        """Translate the sentences of some lines, all of them together."""
        limit = longest_source(self.translator) if longest is None else longest
        divided = [[self.divide(part, limit) for part in line] for line in lines]
        sentences = dict.fromkeys(
            piece.sentence
            for line in divided
            for pieces in line
            for piece in pieces
            if not piece.kept
        )
        answers = self.translate_with_fallbacks(sentences)
        return [Block.of(line, answers, limit) for line in divided]

    def divide(self, part: Part, limit: int) -> list[Part]:
        """Divide a sentence with more tokens than the limit."""
        if part.kept or len(part.sentence.encode()) < limit:  # hardly ever more tokens than bytes
            return [part]
        return split_long(part, limit, lambda text: source_length(self.translator, text))

    def translate_with_fallbacks(self, sentences: Iterable[str]) -> dict[str, Sentence]:
        """Translate each of some different sentences."""
        items = {text: self.items(text) for text in sentences}
        found: dict[str, Sentence] = {}
        scores: dict[str, float] = {}
        for text, outputs in self.translate(items).items():
            scores[text] = outputs[0].score
            self.take(found, text, items[text], outputs, "whole")
        # First without demands, for which the rest of a sentence often has no need.
        for demanding in (False, True):
            left = [text for text in items if text not in found]
            for text, output in self.guide(left, items, demanding=demanding).items():
                if output.finished and output.score > scores[text] - PATIENCE:
                    self.take(found, text, items[text], [output], "guided")
        left = [text for text in items if text not in found]
        pieces = {text: list(_divide(text, items[text])) for text in left}
        wanted = dict.fromkeys(
            piece
            for each in pieces.values()
            for piece in each
            if isinstance(piece, str) and any(map(str.isalpha, piece))
        )
        answers: dict[str, Sentence] = {}
        for text, outputs in self.translate(wanted).items():
            self.take(answers, text, [], outputs, "whole")
        for text in left:
            found[text] = self.assemble(text, items[text], pieces[text], answers)
        return found

    def items(self, text: str) -> list[Item]:
        """Find the items of a sentence, and note where terms overlap."""
        terms, overlaps = self.glossary.find(text)
        for first, second in sorted(overlaps):
            note = f"glossary: {first!r} and {second!r} overlap; {first!r} was used."
            if note not in self.overlaps:
                self.overlaps.append(note)
        return with_terms(find(text), terms)

    def translate(self, texts: Iterable[str]) -> dict[str, list[Output]]:
        """Translate different texts as they are; all that the search finds, best first."""
        texts = list(texts)
        found = self.translator.translate(
            texts,
            options=self.options,
            seed=self.seed,
            n_best=1 if self.options.sample else self.options.beams,
        )
        return {
            text: [Output.of(each, text, each.text) for each in best]
            for text, best in zip(texts, found, strict=True)
        }

    def guide(
        self, texts: Iterable[str], items: Mapping[str, list[Item]], *, demanding: bool
    ) -> dict[str, Output]:
        """Translate texts without all but numbers and terms, and weave in what was left out."""
        jobs = []
        for text in texts:
            rest, spans = extract_markup(text, [i for i in items[text] if i.kind not in _DEMANDED])
            wanted = [item.text for item in items[text] if item.kind in _DEMANDED]
            demands = [self.tokens(each) for each in wanted] if demanding else []
            worth = sum(map(len, demands)) <= MOST if demands else spans and not demanding
            if worth and any(map(str.isalpha, rest)):
                jobs.append(_Job(text, rest, spans, demands))
        try:
            found = self.search(jobs)
        except UsageError:  # a model without attention: it cannot say where spans belong
            jobs = [job for job in jobs if not job.spans]
            found = self.search(jobs)
        return {
            job.text: Output.of(
                best,
                job.text,
                reinsert(job.rest, _same_end(job.rest, best.text), job.spans, _links(best)),
            )
            for job, (best, *_) in zip(jobs, found, strict=True)
            if any(map(str.isalnum, best.text))  # or there is nothing to weave into
        }

    def search(self, jobs: Sequence[_Job]) -> list[list[Translation]]:
        """Search for translations that contain what is demanded; align them where needed."""
        return self.translator.translate(
            [job.rest for job in jobs],
            options=replace(
                self.options,
                sample=False,
                temperature=1.0,
                top_k=None,
                top_p=1.0,
                groups=1,
                diversity=0.0,
            ),
            constraints=[job.demands for job in jobs],
            align=any(job.spans for job in jobs),
        )

    def tokens(self, demand: str) -> list[int]:
        """Spell a demand; a space in front that is a token of its own is not demanded."""
        tokenizer = self.translator.tokenizers.target
        tokens = tokenizer.encode([demand])[0]
        return tokens[1:] if len(tokens) > 1 and tokenizer.piece(tokens[0]) == SPACE else tokens

    def take(
        self,
        found: dict[str, Sentence],
        text: str,
        items: Sequence[Item],
        outputs: Sequence[Output],
        how: How,
    ) -> None:
        """Keep the first output that is complete."""
        for output in outputs:
            if self.complete(text, items, output.text):
                found[text] = Sentence(text, output.text, how, output.finished)
                return

    def complete(self, text: str, items: Sequence[Item], translation: str) -> bool:
        """Tell whether a translation has words and all items, and is no list item."""
        model = self.translator
        opaque = [item for item in find(translation) if item.kind != "number"]
        return (
            has_words(translation, opaque)
            and is_bullet(translation) <= is_bullet(text)
            and preserves(text, items, translation, source=model.source, target=model.target)
        )

    def assemble(
        self,
        text: str,
        items: Sequence[Item],
        pieces: Sequence[str | Item],
        answers: dict[str, Sentence],
    ) -> Sentence:
        """Put items back between translated pieces."""
        parts = [
            answers[piece].translation if isinstance(piece, str) and piece in answers else piece
            for piece in pieces
        ]
        together = put_together(parts)
        used = [answers[piece] for piece in pieces if isinstance(piece, str) and piece in answers]
        if used and self.complete(text, items, together):
            return Sentence(text, together, "pieces", all(each.finished for each in used))
        terms = any(item.kind == "term" for item in items)
        return Sentence(text, put_together(pieces) if terms else text, "kept")


def _divide(text: str, items: Sequence[Item]) -> Iterator[str | Item]:
    """Cut out the items, and the spaces and signs around what is between them."""
    for piece in cut(text, items):
        if isinstance(piece, Item):
            yield piece
        else:
            yield from filter(None, re.split(r"\A([\W_]+)|([\W_]+)\Z", piece))


def _links(translation: Translation) -> list[Link]:
    return [
        Link(token.begin, token.end, token.source.begin)
        for token in translation.details or []
        if token.source is not None and token.begin < token.end
    ]


class Block(NamedTuple):
    """A translated line or paragraph, and how each of its sentences came about."""

    source: str
    translation: str
    sentences: list[Sentence]  # as they are in the document
    divided: list[tuple[str, int]]  # sentences that were too long, and into how many parts
    limit: int

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
        sentences = [
            replace(answers[part.sentence], source=part.text, translation=text)
            for text, part in zip(written, parts, strict=True)
            if not part.kept
        ]
        divided = [
            ("".join(part.text for part in pieces), sum(not part.kept for part in pieces))
            for pieces in line
            if len(pieces) > 1
        ]
        return cls("".join(part.text for part in parts), translation, sentences, divided, limit)

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

    def notes(self, unit: str, number: int) -> Iterator[str]:
        """Say what a person should look at."""
        for source, count in self.divided:
            yield (
                f"{unit} {number}: {_excerpt(source)} has more than {self.limit} tokens, the most "
                f"that training allowed; it was divided into {count} parts."
            )
        for sentence in self.sentences:
            if sentence.how == "kept":
                yield (
                    f"{unit} {number}: nothing kept all it must, so {_excerpt(sentence.source)} "
                    "was left."
                )
            elif not sentence.finished:
                yield (
                    f"{unit} {number}: the translation of {_excerpt(sentence.source)} was cut off."
                )


def _written(part: Part, answers: Mapping[str, Sentence]) -> str:
    translation = answers[part.sentence].translation
    same = translation in (part.sentence, _tidy(part.sentence, part.sentence))
    return part.text if same else part.write(translation)


def _excerpt(text: str, most: int = 120) -> str:
    return repr(text if len(text) <= most else f"{text[:most]}…")


def _tidy(source: str, translation: str) -> str:
    r"""Make a model's output fit into a line: no line ends, no full stop where there was none."""
    text = re.sub(r"[^\S\xa0\u2009\u202f\u3000]+", " ", translation).strip()
    # Neither control characters nor the sign for bytes that are no character.
    text = "".join(c for c in text if unicodedata.category(c) != "Cc" and c != "\ufffd").strip()
    return _same_end(source, text)


def _same_end(source: str, translation: str) -> str:
    """Remove a full stop at the end if the source has none."""
    text = translation.rstrip()
    if source.rstrip()[-1:].isalnum() and text.endswith((".", "。")) and not text.endswith(".."):
        return text[:-1].rstrip()
    return translation
