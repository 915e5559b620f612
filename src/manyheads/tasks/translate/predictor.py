"""Translators: a stored encoder-decoder, called with raw text."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from manyheads.asks.load_options import LoadOptions
from manyheads.asks.search_options import changed
from manyheads.asks.translate_request import (
    SourceToken,
    TranslateAnswer,
    TranslatedText,
    TranslatedToken,
    TranslateRequest,
)
from manyheads.data.text.capitals import to_capitals
from manyheads.errors import InputWarning, UsageError
from manyheads.generation.special_ids import special_ids
from manyheads.generation.text_decoding import Translation, translate
from manyheads.generation.token_details import OutputToken, spans
from manyheads.predict.source_text import same_end
from manyheads.predict.text_reader import TextInput, TextPredictor, check_seed, check_texts
from manyheads.project.alignment import stored
from manyheads.tasks.translate.stored_translator import StoredTranslator

if TYPE_CHECKING:
    from manyheads.asks.decode_config import DecodeConfig
    from manyheads.project.folder import ModelFolder


class Translator(StoredTranslator, TextPredictor):
    """Call it with a text or a list of texts."""

    request = TranslateRequest
    documents = True
    page = "translate"

    @classmethod
    def positions(cls, recipe: Any) -> int:
        """Those of texts longer than in training, or of [decode]."""
        return max(super().positions(recipe), recipe.decode.max_length or 0)

    def __init__(self, folder: "ModelFolder", options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        self.read_folder(folder, folder.tokenizers())
        self.alignment = stored(folder)  # the attention head that aligns words with the source

    @property
    def pieces(self) -> Sequence[Callable[[int], str]]:
        """Of the source and of the target."""
        return self.tokenizers.source.piece, self.tokenizers.target.piece

    def read_tokens(self, text: str) -> TextInput:
        """Split a source, its end included."""
        sources = self.tokenizers.source
        ids = [*sources.encode([text])[0], special_ids(self.model).end]
        return TextInput(ids, list(map(sources.piece, ids)), [*spans(sources, text), None])

    def encode(self, tokens: Tensor) -> Tensor:
        """Read a source, and the start of a translation."""
        start = torch.full_like(tokens[:, :1], special_ids(self.model).start)
        return self.model(tokens, start)

    def answers(self, texts: list[str] | tuple[str, ...]) -> list[str]:
        """Translate each text, and warn of what is to be noted."""
        found = [best for best, *_ in self.translate(texts)]
        for number, (text, best) in enumerate(zip(texts, found, strict=True), 1):
            for note in self.notes(text, best):
                warnings.warn(f"text {number}: {note}", InputWarning, stacklevel=3)
        return [same_end(text, best.text) for text, best in zip(texts, found, strict=True)]

    def respond(self, request: TranslateRequest) -> list[TranslateAnswer]:
        """Answer a request: one answer for each of its texts.

        Raises:
            UsageError: settings contradict those of the model's [decode] table, or the model has
                no attention to align with.
        """
        options = request.decode(self.decode)
        options = replace(options, recase=options.recase and _has_no_case(request.prefix))
        translations = self.translate(
            request.texts,
            n_best=request.n_best,
            options=options,
            prefixes=[request.prefix] * len(request.texts),
            seed=request.seed,
            details=request.probabilities,
            align=request.align,
        )
        answers = []
        for text, best in zip(request.texts, translations, strict=True):
            n_best = tuple(_translated_text(each, text, request.prefix) for each in best)
            notes = tuple(self.notes(text, best[0], options, searched=not request.prefix)) or None
            answers.append(
                TranslateAnswer(source=text, translation=n_best[0].text, n_best=n_best, notes=notes)
            )
        return answers

    def translate(
        self,
        texts: list[str] | tuple[str, ...],
        *,
        beams: int | None = None,
        n_best: int = 1,
        options: "DecodeConfig | None" = None,
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
        check_texts(texts)
        check_seed(seed)
        options = self.decode if options is None else options
        if (beams is not None and beams < 1) or n_best < 1:
            raise UsageError(f"beams is {beams} and n_best {n_best}: both must be at least 1.")
        if beams is not None:
            options = changed(options, beams=beams)
        demands: list[list[str]] = [[] for _ in texts]
        for mine, prefix in zip(demands, prefixes or (), strict=False):
            mine.append(prefix)
        for mine, phrases in zip(demands, constraints or (), strict=False):
            mine += self.tokenizers.target.decode(phrases)
        sources = [
            self.read_source(text, recase=options.recase and all(map(_has_no_case, mine)))
            for text, mine in zip(texts, demands, strict=True)
        ]
        with self.engine.running():
            translations = translate(
                self.model,
                self.tokenizers,
                [source.text for source in sources],
                options,
                n_best=n_best,
                prefixes=None if prefixes is None else self.tokenizers.target.encode(prefixes),
                constraints=constraints,
                seed=seed,
                details=details,
                align=align,
                reader=None if self.alignment is None else self.alignment.reader,
            )
        return [
            [replace(each, text=to_capitals(each.text)) for each in best]
            if source.capitals
            else best
            for source, best in zip(sources, translations, strict=True)
        ]


def _has_no_case(demand: str) -> bool:
    """Tell whether a part of a translation stays the same in capitals."""
    return demand == to_capitals(demand)


def _translated_text(translation: Translation, source: str, prefix: str) -> TranslatedText:
    """Give it the end of its source, and leave out the tokens of a full stop that is removed."""
    text = same_end(source, translation.text)
    if not text.startswith(prefix):
        text = translation.text
    tokens = translation.details
    if tokens is not None and text != translation.text:
        length = len(text)
        tokens = [replace(t, end=min(t.end, length)) for t in tokens if t.begin < length]
    return TranslatedText(
        text=text,
        score=translation.score,
        finished=translation.finished,
        tokens=None if tokens is None else tuple(map(_translated_token, tokens)),
    )


def _translated_token(token: OutputToken) -> TranslatedToken:
    source = None
    if token.source is not None and token.share is not None:
        piece, share = token.source, round(token.share, 4)
        source = SourceToken(token=piece.text, begin=piece.begin, end=piece.end, share=share)
    return TranslatedToken(**token.rounded(), source=source)
