"""A sentence's translation that keeps what it must: the first of these that has everything.

1. whole: one of the translations that the search finds for the sentence as it is.
2. guided: all but numbers and terms is left out, and put back between the words where the
   decoder's attention says (`data/documents/markup_transfer.py`). Numbers and terms, if they are
   missing, are demanded of the search.
3. pieces: what is between the items is translated, and the items are put back in between.
4. kept: the sentence stays as it is, but for the glossary's terms.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

from manyheads.asks.decode_config import DecodeConfig
from manyheads.cancellation import raise_if_cancelled
from manyheads.data.documents import placeholders
from manyheads.data.documents.glossary import Glossary, with_terms
from manyheads.data.documents.markup_transfer import Link, MarkupSpan, extract_markup, reinsert
from manyheads.data.documents.placeholders import Item, Kind, cut, find, put_together
from manyheads.data.documents.segments import is_bullet
from manyheads.data.text.capitals import to_capitals
from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.errors import UsageError
from manyheads.generation.text_decoding import Translation
from manyheads.predict.source_text import same_end
from manyheads.project.folder import ModelFolder

How = Literal["whole", "guided", "pieces", "kept"]
# A guided translation may be this much less likely a token, in nats, than the free one.
PATIENCE = 2.0
MOST = 32  # tokens demanded of a search, which gets as many beams more
SPACE = "\u2581"  # as sentencepiece writes it
# Of a search for what is demanded.
_PLAIN_BEAMS: dict[str, Any] = {"sample": False, "temperature": 1.0, "top_k": None, "top_p": 1.0}
_PLAIN_BEAMS |= {"groups": 1, "diversity": 0.0}
_DEMANDED: tuple[Kind, ...] = ("number", "term")  # words of the language, which a model can write
Demands = Sequence[Sequence[Sequence[int]]]  # phrases of each text, as target tokens


class TextTranslator(Protocol):
    """What documents need of a translator."""

    folder: ModelFolder  # where it is stored
    source: str  # the language that it translates from
    target: str
    decode: DecodeConfig  # how it searches unless told otherwise
    longest: int  # tokens of the longest source in training, the end included
    tokenizers: Tokenizers

    def source_length(self, text: str) -> int:
        """Count the tokens of a source, its end included."""

    def translate(
        self,
        texts: list[str] | tuple[str, ...],
        *,
        n_best: int = 1,
        options: DecodeConfig | None = None,
        constraints: Demands | None = None,
        seed: int = 1,
        align: bool = False,
    ) -> list[list[Translation]]:
        """Return the n_best translations of each text, as `Translator.translate` does."""

    def notes(
        self,
        text: str,
        best: Translation,
        options: DecodeConfig | None = None,
        *,
        searched: bool = True,
    ) -> Iterator[str]:
        """Say what to know about a translation, as `Translator.notes` does."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, and how its translation came about."""

    source: str
    translation: str
    how: How
    finished: bool = True  # False: cut off at the length limit
    notes: tuple[str, ...] = ()  # what to know about it


Answers = dict[str, Sentence]  # by their sources


class Output(NamedTuple):
    """One output of the model."""

    text: str  # tidy
    source: str  # what the model translated
    found: Translation  # as the search gave it
    demands: Sequence[Sequence[int]] = ()  # target tokens that it had to contain


class _Job(NamedTuple):
    """A sentence to be guided."""

    text: str
    rest: str  # without its spans
    spans: list[MarkupSpan]
    demands: list[list[int]]


