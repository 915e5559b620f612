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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from manyheads.app.predictors.text_predictor import one_line
from manyheads.app.predictors.translator import Translator
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
from manyheads.data.documents.segments import (
    Part,
    is_bullet,
    split_document,
    split_line,
    split_long,
)
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.tasks.decoding import DecodeConfig, Translation

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
    r"""One line, without the \n at its end."""

    source: str
    translation: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A translated document: its text, its lines one by one, and notes on them."""

    text: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def translate_document(
    translator: Translator,
    text: str,
    *,
    glossary: Glossary | None = None,
    options: DecodeConfig | None = None,
    longest: int | None = None,
    seed: int = 1,
) -> Document:
    """Translate a text of any length and keep its structure, line ends included.

    The default options are the recipe's [decode] table. A sentence of more than `longest` tokens
    is divided; the default is the limit of the model's training.
    """
    options = options or translator.decode
    fallbacks = FallbackTranslator(translator, glossary or Glossary([]), options, seed)
    lines = fallbacks.lines(split_document(text, translator.source), longest)
    ends = ("\n" if line.endswith("\n") else "" for line in re.findall(r"[^\n]*\n|[^\n]+", text))
    translated = "".join(line.translation + end for line, end in zip(lines, ends, strict=True))
    return Document(translated, lines, (*_notes(lines), *fallbacks.overlaps))


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
    lines = fallbacks.lines([split_line(text, translator.source) for text in texts])
    translated = "".join(f"{one_line(line.translation)}\n" for line in lines)
    return Document(translated, lines, (*_notes(lines, first), *fallbacks.overlaps))


def read_document(path: Path | None) -> str:
    """Read a text as it is, line ends included; None is the standard input."""
    try:
        content = sys.stdin.buffer.read() if path is None else path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path or 'stdin'}, line {line}: byte 0x{content[error.start]:02x} is not valid "
            "UTF-8. Convert the text, for example with iconv."
        ) from error


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

    def lines(
        self, lines: Iterable[Sequence[Part]], longest: int | None = None
    ) -> tuple[Line, ...]:
        """Translate the sentences of some lines, all of them together."""
        limit = longest_source(self.translator) if longest is None else longest
        divided = [
            [piece for part in line for piece in _short(part, limit, self.translator)]
            for line in lines
        ]
        sentences = dict.fromkeys(p.text for line in divided for p in line if not p.kept)
        answers = self.translate_with_fallbacks(sentences)
        return tuple(_line(line, answers) for line in divided)

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
                best, job.text, reinsert(job.rest, best.text, job.spans, _links(best))
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
        return Sentence(text, put_together(pieces), "kept")


def _short(part: Part, limit: int, translator: Translator) -> list[Part]:
    if part.kept or len(part.text.encode()) < limit:  # hardly ever more tokens than bytes
        return [part]
    return split_long(part.text, limit, lambda text: source_length(translator, text))


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


def _line(parts: Sequence[Part], answers: dict[str, Sentence]) -> Line:
    source = "".join(part.text for part in parts)
    translation = "".join(p.text if p.kept else answers[p.text].translation for p in parts)
    sentences = tuple(answers[part.text] for part in parts if not part.kept)
    return Line(source.removesuffix("\n"), translation.removesuffix("\n"), sentences)


def _notes(lines: Sequence[Line], first: int = 1) -> Iterator[str]:
    for number, line in enumerate(lines, first):
        for sentence in line.sentences:
            if sentence.how == "kept":
                yield f"line {number}: nothing kept all it must, so {sentence.source!r} was left."
            elif not sentence.finished:
                yield f"line {number}: the translation of {sentence.source!r} was cut off."


def _tidy(source: str, translation: str) -> str:
    r"""Make a model's output fit into a line: no line ends, no full stop where there was none."""
    text = re.sub(r"[^\S\xa0\u2009\u202f\u3000]+", " ", translation).strip()
    # Neither control characters nor the sign for bytes that are no character.
    text = "".join(c for c in text if unicodedata.category(c) != "Cc" and c != "\ufffd").strip()
    if source[-1].isalnum() and text.endswith((".", "。")) and not text.endswith(".."):
        text = text[:-1].rstrip()
    return text