class FallbackTranslator:
    """Translates sentences, and step by step again those that lost something."""

    def __init__(
        self,
        translator: TextTranslator,
        glossary: Glossary | None = None,
        options: DecodeConfig | None = None,
        seed: int = 1,
    ) -> None:
        self.translator, self.seed = translator, seed
        self.glossary = glossary or Glossary([])
        self.options = options or translator.decode

    def translate_with_fallbacks(self, sentences: Iterable[str]) -> dict[str, Sentence]:
        """Translate each of some different sentences."""
        terms = {}
        for text in sentences:
            raise_if_cancelled()
            terms[text] = self.glossary.find(text)
        items = {text: with_terms(find(text), own) for text, (own, _) in terms.items()}
        found: Answers = {}
        scores: dict[str, float] = {}
        for text, outputs in self.translate(items).items():
            scores[text] = outputs[0].found.score
            self.take(found, text, items[text], outputs, "whole")
        # First without demands, for which the rest of a sentence often has no need.
        for demanding in (False, True):
            left = [text for text in items if text not in found]
            for text, output in self.guide(left, items, demanding=demanding).items():
                if output.found.finished and output.found.score > scores[text] - PATIENCE:
                    self.take(found, text, items[text], [output], "guided")
        left = [text for text in items if text not in found]
        pieces = {text: list(_divide(text, items[text])) for text in left}
        every = (piece for each in pieces.values() for piece in each if isinstance(piece, str))
        wanted = dict.fromkeys(piece for piece in every if any(map(str.isalpha, piece)))
        answers: Answers = {}
        for text, outputs in self.translate(wanted).items():
            self.take(answers, text, [], outputs, "whole")
        for text in left:
            found[text] = self.assemble(text, items[text], pieces[text], answers)
        for text, (_, overlaps) in terms.items():
            pairs = sorted(overlaps)
            notes = (f"glossary: {a!r} and {b!r} overlap; {a!r} was used." for a, b in pairs)
            found[text] = replace(found[text], notes=(*notes, *found[text].notes))
        return found

    def translate(self, texts: Iterable[str]) -> dict[str, list[Output]]:
        """Translate different texts as they are; all that the search finds, best first."""
        texts, options = list(texts), self.options
        n_best = 1 if options.sample else options.beams
        found = self.translator.translate(texts, options=options, seed=self.seed, n_best=n_best)
        return {
            text: [Output(tidy(text, each.text), text, each) for each in best]
            for text, best in zip(texts, found, strict=True)
        }

    def guide(
        self, texts: Iterable[str], items: Mapping[str, list[Item]], *, demanding: bool
    ) -> dict[str, Output]:
        """Translate texts without all but numbers and terms, and weave in what was left out."""
        jobs = []
        for text in texts:
            rest, spans = _without_markup(text, items[text])
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
        outputs = {}
        for job, (best, *_) in zip(jobs, found, strict=True):
            if any(map(str.isalnum, best.text)):  # or there is nothing to weave into
                woven = reinsert(job.rest, same_end(job.rest, best.text), job.spans, _links(best))
                outputs[job.text] = Output(tidy(job.text, woven), job.rest, best, job.demands)
        return outputs

    def search(self, jobs: Sequence[_Job]) -> list[list[Translation]]:
        """Search for translations that contain what is demanded; align them where needed."""
        return self.translator.translate(
            [job.rest for job in jobs],
            options=replace(self.options, **_PLAIN_BEAMS),
            constraints=[job.demands for job in jobs],
            align=any(job.spans for job in jobs),
        )

    def tokens(self, demand: str) -> list[int]:
        """Spell a demand; a space in front that is a token of its own is not demanded."""
        tokenizer = self.translator.tokenizers.target
        tokens = tokenizer.encode([demand])[0]
        return tokens[1:] if len(tokens) > 1 and tokenizer.piece(tokens[0]) == SPACE else tokens

    def take(
        self, found: Answers, text: str, items: Sequence[Item], outputs: Sequence[Output], how: How
    ) -> None:
        """Keep the first output that is complete."""
        for output in outputs:
            if self.complete(text, items, output.text):
                notes = tuple(self.notes(text, items, output))
                found[text] = Sentence(text, output.text, how, output.found.finished, notes)
                return

    def notes(self, text: str, items: Sequence[Item], output: Output) -> Iterator[str]:
        """Say what to know about an output; what is never lost is left out of the text."""
        rest, _ = _without_markup(text, items)
        demands = self.translator.tokenizers.target.decode(output.demands)
        # As the translator decides it.
        recase = output.source == rest and all(each == to_capitals(each) for each in demands)
        options = replace(self.options, recase=self.options.recase and recase)
        # A glossary may demand what is improbable, and a number should not be.
        searched = not (demands and any(item.kind == "term" for item in items))
        return self.translator.notes(rest, output.found, options, searched=searched)

    def complete(self, text: str, items: Sequence[Item], translation: str) -> bool:
        """Tell whether a translation has words and all items, and is no list item."""
        raise_if_cancelled()
        model = self.translator
        opaque = [item for item in find(translation) if item.kind != "number"]
        return (
            placeholders.has_words(translation, opaque)
            and is_bullet(translation) <= is_bullet(text)
            and placeholders.preserves(
                text, items, translation, source=model.source, target=model.target
            )
        )

    def assemble(
        self, text: str, items: Sequence[Item], pieces: Sequence[str | Item], answers: Answers
    ) -> Sentence:
        """Put items back between translated pieces."""
        own = [answers.get(piece) if isinstance(piece, str) else None for piece in pieces]
        rows = zip(own, pieces, strict=True)
        together = put_together([a.translation if a else piece for a, piece in rows])
        used = [each for each in own if each]
        if used and self.complete(text, items, together):
            notes = tuple(dict.fromkeys(note for each in used for note in each.notes))
            return Sentence(text, together, "pieces", all(each.finished for each in used), notes)
        kept = put_together(pieces) if any(item.kind == "term" for item in items) else text
        note = "no translation kept all it must: it was left."
        return Sentence(text, kept, "kept", notes=(note,))


def _without_markup(text: str, items: Sequence[Item]) -> tuple[str, list[MarkupSpan]]:
    """Leave out all items but numbers and terms."""
    return extract_markup(text, [item for item in items if item.kind not in _DEMANDED])


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


def tidy(source: str, translation: str) -> str:
    r"""Make a model's output fit into a line: no line ends, no full stop where there was none."""
    text = re.sub(r"[^\S\xa0\u2009\u202f\u3000]+", " ", translation).strip()
    # Control characters and the sign for invalid bytes stay only if the source has them.
    odd = {c for c in set(text) - set(source) if unicodedata.category(c) == "Cc" or c == "\ufffd"}
    return same_end(source, "".join(c for c in text if c not in odd).strip())
